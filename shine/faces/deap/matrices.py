"""From individuals that are sequences of numbers to matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from shine.base.errors import placed
from shine.base.typing import AnyArray
from shine.evaluate.kernels.individuals import reader_of, reading_words
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
    matrix = np.empty((len(individuals), length))
    reader = reader_of(individuals[0])
    if reader is not None and reader(reading_words(individuals[0], matrix), individuals) is not None:
        return matrix
    for kind in set(map(type, chain.from_iterable(individuals))):
        if not issubclass(kind, Real):
            place, position, value = next(
                (place, position, value)
                for position, individual in enumerate(individuals)
                for place, value in enumerate(individual)
                if type(value) is kind
            )
            raise TypeError(
                f"element {place} of individual {position} is {value_text(value)}; individuals are sequences of numbers"
            )
    with placed("an individual has a number that is no float64", OverflowError, ValueError, TypeError, kind=TypeError):
        numbers = np.fromiter(chain.from_iterable(individuals), np.float64, len(individuals) * length)
    return numbers.reshape(len(individuals), length)


def lengths_of(individuals: Sequence[Any]) -> list[int]:
    """Length of each individual; a `TypeError` if one is no sequence of numbers."""
    for kind in set(map(type, individuals)):
        is_sequence = all(hasattr(kind, each) for each in ("__len__", "__iter__", "__getitem__"))
        if not is_sequence or issubclass(kind, str | bytes | Mapping):
            position = next(place for place, each in enumerate(individuals) if type(each) is kind)
            raise TypeError(
                f"individual {position} is {value_text(individuals[position])}; individuals are sequences of numbers"
            )
    return list(map(len, individuals))
