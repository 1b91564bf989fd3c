"""What is looked up before a query runs, as columns of truth values: long lists after ``in``, and pairs of texts."""

from __future__ import annotations

import numpy as np

from shine.base.typing import AnyArray
from shine.frames.columns import Column, Piece, Segment, segments
from shine.frames.language.types import INTEGERS, ColumnType, Member


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
