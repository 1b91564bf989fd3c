"""From individuals that are sequences of numbers to matrices."""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.faces.deap.lists import fill
from shine.lang.forms.names import value_text


def matrix_of(individuals: list[Any], length: int) -> AnyArray:
    """A matrix with a row for each individual.

    Parameters
    ----------
    individuals : list of sequence of float
        Lists, `array.array`, arrays of NumPy with one axis, or other sequences, all of one length.
    length : int

    Returns
    -------
    ndarray of shape (len(individuals), length)

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
    try:
        numbers = np.fromiter(chain.from_iterable(individuals), np.float64, len(individuals) * length)
    except (OverflowError, ValueError, TypeError) as error:
        raise TypeError(f"an individual has a number that is no float64: {error}") from None
    return numbers.reshape(len(individuals), length)


def lengths_of(individuals: Sequence[Any]) -> list[int]:
    """Length of each individual.

    Raises
    ------
    TypeError
        If one is no sequence of numbers.
    """
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
