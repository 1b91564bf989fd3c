"""Long lists after ``in``: a column of truth values, looked up before the query runs."""

from __future__ import annotations

import numpy as np

from shine.frames.columns import Column, Piece
from shine.lang.queries.types import INTEGERS, ColumnType, Member
from shine.typing import AnyArray


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
