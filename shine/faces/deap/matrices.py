"""From individuals that are sequences of numbers to matrices; lists of floats by native code.

Python's own ways take several times as long as compiled code needs for the arithmetic. The function reads lists and
floats at the offsets that CPython promises to extension modules, which have them compiled in (`PyList_GET_ITEM`,
`PyFloat_AS_DOUBLE`). It holds the interpreter's lock, so no list changes while it is read.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from shine.base.errors import placed
from shine.base.typing import AnyArray
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import HEAD, WORD, is_known_python, lists_ir
from shine.lang.forms.names import value_text


def matrix_of(individuals: list[Any], length: int) -> AnyArray:
    """A matrix with a row for each individual, shape (len(individuals), length).

    Parameters
    ----------
    individuals : list of sequence of float
        Lists, `array.array`, arrays of NumPy with one axis, or other sequences, all of one length.
    length : int

    Raises
    ------
    TypeError
        If an individual is no sequence of real numbers.
    """
    kinds = {type(each) for each in individuals}
    if all(issubclass(kind, np.ndarray) for kind in kinds):
        return _of_arrays(individuals, length)
    if all(issubclass(kind, array.array) for kind in kinds):
        codes = {each.typecode for each in individuals}
        if len(codes) == 1 and codes <= set("bBhHiIlLqQfd"):
            return np.frombuffer(b"".join(individuals), codes.pop()).reshape(len(individuals), length)
    matrix = np.empty((len(individuals), length))
    if fill(matrix.ctypes.data, individuals, length):
        return matrix
    for position, individual in enumerate(individuals):
        for place, value in enumerate(individual):
            if not isinstance(value, Real):
                raise TypeError(
                    f"element {place} of individual {position} is {value_text(value)}; "
                    "individuals are sequences of numbers"
                )
    with placed("an individual has a number that is no float64", OverflowError, ValueError, TypeError, kind=TypeError):
        numbers = np.fromiter(chain.from_iterable(individuals), np.float64, len(individuals) * length)
    return numbers.reshape(len(individuals), length)


def lengths_of(individuals: Sequence[Any]) -> list[int]:
    """Length of each individual; a `TypeError` if one is no sequence of numbers."""
    for kind in set(map(type, individuals)):
        if issubclass(kind, str | bytes) or not issubclass(kind, Iterable) or not hasattr(kind, "__len__"):
            position = next(place for place, each in enumerate(individuals) if type(each) is kind)
            raise TypeError(
                f"individual {position} is {value_text(individuals[position])}; individuals are sequences of numbers"
            )
    return list(map(len, individuals))


def _of_arrays(individuals: list[Any], length: int) -> AnyArray:
    for position, individual in enumerate(individuals):
        if individual.ndim != 1 or individual.dtype.kind not in "biuf":
            raise TypeError(
                f"individual {position} is an array of shape {individual.shape} and dtype {individual.dtype}; "
                "individuals have one axis of numbers"
            )
    return np.concatenate(individuals).reshape(len(individuals), length)


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
    engine = Engine.kept([_NAME], (_NAME, source_digest("faces/deap"), str(HEAD)), lambda: lists_ir(_NAME))
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 2
    # PYFUNCTYPE keeps the lock of the interpreter.
    function: Any = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(engine.address(_NAME))
    function.engine = engine
    return function
