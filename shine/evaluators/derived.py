"""Columns of functions of features: ``sin(x0)`` for all rows, computed once and read by every individual that has it.

A function of a feature is what populations have more of than of anything else that takes long, and it has the same
values in all individuals and generations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.codegen.operations import operations_of
from shine.evaluators.rows import addresses
from shine.lang.population import Population
from shine.lang.primitives import Primitive

MOST_BYTES = 1 << 23
"""Columns are made if they take no more than this: what caches hold, or little more."""

INDIVIDUALS = 4
"""Individuals that are evaluated before columns are made, for each column: few pay for themselves sooner."""


class DerivedColumns:
    """The columns of the primitives of the population seen last.

    Parameters
    ----------
    rows : int
        Rows of a column; the last one that has a value is repeated up to these.
    predict : callable
        Predictions of a population, shape (n_individuals, n_rows), by the instructions that the columns stand for.
    """

    def __init__(self, rows: int, predict: Callable[[Population], NDArray[Any]]) -> None:
        self._rows, self._predict = rows, predict
        self._functions: tuple[Primitive, ...] = ()
        self._which = _which_take_long(())
        self._seen = 0
        self._table: NDArray[np.uintp] | None = None
        self._columns: NDArray[Any] | None = None

    def address(self, population: Population, itemsize: int) -> int:
        """Where the addresses of columns of `itemsize` bytes a number are, by function and feature, 0 if there is none;
        0 in the place of the whole table if it would cost more than it saves."""
        functions, features = population.primitives.functions, len(population.primitives.features)
        if self._functions is not functions:
            self._functions, self._seen, self._table = functions, 0, None
            self._which = _which_take_long(functions)
        if self._table is None:
            count = len(self._which) * features
            self._seen += len(population)
            if not count or count * self._rows * itemsize > MOST_BYTES or self._seen < INDIVIDUALS * count:
                return 0
            self._seen = -count  # so that what is evaluated for the table does not ask for it
            self._table = self._made(population, self._which)
        return int(self._table.ctypes.data)

    def _made(self, population: Population, which: NDArray[np.int64]) -> NDArray[np.uintp]:
        primitives = population.primitives
        features = len(primitives.features)
        pairs = [(1 + x, primitives.first_function + f) for f in which.tolist() for x in range(features)]
        codes, sizes = np.array(pairs, np.int16), np.full(len(pairs), 2)
        values = self._predict(Population(codes, np.zeros(codes.shape), sizes, primitives))
        self._columns = np.pad(values, ((0, 0), (0, self._rows - values.shape[1])), mode="edge")
        table = np.zeros((len(primitives.functions), features), np.uintp)
        table[which] = addresses(self._columns).reshape(len(which), features)
        return table


def _which_take_long(functions: tuple[Primitive, ...]) -> NDArray[np.int64]:
    """Positions of the functions of one argument that take long."""
    chosen = [f.arity == 1 and operations_of(f)["elementary"] > 0 for f in functions]
    return np.flatnonzero(np.array(chosen, np.bool_))
