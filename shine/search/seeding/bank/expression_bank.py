"""A bank of small expressions with their values on the screened rows, no two with the same values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.base.typing import Codes, Floats, Indices
from shine.compiler.arrays import apply
from shine.lang.forms.facts import names_where
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.search.seeding.bank.formula_writer import Nodes

BLOCK = 8192
"""Expressions computed at a time, which bounds the memory."""

LARGEST = 1e12
"""Largest absolute value of a function that is not algebraic: beyond it, rounding hides differences between
expressions."""

LARGEST_ALGEBRAIC = 1e75
"""Largest absolute value of other members: units may be small. The squares of a few stay finite."""

NO_LEAF, SEVERAL_LEAVES = -1, -2
"""Values of `only_leaf` for members that depend on no leaf, and on more than one."""

COMMUTATIVE = names_where(lambda facts: facts.commutative)
"""Functions of two arguments that may be swapped."""

ALGEBRAIC = names_where(lambda facts: facts.nests_freely)
"""Functions of one argument that laws nest freely."""

NESTING_COST = 2
"""Additional cost of a function that is not algebraic, if its argument contains another such function.

Laws hardly ever contain exp(sin(x)), which would otherwise fill the bank.
"""


class ExpressionBank:
    """Distinct expressions, its members; each is a leaf, a constant, or a function of earlier members.

    Parameters
    ----------
    rows : int
    primitives : PrimitiveSet
    capacity : int
        Most members.
    max_size : int
        Most nodes of a member.
    rng : numpy.random.Generator
        Draws the multipliers of the hash, and pairs of members if there are too many to try all.

    Attributes
    ----------
    count : int
    values : ndarray of shape (capacity, n_rows)
    codes : ndarray of shape (capacity,)
        Code of each member's root; -1 for a leaf.
    left, right : ndarray of shape (capacity,)
        Members that are its arguments; -1 if there is none.
    constants : ndarray of shape (capacity,)
        Values of members that are constants.
    sizes : ndarray of shape (capacity,)
        Nodes of each member.
    costs : ndarray of shape (capacity,)
        Nodes, with a leaf as one, plus `NESTING_COST` for each non-algebraic function of another. Banks grow by cost.
    transcendental : ndarray of shape (capacity,), bool
        Whether a member contains a function that is not algebraic.
    only_leaf : ndarray of shape (capacity,)
        The leaf that a member depends on, if it is a single one; `NO_LEAF` or `SEVERAL_LEAVES` otherwise.
    """

    def __init__(
        self, rows: int, primitives: PrimitiveSet, capacity: int, max_size: int, rng: np.random.Generator
    ) -> None:
        self.primitives, self.capacity, self.max_size = primitives, capacity, max_size
        self.count = 0
        self.values = np.empty((capacity, rows))
        self.codes = np.zeros(capacity, np.int16)
        self.left, self.right = np.full(capacity, -1), np.full(capacity, -1)
        self.constants = np.zeros(capacity)
        self.sizes, self.costs = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        self.transcendental = np.zeros(capacity, bool)
        self.only_leaf = np.full(capacity, NO_LEAF)
        self._rng = rng
        self._leaves: dict[int, Nodes] = {}
        self._multipliers = rng.integers(1, 2**62, rows, dtype=np.int64) * 2 + 1
        self._seen = np.zeros(0, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Its members: in another process it is searched, and does not grow."""
        state = {name: value for name, value in vars(self).items() if name not in ("_rng", "_multipliers", "_seen")}
        arrays = {name: value[: self.count] for name, value in state.items() if isinstance(value, np.ndarray)}
        return {**state, **arrays, "capacity": self.count}

    @property
    def full(self) -> bool:
        """Whether there is no place for another member."""
        return self.count >= self.capacity

    def leaves(self, values: Floats, nodes: Sequence[Nodes]) -> Indices:
        """Add features, or formulas that count as one; the new members, shape (n,)."""
        new = []
        for row, formula in zip(values, nodes, strict=True):
            for member in self._append(
                row[None], np.full(1, -1, np.int16), None, None, np.full(1, LARGEST_ALGEBRAIC)
            ).tolist():
                self._leaves[member] = formula
                self.sizes[member], self.costs[member], self.only_leaf[member] = len(formula), 1, member
                new.append(member)
        return np.array(new, np.int64)

    def formulas(self, values: Floats, nodes: Sequence[Nodes], costs: Floats) -> Indices:
        """Add formulas with their costs, all at once, leaving out those with the values of others; the new members."""
        places = np.arange(len(values))
        codes, limits = np.full(len(values), -1, np.int16), np.full(len(values), LARGEST)
        new = self._append(values, codes, places, None, limits)
        for member, place in zip(new.tolist(), self.left[new].tolist(), strict=True):
            self._leaves[member] = nodes[place]
            self.sizes[member], self.costs[member] = len(nodes[place]), costs[place]
        self.left[new], self.only_leaf[new] = -1, SEVERAL_LEAVES
        return new

    def constant(self, value: float) -> Indices:
        """Add a constant; the new member, shape (1,), or (0,) if the bank is full."""
        if self.full:
            return np.zeros(0, np.int64)
        at = self.count
        self.values[at], self.codes[at], self.constants[at] = value, CONSTANT, value
        self.sizes[at] = self.costs[at] = 1
        self.count += 1
        return np.array([at])

    def unary(self, name: str, arguments: Indices) -> Indices:
        """Apply a function of one argument to each of some members; the new members."""
        return self._combined(name, arguments, None)

    def binary(self, name: str, left: Indices, right: Indices, most: int) -> Indices:
        """Apply a function to all pairs of two groups of members, or to `most` of them; the new members."""
        total = len(left) * len(right)
        symmetric = name in COMMUTATIVE and np.array_equal(left, right)
        # Pairs within one group are drawn at random only if there are more than this times the allowed number.
        if symmetric and total <= 4 * most:
            i, j = np.triu_indices(len(left))
        elif not symmetric and total <= most:
            i, j = np.divmod(np.arange(total), max(len(right), 1))
        else:
            i, j = self._random_pairs(len(left), len(right), most)
        if len(i) > most:
            i, j = i[:most], j[:most]
        return self._combined(name, left[i], right[j])

    def _random_pairs(self, n: int, m: int, most: int) -> tuple[Indices, Indices]:
        """Random places in two groups; the square of a uniform number prefers the first members, which are small."""
        i = (n * self._rng.random(most) ** 2).astype(np.int64)
        return i, (m * self._rng.random(most) ** 2).astype(np.int64)

    def _combined(self, name: str, left: Indices, right: Indices | None) -> Indices:
        """Apply a function to members; the new members."""
        code = self.primitives.function_codes[name]
        sizes = 1 + self.sizes[left] + (0 if right is None else self.sizes[right])
        fitting = sizes <= self.max_size
        left, right = left[fitting], None if right is None else right[fitting]
        function = self.primitives.function(code)
        transcends = right is None and name not in ALGEBRAIC
        new = []
        for start in range(0, len(left), BLOCK):
            if self.full:
                break
            now = slice(start, start + BLOCK)
            arguments = [left[now]] if right is None else [left[now], right[now]]
            with np.errstate(all="ignore"):
                values = apply(function, *(self.values[argument] for argument in arguments))
            transcendental = transcends | np.any([self.transcendental[a] for a in arguments], axis=0)
            codes = np.full(len(values), code, np.int16)
            limits = np.where(transcendental, LARGEST, LARGEST_ALGEBRAIC)
            found = self._append(values, codes, left[now], None if right is None else right[now], limits)
            both = [self.left[found]] if right is None else [self.left[found], self.right[found]]
            self.sizes[found] = 1 + sum(self.sizes[argument] for argument in both)
            self.costs[found] = 1 + sum(self.costs[argument] for argument in both)
            self.transcendental[found] = np.any([self.transcendental[argument] for argument in both], axis=0)
            self.only_leaf[found] = _common_leaf([self.only_leaf[argument] for argument in both])
            if transcends:
                self.costs[found] += NESTING_COST * self.transcendental[found]
                self.transcendental[found] = True
            new.append(found)
        return np.concatenate(new) if new else np.zeros(0, np.int64)

    def _append(
        self, values: Floats, codes: Codes, left: Indices | None, right: Indices | None, limits: Floats
    ) -> Indices:
        """Add rows of values that no member has, below their limits, while there is room; the new members."""
        largest = np.abs(values).max(axis=1, initial=0.0)
        with np.errstate(invalid="ignore"):
            spread = values.max(axis=1) - values.min(axis=1)
            # Least range of a member's values, relative to the largest: below it the member is a constant with
            # rounding.
            usable = np.flatnonzero((largest < limits) & (spread > 1e-9 * largest))
        keys = fingerprints(values[usable], largest[usable], self._multipliers)
        keys, first = np.unique(keys, return_index=True)
        at = np.searchsorted(self._seen, keys)
        known = (
            self._seen[np.minimum(at, len(self._seen) - 1)] == keys if len(self._seen) else np.zeros(len(keys), bool)
        )
        first = np.sort(first[~known])[: self.capacity - self.count]
        self._seen = np.union1d(self._seen, keys[~known])
        chosen = usable[first]
        new = np.arange(self.count, self.count + len(chosen))
        self.values[new], self.codes[new] = values[chosen], codes[chosen]
        for column, source in ((self.left, left), (self.right, right)):
            column[new] = -1 if source is None else source[chosen]
        self.count += len(chosen)
        return new

    def nodes(self, member: int) -> Nodes:
        """A member as a formula."""
        if member in self._leaves:
            return self._leaves[member]
        code = int(self.codes[member])
        arguments = [int(i) for i in (self.left[member], self.right[member]) if i >= 0]
        own = (code, float(self.constants[member]))
        return (*(node for argument in arguments for node in self.nodes(argument)), own)


def _common_leaf(leaves: Sequence[Indices]) -> Indices:
    """The only leaf of each function, from the only leaf of each of its arguments."""
    highest, others = np.max(leaves, axis=0), np.min(leaves, axis=0)
    several = (others == SEVERAL_LEAVES) | ((others >= 0) & (others != highest))
    return np.where(several, SEVERAL_LEAVES, highest)


def fingerprints(values: Floats, largest: Floats, multipliers: Indices) -> Indices:
    """A hash of each row of values, mostly the same for rows that differ by rounding only.

    Values are rounded to 2^-32 of the power of two above the largest value of the row.
    """
    _, exponents = np.frexp(largest)
    # Members that agree in this many bits, counted from their largest value, on all rows count as equal: rounding
    # changes lower bits.
    rounded = np.rint(np.ldexp(values, (32 - exponents)[:, None])).astype(np.int64)
    with np.errstate(over="ignore"):
        return rounded @ multipliers + exponents.astype(np.int64) * multipliers[:1]
