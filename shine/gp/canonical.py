"""One tape for individuals that differ only in the order of operands, in sums of constants, in zeros added.

Array code over the nodes of all individuals, laid one after the other in flat arrays. A subtree is an interval of
nodes, and what holds for an interval is a difference of running sums; so nothing walks a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.lazy import cached_property
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, Primitive, PrimitiveSet
from shine.lang.simplify_exact import INFINITE, NAN, SIGN, demands_on

Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_Intervals = tuple[Integers, Integers]
"""Where intervals of nodes start, and where they end, the end included."""

COMMUTATIVE = frozenset({"add", "mul", "eq", "ne"})
"""Functions whose operands may change places without changing a bit."""

_SIGNED_BY_ORDER = frozenset({"min", "max"})
"""Functions whose operands may change places, but for the sign of zero."""

_CONNECTIVES = frozenset({"logical_and", "logical_or"})
"""Functions whose operands may change places where both are 0 or 1."""

_TRUTH_VALUED = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "logical_not"})

_NEUTRAL = {
    "add": {0: 0.0, 1: 0.0},
    "sub": {1: 0.0},
    "mul": {0: 1.0, 1: 1.0},
    "div": {1: 1.0},
    "pow": {1: 1.0},
}
"""Constants that leave the other argument as it is, by function and position."""

_EQUAL_ARGUMENTS = {"sub": 0.0, "div": 1.0}
"""What a function of two equal arguments is, if it is finite."""


def canonical(population: Population, dtype: DTypeLike = np.float64) -> Population:
    """Equal individuals in one form, so that their hashes agree.

    Parameters
    ----------
    population : Population
    dtype : {"float64", "float32"}
        The numbers that constants are computed in.

    Returns
    -------
    Population
        Of the same width; no individual is larger. The operands of commutative functions are in one order, constant
        subtrees are constants, and ``x + 0``, ``x - 0``, ``x*1``, ``x/1``, ``--x``, ``x - x``, ``x/x`` and ``0*x``
        are gone where nothing above them could tell the difference. A finite prediction keeps its bits, but for the
        sign of zero; others may become finite.

    Notes
    -----
    Constants are computed by the reference semantics, from which other tiers may differ by 2 ulp in elementary
    functions. Operands are ordered by a hash of their nodes. Two of them could share one and then stay as they are;
    that happens by chance with probability 2^-64, and where they consist of the same nodes at the same depths below
    commutative functions, as ``(a - b) + (c - d)`` and ``(a - d) + (c - b)`` do.
    """
    if not len(population):
        return population
    nodes = _reduced(_Nodes.of(population), np.dtype(dtype)).ordered()
    # In order, some arguments are alike that were not before.
    while (removed := nodes.removed(nodes.equal_arguments())) is not None:
        nodes = _reduced(nodes.without(removed), np.dtype(dtype)).ordered()
    return nodes.population(population.width)


def _reduced(nodes: _Nodes, dtype: np.dtype[Any]) -> _Nodes:
    """The nodes after all rules but the order; each round goes on with the individuals that may have more to do."""
    rounds: list[tuple[_Nodes, Mask]] = []
    while True:
        folded, others = nodes.rewritten(dtype)
        removed = nodes.removed([folded, *others])
        if removed is None:
            break
        smaller = nodes.without(removed)
        # Constants are found to the end in one round; the other rules make room for each other.
        changed = np.zeros(len(nodes.sizes), bool)
        changed[np.searchsorted(np.cumsum(nodes.sizes), _joined([ends for _, ends in others]), side="right")] = True
        rounds.append((smaller, changed))
        nodes = smaller.take(changed)
    for before, changed in reversed(rounds):
        nodes = before.replaced(changed, nodes)
    return nodes


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The nodes of a population, individual by individual.

    Parameters
    ----------
    codes, values : ndarray of shape (n_nodes,)
    starts : ndarray of shape (n_nodes,), int64
        Where the subtree begins that ends at each node.
    sizes : ndarray of shape (n_individuals,), int64
        Nodes of each individual.
    primitives : PrimitiveSet
    """

    codes: NDArray[np.int16]
    values: NDArray[np.float64]
    starts: Integers
    sizes: Integers
    primitives: PrimitiveSet

    @classmethod
    def of(cls, population: Population) -> Self:
        inside = np.arange(population.width) < population.sizes[:, None]
        codes = population.codes[inside]
        steps = (1 - population.primitives.arities).astype(np.int32)[codes]
        # A stack machine's height after each node; every individual leaves one value on the stack.
        heights = np.cumsum(steps, dtype=np.int32)
        heights -= np.repeat(np.arange(len(population), dtype=np.int32), population.sizes)
        first = np.cumsum(population.sizes) - population.sizes
        starts = _starts(heights, np.repeat(first, population.sizes))
        return cls(codes, population.values[inside], starts, population.sizes, population.primitives)

    def population(self, width: int) -> Population:
        """The nodes as individuals again."""
        inside = np.arange(width) < self.sizes[:, None]
        codes, values = np.zeros(inside.shape, np.int16), np.zeros(inside.shape)
        codes[inside], values[inside] = self.codes, self.values
        return Population(codes, values, self.sizes, self.primitives)

    def without(self, removed: Mask) -> _Nodes:
        """The nodes that are not removed."""
        kept = ~removed
        before = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=before[1:])
        ends = np.cumsum(self.sizes)
        sizes = np.diff(before[ends], prepend=0)
        return _Nodes(self.codes[kept], self.values[kept], before[self.starts[kept]], sizes, self.primitives)

    def take(self, rows: Mask) -> _Nodes:
        """The nodes of some individuals."""
        of_rows = np.repeat(rows, self.sizes)
        before: Integers = np.cumsum(of_rows) - of_rows
        starts: Integers = before[self.starts[of_rows]]
        return replace(
            self, codes=self.codes[of_rows], values=self.values[of_rows], starts=starts, sizes=self.sizes[rows]
        )

    def replaced(self, rows: Mask, others: _Nodes) -> _Nodes:
        """These nodes with other ones for some individuals."""
        sizes = self.sizes.copy()
        sizes[rows] = others.sizes
        of_rows, of_rows_before = np.repeat(rows, sizes), np.repeat(rows, self.sizes)
        count = len(of_rows)
        codes, values, lengths = np.empty(count, np.int16), np.empty(count), np.empty(count, np.int64)
        for mask, nodes, chosen in ((of_rows, others, slice(None)), (~of_rows, self, ~of_rows_before)):
            codes[mask], values[mask] = nodes.codes[chosen], nodes.values[chosen]
            lengths[mask] = (np.arange(len(nodes.codes)) - nodes.starts)[chosen]
        return replace(self, codes=codes, values=values, starts=np.arange(count) - lengths, sizes=sizes)

    @cached_property
    def _functions(self) -> tuple[Integers, NDArray[np.int16]]:
        """Where functions were when first asked, and their codes then."""
        at = np.flatnonzero(self.codes >= self.primitives.first_function)
        return at, self.codes[at]

    def positions(self, *names: str) -> Integers:
        """Where functions are, in ascending order."""
        codes = [code for name in names if (code := self.primitives.function_codes.get(name)) is not None]
        if not codes:
            return _NOWHERE
        at, own = self._functions
        wanted = own == codes[0]
        for code in codes[1:]:
            wanted |= own == code
        at = at[wanted]
        # Some have become constants.
        return at[self.codes[at] != CONSTANT]

    def arguments(self, at: Integers, arity: int) -> list[Integers]:
        """Where the arguments of functions end that all have one arity, first argument first."""
        found = [at - 1]
        while len(found) < arity:
            found.append(self.starts[found[-1]] - 1)
        return found[::-1]

    def covered(self, starts: Integers, ends: Integers) -> Mask:
        """The nodes in the union of intervals, ends included."""
        change = np.zeros(len(self.codes) + 1, np.int64)
        np.add.at(change, starts, 1)
        np.subtract.at(change, ends + 1, 1)
        covered: Mask = np.cumsum(change[:-1]) > 0
        return covered

    def seen(self, demand: int) -> Mask:
        """Nodes below an argument of which NaN, or the sign of zero, can be seen in a finite result; or more."""
        ends = [np.zeros(0, np.int64)]
        for function in self.primitives.functions:
            above = INFINITE | NAN if demand == SIGN else 0
            watched = [k for k in range(function.arity) if demands_on(function.name, k, above) & demand]
            if watched:
                arguments = self.arguments(self.positions(function.name), function.arity)
                ends += [arguments[k] for k in watched]
        at = np.concatenate(ends)
        return self.covered(self.starts[at], at)

    @cached_property
    def sees_nan(self) -> Mask:
        return self.seen(NAN)

    @cached_property
    def sees_sign(self) -> Mask:
        return self.seen(SIGN)

    def ordered(self) -> _Nodes:
        """The same nodes with the operands of commutative functions in order of their hashes."""
        at = self._commuting()
        if not len(at):
            return self
        right = self.starts[at - 1]
        left = self.starts[right - 1]
        sums = self._running_hashes()
        # Subtrees of one hash stay as they are.
        exchanged = (sums[right] - sums[left]) > (sums[at] - sums[right])
        if not exchanged.any():
            return self
        at, right, left = at[exchanged], right[exchanged], left[exchanged]
        moves = np.zeros(len(self.codes) + 1, np.int64)
        # Several left operands may begin at one node; right ones and functions are one each.
        np.add.at(moves, left, at - right)
        moves[right] -= at - left
        moves[at] += right - left
        old = np.arange(len(self.codes))
        new = old + np.cumsum(moves[:-1])
        codes, values, starts = np.empty_like(self.codes), np.empty_like(self.values), np.empty_like(self.starts)
        codes[new], values[new], starts[new] = self.codes, self.values, self.starts + (new - old)
        return replace(self, codes=codes, values=values, starts=starts)

    def _commuting(self) -> Integers:
        """Functions whose operands may change places."""
        groups = [self.positions(*COMMUTATIVE)]
        extrema = self.positions(*_SIGNED_BY_ORDER)
        if len(extrema):
            groups.append(extrema[~self.sees_sign[extrema]])
        connectives = self.positions(*_CONNECTIVES)
        if len(connectives):
            truth = np.zeros(len(self.codes), bool)
            truth[self.positions(*_TRUTH_VALUED)] = True
            groups.append(connectives[truth[connectives - 1] & truth[self.starts[connectives - 1] - 1]])
        return np.concatenate(groups)

    def _running_hashes(self) -> Hashes:
        """Sums of the nodes' hashes before each position, shape (n_nodes + 1,).

        A node is hashed with the way that leads to it from the root; both operands of a commutative function are the
        same way, so that their order does not matter to the sum over a subtree.
        """
        count, codes = len(self.codes), self.codes
        arities, n_codes = self.primitives.arities, len(self.primitives.arities)
        most = max(int(arities.max()), 1)
        ways = scrambled(np.arange(n_codes * most, dtype=np.uint64)).reshape(n_codes, most)
        for name in (*COMMUTATIVE, *_SIGNED_BY_ORDER, *_CONNECTIVES):
            if (code := self.primitives.function_codes.get(name)) is not None:
                ways[code] = ways[code, 0]
        change = np.zeros(count + 1, np.uint64)
        at, own = self._functions
        arity, ends = arities[own], at - 1
        for k in range(most):
            way = ways[own, k]
            np.add.at(change, self.starts[ends], way)
            # A node ends one argument at most.
            change[ends + 1] -= way
            more = arity > k + 1
            own, arity, ends = own[more], arity[more], self.starts[ends[more]] - 1
        hashes = np.cumsum(change[:-1])
        hashes += scrambled(np.arange(n_codes, dtype=np.uint64) + np.uint64(1 << 32))[codes]
        constants = np.flatnonzero(codes == CONSTANT)
        hashes[constants] ^= scrambled(self.values[constants].view(np.uint64))
        sums = np.zeros(count + 1, np.uint64)
        np.cumsum(scrambled(hashes), out=sums[1:])
        return sums

    def rewritten(self, dtype: np.dtype[Any]) -> tuple[_Intervals, list[_Intervals]]:
        """Write the constants that subtrees are; the nodes to be removed, by constants computed and by other rules."""
        folded = self._folded(dtype)
        return folded, [self._neutral(), self._absorbed(), self._negations(), *self.equal_arguments()]

    def removed(self, intervals: Sequence[_Intervals]) -> Mask | None:
        """The nodes in some intervals, None if there are none."""
        starts, ends = (_joined(parts) for parts in zip((_NOWHERE, _NOWHERE), *intervals, strict=True))
        return self.covered(starts, ends) if len(starts) else None

    def _become(self, at: Integers, values: NDArray[np.float64]) -> _Intervals:
        """Make functions constants, and return the interval of their arguments."""
        self.codes[at], self.values[at] = CONSTANT, values
        return self.starts[at], at - 1

    def _folded(self, dtype: np.dtype[Any]) -> _Intervals:
        """Functions of constants become constants; inner ones first, as long as they are finite."""
        first_function = self.primitives.first_function
        variable = np.zeros(len(self.codes) + 1, np.int64)
        np.cumsum((self.codes != CONSTANT) & (self.codes < first_function), out=variable[1:])
        at, _ = self._functions
        at = at[variable[at] == variable[self.starts[at]]]
        done = []
        while len(at):
            ready = self._have_constants(at)
            found, at = at[ready], at[~ready]
            folded = [_NOWHERE]
            for code in np.unique(self.codes[found]).tolist():
                function, group = self.primitives.function(code), found[self.codes[found] == code]
                arguments = [self.values[argument] for argument in self.arguments(group, function.arity)]
                values = _applied(function, arguments, dtype)
                finite = np.isfinite(values)
                self._become(group[finite], values[finite])
                folded.append(group[finite])
            done += folded
            if sum(map(len, folded)) == 0:
                break
        found = _joined(done)
        return self.starts[found], found - 1

    def _have_constants(self, at: Integers) -> Mask:
        """Whether all arguments of functions are constants as they stand."""
        arities, ready, ends = self.primitives.arities[self.codes[at]], np.ones(len(at), bool), at - 1
        for k in range(int(arities.max())):
            ready &= (arities <= k) | (self.codes[ends] == CONSTANT)
            # Where there is no further argument, what is found does not matter.
            ends = np.maximum(self.starts[ends] - 1, 0)
        return ready

    def _neutral(self) -> _Intervals:
        """Functions with a neutral constant, each removed together with the constant."""
        # Both arguments are not neutral: the function would be a constant by now.
        found = []
        for name, by_position in _NEUTRAL.items():
            at = self.positions(name)
            for k, number in by_position.items():
                constant = (at - 1) if k == 1 else self.starts[at - 1] - 1
                holds = np.flatnonzero((self.codes[constant] == CONSTANT) & (self.values[constant] == number))
                if not len(holds):
                    continue
                functions, constants = at[holds], constant[holds]
                if name in ("add", "sub"):
                    # Adding 0.0 loses the sign of -0.0; adding -0.0 and subtracting 0.0 do not.
                    loses = np.signbit(self.values[constants]) == (name == "sub")
                    kept = ~(loses & self.sees_sign[functions])
                    functions, constants = functions[kept], constants[kept]
                found += [functions, constants]
        return _joined(found), _joined(found)

    def _absorbed(self) -> _Intervals:
        """Products with 0, which become 0."""
        at = self.positions("mul")
        zero = (self.codes == CONSTANT) & (self.values == 0.0)
        at = at[zero[at - 1] | zero[self.starts[at - 1] - 1]] if len(at) else at
        if not len(at):
            return at, at
        at = at[~(self.sees_nan[at] | self.sees_sign[at])]
        return self._become(at, np.zeros(len(at)))

    def _negations(self) -> _Intervals:
        """Pairs of negations, each removed."""
        at = self.positions("neg")
        pairs = at[np.isin(at - 1, at)] if len(at) else at
        if not len(pairs):
            return pairs, pairs
        # In a row of negations every second one ends a pair.
        row = np.cumsum(np.diff(at, prepend=at[:1] - 2) > 1)
        number = np.arange(len(at)) - np.searchsorted(row, row)
        ends = at[number % 2 == 1]
        return ends - 1, ends

    def equal_arguments(self) -> list[_Intervals]:
        """Differences and quotients of equal arguments, which become 0 and 1."""
        found = []
        for name, number in _EQUAL_ARGUMENTS.items():
            at = self.positions(name)
            if not len(at):
                continue
            right = self.starts[at - 1]
            length = at - right
            alike = (self.starts[right - 1] == right - length) & (self.codes[at - 1] == self.codes[right - 1])
            at = at[alike]
            at = at[self._repeated(at, length[alike])] if len(at) else at
            if len(at):
                at = at[~self.sees_nan[at]]
                found.append(self._become(at, np.full(len(at), number)))
        return found

    def _repeated(self, at: Integers, length: Integers) -> Mask:
        """Whether the nodes before functions repeat those before them, of the same number, bit for bit."""
        which = np.repeat(np.arange(len(at)), length)
        right = np.repeat(at - length, length) + np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length)
        left = right - length[which]
        differ = self.codes[left] != self.codes[right]
        differ |= self.values.view(np.int64)[left] != self.values.view(np.int64)[right]
        return np.bincount(which[differ], minlength=len(at)) == 0


