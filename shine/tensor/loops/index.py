"""Affine indices: a constant and multiples of loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64
from shine.compiler.codegen.lowering import FLOAT_LOWERINGS, INTEGER_LOWERINGS, Emitter
from shine.compiler.codegen.numbers import Numbers, splat
from shine.tensor.form.types import DTYPES, FLOATS
from shine.tensor.loops.lanes import ELEMENTS, constant, typed

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


_NUMBERS = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64"}
"""Number types that rules have; narrower integers and truth are computed as int32, and cut."""

_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def applied(
    builder: ir.IRBuilder, operation: str, dtype: str, values: Sequence[ir.Value], width: int, result: str
) -> ir.Value:
    """The result of an elementwise operation.

    Parameters
    ----------
    builder : ir.IRBuilder
    operation : str
    dtype : str
        Elements of the last operand.
    values : sequence of ir.Value
        Of `width` lanes each, scalars at width 1.
    width : int
    result : str
        Elements of the result.
    """
    if operation == "select":
        return builder.select(*values)
    if operation in ("and", "or"):
        return getattr(builder, f"{operation}_")(*values)
    if operation == "not":
        return builder.xor(values[0], splat(values[0].type, 1))
    if operation == "cast":
        return cast(builder, values[0], dtype, result, width)
    numbers = Numbers(_NUMBERS.get(dtype, "int32"), width)
    emit = Emitter(builder, numbers)
    if dtype not in _NUMBERS:
        values = [cast(builder, value, dtype, "i32", width) for value in values]
    if operation in _COMPARISONS:
        return emit.compare(_COMPARISONS[operation], *values)
    if operation == "round":
        return _rounded(emit, values[0])
    rules = INTEGER_LOWERINGS if numbers.is_integer else FLOAT_LOWERINGS
    found = rules[operation](emit, *values)
    if emit.failed is not None:
        found = builder.select(emit.failed, emit.constant(0), found)
    return found if dtype in _NUMBERS else builder.trunc(found, typed(ELEMENTS[dtype], width))


def _rounded(emit: Emitter, value: ir.Value) -> ir.Value:
    """Halves to even: from 2**52 on, every float64 is whole, so adding it drops the fraction."""
    build, size = emit.builder, emit.intrinsic("llvm.fabs", value)
    whole = emit.constant(2.0 ** (np.finfo(emit.numbers.dtype).nmant))
    rounded = build.fsub(build.fadd(size, whole), whole)
    return emit.intrinsic("llvm.copysign", build.select(emit.compare("<", size, whole), rounded, size), value)


def cast(builder: ir.IRBuilder, value: ir.Value, source: str, target: str, width: int) -> ir.Value:
    """Lanes as other elements, as the operation of that name defines it."""
    kind = typed(ELEMENTS[target], width)
    if source == target:
        return value
    if target == "bool":
        compare = builder.fcmp_unordered if source in FLOATS else builder.icmp_signed
        return compare("!=", value, constant(source, 0, width))
    if source in FLOATS and target in FLOATS:
        return (builder.fpext if target == "f64" else builder.fptrunc)(value, kind)
    unsigned = source in ("u8", "bool")
    if target in FLOATS:
        return (builder.uitofp if unsigned else builder.sitofp)(value, kind)
    if source in FLOATS:
        return _to_integer(builder, value, source, target, width)
    bits, now = ELEMENTS[target].width, ELEMENTS[source].width
    if bits == now:
        return value
    if bits < now:
        return builder.trunc(value, kind)
    return (builder.zext if unsigned else builder.sext)(value, kind)


def _to_integer(builder: ir.IRBuilder, value: ir.Value, source: str, target: str, width: int) -> ir.Value:
    """Truncated; the instruction is undefined for numbers that do not fit, so it never sees them."""
    limits = np.iinfo(DTYPES[target])
    high = 2.0 ** (limits.bits - (limits.kind == "i"))
    above = builder.fcmp_ordered(">=", value, constant(source, high, width))
    below = builder.fcmp_ordered("<=", value, constant(source, float(limits.min), width))
    outside = builder.or_(builder.or_(above, below), builder.fcmp_unordered("uno", value, value))
    within = builder.select(outside, constant(source, 0, width), value)
    wide = "i64" if limits.bits == 64 else "i32"
    whole = builder.fptosi(within, typed(ELEMENTS[wide], width))
    whole = cast(builder, whole, wide, target, width)
    whole = builder.select(below, splat(whole.type, int(limits.min)), whole)
    return builder.select(above, splat(whole.type, int(limits.max)), whole)
