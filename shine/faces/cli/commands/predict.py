"""``shine predict``: a formula of a run, applied to a file of data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import click

from shine.faces.cli.options import FILE, SHARE, chosen, index_option, json_option, opened, out_option
from shine.faces.cli.output import print_json


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
