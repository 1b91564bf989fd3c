"""A new file of data, prepared like the training data, for predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.kinds import HOLDS, Column, Kind, recognized
from shine.data.datasets.preparation import Preparation, PreparedColumn
from shine.data.files.grids import shortened
from shine.data.files.source import Source
from shine.data.opening import open_source, writing
from shine.data.streams.streaming import gone, numbers_of
from shine.data.streams.streams import Stream, Texts, Values, source_of, without_marks
from shine.lang.forms.names import listed, shown, similar


def new_rows(
    path: Path, preparation: Preparation, names: Sequence[str]
) -> tuple[dict[str, Floats], int, tuple[str, ...]]:
    """Columns of a new file, by their names in formulas, NaN where a value is missing; the number of rows; and notes.

    What separates columns and decimals is looked for anew; categories, the beginning of dates and means are those of
    the training data. Missing values become means if the training data had `missing: mean`, and stay NaN with `drop`.

    A `DataError` if a column is not there, or has cells that cannot be read, unknown texts, or missing values and no
    rule for them.
    """
    source = open_source(path, preparation.marks)
    wanted = preparation.of(names)
    indices = _places(source, preparation, wanted)
    texts = [place for place, column in zip(indices, wanted, strict=True) if column.raw_kind == "text"]
    raws = source.read(indices, texts)
    count = len((raws or source.read([0]))[0].values)
    decimal = writing(source, raws, known=preparation.decimal).decimal
    columns = [
        recognized(raw, decimal, preparation.marks, own.raw_kind, own.order)
        for raw, own in zip(raws, wanted, strict=True)
    ]
    problems = [
        line
        for own, column in zip(wanted, columns, strict=True)
        for line in column.problems or [*own.unknown(column), *_missing_problems(preparation, column)]
    ]
    if problems:
        raise DataError("\n".join(shortened(path, problems)))
    filled: dict[str, Floats] = {}
    for own, column in zip(wanted, columns, strict=True):
        filled |= own.filled(own.numbers(column))
    return filled, count, (*source.notes, *_missing_notes(preparation, path, columns))


def _places(source: Source, preparation: Preparation, wanted: Sequence[PreparedColumn]) -> list[int]:
    """Positions of columns of the training data; a `DataError` if one is not there."""
    headings = [column.heading for column in preparation.columns]
    places = [_place(source, column, headings.count(column.heading)) for column in wanted]
    missing = [column.heading for column, place in zip(wanted, places, strict=True) if place is None]
    if missing:
        near = {similar(heading, source.headings): None for heading in missing}
        hint = f"did you mean {listed(shown(each) for each in near if each)}? " if any(near) else ""
        if len(missing) < len(wanted):
            hint += f"the formula needs {listed(column.heading for column in wanted)}, and "
        raise DataError(
            f"{source.path}: there is no column {listed(missing)}; {hint}the file has {listed(source.headings)}"
        )
    return [place for place in places if place is not None]


def new_blocks(stream: Stream, preparation: Preparation, names: Sequence[str]) -> Iterator[dict[str, Floats]]:
    """The columns of `new_rows`, block by block.

    Raises
    ------
    DataError
        As for `new_rows`.
    """
    wanted = preparation.of(names)
    indices = _places(source_of(stream), preparation, wanted)
    start = 0
    for block in without_marks(stream, preparation.marks).blocks(indices or [0]):
        found: dict[str, Floats] = {}
        for own, values in zip(wanted, block, strict=False):
            _check_block(stream, preparation, own, values, start)
            found |= own.filled(numbers_of(own, values))
        start += len(block[0])
        yield found or {name: np.zeros(len(block[0])) for name in names[:1] or ("",)}


def _check_block(stream: Stream, preparation: Preparation, own: PreparedColumn, values: Values, start: int) -> None:
    """Raise a `DataError` if values of a column cannot be used."""

    def problem(row: int, text: str) -> DataError:
        return DataError(f"{stream.place(start + row)}: column {shown(own.heading)}: {text}")

    kinds: dict[str, Kind] = {"M": "date", "m": "duration"}
    kind = "text" if isinstance(values, Texts) else kinds.get(values.dtype.kind, "number")
    if kind != ("number" if own.raw_kind == "truth" else own.raw_kind):
        raise problem(0, f"holds {HOLDS[kind]}, but {HOLDS[own.raw_kind]} in the training data")
    if isinstance(values, Texts):
        used = np.unique(values.codes)
        for code in used[used >= 0].tolist():
            if values.texts[code] not in own.categories:
                raise problem(int(np.argmax(values.codes == code)), own.unknown_text(values.texts[code]))
    elif values.dtype.kind == "f" and np.isinf(values).any():
        raise problem(int(np.argmax(np.isinf(values))), "the value is infinite")
    missing = gone(values)
    if preparation.missing == "error" and missing is not None and missing.any():
        raise problem(
            int(np.argmax(missing)), "the value is missing; leave such rows out, or train with data.missing: mean"
        )


def _place(source: Source, column: PreparedColumn, owners: int) -> int | None:
    """Position of a column of the training data, of which `owners` had its heading; None if it is not there."""
    if column.heading in source.headings and owners == 1:
        return source.index(column.heading)
    return source.names.index(column.name) if column.name in source.names else None


def _missing_problems(preparation: Preparation, column: Column) -> list[str]:
    rows = np.flatnonzero(column.missing)
    if preparation.missing != "error" or not len(rows):
        return []
    more = f" in {len(rows)} rows" if len(rows) > 1 else ""
    text = f"the value is missing{more}; leave such rows out, or train with data.missing: mean"
    return [column.raw.problem(int(rows[0]), text)]


def _missing_notes(preparation: Preparation, path: Path, columns: Sequence[Column]) -> list[str]:
    counts = [(column.raw.heading, int(column.missing.sum())) for column in columns]
    told = listed((f"{count} in {heading!r}" for heading, count in counts if count), 8)
    if not told:
        return []
    if preparation.missing == "mean":
        return [f"{path}: the mean of the training data replaces missing values: {told}"]
    rows = int(np.logical_or.reduce([column.missing for column in columns]).sum())
    count = len(columns[0].values)
    return [f"{path}: no prediction for {rows} of {count} rows, where values are missing: {told}"]
