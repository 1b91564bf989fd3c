"""Columns of a file -> a data set: rows without values, texts and dates, and what is told about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError, placed
from shine.base.typing import Floats
from shine.data.columns.kinds import HOLDS, Column
from shine.data.datasets.dataset import Dataset, stable_mean
from shine.data.datasets.preparation import MOST_CATEGORIES, Preparation, PreparedColumn, Reading, learned
from shine.data.files.grids import shortened
from shine.data.files.numerals import Decimal
from shine.data.files.source import Source
from shine.lang.forms.names import Numbering, listed, shown

LOSS_COLUMN = "loss_columns."
"""Begins the role of a column beside the features; its name follows."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A data set, and how it came from its file.

    Parameters
    ----------
    dataset : Dataset
    preparation : Preparation, optional
        How its columns were made, to repeat it for new files; None if they hold nothing but numbers.
    notes : tuple of str
        What a user should know: rows left out, dates and texts that became numbers, ...
    """

    dataset: Dataset
    preparation: Preparation | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Training:
    """The columns of a file on their way to a data set.

    Parameters
    ----------
    source : Source
    roles : dict of str to Column
        Target, weights, sigma, groups and times, by the parameters of `Dataset.from_arrays`; columns beside them by
        `LOSS_COLUMN` and their name.
    features : list of (index, Column)
    reading : Reading
    decimal : "." or ","
    """

    source: Source
    roles: dict[str, Column]
    features: list[tuple[int, Column]]
    reading: Reading
    decimal: Decimal

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    def loaded(self, notes: list[str]) -> Loaded:
        """The data set; `notes` are those of reading.

        Raises
        ------
        DataError
            With a line for each column, or cell, that cannot be used.
        """
        problems = [line for role, column in self.roles.items() for line in _role_problems(role, column)]
        problems += self._text_problems()
        features = [(index, column) for index, column in self.features if not self._is_ignored(column)]
        ignored = [column for _, column in self.features if self._is_ignored(column)]
        notes += [ignored_note(column.raw.heading, len(set(column.values)) == 1) for column in ignored]
        used = [*self.roles.values(), *(column for _, column in features)]
        problems += [line for column in used for line in column.problems or self._missing_problems(column)]
        if problems:
            raise DataError("\n".join(shortened(self.path, problems)))
        if not features:
            raise DataError(f"{self.path}: no column is left to be a feature")
        kept = self._kept([column for _, column in features])
        notes += self._missing_notes(kept, [column for _, column in features])
        prepared, numbers = self._prepared(features, kept)
        notes += [note for note in (column.note() for column in prepared) if note]
        preparation = Preparation(tuple(prepared), self.reading.missing, self.decimal, self.reading.marks.extra)
        kept_preparation = None if preparation.is_plain else preparation
        return Loaded(self._dataset(numbers, prepared, kept), kept_preparation, tuple(notes))

    def _is_numbered(self, column: Column) -> bool:
        """Whether the texts of a column become numbers."""
        return self.reading.numbers(column.raw.heading) or self.reading.categories == "ordinal"

    def _is_ignored(self, column: Column) -> bool:
        if column.kind != "text" or (self.reading.numbered and self._is_numbered(column)):
            return False
        same = len(set(column.values)) == 1
        return self.reading.categories == "ignore" or (same and self.reading.categories != "error")

    def _text_problems(self) -> list[str]:
        texts = [column for _, column in self.features if column.kind == "text" and not self._is_ignored(column)]
        texts = [column for column in texts if not self._is_numbered(column)]
        if self.reading.categories == "error":
            return [_text_problem(column) for column in texts]
        if self.reading.categories == "one-hot":
            return [line for column in texts for line in _many_problems(column)]
        return []

    def _missing_problems(self, column: Column) -> list[str]:
        missing = column.missing
        rows = np.flatnonzero(missing)
        if not len(rows) or (self.reading.missing != "error" and len(rows) < len(missing)):
            return []
        if len(rows) == len(missing):
            return [column.raw.problem(0, "no row has a value")]
        more = f", as in {len(rows) - 1} other row{'s' * (len(rows) > 2)}" if len(rows) > 1 else ""
        cell = column.raw.values[rows[0]]
        written = f" ({shown(cell.strip())})" if isinstance(cell, str) and cell.strip() else ""
        text = f"the value is missing{written}{more}; data.missing may be drop or mean"
        return [column.raw.problem(int(rows[0]), text)]

    def _kept(self, features: Sequence[Column]) -> NDArray[np.bool_]:
        """Rows with a target, weights and so on; and with all features unless means replace them."""
        needed = [*self.roles.values(), *(features if self.reading.missing == "drop" else ())]
        kept = ~np.logical_or.reduce([column.missing for column in needed])
        if not kept.any():
            raise DataError(f"{self.path}: no row has a value in every column; choose data.features, or missing: mean")
        return kept

    def _missing_notes(self, kept: NDArray[np.bool_], features: Sequence[Column]) -> list[str]:
        notes = []
        if not kept.all():
            columns = [*self.roles.values(), *(features if self.reading.missing == "drop" else ())]
            counts = [(column.raw.heading, int(column.missing.sum())) for column in columns]
            named = listed((f"{count} in {heading!r}" for heading, count in counts if count), 8)
            count = int((~kept).sum())
            notes.append(f"{self.path}: without {count} of {len(kept)} rows, where values are missing: {named}")
        if self.reading.missing == "mean":
            counts = [(column.raw.heading, int(column.missing[kept].sum())) for column in features]
            filled = listed((f"{count} in {heading!r}" for heading, count in counts if count), 8)
            if filled:
                notes.append(f"{self.path}: the mean of the column replaces missing values: {filled}")
        return notes

    def _prepared(
        self, features: Sequence[tuple[int, Column]], kept: NDArray[np.bool_]
    ) -> tuple[list[PreparedColumn], list[Floats]]:
        taken = Numbering(self.source.names)
        prepared, all_numbers = list[PreparedColumn](), list[Floats]()
        for index, column in features:
            part = column if kept.all() else replace(column, values=column.values[kept])
            if part.missing.all():
                raise DataError(f"{self.path}: column {column.raw.heading!r} has no value in the rows that are left")
            categories = "ordinal" if self._is_numbered(part) else self.reading.categories
            own = learned(part, self.source.names[index], categories, taken)
            numbers = own.numbers(part)
            if self.reading.missing == "mean":
                own = replace(own, means=tuple(stable_mean(each[~np.isnan(each)]) for each in numbers))
            prepared.append(own)
            all_numbers += own.filled(numbers).values()
        return prepared, all_numbers

    def _dataset(self, numbers: list[Floats], prepared: list[PreparedColumn], kept: NDArray[np.bool_]) -> Dataset:
        roles = {role: column.values[kept] for role, column in self.roles.items()}
        if "groups" in roles and roles["groups"].dtype.kind != "f":
            roles["groups"] = roles["groups"].astype(str)
        return dataset_of(np.column_stack(numbers), roles, prepared, self.path)


def dataset_of(X: Floats, roles: Mapping[str, Any], columns: Sequence[PreparedColumn], where: object) -> Dataset:
    """The data set of prepared columns, by roles as of `Training`; a `DataError` begins with where they are from."""
    names = [name for column in columns for name in column.names]
    headings = [heading for column in columns for heading in column.headings]
    arrays: dict[str, Any] = {role: array for role, array in roles.items() if not role.startswith(LOSS_COLUMN)}
    arrays |= {"features": names, "headings": headings, "loss_columns": loss_columns_of(roles)}
    with placed(where, DataError):
        dataset = Dataset.from_arrays(X, arrays.pop("target"), **arrays)
    return replace(dataset, labels={each.names[0]: each.categories for each in columns if each.kind == "ordinal"})


def loss_columns_of(roles: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the columns by their roles that are beside the features, by name."""
    return {role.removeprefix(LOSS_COLUMN): each for role, each in roles.items() if role.startswith(LOSS_COLUMN)}


