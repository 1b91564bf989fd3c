"""Affine indices: a constant and multiples of loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llvmlite import ir

from shine.compiler.codegen.blocks import I64

LANE = "lane"
"""The term of the lane's number in a vector."""


@dataclass(frozen=True, eq=False)
class Index:
    """``constant + sum of coefficient * variable``.

    Parameters
    ----------
    constant : int
    terms : mapping of i64 values, or `LANE`, to int
        No coefficient is 0.
    """

    constant: int = 0
    terms: Mapping[ir.Value | str, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal indices."""
        return self.constant, frozenset(
            (term if isinstance(term, str) else id(term), by) for term, by in self.terms.items()
        )

    @property
    def lane(self) -> int:
        """Distance between neighbouring lanes."""
        return self.terms.get(LANE, 0)

    def plus(self, other: Index | int, times: int = 1) -> Index:
        """The sum with a multiple of another index."""
        if isinstance(other, int):
            return Index(self.constant + other * times, self.terms)
        terms = dict(self.terms)
        for term, by in other.terms.items():
            terms[term] = terms.get(term, 0) + by * times
        return Index(self.constant + other.constant * times, {term: by for term, by in terms.items() if by})

    def times(self, factor: int) -> Index:
        """A multiple."""
        return Index().plus(self, factor)

    def at_lane(self, lane: int) -> Index:
        """The index of one lane."""
        rest = {term: by for term, by in self.terms.items() if term != LANE}
        return Index(self.constant + lane * self.lane, rest)

    def value(self, builder: ir.IRBuilder) -> ir.Value:
        """Its i64, of the first lane."""
        total: ir.Value | None = None
        for term, by in self.terms.items():
            if isinstance(term, str):
                continue
            part = term if by == 1 else builder.mul(term, ir.Constant(I64, by))
            total = part if total is None else builder.add(total, part)
        if total is None:
            return ir.Constant(I64, self.constant)
        return builder.add(total, ir.Constant(I64, self.constant)) if self.constant else total


def variable(value: ir.Value) -> Index:
    """The index that is a variable."""
    return Index(value.constant) if isinstance(value, ir.Constant) else Index(0, {value: 1})


def linear(indices: Iterable[Index], strides: Sequence[int]) -> Index:
    """The element that indices name in memory with strides."""
    total = Index()
    for index, stride in zip(indices, strides, strict=True):
        total = total.plus(index, stride)
    return total


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
