"""Tables of functions with unknown constants: their values for every argument and every choice on the grids."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.bank.function_families import Family
from shine.search.seeding.fits.correlations import Normalized
from shine.search.seeding.fits.free_constants import NUDGE
from shine.search.seeding.screen.screen import Screen

MONOMIALS = ("mul", "div", "square", "inv")
"""Functions at the root of likely arguments, besides leaves."""

LEAF = -1
"""Code of a leaf in a bank."""


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of a table that have one function and one argument.

    Parameters
    ----------
    family : Family
    argument : int
        A member of the bank.
    first : int
        The first of its rows.
    constants : ndarray of shape (n, n_constants)
    """

    family: Family
    argument: int
    first: int
    constants: Floats

    @property
    def rows(self) -> slice:
        """Its rows of the table."""
        return slice(self.first, self.first + len(self.constants))


@dataclass(frozen=True, eq=False)
class Table:
    """Functions of members of a bank with constants from grids.

    Parameters
    ----------
    values : ndarray of shape (n, n_rows)
        Up to a factor.
    groups : tuple of Group
    """

    values: Floats
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, screen: Screen, families: Sequence[Family], arguments: Indices) -> Table:
        """All functions of some members that the primitive set can write."""
        blocks, groups, first = [np.zeros((0, len(screen.weights)))], [], 0
        with np.errstate(all="ignore"):
            for argument in arguments.tolist():
                values = screen.values[argument]
                for family in families:
                    grid = family.grid(values)
                    if not len(grid) or not _writable(screen, family, argument, grid):
                        continue
                    blocks.append(family.values(values, grid))
                    groups.append(Group(family, argument, first, grid))
                    first += len(grid)
        return cls(np.concatenate(blocks), tuple(groups))

    def normalized(self, weights: Floats) -> Normalized:
        """The values, normalized."""
        return Normalized.of(self.values, weights)

    def place(self, row: int) -> tuple[Group, tuple[float, ...]]:
        """The function of a row, and its constants."""
        group = self._group(row)
        # A fit takes whole numbers for parts of the form: move those of a grid a little.
        return group, tuple(value * (1 + NUDGE) for value in group.constants[row - group.first].tolist())

    def size(self, screen: Screen, row: int) -> int:
        """Nodes of a row's formula, about."""
        group = self._group(row)
        return group.family.size + int(screen.sizes[group.argument])

    def _group(self, row: int) -> Group:
        """The function of a row."""
        return self.groups[bisect_right(self._firsts, row) - 1]

    @cached_property
    def _firsts(self) -> list[int]:
        return [group.first for group in self.groups]

    def nodes(self, screen: Screen, row: int) -> Nodes:
        """A row as a formula; raises `Unwritable` if the set has no functions for it."""
        group, constants = self.place(row)
        return group.family.write(screen.writer, screen.bank.nodes(group.argument), constants)

    def best_of_groups(self, correlations: Floats) -> Iterator[Indices]:
        """For each group, the row with the largest correlation with each view.

        Parameters
        ----------
        correlations : ndarray of shape (n_views, n)
        """
        for group in self.groups:
            yield group.first + np.argmax(correlations[:, group.rows], axis=1)


def arguments_of(screen: Screen, most: int) -> Indices:
    """The cheapest members that may be the argument of a function: algebraic, and none an affine function of others.

    Leaves come first, then products, quotients and squares: laws have them inside functions more often than others.
    """
    bank, members = screen.bank, screen.distinct_in_sums
    members = members[~bank.transcendental[members] & (bank.codes[members] != CONSTANT)]
    codes = [LEAF, *(bank.primitives.function_codes.get(name, LEAF) for name in MONOMIALS)]
    likely = np.isin(bank.codes[members], codes) & (bank.costs[members] <= 4)  # highest cost of a likely argument
    return members[np.argsort(~likely, kind="stable")][:most]


def best_of_pairs(first: Indices, second: Indices, groups: Indices, most: int) -> Indices:
    """Places of the first pair, in the given order, of each two groups; at most `most`."""
    both = np.sort(np.column_stack([groups[first], groups[second]]), axis=1)
    _, places = np.unique(both, axis=0, return_index=True)
    return np.sort(places)[:most]


def _writable(screen: Screen, family: Family, argument: int, grid: Floats) -> bool:
    """Whether the primitive set has the functions that a family needs."""
    try:
        family.write(screen.writer, screen.bank.nodes(argument), tuple(grid[0].tolist()))
    except Unwritable:
        return False
    return True
