"""Trajectories in files: columns of times, states, controls and labels of runs, by heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import AnyArray
from shine.data.columns.headings import names_of_headings
from shine.data.columns.kinds import recognized
from shine.data.datasets.preparation import Reading
from shine.data.fields import Field, field_of, on_grid
from shine.data.opening import open_source, writing
from shine.data.trajectories import Trajectories
from shine.data.trajectory_tables import Names, trajectories
from shine.lang.forms.names import listed, shown


@dataclass(frozen=True)
class TrajectoryColumns:
    """Headings of the columns; all columns without another role are states by default. Fields have `space`."""

    time: str
    states: Sequence[str] | None = None
    run: str | None = None
    controls: Sequence[str] = ()
    space: Sequence[str] = ()


def columns_of_file(path: Path, headings: Sequence[str], label: str | None, reading: Reading) -> dict[str, AnyArray]:
    """Columns of numbers, with NaN where one is missing, and the labels of runs.

    Parameters
    ----------
    path : Path
    headings : sequence of str
        As in the file, or as names.
    label : str, optional
        The one among them that may hold texts.
    reading : Reading

    Raises
    ------
    DataError
        If the file cannot be read, or a column is missing or holds texts.
    """
    source = open_source(path, reading.marks)
    raws = source.read(source.indices(headings))
    decimal = writing(source, raws, reading.decimal).decimal
    found: dict[str, AnyArray] = {}
    for heading, raw in zip(headings, raws, strict=True):
        column = recognized(raw, decimal, reading.marks)
        if heading != label and column.values.dtype.kind != "f":
            raise DataError(f"{path}: column {shown(heading)} holds {_held(column.values)}; numbers are needed")
        found[heading] = column.values
    return found


def _held(values: AnyArray) -> str:
    return "dates or durations" if values.dtype.kind in "mM" else "text"


def trajectories_of_file(
    path: Path, columns: TrajectoryColumns, reading: Reading | None = None, continuous: bool = True
) -> Trajectories:
    """Read trajectories.

    Parameters
    ----------
    path : Path
    columns : TrajectoryColumns
    reading : Reading, optional
        Marks of missing values and the decimal sign.
    continuous : bool
        Whether the motion goes on between the times.

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing or holds texts, or the trajectories cannot be used; the message
        names the file.
    """
    reading = reading or Reading()
    others, states = _roles(path, columns, reading)
    found = columns_of_file(path, [*others, *states], columns.run, reading)
    names = Names(states, columns.controls, columns.time)
    controls = np.column_stack([found[heading] for heading in columns.controls]) if columns.controls else None
    labels = None if columns.run is None else found[columns.run]
    try:
        table = np.column_stack([found[state] for state in states])
        return trajectories(table, found[columns.time], controls, run=labels, names=names, continuous=continuous)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def field_of_file(
    path: Path, columns: TrajectoryColumns, reading: Reading | None = None, periodic: bool = False
) -> Field:
    """Read fields from a long table: a row for each time and point.

    Parameters
    ----------
    path : Path
    columns : TrajectoryColumns
        With one or two headings of coordinates in `space`.
    reading : Reading, optional
        Marks of missing values and the decimal sign.
    periodic : bool

    Raises
    ------
    DataError
        As of `trajectories_of_file`; or if a point of the grid lacks or repeats, or the steps are not equal.
    """
    reading = reading or Reading()
    others, states = _roles(path, columns, reading)
    found = columns_of_file(path, [*others, *states], None, reading)
    names = names_of_headings(states)
    try:
        axes = {heading: found[heading] for heading in others}
        (times, *space), fields = on_grid(axes, dict(zip(names, (found[state] for state in states), strict=True)))
        return field_of(fields, times, space if len(space) > 1 else space[0], None, periodic)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _roles(path: Path, columns: TrajectoryColumns, reading: Reading) -> tuple[list[str], list[str]]:
    """Headings of the columns with a role of their own, and of the states."""
    source = open_source(path, reading.marks)
    others = [columns.time, *columns.space, *([] if columns.run is None else [columns.run]), *columns.controls]
    roles = {source.headings[source.index(heading)] for heading in others}
    states = list(columns.states or [heading for heading in source.headings if heading not in roles])
    both = [state for state in states if source.headings[source.index(state)] in roles]
    if both or len(roles) < len(others) or len(set(states)) < len(states):
        raise DataError(f"{path}: a column is used twice among {listed([*others, *states])}")
    if not states:
        raise DataError(f"{path}: no column is left to be a state")
    return others, states
