"""Predictions of a formula from file to file, block by block: memory holds neither all rows nor all predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, ExtrapolationWarning, placed, reason
from shine.base.typing import Floats
from shine.data.applying import new_blocks, new_rows
from shine.data.datasets.preparation import plain_preparation
from shine.data.streams.sources import open_stream
from shine.data.streams.writers import check_output, checked_target, writer_of
from shine.evaluate.inference.bands import Kind
from shine.search.models.model import Model

PREDICTION, ENDS = "prediction", ("low", "high")
"""Headings of predictions, and of the ends of their intervals."""


def predict_file(
    model: Model,
    data: Any,
    out: str | Path,
    *,
    interval: float | None = None,
    kind: Kind = "prediction",
    where: Any = None,
) -> int:
    """Write the predictions for each row of some data; return the number of rows.

    Parameters
    ----------
    model : Model
    data : path, or what `shine.data.open_dataset` streams
        Only columns that the formula uses are read.
    out : path
        A file whose name ends in one of `shine.data.streams.writers.WRITERS`. It is complete or not there.
    interval : float, optional
        Level of intervals, whose ends are columns beside the predictions.
    kind : {"prediction", "mean"}
        Kind of the intervals (see `Model.predict_interval`).
    where : str or pyarrow.compute.Expression, optional
        Rows to predict for.

    Raises
    ------
    DataError
        If the data lack a column or cannot be read, or the file cannot be written.

    Warns
    -----
    ExtrapolationWarning
        As `Model.predict` does, once for all rows.
    """
    out = checked_target(out)
    check_output(out, data)
    stream = open_stream(data, where)
    headings = (PREDICTION, *(() if interval is None else ENDS))
    names = model.tree.parameters
    used = [name for name in names if name in model.tree.used_parameters] or list(names[:1])
    known = model.preparation or plain_preparation({name: model.headings.get(name, name) for name in names})
    ends: dict[str, list[float]] = {}
    unwritable = placed(f"{out}: cannot be written", OSError, kind=DataError, told=reason)
    with unwritable, writer_of(out, headings, stream.rows) as write:
        for columns in new_blocks(stream, known, used):
            write(_predicted(model, columns, interval, kind))
            for name, column in columns.items():
                ends[name] = [np.fmin.reduce([*ends.get(name, [])[:1], np.fmin.reduce(column)]),
                              np.fmax.reduce([*ends.get(name, [])[1:], np.fmax.reduce(column)])]  # fmt: skip
    corners = np.array([ends.get(name, [0.0, 0.0]) for name in names]).T
    if names and np.isfinite(corners).all():
        model.predict(corners)  # warns
    return stream.rows


def _predicted(model: Model, columns: Mapping[str, Floats], interval: float | None, kind: Kind) -> dict[str, Floats]:
    """Predictions for some rows, NaN where a value is missing; and the ends of intervals."""
    count = len(next(iter(columns.values())))
    gone = np.logical_or.reduce([np.isnan(column) for column in columns.values()])
    nothing = np.zeros(count)
    every = [columns.get(name, nothing) for name in model.tree.parameters]
    if set(model.categories) & columns.keys():
        model.with_group_numbers(np.column_stack(every)[~gone])  # raises an error for unknown groups
    with np.errstate(all="ignore"):
        values = np.array(np.broadcast_to(model.kernel(*every), (count,)))
    values[gone] = np.nan
    found = {PREDICTION: values}
    if interval is not None:
        ends = np.full((count, 2), np.nan)
        ends[~gone] = model.predict_interval(_table(every, count)[~gone], interval, kind)
        found |= dict(zip(ENDS, ends.T, strict=True))
    return found


def _table(columns: list[Floats], count: int) -> Floats:
    """Columns as a table of so many rows, also without a column."""
    return np.array(columns).reshape(len(columns), count).T


def predict_table(
    model: Model, data: Path, interval: float | None = None, kind: Kind = "prediction"
) -> tuple[dict[str, Floats], tuple[str, ...]]:
    """Predictions for the rows of a table that fits into memory.

    Parameters
    ----------
    model : Model
    data : Path
        A table in any format, with the columns that the formula uses, by heading.
    interval, kind
        See `predict_file`.

    Returns
    -------
    columns : dict of str to ndarray of shape (n_rows,), float64
        By heading: the predictions, and the ends of their intervals if there is a level. NaN in rows without the values
        that the formula needs.
    notes : tuple of str
        What a user should know about the table.

    Raises
    ------
    DataError
        If the table lacks a column or cannot be read.
    """
    features = model.tree.parameters
    # A formula without features still needs the number of rows.
    used = [name for name in features if ("name", name) in model.tree.tokens] or list(features)
    headings = {name: model.headings.get(name, name) for name in features}
    columns, count, notes = new_rows(data, model.preparation or plain_preparation(headings), used)
    unused = np.zeros(count)
    table = _table([columns[name] if name in used else unused for name in features], count)
    known = ~np.isnan(table).any(axis=1)
    found = {PREDICTION: np.full(count, np.nan)}
    with extrapolation_as_notes() as told:
        found[PREDICTION][known] = model.predict(table[known])
        if interval is not None:
            ends = np.full((count, 2), np.nan)
            ends[known] = model.predict_interval(table[known], interval, kind)
            found |= dict(zip(ENDS, ends.T, strict=True))
    return found, (*notes, *told)


@contextmanager
def extrapolation_as_notes() -> Iterator[list[str]]:
    """A context that collects warnings of extrapolation as notes, which are complete after it."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExtrapolationWarning)
        yield notes
    notes += [str(warning.message).partition("; to silence")[0] for warning in caught]
