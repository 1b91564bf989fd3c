"""Text and table -> the rows that a condition selects, or values."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.base.typing import AnyArray
from shine.frames.columns import Column, Piece, Segment, Table, segments
from shine.frames.language.reading import read
from shine.frames.language.types import INTEGERS, ColumnType, Member, Query, SameTexts
from shine.frames.running import Computed, Selection, compute, select
from shine.lang.conditions.scanning import scan
from shine.lang.forms.names import value_text


def member_column(column: Column, member: Member) -> Column:
    """Whether each value of a column is in a list; missing where the value is.

    Parameters
    ----------
    column : Column
    member : Member
        Numbers of the column's own type, or texts.
    """
    missing = column.type.missing
    pieces = tuple(_found(piece, column.type, member) for piece in column.pieces)
    return Column(ColumnType("bool", "bytes" if missing in ("least", "negative") else missing), pieces)


def same_texts_column(column: Column, other: Column) -> Column:
    """Whether two columns of texts have the same one; missing where either is."""
    pieces = []
    for segment in segments([column, other], column.starts[-1]):
        left, right = (_codes(each, segment) for each in (column, other))
        codes = column.at(segment.start)[0].codes or {}
        others = other.at(segment.start)[0].codes or {}
        # The code of each text of the other dictionary in this one; none has -2.
        table = np.full(max(others.values(), default=0) + 2, -2)
        table[list(others.values())] = [codes.get(text, -2) for text in others]
        found = left == table[np.minimum(right, len(table) - 1)]
        pieces.append(Piece(segment.rows, found, marks=(left < 0) | (right < 0)))
    return Column(ColumnType("bool", "bytes"), tuple(pieces))


def _codes(column: Column, segment: Segment) -> AnyArray:
    """Codes of a segment's rows; -1 for missing texts."""
    piece, row = column.at(segment.start)
    codes = piece.values[row : row + segment.rows].astype(np.int64)
    if column.type.missing == "bits" and piece.marks is not None:
        first = piece.first_mark + row
        bits = np.unpackbits(piece.marks[first // 8 : (first + segment.rows + 7) // 8], bitorder="little")
        codes[bits[first % 8 : first % 8 + segment.rows] == 0] = -1
    return codes


def _found(piece: Piece, type_: ColumnType, member: Member) -> Piece:
    values: AnyArray = piece.values
    if piece.codes is not None:
        wanted = [piece.codes[text] for text in member.values if text in piece.codes]  # type: ignore[index]
        table = np.zeros(max(piece.codes.values(), default=0) + 2, np.bool_)
        table[wanted] = True
        found = table[np.minimum(values, len(table) - 1)]  # a missing value has any code
    else:
        found = np.isin(values, np.array(member.values, type_.storage))
    marks, first = piece.marks, piece.first_mark
    if type_.missing in ("least", "negative"):
        marks = values < 0 if type_.missing == "negative" else values == INTEGERS[type_.storage][0]
    return Piece(piece.rows, found, marks=marks, first_mark=first)


RESULTS = ("indices", "mask", "rows")
"""Results of a filter."""


class Frames:
    """Methods of ``df.shine``; a subclass knows the tables of a library, and its rows and values."""

    _table: Callable[[Any], Table]

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def query(
        self,
        text: str,
        result: str = "indices",
        variables: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The rows where a condition is true; neither those where it is false nor those where a value is missing.

        Parameters
        ----------
        text : str
            A condition over columns, as for `pandas.DataFrame.query`: ``(x > 2.0) & (name in ("a", "b"))``. A heading
            that is no name stands in backticks; ``@limit`` is a variable of the calling function.
        result : {"indices", "mask", "rows"}
            Positions of the rows, whether each row is one, or a data frame of them.
        variables : mapping of str to object, optional
            Values of the names after ``@``, instead of the caller's variables.
        threads : int, optional
            Threads that share the rows of large tables; all processors by default. They change nothing in the result.

        Returns
        -------
        ndarray of uint32, ndarray or polars.Series of bool, or a data frame
            Indices are uint64 if the table has more than 2**32 rows.

        Raises
        ------
        UnsupportedSyntaxError
            If the text is no condition, a column does not exist, or types do not fit; with the place in the text.

        Examples
        --------
        >>> import pandas, shine.pandas
        >>> df = pandas.DataFrame({"x": [1.0, 3.0, 5.0, 7.0]})
        >>> df.shine.query("(x > 2.0) & (x < 6.0)")
        array([1, 2], dtype=uint32)
        """
        check_result(result)
        found = selected(text, self._table(self._frame), variables_of(caller(), variables), threads)
        return found.indices() if result == "indices" else self._rows(found, result)

    def eval(self, text: str, variables: Mapping[str, Any] | None = None, threads: int | None = None) -> Any:
        """The values of an expression, one a row.

        Parameters
        ----------
        text : str
            An expression over columns, such as ``sqrt(a*a + b*b)``.
        variables, threads
            As for `query`.

        Returns
        -------
        pandas.Series or polars.Series
            Of float64, float32, int64, uint64 or bool. That of pandas has the data frame's index, and pandas' type with
            missing values if a column has such a type or a value is missing.

        Raises
        ------
        UnsupportedSyntaxError
            As for `query`.

        Examples
        --------
        >>> import pandas, shine.pandas
        >>> df = pandas.DataFrame({"a": [3.0, 5.0], "b": [4.0, 12.0]})
        >>> df.shine.eval("sqrt(a*a + b*b)").tolist()
        [5.0, 13.0]
        """
        return self._values(computed(text, self._table(self._frame), variables_of(caller(), variables), threads))

    def _rows(self, found: Selection, result: str) -> Any:
        """The selected rows as a "mask", or the "rows" themselves."""
        raise NotImplementedError

    def _values(self, found: Computed) -> Any:
        """A series."""
        raise NotImplementedError


def selected(text: str, table: Table, variables: Mapping[str, Any], threads: int | None) -> Selection:
    """The rows of a table where a condition is true."""
    query, columns = _query(text, table, variables)
    if query.plan.kind != "bool":
        raise UnsupportedSyntaxError(
            f"the query is a number ({query.plan.kind}), no condition; compare it, as in x != 0, or use eval", 1, 1
        )
    return select(query, columns, table.rows, threads)


def computed(text: str, table: Table, variables: Mapping[str, Any], threads: int | None) -> Computed:
    """The values of an expression for all rows of a table."""
    query, columns = _query(text, table, variables)
    return compute(query, columns, table.rows, threads)


def check_result(result: str) -> None:
    """Reject an unknown kind of result."""
    if result not in RESULTS:
        raise ValueError(f"result is one of {', '.join(map(repr, RESULTS))}, not {value_text(result)}")


def variables_of(frame: FrameType | None, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The variables of a caller, local ones first; those that are given instead, if any are."""
    if given is not None:
        if not isinstance(given, Mapping):
            raise TypeError(f"variables is a mapping such as {{'limit': 3}}, not {type(given).__name__}")
        return given
    return {} if frame is None else ChainMap(dict(frame.f_locals), frame.f_globals)


def caller() -> FrameType | None:
    """The frame of the function that calls the caller of this one."""
    here = inspect.currentframe()
    return here.f_back.f_back if here is not None and here.f_back is not None else None


def _query(text: str, table: Table, variables: Mapping[str, Any]) -> tuple[Query, list[Column]]:
    if not isinstance(text, str):
        raise TypeError(f"a query is a text such as 'x > 2.0', not {type(text).__name__}")
    found: dict[str, Column] = {}

    def type_of(name: str, is_quoted: bool) -> ColumnType:
        found[name] = table.column(name, is_quoted)
        return found[name].type

    query = read(scan(text), type_of, variables)
    return query, [_column(each, found) for each in query.columns]


def _column(what: str | Member | SameTexts, found: Mapping[str, Column]) -> Column:
    if isinstance(what, Member):
        return member_column(found[what.column], what)
    return same_texts_column(found[what.column], found[what.other]) if isinstance(what, SameTexts) else found[what]
