"""Data files -> data sets. Also exports recipes, from `shine.data.datasets.recipe`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.data.columns.headings import names_of_headings
from shine.data.columns.kinds import Column, digits_note, reading_notes, recognized
from shine.data.datasets.preparation import Reading
from shine.data.datasets.recipe import Feature, Recipe, generate, recipe_problems
from shine.data.datasets.training import LOSS_COLUMN, Loaded, Training
from shine.data.files.source import Source
from shine.data.opening import FORMATS, Opened, opened, writing
from shine.data.streams.streaming import streamed
from shine.lang.forms.names import shown

__all__ = ["FORMATS", "Feature", "Loaded", "Recipe", "Roles", "generate", "load", "recipe_problems"]


@dataclass(frozen=True)
class Roles:
    """Headings of the columns that are neither the target nor features.

    Parameters
    ----------
    weights : str, optional
        Sample weights.
    sigma : str, optional
        Standard deviations of the target's noise.
    groups, times : str, optional
        The group of each row, and when it was read.
    loss_columns : sequence of str
        Columns that the loss reads.
    """

    weights: str | None = None
    sigma: str | None = None
    groups: str | None = None
    times: str | None = None
    loss_columns: Sequence[str] = ()

    def headings(self, target: str) -> dict[str, str]:
        """Heading of each role that is given, and of the target, by the names that `Training` has for them."""
        others = {"sample_weight": self.weights, "sigma": self.sigma, "groups": self.groups, "times": self.times}
        given = {role: heading for role, heading in others.items() if heading is not None}
        names = names_of_headings(self.loss_columns)
        loss_columns = {f"{LOSS_COLUMN}{name}": heading for name, heading in zip(names, self.loss_columns, strict=True)}
        return {"target": target} | given | loss_columns


def load(
    path: Any,
    target: str,
    features: Sequence[str] | None = None,
    others: Roles | None = None,
    reading: Reading | None = None,
) -> Loaded:
    """Read a table.

    Parameters
    ----------
    path : path, Opened, or what `shine.data.streams.sources.open_stream` takes
        The ending of a file's name tells the format (see `shine.data.opening.FORMATS`).
    target : str
        Heading of the column to explain.
    features : sequence of str, optional
        Headings of the feature columns; all other columns by default.
    others : Roles, optional
    reading : Reading, optional
        What to do with missing values and text.

    Returns
    -------
    Loaded
        The features of its data set are the headings; a heading that is not an identifier is turned into one. Data
        larger than `shine.data.opening.LARGEST` are a sample that knows the whole.

    Raises
    ------
    DataError
        If the file cannot be read or a column is missing or invalid; the message names the file, and the line and
        the column where possible.
    """
    found = path if isinstance(path, Opened) else opened(path, reading)
    reading, source = found.reading, found.source
    roles = (others or Roles()).headings(target)
    found_indices = source.indices([*roles.values(), *(features or ())])
    role_indices, chosen = found_indices[: len(roles)], found_indices[len(roles) :]
    if features is None:
        chosen = [i for i in range(len(source.headings)) if i not in role_indices]
    _check_choice(source, role_indices, chosen)
    if found.stream is not None:
        return streamed(found.stream, dict(zip(roles, role_indices, strict=True)), chosen, reading)
    raws = source.read([*role_indices, *chosen])
    written = writing(source, raws, reading.decimal)
    columns = [recognized(raw, written.decimal, reading.marks) for raw in raws]
    given = dict(zip(roles, columns, strict=False))
    pairs = list(zip(chosen, columns[len(role_indices) :], strict=True))
    left_out: list[str] = []
    if features is None:
        pairs, left_out = _without_nameless(source, pairs)
    told = reading_notes([*given.values(), *(column for _, column in pairs)])
    for index, column in zip([*role_indices, *chosen], columns, strict=True):
        if column.kind == "number" and (np.abs(column.values) >= 2**53).any():
            cells = source.read([index], [index])[0].values
            told += digits_note(f"column {column.raw.heading!r}", cells, column.values)
    comma = f"{source.path}: numbers have a decimal comma, as {written.example!r}"
    notes = [*source.notes, *([comma] if written.decimal == "," and written.example else []), *left_out, *told]
    return Training(source, given, pairs, reading, written.decimal).loaded(notes)


def _check_choice(source: Source, role_indices: Sequence[int], chosen: Sequence[int]) -> None:
    if not chosen:
        raise DataError(f"{source.path}: no column is left to be a feature")
    index, uses = Counter([*role_indices, *chosen]).most_common(1)[0]
    if uses > 1:
        raise DataError(
            f"{source.path}: column {shown(source.headings[index])} is used twice among target, weights, sigma, "
            "groups, times, loss_columns and features"
        )


def _without_nameless(source: Source, pairs: list[tuple[int, Column]]) -> tuple[list[tuple[int, Column]], list[str]]:
    """The columns without those that have no heading and no data: empty ones, and a first one that numbers the rows."""
    kept: list[tuple[int, Column]] = []
    notes: list[str] = []
    for index, column in pairs:
        numbers = column.values if column.values.dtype.kind == "f" else None
        if not source.headings[index] and numbers is not None:
            if np.isnan(numbers).all():
                continue
            whole = (numbers >= 0) & (numbers % 1 == 0)
            if index == 0 and whole.all() and 1 < len(numbers) == len(np.unique(numbers)):  # perhaps of some rows
                notes.append(f"{source.path}: the first column has no heading and numbers the rows; it is left out")
                continue
        kept.append((index, column))
    return kept, notes
