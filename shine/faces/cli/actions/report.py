"""``shine report``: a run as one HTML page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from shine.faces.cli.output import print_json, write_file
from shine.faces.cli.sources import opened
from shine.faces.config import read_job
from shine.formats.page import report_html
from shine.lang.forms.rounding import Precision


def report(folder: Path, out: Path | None, show: bool, precision: Precision, as_json: bool) -> None:
    """Write the report of a run and print its path."""
    run = opened(folder)
    # The configuration in the run's folder has every default and the absolute path of the data.
    dataset = read_job(run.folder / "config.yaml").dataset
    path = run.folder / "report.html" if out is None else out
    page = report_html(
        run.result,
        dataset,
        history=run.history,
        settings=run.config.model_dump(mode="json"),
        title=run.folder.resolve().name,
        target=run.target,
        precision=precision,
    )
    write_file(path, page.encode())
    if as_json:
        print_json({"file": str(path)})
    else:
        click.echo(str(path))
    if show and not webbrowser.open(path.resolve().as_uri()):
        raise click.ClickException(f"no browser can be opened; the report is in {path}")