def told_role(role: str) -> str:
    """What a column that is no feature is called in messages."""
    if role.startswith(LOSS_COLUMN):
        return f"the column {role.removeprefix(LOSS_COLUMN)}"
    return {"sample_weight": "the weights", "sigma": "sigma"}.get(role, f"the {role}")


def _role_problems(role: str, column: Column) -> list[str]:
    allowed = ("number", "truth", "date", "duration") if role == "times" else ("number", "truth")
    if role == "groups" or column.kind in allowed or column.problems:
        return []
    told, needed = told_role(role), "numbers or dates" if role == "times" else "numbers"
    if column.kind == "text":
        text = f"{_example(column)} is not a number; {told} must be {needed}"
        return [column.raw.problem(_first_text(column), text)]
    return [column.raw.problem(0, f"{told} must be numbers; the column holds {HOLDS[column.kind]}")]


def _first_text(column: Column) -> int:
    return int(np.flatnonzero(~column.missing)[0])


def _example(column: Column) -> str:
    return shown(str(column.values[_first_text(column)]))


def _text_problem(column: Column) -> str:
    count = len(set(column.values) - {None})
    others = f" ({count} different texts)" if count > 1 else ""
    text = f"{_example(column)} is not a number{others}; for text, data.categories may be one-hot, ordinal or ignore"
    return column.raw.problem(_first_text(column), text)


def _many_problems(column: Column) -> list[str]:
    count = len(set(column.values) - {None})
    if count <= MOST_CATEGORIES:
        return []
    text = f"{count} different texts are too many for one-hot, which takes {MOST_CATEGORIES}; leave the column out"
    return [column.raw.problem(_first_text(column), text)]


def ignored_note(heading: str, same: bool) -> str:
    """Note on a column of texts, all the `same` or not, that is no feature."""
    return f"column {heading!r} holds {'the same text in every row' if same else 'text'}; it is left out"
