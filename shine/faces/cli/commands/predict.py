"""``shine predict`` and ``shine next``: values of a formula, and where to measure next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from shine.base.errors import DataError, ShineError
from shine.faces.cli.options import FILE, SHARE, chosen, index_option, json_option, opened, out_option
from shine.faces.cli.output import print_json, print_text

if TYPE_CHECKING:
    from shine.data.datasets.dataset import Dataset


@click.command("predict")
@click.argument("folder", metavar="RUN", type=FILE)
@click.argument("data", type=FILE)
@index_option
@out_option
@click.option("--times", metavar="FIRST:LAST:STEP", help="Times of the trajectories, of a run of dynamics.")
@click.option("--interval", type=SHARE, metavar="LEVEL", help="Add the ends of intervals, such as 0.95 of readings.")
@click.option("--mean", is_flag=True, help="Intervals of the value, without noise.")
@json_option
def predict(
    folder: Path,
    data: Path,
    index: int | None,
    out: Path | None,
    times: str | None,
    interval: float | None,
    mean: bool,
    as_json: bool,
) -> None:
    """Apply the formula of RUN, a run's folder, to the file DATA.

    DATA is a table in any format that Shine reads, with the columns that the formula uses, by heading, in any order;
    other columns are ignored. Texts, dates and missing values become numbers as in the training data. The output is one
    column, 'prediction', and with --interval two more, 'low' and 'high'. Its format is the ending of FILE; without
    --out it is CSV, or Parquet if DATA is Parquet and the output is not a terminal.

    A run of dynamics is integrated from the states in each row of DATA along --times; without --times, from the first
    row along the times of DATA, with its controls.

    \b
    Example:
      shine predict runs/pythagoras triangles.csv --out predicted.csv
      shine predict runs/hares start.csv --times 0:20:0.1
    """
    from shine.data.opening import is_streamed
    from shine.data.streams.writers import check_output
    from shine.faces.cli.dynamics import dynamics_run, predicted_states
    from shine.faces.cli.prediction_files import deliver_table
    from shine.search.models.file_predictions import extrapolation_as_notes, predict_table

    if mean and interval is None:
        raise click.UsageError("--mean is for --interval")
    kind: Literal["mean", "prediction"] = "mean" if mean else "prediction"
    system = dynamics_run(folder)
    if system is not None:
        predicted_states(system, data, index, times, interval, out, as_json)
        return
    if times is not None:
        raise click.UsageError("--times is for runs of dynamics")
    run = opened(folder)
    place, model = chosen(run, index)
    record = {"index": place, "expression": model.expression}
    if out is not None:
        check_output(out, data)
    if out is not None and is_streamed(data):
        with extrapolation_as_notes() as notes:
            rows = run.result.predict_file(data, out, index=place, interval=interval, kind=kind)
        _tell(notes)
        if as_json:
            print_json({**record, "rows": rows, "file": str(out)}, indent=None)
        return
    ending = (".csv" if data.is_dir() else _ending(data)) if out is None else _ending(out, otherwise=data)
    if not data.is_dir():
        _ending(data)
    columns, told = predict_table(model, data, interval, kind)
    _tell(told)
    deliver_table(columns, out, ending, record if as_json else None)


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _ending(path: Path, otherwise: Path | None = None) -> str:
    """The format that a file name ends in; without an ending, that of another file, or ".csv" of a folder."""
    from shine.data.opening import COMPRESSED, ENDINGS, FORMATS

    for ending in FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    if otherwise is not None and not path.suffix:
        return ".csv" if otherwise.is_dir() else _ending(otherwise)
    raise click.UsageError(f"{path}: data files end in one of {ENDINGS}; text also in {COMPRESSED}")


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
