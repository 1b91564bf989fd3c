"""The bank: small expressions enumerated bottom-up, one of all that have the same values on a sample of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shine.arrays import apply
from shine.gp.seeding.writing import Nodes
from shine.lang.facts import names_where
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.typing import Codes, Floats, Indices

BLOCK = 8192
"""Expressions computed at a time."""

LARGEST = 1e12
"""Largest value a member may have; beyond it, differences between expressions drown in rounding."""

LEAST_SPREAD = 1e-9
"""Least spread of a member's values, relative to the largest; below it a member is a constant but for rounding."""

COMMUTATIVE = names_where(lambda facts: facts.commutative)

ALGEBRAIC = names_where(lambda facts: facts.nests_freely)
"""Functions of one argument that laws nest freely; others within one another cost more."""

NESTED = 2
"""Nodes that a function costs more, if it is not algebraic and its argument contains another that is not."""

DEEPEST = 10
"""Highest cost of functions of a single leaf."""

LEFT_OUT = names_where(lambda facts: facts.family in ("comparison", "logic", "remainder"))
"""Functions the bank is not made of: with few different values they are equal to others on most samples."""


class Members:
    """Distinct expressions with their values on sampled rows; each is a function of earlier ones.

    Parameters
    ----------
    rows : int
    primitives : PrimitiveSet
    capacity : int
        Most members.
    max_size : int
        Most nodes of a member.
    rng : numpy.random.Generator
        Draws the multipliers of the hash, and combinations where there are too many to look at all.

    Attributes
    ----------
    count : int
    values : ndarray of shape (capacity, n_rows)
    codes, left, right : ndarray of shape (capacity,)
        Root of each member and the members that are its arguments; -1 for none.
    constants : ndarray of shape (capacity,)
        Value of members that are constants.
    sizes : ndarray of shape (capacity,)
        Nodes of each member.
    costs : ndarray of shape (capacity,)
        Nodes, and what nested functions cost more: the order in which members are made.
    transcendental : ndarray of shape (capacity,), bool
        Whether a member has a function that is not algebraic.
    alone : ndarray of shape (capacity,)
        The leaf that a member depends on if it is one alone; -1 for none, -2 for several.
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
        self.alone = np.full(capacity, -1)
        self._rng = rng
        self._leaves: dict[int, Nodes] = {}
        self._multipliers = rng.integers(1, 2**62, rows, dtype=np.int64) * 2 + 1
        self._seen = np.zeros(0, np.int64)

    @property
    def full(self) -> bool:
        """Whether no member fits any more."""
        return self.count >= self.capacity

    def leaves(self, values: Floats, nodes: Sequence[Nodes]) -> Indices:
        """Add features, or formulas of them that count as one; the new members, shape (n,)."""
        new = []
        for row, formula in zip(values, nodes, strict=True):
            for member in self._append(row[None], np.full(1, -1, np.int16), None, None).tolist():
                self._leaves[member] = formula
                self.sizes[member], self.costs[member], self.alone[member] = len(formula), 1, member
                new.append(member)
        return np.array(new, np.int64)

    def constant(self, value: float) -> Indices:
        """Add a constant, to be combined with others; the new member."""
        if self.full:
            return np.zeros(0, np.int64)
        at = self.count
        self.values[at], self.codes[at], self.constants[at] = value, CONSTANT, value
        self.sizes[at] = self.costs[at] = 1
        self.count += 1
        return np.array([at])

    def unary(self, name: str, arguments: Indices) -> Indices:
        """Add a function of one argument of each of some members; the new ones."""
        return self._combined(name, arguments, None)

    def binary(self, name: str, left: Indices, right: Indices, most: int) -> Indices:
        """Add a function of every pair of two groups of members, or of as many random ones; the new ones."""
        total = len(left) * len(right)
        if name in COMMUTATIVE and np.array_equal(left, right):
            i, j = np.triu_indices(len(left)) if total <= 4 * most else self._random_pairs(len(left), len(right), most)
        elif total <= most:
            i, j = np.divmod(np.arange(total), max(len(right), 1))
        else:
            i, j = self._random_pairs(len(left), len(right), most)
        if len(i) > most:
            i, j = i[:most], j[:most]
        return self._combined(name, left[i], right[j])

    def _random_pairs(self, n: int, m: int, most: int) -> tuple[Indices, Indices]:
        # Small members come first: squaring a uniform number prefers them.
        i = (n * self._rng.random(most) ** 2).astype(np.int64)
        return i, (m * self._rng.random(most) ** 2).astype(np.int64)

    def _combined(self, name: str, left: Indices, right: Indices | None) -> Indices:
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
            codes = np.full(len(values), code, np.int16)
            found = self._append(values, codes, left[now], None if right is None else right[now])
            both = [self.left[found]] if right is None else [self.left[found], self.right[found]]
            self.sizes[found] = 1 + sum(self.sizes[argument] for argument in both)
            self.costs[found] = 1 + sum(self.costs[argument] for argument in both)
            self.transcendental[found] = np.any([self.transcendental[argument] for argument in both], axis=0)
            self.alone[found] = _common([self.alone[argument] for argument in both])
            if transcends:
                self.costs[found] += NESTED * self.transcendental[found]
                self.transcendental[found] = True
            new.append(found)
        return np.concatenate(new) if new else np.zeros(0, np.int64)

    def _append(self, values: Floats, codes: Codes, left: Indices | None, right: Indices | None) -> Indices:
        largest = np.abs(values).max(axis=1, initial=0.0)
        with np.errstate(invalid="ignore"):
            spread = values.max(axis=1) - values.min(axis=1)
            usable = np.flatnonzero((largest < LARGEST) & (spread > LEAST_SPREAD * largest))
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


def _common(leaves: Sequence[Indices]) -> Indices:
    """The leaf that functions of arguments which depend on these depend on."""
    highest, others = np.max(leaves, axis=0), np.min(leaves, axis=0)
    several = (others == -2) | ((others >= 0) & (others != highest))
    return np.where(several, -2, highest)


def fingerprints(values: Floats, largest: Floats, multipliers: Indices) -> Indices:
    """A number for each row of values that is equal, but for rounding, exactly where the values are.

    Values are rounded to 2^-32 of the power of two above the largest of them.
    """
    _, exponents = np.frexp(largest)
    rounded = np.rint(np.ldexp(values, (32 - exponents)[:, None])).astype(np.int64)
    with np.errstate(over="ignore"):
        return rounded @ multipliers + exponents.astype(np.int64) * multipliers[:1]


class Enumeration:
    """Grows a bank in rounds: all expressions by size, and larger ones of kinds that laws are often made of.

    Beyond the size up to which all expressions fit, it adds monomials of the features, functions of monomials (times
    some constants), these plus or minus one, and products of the smallest members with functions of small members.

    Parameters
    ----------
    members : Members
        To be filled; it is empty.
    values : ndarray of shape (n, n_rows)
        Features, or functions of them that count as one.
    nodes : sequence of Nodes
        Their formulas.
    """

    CONSTANTS = (1.0, 2.0, np.pi)
    FACTORS = (-1.0, 2.0, -2.0, 0.5, np.pi, 2 * np.pi, 1 / (2 * np.pi))

    def __init__(self, members: Members, values: Floats, nodes: Sequence[Nodes]) -> None:
        self.members = members
        names = [f for f in members.primitives.functions if f.name not in LEFT_OUT]
        self.unary = [f.name for f in names if f.arity == 1]
        self.binary = [f.name for f in names if f.arity == 2]
        self.most = 30_000
        self.features = members.leaves(values, nodes)
        self.constants = np.concatenate([members.constant(value) for value in self.CONSTANTS])
        self.monomials: list[Indices] = [self.features]

    def rounds(self) -> Iterator[str]:
        """Grow the bank step by step; between steps it is searched. Yields the name of each step."""
        self._level(2)
        self._level(3)
        self._more_monomials(3, 2000)
        yield "small"
        self._functions_of(np.concatenate(self.monomials[:3]), 4000)
        self._level(4)
        yield "functions of monomials"
        self._more_monomials(5, 4000)
        self._scaled_functions(4000)
        self._products(8000)
        yield "products"
        for cost in range(5, 8):
            if not self.members.full:
                self._level(cost)
                yield f"level {cost}"

    def _of_cost(self, least: int, most: int) -> Indices:
        costs = self.members.costs[: self.members.count]
        found = np.flatnonzero((costs >= least) & (costs <= most))
        return found[np.argsort(costs[found], kind="stable")]

    def _level(self, cost: int) -> None:
        """Every function of members whose costs add up to a cost."""
        levels = [self._of_cost(c, c) for c in range(cost)]
        self._unary_level(levels)
        for name in self.binary:
            for left in range(1, cost - 1):
                right = cost - 1 - left
                if name in COMMUTATIVE and left > right:
                    continue
                self.members.binary(name, levels[left], levels[right], self.most)

    def _unary_level(self, levels: Sequence[Indices]) -> None:
        """Functions of one argument of the last level of members; of an earlier one where nesting costs more."""
        for name in self.unary:
            arguments = levels[-1]
            if name not in ALGEBRAIC:
                arguments = arguments[~self.members.transcendental[arguments]]
                nested = levels[max(len(levels) - 1 - NESTED, 0)]
                arguments = np.concatenate([arguments, nested[self.members.transcendental[nested]]])
            self.members.unary(name, arguments)

    def functions_of_one(self) -> None:
        """Fill the bank with functions of single leaves, nested, with one added, taken off or divided by: 1/(1 + x^4).

        In place of `rounds`: these would take the places of others.
        """
        m, one = self.members, self.constants[:1]
        names = [name for name in ("add", "sub", "div") if name in m.primitives.function_codes]
        for cost in range(2, DEEPEST + 1):
            if m.full:
                return
            levels = [own[m.codes[own] != CONSTANT] for own in (self._of_cost(c, c) for c in range(cost))]
            self._unary_level(levels)
            for name in names:
                m.binary(name, levels[max(cost - 2, 0)], one, self.most)
                if name not in COMMUTATIVE:
                    m.binary(name, one, levels[max(cost - 2, 0)], self.most)

    def _more_monomials(self, factors: int, most: int) -> None:
        """Products and quotients of up to so many features."""
        while len(self.monomials) < factors:
            found = [
                self.members.binary(name, self.monomials[-1], self.features, most)
                for name in ("mul", "div")
                if name in self.members.primitives.function_codes
            ]
            if "div" in self.members.primitives.function_codes:
                found.append(self.members.binary("div", self.constants[:1], self.monomials[-1], most))
            known = self._known_monomials() if len(self.monomials) == 1 else []
            self.monomials.append(np.concatenate([*known, *found]) if found else np.zeros(0, np.int64))

    def _known_monomials(self) -> list[Indices]:
        """Products of two features that the levels already have."""
        m, features = self.members, {*self.features.tolist(), int(self.constants[0])}
        codes = {m.primitives.function_codes.get(name) for name in ("mul", "div", "square")}
        return [
            np.array(
                [
                    i
                    for i in range(m.count)
                    if m.codes[i] in codes and m.left[i] in features and (m.right[i] < 0 or m.right[i] in features)
                ],
                np.int64,
            )
        ]

    def _functions_of(self, arguments: Indices, most: int) -> Indices:
        found = [self.members.unary(name, arguments[: most // max(len(self.unary), 1)]) for name in self.unary]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def _scaled_functions(self, most: int) -> None:
        """Functions of monomials times constants, and these plus and minus one."""
        monomials = np.concatenate(self.monomials[: min(5, len(self.features) + 1)])
        plain = self._functions_of(monomials, most)
        if "mul" in self.members.primitives.function_codes:
            factors = np.concatenate([self.members.constant(value) for value in self.FACTORS])
            scaled = self.members.binary("mul", factors, monomials[: most // 6], most)
            plain = np.concatenate([plain, self._functions_of(scaled, 3 * most)])
        for name in ("add", "sub"):
            if name in self.members.primitives.function_codes:
                self.members.binary(name, plain[:most], self.constants[:1], most)

    def _products(self, most: int) -> None:
        """Small members and monomials times functions of small members."""
        if "mul" not in self.members.primitives.function_codes:
            return
        m = self.members
        simple = np.unique(np.concatenate([self._of_cost(1, 3), *self.monomials[1:3]]))
        simple = simple[m.codes[simple] != CONSTANT]
        arities = m.primitives.arities
        small = self._of_cost(2, 4)
        functions = small[arities[m.codes[small]] == 1]
        self.members.binary("mul", functions[:400], simple[:200], most)
