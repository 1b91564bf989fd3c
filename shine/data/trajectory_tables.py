"""Readings as a user gives them -> trajectories: tables, lists of tables, labelled rows, functions of the time, and
columns of files by heading.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, placed
from shine.base.typing import AnyArray, Floats
from shine.data.columns.frames import frame_columns
from shine.data.columns.headings import (
    check_features,
    check_heading,
    frame_headings,
    names_of_headings,
    with_columns,
    without_columns,
)
from shine.data.columns.kinds import HOLDS, recognized
from shine.data.columns.numbers import floats, numbered_groups, numbers
from shine.data.datasets.preparation import Reading
from shine.data.fields import Field, field_of, on_grid
from shine.data.files.grids import shortened
from shine.data.opening import open_source, writing
from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.forms.names import is_list, listed, shown, value_text


@dataclass(frozen=True)
class Names:
    """Names of the columns of arrays; of data frames, `states` chooses columns by their headings."""

    states: Sequence[str] | None = None
    controls: Sequence[str] | None = None
    time: str | None = None


@dataclass(frozen=True, eq=False)
class _Part:
    """One run as it was given; `label` is empty if it is the only one."""

    x: Any
    t: Any
    u: Any
    label: str = ""

    @property
    def what(self) -> str:
        return f"run {self.label}" if self.label else "x"


NO_NAMES = Names()
"""Names ``x0, x1, ...``, ``u0, u1, ...`` and ``t``."""


def trajectories(
    x: Any,
    t: Any = 1.0,
    u: Any = None,
    *,
    run: Any = None,
    sigma: Any = None,
    names: Names = NO_NAMES,
    continuous: bool = True,
) -> Trajectories:
    """Check readings, and arrange them by run.

    Parameters
    ----------
    x, t, u, run, sigma
        As of `SymbolicDynamics.fit`, but `sigma` is not estimated.
    names : Names
    continuous : bool
        Whether the motion goes on between the times, so that these may be too far apart.

    Raises
    ------
    DataError
        If shapes do not fit, a run has fewer than two times, times repeat or go back, values are infinite, runs have
        different states, or for what `Trajectories.check` finds.

    Warns
    -----
    SamplingWarning
        If a state swings too fast for the times of its readings.
    """
    parts = _parts(x, t, u) if run is None else _labelled(x, t, u, run)
    headings: list[str] = []
    inputs: list[str] = []
    runs: list[Trajectory] = []
    for part in parts:
        states, controls, times, own, own_inputs = _read(part, names)
        if runs and (own != headings or own_inputs != inputs):
            kind, has, first = ("states", own, headings) if own != headings else ("controls", own_inputs, inputs)
            raise DataError(
                f"{part.what} has the {kind} {listed(has)}, and run {runs[0].name} has {listed(first)}; all runs need "
                "the same, in the same order"
            )
        headings, inputs = own, own_inputs
        runs.append(Trajectory(times, states, controls, part.label))
    states_named, controls_named = names_of_headings(headings), names_of_headings(inputs)
    clock = names_of_headings([names.time or (t if isinstance(t, str) else "t")])[0]
    if clock in states_named:
        raise DataError(f"column {shown(clock)} of x has the name of the time; give t={clock!r}, or rename it")
    check_features([*states_named, *controls_named, clock], "name")
    deviations = _deviations(sigma, headings)
    found = Trajectories(tuple(runs), states_named, controls_named, clock, deviations, tuple(headings))
    found.check(continuous)
    return found


def _read(part: _Part, names: Names) -> tuple[Floats, Floats, Floats, list[str], list[str]]:
    """States, controls and times of a run, and the headings of the first two."""
    times, table = _taken(part.x, part.t, "t")
    chosen = [part.u] if isinstance(part.u, str) else part.u
    controls = part.u
    if _is_texts(chosen):
        controls, table = with_columns(table, chosen, "a control"), without_columns(table, chosen)
    if names.states is not None and frame_headings(table):
        chosen = [names.states] if isinstance(names.states, str) else list(names.states)
        table = with_columns(table, chosen, "a state")
    states = _states(table, part.what)
    checked = _times(times, len(states), part.what)
    values = _control_values(controls, checked, part.what)
    own = frame_headings(table) or _named(names.states, "x", states.shape[1], "state", part.what)
    inputs = frame_headings(controls) or _named(names.controls, "u", values.shape[1], "control", part.what)
    return states, values, checked, own, inputs


def _named(given: Sequence[str] | None, letter: str, count: int, kind: str, what: str) -> list[str]:
    """Names of the columns of an array: the given ones, or a letter and numbers."""
    if given is None:
        return [letter] if kind == "control" and count == 1 else [f"{letter}{number}" for number in range(count)]
    if (not is_list(given) and not isinstance(given, str)) or not all(isinstance(name, str) for name in given):
        raise DataError(f"the names of {kind}s are a list of texts, is {value_text(given)}")
    names = [given] if isinstance(given, str) else list(given)
    if len(names) != count:
        raise DataError(f"{what} has {count} {kind}s, and {len(names)} names of {kind}s are given")
    return names


def _is_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(each, str) for each in given)


def _is_rows(given: Any) -> bool:
    """Whether values are a list of lists, arrays or frames."""
    return isinstance(given, list | tuple) and bool(given) and all(is_list(each) for each in given)


def _parts(x: Any, t: Any, u: Any) -> list[_Part]:
    """The runs: elements of a list of tables, the first axis of three, or the only table."""
    several = isinstance(x, np.ndarray) and x.ndim == 3
    if _is_rows(x):
        several = _is_rows(t) or any(hasattr(each, "columns") or (len(each) and is_list(each[0])) for each in x)
    if not several:
        return [_Part(x, t, u)]
    for name, given in (("t", t), ("u", u)):
        if _is_rows(given) and len(given) != len(x):
            raise DataError(f"{name} is a list of {len(given)}, and x is a list of {len(x)} runs; give one for each")
    return [
        _Part(table, t[place] if _is_rows(t) else t, u[place] if _is_rows(u) else u, str(place))
        for place, table in enumerate(x)
    ]


def _labelled(x: Any, t: Any, u: Any, run: Any) -> list[_Part]:
    """The runs of one table whose rows are labelled."""
    if len(_parts(x, t, u)) > 1:
        raise DataError("run labels the rows of one table, and x is a list of runs already; leave run out")
    labels, table = _taken(x, run, "run")
    table = table if hasattr(table, "columns") else np.asarray(table)
    groups = numbered_groups(labels, len(table))
    names = np.asarray(labels)
    by_row = {"t": t, "u": u}
    for name, given in by_row.items():
        if is_list(given) and not _is_texts(given):
            if len(given) != len(table):
                raise DataError(f"{name} has {len(given)} rows, and x has {len(table)}")
            by_row[name] = given if hasattr(given, "columns") else np.asarray(given)
    rows = [np.flatnonzero(groups == number) for number in range(int(groups.max()) + 1)]
    return [
        _Part(_rows(table, own), _rows(by_row["t"], own), _rows(by_row["u"], own), str(names[own[0]])) for own in rows
    ]


def _rows(table: Any, rows: Any) -> Any:
    """Some rows of a table; what has no rows as it is."""
    if not is_list(table) or _is_texts(table):
        return table
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _taken(table: Any, given: Any, role: str) -> tuple[Any, Any]:
    """Values given by themselves or as a heading, and the table without that column."""
    if not isinstance(given, str):
        return given, table
    check_heading(table, given, role)
    return table[given], without_columns(table, [given])


def _states(table: Any, what: str) -> Floats:
    """The readings of one run; a `DataError` if they are not numbers, or infinite."""
    if hasattr(table, "iloc") and any(hasattr(kind, "na_value") for kind in np.atleast_1d(table.dtypes)):
        texts = [heading for heading, column in frame_columns(table) if not _is_numeric(column)]
        if texts:
            raise DataError(
                f"column {shown(str(texts[0]))} of {what} holds no numbers; leave it out, or give it as run="
            )
        table = table.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' own types of columns
    if table is None or np.ndim(table) not in (1, 2):
        raise DataError(f"{what} must be an array of shape (n_times, n_states), is {value_text(table)}")
    values = _one_line(floats, table, what, np.ndim(table))
    states = values.reshape(len(values), -1) if len(values) else np.zeros((0, 1))
    if not states.shape[1]:
        raise DataError(f"{what} has no column; give one for each state")
    if np.isinf(states).any():
        row, column = np.argwhere(np.isinf(states))[0].tolist()
        raise DataError(f"{what} is infinite in row {row}, column {column}; NaN means that a state was not read")
    return np.ascontiguousarray(states)


def _is_numeric(column: Any) -> bool:
    """Whether a column of pandas becomes numbers, with NaN where one lacks."""
    try:
        column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return False
    return column.dtype.kind not in "mM"


def _one_line(read: Callable[..., Floats], *given: Any) -> Floats:
    """Numbers; the message of a `DataError` without the remedies for tables of features."""
    try:
        return read(*given)
    except DataError as error:
        raise DataError(str(error).splitlines()[0]) from None


def _times(given: Any, count: int, what: str) -> Floats:
    """The times of one run; a `DataError` unless they increase."""
    if is_list(given):
        times = np.ascontiguousarray(numbers(given, "t", 1))
    elif isinstance(given, int | float | np.number) and not isinstance(given, bool) and 0 < given <= sys.float_info.max:
        times = np.arange(count, dtype=np.float64) * float(given)
    else:
        raise DataError(f"t must be the times, a heading, or a step above 0, is {value_text(given)}")
    if len(times) != count:
        raise DataError(f"{what} has {count} rows, but t has {len(times)} times")
    if count < 2:
        raise DataError(f"{what} has {count} time{'s' * (count != 1)}; a run needs at least 2, better 20")
    steps = times[1:] - times[:-1]
    if (steps > 0).all():
        return times
    row = int(np.argmin(steps > 0))
    fault = f"go back from {times[row]:.6g} to" if steps[row] else "repeat"
    raise DataError(
        f"the times of {what} {fault} {times[row + 1]:.6g} in row {row + 1}; times increase within a run: sort the "
        "rows, keep one of those with equal times, or give several runs as a list or with run="
    )


def _control_values(inputs: Any, times: Floats, what: str) -> Floats:
    """The controls of one run at its times, of shape (n_times, n_controls)."""
    if inputs is None:
        return np.zeros((len(times), 0))
    if callable(inputs):
        rows = [np.atleast_1d(inputs(time)) for time in times.tolist()]
        wrong = next((row for row, each in enumerate(rows) if each.shape != rows[0].shape or each.ndim > 1), None)
        if wrong is not None:
            raise DataError(
                f"the function u returns an array of shape {rows[wrong].shape} at time {times[wrong]:.6g}, and of "
                f"shape {rows[0].shape} at the first; it needs a number, or one for each control"
            )
        if any(each.dtype.kind not in "biuf" for each in rows):
            raise DataError(f"the function u returns {value_text(inputs(float(times[0])))}; numbers are needed")
        return numbers(np.array(rows), "u", 2)
    values = _one_line(numbers, inputs, "u", 1 if np.ndim(inputs) == 1 else 2)
    if len(values) != len(times):
        raise DataError(f"{what} has {len(times)} times, but u has {len(values)}; give the controls at each time")
    return np.ascontiguousarray(values.reshape(len(values), -1))


def _deviations(sigma: Any, states: Sequence[str]) -> Floats | None:
    """The known standard deviation of each state's noise."""
    if sigma is None:
        return None
    if isinstance(sigma, Mapping):
        if set(sigma) != set(states):
            raise DataError(f"sigma has {listed(map(str, sigma))}; it needs the states {listed(states)}")
        sigma = [sigma[name] for name in states]
    values = numbers(np.atleast_1d(sigma), "sigma", 1)
    if (np.ndim(sigma) and len(values) != len(states)) or not (values > 0).all():
        raise DataError(
            f"sigma is {value_text(sigma)}; give a number above 0, or one for each of the states {listed(states)}"
        )
    return np.array(np.broadcast_to(values, len(states)))


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
