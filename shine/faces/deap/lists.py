"""Lists of lists of floats -> a matrix, by a native function that reads the objects.

Python's own ways take several times as long as compiled code needs for the arithmetic. The function reads lists and
floats at the offsets that CPython promises to extension modules, which have them compiled in (`PyList_GET_ITEM`,
`PyFloat_AS_DOUBLE`). It holds the interpreter's lock, so no list changes while it is read.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from shine.compiler.codegen.native.lists import lists_ir
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine, cached, host_object
from shine.compiler.llvm.object_layout import HEAD, WORD, is_known_python

_NAME = "matrix_of_lists"


def fill(address: int, individuals: list[Any], length: int) -> bool:
    """Fill the first rows of a matrix with the elements of lists.

    Parameters
    ----------
    address : int
        Of a matrix of float64 with `length` columns and at least as many rows as there are individuals, contiguous.
    individuals : list of list of float
    length : int

    Returns
    -------
    bool
        Whether it is filled: False if the individuals are not lists of one type and of this length, if an element is of
        another type than float, or if this Python's objects are not laid out as expected. Then the rows are undefined.
    """
    kind = type(individuals[0]) if individuals else list
    # A subclass may yield other elements than those that it stores.
    is_plain = issubclass(kind, list) and kind.__iter__ is list.__iter__ and kind.__getitem__ is list.__getitem__
    if not is_plain or type(individuals) is not list or not _has_known_layout():
        return False
    rows = len(individuals)
    return bool(_function()(id(individuals), id(kind), id(float), address, rows, length) == rows)


@cache
def _has_known_layout() -> bool:
    return is_known_python() and list.__basicsize__ == HEAD + 3 * WORD and float.__basicsize__ == HEAD + WORD


@cache
def _function() -> Any:
    def make() -> bytes:
        return host_object(lists_ir(_NAME), "O2")

    engine = Engine.of_object(cached((_NAME, source_digest("faces/deap"), str(HEAD)), make), [_NAME])
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 2
    # PYFUNCTYPE keeps the lock of the interpreter.
    function: Any = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(engine.address(_NAME))
    function.engine = engine
    return function
