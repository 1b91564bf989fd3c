"""Trajectories in files: columns of times, states, controls and labels of runs, by heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine.base.errors import DataError, placed
from shine.base.typing import AnyArray
from shine.data.columns.headings import names_of_headings
from shine.data.columns.kinds import HOLDS, recognized
from shine.data.datasets.preparation import Reading
from shine.data.fields import Field, field_of, on_grid
from shine.data.files.grids import shortened
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
    """Columns of numbers, by headings or names, with NaN where one is missing; the one of labels may hold texts.

    A `DataError`, with a line for each problem, if the file cannot be read, or a column is missing or holds texts.
    """
    source = open_source(path, reading.marks)
    raws = source.read(source.indices(headings))
    decimal = writing(source, raws, reading.decimal).decimal
    found: dict[str, AnyArray] = {}
    problems: list[str] = []
    for heading, raw in zip(headings, raws, strict=True):
        column = recognized(raw, decimal, reading.marks)
        if heading == label and column.problems:  # some labels are numbers
            column = recognized(raw, decimal, reading.marks, "text")
        if heading != label and column.values.dtype.kind != "f":
            problems.append(f"{path}: column {shown(heading)} holds {HOLDS[column.kind]}; numbers are needed")
        problems += column.problems
        found[heading] = column.values
    if problems:
        raise DataError("\n".join(shortened(path, problems)))
    return found


def trajectories_of_file(
    path: Path, columns: TrajectoryColumns, reading: Reading | None = None, continuous: bool = True
) -> Trajectories:
    """Read trajectories, whose motion may go on between the times.

    A `DataError`, which names the file, as of `columns_of_file`, or if the trajectories cannot be used.
    """
    reading = reading or Reading()
    others, states = _roles(path, columns, reading)
    found = columns_of_file(path, [*others, *states], columns.run, reading)
    names = Names(states, columns.controls, columns.time)
    controls = np.column_stack([found[heading] for heading in columns.controls]) if columns.controls else None
    labels = None if columns.run is None else found[columns.run]
    with placed(path, DataError):
        table = np.column_stack([found[state] for state in states])
        return trajectories(table, found[columns.time], controls, run=labels, names=names, continuous=continuous)


def field_of_file(
    path: Path, columns: TrajectoryColumns, reading: Reading | None = None, periodic: bool = False
) -> Field:
    """Read fields from a long table: a row for each time and point; `columns` have one or two coordinates in `space`.

    A `DataError` as of `trajectories_of_file`; or if a point of the grid lacks or repeats, or steps are not equal.
    """
    reading = reading or Reading()
    others, states = _roles(path, columns, reading)
    found = columns_of_file(path, [*others, *states], None, reading)
    names = names_of_headings(states)
    with placed(path, DataError):
        axes = {heading: found[heading] for heading in others}
        (times, *space), fields = on_grid(axes, dict(zip(names, (found[state] for state in states), strict=True)))
        return field_of(fields, times, space if len(space) > 1 else space[0], None, periodic)


def _roles(path: Path, columns: TrajectoryColumns, reading: Reading) -> tuple[list[str], list[str]]:
    """Headings of the columns with a role of their own, and of the states."""
    source = open_source(path, reading.marks)
    others = [columns.time, *columns.space, *([] if columns.run is None else [columns.run]), *columns.controls]
    places = source.indices([*others, *(columns.states or ())])
    states = list(columns.states or [each for place, each in enumerate(source.headings) if place not in places])
    if len(set(places)) < len(places):
        raise DataError(f"{path}: a column is used twice among {listed([*others, *states])}")
    if not states:
        raise DataError(f"{path}: no column is left to be a state")
    return others, states
