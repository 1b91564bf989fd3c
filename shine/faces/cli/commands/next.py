"""``shine next``: the points to measure at, so that the formulas of a run can be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import DataError, ShineError
from shine.faces.cli.options import FILE, json_option, opened
from shine.faces.cli.output import print_json, print_text

if TYPE_CHECKING:
    from shine.data.datasets.dataset import Dataset


def _limits(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any] | None:
    """Limits of each feature."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, limits = text.rpartition("=")
        if not equals or not name.strip() or not limits.strip():
            raise click.BadParameter(f"{text!r} is not NAME=LOW:HIGH, NAME=VALUE or NAME=TEXT,TEXT")
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()!r} is there twice")
        ends = [_number(part) for part in limits.split(":")]
        if None not in ends:
            found[name.strip()] = ends[0] if len(ends) == 1 else tuple(ends)
        else:
            found[name.strip()] = [part.strip() for part in limits.split(",")]
    return found or None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@click.command("next")
@click.argument("folder", metavar="RUN", type=FILE)
@click.option(
    "--box",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    callback=_limits,
    help="Limits of a feature, its value (x=3) or its texts (metal=tin,zinc). [the range of the rows]",
)
@click.option("-n", "count", type=int, default=1, metavar="N", help="Number of measurements. [1]")
@click.option("--cost", metavar="FORMULA", help="Price of a measurement, such as '1 + 0.2*x'. [all cost the same]")
@json_option
def next_command(folder: Path, box: dict[str, Any] | None, count: int, cost: str | None, as_json: bool) -> None:
    """Print where to measure next, to tell the formulas of RUN apart that its rows do not.

    \b
    Example:
      shine next runs/cooling --box minutes=0:120
      shine next runs/cooling --box minutes=0:120 --box cup=large -n 3
    """  # fmt: skip
    from shine.faces.runs.records import FEW_ROWS
    from shine.search.models.measuring.next_measurement import next_measurement

    run = opened(folder)
    models, beside = run.result.front.models, run.result.front.beside
    try:
        found = next_measurement(models, box, count, cost, rows=_rows(run.folder), beside=beside)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except DataError:
        if all(model.known is not None for model in (*models, *beside)):
            raise
        raise click.ClickException(
            f"{run.folder}: its result.json does not say how sure the constants of all formulas are; it does up to "
            f"{FEW_ROWS} rows if time is left: evolve again with more stop.seconds"
        ) from None
    if as_json:
        print_json(found.plain())
    else:
        print_text(str(found))


def _rows(folder: Path) -> Dataset | None:
    """The data of a run: they tell which features have only whole numbers, and where was measured."""
    from shine.faces.config import read_job

    try:
        return read_job(folder / "config.yaml").dataset
    except (ShineError, OSError) as error:
        click.echo(f"note: without the run's data, all numbers count as continuous: {error}", err=True)
        return None
