"""Columns of plain numbers in large delimited text, by native code: one pass over its bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

from shine.base.typing import Floats
from shine.compiler.codegen.native.numerals import ENDED, FULL, LEFT, POSITION, ROW, numerals_ir, powers
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine, cached, host_object

_NAME = "numerals"

_LEFT = 1 << 16
"""Numbers of a call that `float` reads."""

_BLOCK = 1 << 25
"""Bytes of a call: signals are handled between calls."""


def plain_columns(
    data: bytes, start: int, delimiter: str, width: int, wanted: Collection[int]
) -> dict[int, Floats] | None:
    """Columns of finite numbers by index, the same as by `float`; None if rows have other cells, quotes or comments.

    Parameters
    ----------
    data : bytes
    start : int
        Where the first row begins.
    delimiter : str
        A letter of ASCII.
    width : int
        Number of columns; None is returned if a row has fewer or more.
    wanted : collection of int
        Columns to return; the others hold numbers, too.
    """
    rows = data.count(b"\n", start) + 1
    left, state = np.zeros((max(_LEFT, width), 4), np.int64), np.array([start, 0, 0, 0])
    columns = {index: np.empty(rows) for index in wanted}
    addresses = np.array([columns[index].ctypes.data if index in columns else 0 for index in range(width)])
    tables = powers()
    arguments = [
        data, state.ctypes.data, addresses.ctypes.data, width, ord(delimiter), left.ctypes.data, len(left),
        *(table.ctypes.data for table in tables),
    ]  # fmt: skip
    while state[POSITION] < len(data):
        state[1] = min(len(data), data.find(b"\n", min(state[POSITION] + _BLOCK, len(data))) + 1 or len(data))
        result = _function()(*arguments)
        for row, column, begin, end in left[: state[LEFT]].tolist():
            columns[column][row] = float(data[begin:end])
        state[LEFT] = 0
        if result not in (ENDED, FULL):
            return None
    found = {index: column[: state[ROW]] for index, column in columns.items()}
    return found if all(np.isfinite(column).all() for column in found.values()) else None


@cache
def _function() -> Any:
    def make() -> bytes:
        return host_object(numerals_ir(_NAME), "O2")

    engine = Engine.of_object(cached((_NAME, source_digest()), make), [_NAME])
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    kinds = [ctypes.c_char_p, pointer, pointer, word, word, pointer, word, pointer, pointer, pointer]
    return engine.function(_NAME, word, *kinds)
