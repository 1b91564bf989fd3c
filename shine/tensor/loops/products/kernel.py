"""The micro-kernel of products: a tile of sums in registers, one multiply-add for each term."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted, intrinsic
from shine.tensor.form.types import FLOATS
from shine.tensor.loops.lanes import STORED, constant, load, widened

UNROLLED = 4
"""Terms of a sum in one turn of a loop."""

STRAIGHT = 256
"""Most multiply-adds of a sum without a loop."""

Sums = list[ir.Value]
"""Accumulators, row by row, each row's vectors in order."""


@dataclass(frozen=True)
class Arithmetic:
    """Multiply-add of an element type; fused for floats if the machine can."""

    dtype: str
    fused: bool

    def multiply_add(self, builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """``a * b + c``."""
        if self.dtype not in FLOATS:
            return builder.add(builder.mul(a, b), c)
        if self.fused:
            return builder.call(intrinsic(builder.module, "llvm.fma", a.type, 3), [a, b, c])
        return builder.fadd(builder.fmul(a, b), c)

    def add(self, builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
        """``a + b``."""
        return (builder.fadd if self.dtype in FLOATS else builder.add)(a, b)


@dataclass(frozen=True)
class Walk:
    """Address and strides of an operand, in elements.

    Parameters
    ----------
    pointer : ir.Value
        Of the first term.
    step : int
        From term to term.
    across : tuple of int
        Of each row, or of each vector of columns.
    """

    pointer: ir.Value
    step: int
    across: tuple[int, ...]


def moved(builder: ir.IRBuilder, pointer: ir.Value, by: ir.Value | int, dtype: str) -> ir.Value:
    """A pointer some elements further on."""
    if isinstance(by, int):
        if not by:
            return pointer
        by = ir.Constant(I64, by)
    return builder.gep(pointer, [by], source_etype=STORED[dtype])


@dataclass(frozen=True)
class Columns:
    """Vectors of columns, and how they are computed.

    Parameters
    ----------
    arithmetic : Arithmetic
    width : int
        Lanes of a vector.
    counts : tuple of int
        Lanes in use, of each vector.
    """

    arithmetic: Arithmetic
    width: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, arithmetic: Arithmetic, columns: int, width: int) -> Columns:
        """The vectors of some columns."""
        return cls(arithmetic, width, tuple(min(width, columns - start) for start in range(0, columns, width)))

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first column of each vector."""
        return tuple(place * self.width for place in range(len(self.counts)))

    def zeros(self, rows: int) -> Sums:
        """Sums of nothing."""
        return [constant(self.arithmetic.dtype, 0, self.width)] * (rows * len(self.counts))

    def full(self) -> Columns:
        """The same with all lanes in use."""
        return replace(self, counts=(self.width,) * len(self.counts))


def accumulate(
    builder: ir.IRBuilder,
    columns: Columns,
    terms: int | ir.Value,
    left: Walk,
    right: Walk,
    initial: Sums,
    chains: int = 1,
) -> Sums:
    """Add the products of a tile: sum over p of left[row, p] * right[p, columns].

    Parameters
    ----------
    builder : ir.IRBuilder
    columns : Columns
    terms : int or ir.Value
        Length of the sums.
    left, right : Walk
        Single elements on the left; vectors on the right.
    initial : list of ir.Value
        Sums so far.
    chains : int
        Sums that each element is split into. The order of additions depends on nothing else.
    """
    arithmetic, width = columns.arithmetic, columns.width
    dtype, tile = arithmetic.dtype, len(initial)
    # Each chain has a stretch of the terms to itself: several streams through memory are read faster than one.
    stretch = terms // chains if isinstance(terms, int) else terms

    def term(number: int, chain: int, a: ir.Value, b: ir.Value, sums: Sums) -> None:
        pointers = [moved(builder, b, number * right.step + offset, dtype) for offset in right.across]
        places = zip(pointers, columns.counts, strict=True)
        vectors = [load(builder, pointer, dtype, width, count) for pointer, count in places]
        for row, offset in enumerate(left.across):
            element = load(builder, moved(builder, a, number * left.step + offset, dtype), dtype)
            factor = widened(builder, element, width)
            for place, column in enumerate(vectors):
                at = chain * tile + row * len(vectors) + place
                sums[at] = arithmetic.multiply_add(builder, factor, column, sums[at])

    def each(numbers: range, a: ir.Value, b: ir.Value, sums: Sums) -> None:
        for number in numbers:
            for chain in range(chains):
                term(number + (chain * stretch if chain else 0), chain, a, b, sums)

    def turns(start: ir.Value, stop: ir.Value, by: int, a: ir.Value, b: ir.Value, sums: Sums) -> list[ir.Value]:
        with counted(builder, start, stop, by, carried=[a, b, *sums]) as loop:
            a, b, *inner = loop.values
            each(range(by), a, b, inner)
            loop.results = [moved(builder, a, by * left.step, dtype), moved(builder, b, by * right.step, dtype), *inner]
        return loop.values

    sums = [*initial, *[constant(dtype, 0, width)] * (tile * (chains - 1))]
    a, b, zero = left.pointer, right.pointer, ir.Constant(I64, 0)
    if not isinstance(stretch, int):
        whole = builder.and_(stretch, ir.Constant(I64, -UNROLLED))
        a, b, *sums = turns(zero, whole, UNROLLED, a, b, sums)
        _, _, *sums = turns(whole, stretch, 1, a, b, sums)
    else:
        whole = 0
        if stretch * chains * tile > STRAIGHT:
            whole = stretch // UNROLLED * UNROLLED
            a, b, *sums = turns(zero, ir.Constant(I64, whole), UNROLLED, a, b, sums)
        each(range(stretch - whole), a, b, sums)
        for number in range(stretch * chains, int(terms)):
            term(number - whole, 0, a, b, sums)
    while len(sums) > tile:
        half = len(sums) // 2
        sums = [arithmetic.add(builder, x, y) for x, y in zip(sums[:half], sums[half:], strict=True)]
    return sums
