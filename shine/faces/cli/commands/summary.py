"""``shine summary`` and ``shine report``: the constants of a run, and a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from shine.base.errors import DataError, ShineError, placed
from shine.faces.cli.options import FILE, chosen, index_option, json_option, opened, precision_option
from shine.faces.cli.output import print_json, print_text, write_file

if TYPE_CHECKING:
    from shine.faces.runs import Run
    from shine.lang.forms.rounding import Precision
    from shine.search.dynamics.system import SystemModel
    from shine.search.models.model import Model


SAME = 0.01
"""Largest relative difference of standard errors that are those of the same rows."""


@click.command("summary")
@click.argument("folder", metavar="RUN", type=FILE)
@index_option
@click.option(
    "--exact",
    type=float,
    multiple=True,
    metavar="NUMBER",
    help="A number of the formula that is known exactly, without its sign; the run's data are read. May be repeated.",
)
@json_option
def summary(folder: Path, index: int | None, exact: tuple[float, ...], as_json: bool) -> None:
    """Print the constants of the formula of RUN with their standard errors and 95 % intervals.

    \b
    Example:
      shine summary runs/pythagoras
      shine summary runs/pythagoras --exact 2
    """
    from shine.faces.cli.dynamics import dynamics_run
    from shine.faces.runs.records import FEW_ROWS, UncertaintyRecord

    if (system := dynamics_run(folder)) is not None:
        if exact:
            raise click.UsageError("--exact is for runs of one target; a template says what is known of a motion")
        motion, front = cast("SystemModel", chosen(system, index)[1]), system.result.front
        if as_json:
            print_json({"equations": motion.lines("exact"), "conf_int": motion.conf_int(), "found": front.found})
        else:
            print_text("\n".join([*([] if front.found else [front.reason]), motion.summary()]))
        return
    run = opened(folder)
    place, model = chosen(run, index)
    try:
        text = str(model.summary())
        if exact:
            model = _with_rows(model, run)
            text = str(model.summary(exact=exact))
    except ValueError as error:
        raise click.UsageError(f"--exact: {error}") from None
    except DataError:
        raise click.ClickException(
            f"{run.folder}: its result.json does not say how sure the constants of this formula are; it does for the "
            f"chosen formula, and for the others up to {FEW_ROWS} rows if time is left"
        ) from None
    if as_json:
        record = UncertaintyRecord.of(model, profile=True, exact=exact)
        assert record is not None
        print_json(
            {"index": place, "expression": model.expression, **record.model_dump(mode="json", exclude={"details"})}
        )
    else:
        ties = run.result.ties_text if index is None else ""
        print_text("\n".join([text, f"ties: {ties}"] if ties else [text]))


def _with_rows(model: Model, run: Run) -> Model:
    """The model with the rows of its run, which are read again."""
    import numpy as np

    from shine.faces.config import read_job

    with placed("--exact needs the run's data", ShineError, OSError, kind=click.ClickException):
        job = read_job(run.folder / "config.yaml")
        found = model.with_rows(job.dataset, job.config.fitness.loss, run.result.front.noise)
        errors = list(found.standard_errors().values())
    if not np.allclose(errors, list(model.standard_errors().values()), rtol=SAME, equal_nan=True):
        raise click.ClickException(
            "--exact needs the rows that the constants were fitted to, and those of the run's data are others: they "
            "have changed, or some took no part in the search; use model.with_data(X, y).summary(exact=...) in Python"
        )
    return found


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
        target=run.config.constraints.with_unit(run.target),
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
