"""Short forms of sums: term by term, or with common factors taken out."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from shine.lang.simplify.sums import Builder, Sum, combined, raised
from shine.lang.simplify.terms import (
    ONE,
    ZERO,
    Coefficient,
    Unfit,
    plus,
    times,
    to_the_power,
    value,
)

_Key = tuple[float, float, bool]
"""A common factor: (term, sign of its exponent, True), or (numerator without its sign, denominator, False)."""


class SumBuilder(Builder):
    """Finds short formulas for sums."""

    def shortest_sum(self, total: Sum, depth: int = 0) -> int:
        """A short formula for a sum; of two equally short formulas, the one without parentheses.

        Raises
        ------
        Unfit
            If the allowed functions cannot express it.
        """
        if not total.parts:
            return self.terms.constant(value(total.constant) + 0.0)
        plain = self.sum(*total)
        result = plain
        # Greatest nesting of factors that are taken out.
        if depth < 4 and len(total.parts) + (total.constant != ZERO) > 1:
            factored = _Factoring(self, total, depth).result()
            if factored is not None and self.rank(factored) < self.rank(plain):
                result = factored
        return self.remember_sum(result, total) if len(total.parts) > 1 or total.constant != ZERO else result


class _Factoring:
    """Takes out the factor that saves most nodes, then the next, as long as there is one.

    The parts of the sum are items: a coefficient and the exponents of the factors. The constant is an item without
    factors. Items that share a factor become one item: the product of the factor and their sum.
    """

    def __init__(self, builder: SumBuilder, total: Sum, depth: int) -> None:
        self.builder = builder
        self.depth = depth
        self.items: list[tuple[Coefficient, Mapping[int, int]] | None] = []
        self.members: dict[_Key, list[int]] = {}
        self.queue: list[tuple[int, int, _Key]] = []
        for part, factor in sorted(total.parts.items(), key=lambda item: builder.terms.keys[item[0]]):
            own, factors = builder.product_of(part)
            self._append(times(factor, own), factors)
        if total.constant != ZERO:
            self._append(total.constant, {})

    def _append(self, factor: Coefficient, factors: Mapping[int, int]) -> None:
        self.builder.terms.work += 1
        keys: list[_Key] = [(base, 1 if exponent > 0 else -1, True) for base, exponent in factors.items()]
        if abs(value(factor)) != 1:
            keys.append((abs(factor[0]), factor[1], False))
        for key in keys:
            members = self.members.setdefault(key, [])
            members.append(len(self.items))
            if len(members) > 1:
                heapq.heappush(self.queue, (-self._saving(key, len(members)), len(self.queue), key))
        self.items.append((factor, factors))

    def _saving(self, key: _Key, count: int) -> int:
        """Approximate number of nodes saved: the factor and the multiplication in all items but one."""
        size = self.builder.terms.sizes[int(key[0])] if key[2] else 1
        return (count - 1) * (size + 1)

    def result(self) -> int | None:
        """The formula; None if no factor can be taken out."""
        changed = False
        while self.queue:
            saving, order, key = heapq.heappop(self.queue)
            alive = self.members[key] = [index for index in self.members[key] if self.items[index] is not None]
            actual = -self._saving(key, len(alive))
            if len(alive) < 2 or actual < saving:
                continue
            if actual > saving:
                heapq.heappush(self.queue, (actual, order, key))
            elif self._take_out(key, alive):
                changed = True
        return self._sum([item for item in self.items if item is not None]) if changed else None

    def _take_out(self, key: _Key, alive: list[int]) -> bool:
        items = [item for index in alive if (item := self.items[index]) is not None]
        builder = self.builder
        base = int(key[0])
        common = ONE if key[2] else key[:2]
        shared = {base: int(key[1]) * min(abs(factors[base]) for _, factors in items)} if key[2] else {}
        try:
            inverse = to_the_power(common, -1)
            apart = raised(shared, -1)
            inner = self._sum([(times(factor, inverse), combined(factors, apart)) for factor, factors in items])
            own, within = builder.product_of(inner)
            together = times(common, own), combined(within, shared)
            ranks = [builder.rank(builder.product(*item)) for item in items]
            before = sum(size for size, _ in ranks) + len(items) - 1, sum(more for _, more in ranks)
            if builder.rank(builder.product(*together)) >= before:
                return False
        except Unfit:
            return False
        for index in alive:
            self.items[index] = None
        self._append(*together)
        return True

    def _sum(self, items: list[tuple[Coefficient, Mapping[int, int]]]) -> int:
        constant, parts = ZERO, dict[int, Coefficient]()
        for factor, factors in items:
            if factors:
                part = self.builder.product(ONE, factors)
                parts[part] = plus(parts[part], factor) if part in parts else factor
            else:
                constant = plus(constant, factor)
        parts = {part: factor for part, factor in parts.items() if factor[0] != 0}
        if constant == ZERO and len(parts) == 1:
            ((part, factor),) = parts.items()
            return self.builder.multiple(factor, part)
        return self.builder.shortest_sum(Sum(constant, parts), self.depth + 1)
