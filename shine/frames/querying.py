"""Text and table -> the rows that a condition selects, or values."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Mapping
from types import FrameType
from typing import Any

from shine.errors import UnsupportedSyntaxError
from shine.frames.columns import Column, Table
from shine.frames.members import member_column, same_texts_column
from shine.frames.running import Computed, Selection, compute, select
from shine.lang.names import value_text
from shine.lang.queries.reading import read
from shine.lang.queries.scanning import scan
from shine.lang.queries.types import ColumnType, Member, Query, SameTexts

RESULTS = ("indices", "mask", "rows")
"""What a filter returns."""


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
