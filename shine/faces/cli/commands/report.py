"""``shine report``: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.faces.cli.options import FILE, json_option, opened, precision_option
from shine.faces.cli.output import print_json, write_file

if TYPE_CHECKING:
    from shine.lang.forms.rounding import Precision


@click.command("report")
@click.argument("folder", metavar="RUN", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="File of the page; by default report.html in the run's folder.")
@click.option("show", "--open", is_flag=True, help="Open it in a browser.")
@precision_option
@json_option
def report(folder: Path, out: Path | None, show: bool, precision: Precision, as_json: bool) -> None:
    """Write an HTML page about RUN, a run's folder, and print its path.

    The page needs no other files and no network.

    \b
    Example:
      shine report runs/pythagoras --open
    """
    from shine.faces.cli.dynamics import dynamics_run
    from shine.formats.page import report_html
    from shine.formats.page.markup import element
    from shine.formats.page.page import html_page, own_text

    system = dynamics_run(folder)
    if system is not None:
        from shine.faces.dynamics.report import report_parts

        name = system.folder.resolve().name
        parts = report_parts(system.result.front, system.data, name, system.record.settings, precision)
        page = html_page(name, element("main", *parts), own_text("script.js"))
        _written(system.folder / "report.html" if out is None else out, page, show, as_json)
        return
    run = opened(folder)
    path = run.folder / "report.html" if out is None else out
    page = report_html(
        run.result,
        run.data,
        history=run.history,
        settings=run.config.model_dump(mode="json"),
        title=run.folder.resolve().name,
        target=run.target,
        precision=precision,
    )
    _written(path, page, show, as_json)


def _written(path: Path, page: str, show: bool, as_json: bool) -> None:
    """Write the page, print its path, and show it."""
    import webbrowser

    write_file(path, page.encode())
    if as_json:
        print_json({"file": str(path)})
    else:
        click.echo(str(path))
    if show and not webbrowser.open(path.resolve().as_uri()):
        raise click.ClickException(f"no browser can be opened; the report is in {path}")
