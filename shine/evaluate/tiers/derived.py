"""Derived columns: ``sin(x0)`` for all rows, computed once and read by every individual that contains it.

Functions of one feature are the most common expensive subtrees of populations, and they have the same values in all
individuals and generations. Functions of such functions, ``exp(sin(x0))``, are the second most common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import AnyArray, Indices
from shine.compiler.codegen.numbers import operations_of
from shine.evaluate.tiers.rows import addresses
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population

MOST_BYTES = 1 << 23
"""Most bytes of all columns: about the size of a cache."""

INDIVIDUALS = 4
"""Individuals evaluated for each column before columns are made: most columns do not pay for themselves sooner."""


@dataclass(frozen=True)
class Table:
    """Addresses of columns, and the columns."""

    addresses: NDArray[np.uintp]
    columns: AnyArray


class _Seen:
    """A set of primitives, the number of individuals seen with it, and its tables once they are made."""

    def __init__(self, functions: tuple[Primitive, ...]) -> None:
        self.functions, self.which = functions, _which_take_long(functions)
        self.individuals = 0
        self.tables: dict[str, Table] | None = None


class DerivedColumns:
    """The columns of the primitives of the population seen last.

    Parameters
    ----------
    rows : int
        Rows of a column, padding included: the last row of the data is repeated.
    predict : callable
        Predictions of a population, shape (n_individuals, n_rows), by the instructions that the columns replace.
    nested : bool
        Whether columns of functions of functions are read.
    """

    def __init__(self, rows: int, predict: Callable[[Population], AnyArray], nested: bool = True) -> None:
        self._rows, self._predict, self._nested = rows, predict, nested
        self._latest = _Seen(())

    def tables(self, population: Population, itemsize: int) -> dict[str, Table]:
        """Addresses of the columns, with `itemsize` bytes per number; 0 if there is no column.

        Table "derived" has an address for each function and feature, "nested" for each function and entry of "derived".
        A table is missing while it would cost more than it saves, and "nested" also if its columns would take too much
        memory. The columns live as long as the tables.
        """
        functions, features = population.primitives.functions, len(population.primitives.features)
        seen = self._latest  # read once: another thread may replace it
        if seen.functions is not functions:
            self._latest = seen = _Seen(functions)
        if seen.tables is None:
            single = len(seen.which) * features
            double = single * len(seen.which)
            most = MOST_BYTES // (self._rows * itemsize)
            count = single + double if self._nested and single + double <= most else single
            seen.individuals += len(population)
            if not count or count > most or seen.individuals < INDIVIDUALS * count:
                return {}
            seen.individuals = -count  # the evaluation of the columns must not make columns
            seen.tables = self._made(population, seen.which, count > single)
        return seen.tables

    def _made(self, population: Population, which: Indices, nested: bool) -> dict[str, Table]:
        primitives = population.primitives
        functions, features, first = len(primitives.functions), len(primitives.features), primitives.first_function
        tapes: list[tuple[int, ...]] = [(1 + x, first + f) for f in which.tolist() for x in range(features)]
        single = len(tapes)
        if nested:
            tapes += [(*tape, first + f) for f in which.tolist() for tape in tapes]
        sizes = np.array([len(tape) for tape in tapes])
        codes = np.array([(*tape, 0)[:3] for tape in tapes], np.int16)
        values = self._predict(Population(codes, np.zeros(codes.shape), sizes, primitives))
        columns = np.pad(values, ((0, 0), (0, self._rows - values.shape[1])), mode="edge")
        places = addresses(columns)
        of_features = np.zeros((functions, features), np.uintp)
        of_features[which] = places[:single].reshape(len(which), features)
        tables = {"derived": Table(of_features, columns)}
        if nested:
            of_derived = np.zeros((functions, functions, features), np.uintp)
            of_derived[np.ix_(which, which)] = places[single:].reshape(len(which), len(which), features)
            tables["nested"] = Table(of_derived, columns)
        return tables


def _which_take_long(functions: tuple[Primitive, ...]) -> Indices:
    """Positions of the expensive functions of one argument."""
    chosen = [f.arity == 1 and operations_of(f)["elementary"] > 0 for f in functions]
    return np.flatnonzero(np.array(chosen, np.bool_))