_NOWHERE = np.zeros(0, np.int64)


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate([_NOWHERE, *parts])


def _starts(heights: NDArray[np.int32], first: Integers) -> Integers:
    """Where the subtree begins that ends at each node: behind the last node of a smaller height.

    Heights rise by one at a time, so that the smaller height is less by one. The nodes of at least some height become
    few as it grows.
    """
    starts = first.copy()
    at = np.arange(len(heights))
    level = 1
    while len(at):
        last = np.maximum.accumulate(at * (heights == level))
        above = np.flatnonzero(heights == level + 1)
        starts[at[above]] = last[above] + 1
        higher = np.flatnonzero(heights > level)
        at, heights = at[higher], heights[higher]
        level += 1
    return starts


def _applied(
    function: Primitive, arguments: Sequence[NDArray[np.float64]], dtype: np.dtype[Any]
) -> NDArray[np.float64]:
    """A function of constants by the reference semantics; NaN if it has no meaning here."""
    given = [argument.astype(dtype) for argument in arguments]
    if function.definition is not None:
        return evaluate(function.definition, given, dtype).astype(np.float64)
    if function.name not in REFERENCE:
        return np.full(len(given[0]), np.nan)
    with np.errstate(all="ignore"):
        return REFERENCE[function.name](*given).astype(np.float64)


def scrambled(x: Hashes) -> Hashes:
    """A bijection under which similar numbers become unrelated ones: the finalizer of MurmurHash3 (Appleby 2011)."""
    x = x ^ (x >> np.uint64(33))
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return x
