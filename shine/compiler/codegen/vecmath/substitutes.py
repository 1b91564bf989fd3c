"""Substitutes for instructions that some processors lack, made of instructions that all have: rounding, division,
conversion.

Without them a target would call a library: for `floor` on the first x86-64, for 64-bit division and conversion on
32-bit ARM. Each has the same bits as the instruction; `shine.formats.native.freestanding` puts them where they are
needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from llvmlite import ir

from shine.compiler.codegen.vecmath.control import define_in, repeat
from shine.compiler.codegen.vecmath.lanes import DOUBLE, SINGLE, Lanes, element_type, like

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORD = 32


def _near(x: Lanes) -> tuple[Lanes, Lanes]:
    """The integer nearest to x (ties to even), with the sign of x; and whether x is small enough to have a fraction."""
    whole = 2.0**x.format.fraction
    size = x.magnitude()
    return ((size + whole) - whole).flip_sign(x.sign()), size < whole


def _rint(x: Lanes) -> Lanes:
    near, fractional = _near(x)
    return fractional.where(near, x)


def _floor(x: Lanes) -> Lanes:
    near, fractional = _near(x)
    return fractional.where((near > x).where(near - 1.0, near), x)


def _ceil(x: Lanes) -> Lanes:
    """-floor(-x), which gives -0 for -0.5."""
    return _negated(_floor(_negated(x)))


def _negated(x: Lanes) -> Lanes:
    return x.flip_sign(x.constant(-0.0).bits())


def _truncated(x: Lanes) -> Lanes:
    return _floor(x.magnitude()).flip_sign(x.sign())


def _round(x: Lanes) -> Lanes:
    """Halves away from zero. The distance to the number rounded down is exact."""
    size = x.magnitude()
    down = _floor(size)
    up = (size - down >= 0.5).where(down + 1.0, down)
    return up.flip_sign(x.sign())


def _divided(n: Lanes, d: Lanes) -> tuple[Lanes, Lanes]:
    """Quotient and remainder of unsigned scalars by long division; arbitrary for a zero divisor.

    The digits of n move from its upper end into the remainder, one per step, while the digits of the quotient enter at
    its lower end; leading zeros of n are skipped.
    """
    builder, width = n.builder, element_type(n.type).width
    name = f"llvm.ctlz.i{width}"
    count = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(n.type, [n.type, ir.IntType(1)]), name
    )
    # `| 1` keeps the last digit, because a shift by the whole width is undefined.
    skipped = Lanes(builder, builder.call(count, [(n | 1).value, ir.IntType(1)(0)]))

    def step(digits: Lanes, rest: Lanes, left: Lanes) -> tuple[Lanes, tuple[Lanes, Lanes, Lanes]]:
        carried = rest < 0
        rest = (rest << 1) | (digits >> (width - 1))
        fits = Lanes(builder, builder.or_(carried.value, builder.icmp_unsigned(">=", rest.value, d.value)))
        digits = (digits << 1) | fits.where(n.constant(1), 0)
        return left > 1, (digits, fits.where(rest - d, rest), left - 1)

    quotient, remainder, _ = repeat("digit", (n << skipped, n.constant(0), n.constant(width) - skipped), step)
    return quotient, remainder


def _absolute(x: Lanes) -> Lanes:
    return (x < 0).where(x.constant(0) - x, x)


def _signed(value: Lanes, negative: Lanes) -> Lanes:
    return negative.where(value.constant(0) - value, value)


def _sdiv(n: Lanes, d: Lanes) -> Lanes:
    return _signed(_divided(_absolute(n), _absolute(d))[0], (n ^ d) < 0)


def _srem(n: Lanes, d: Lanes) -> Lanes:
    return _signed(_divided(_absolute(n), _absolute(d))[1], n < 0)


def _upper(x: Lanes) -> Lanes:
    """The upper 32 bits of a 64-bit integer."""
    return Lanes(x.builder, x.builder.trunc((x >> _WORD).value, like(x.type, _I32)))


def _words(x: Lanes, upper: str) -> Lanes:
    """A 64-bit integer as float64: two exact words, and a sum that is rounded once."""
    builder, real = x.builder, like(x.type, DOUBLE.real)
    low = Lanes(builder, builder.uitofp(x.convert(SINGLE).value, real))
    return Lanes(builder, getattr(builder, upper)(_upper(x).value, real)) * 2.0**_WORD + low


def _sticky(x: Lanes, size: Lanes) -> Lanes:
    """x with the bits that float64 cannot hold joined into one, so that rounding twice is like rounding once.

    The joined bit is the lowest of 53, below all bits that float32 keeps: it neither makes a tie nor loses one.
    """
    lost = (1 << 11) - 1
    joined = x | ((x & lost) + lost)
    return (size >> DOUBLE.fraction).equals(0).where(x, joined & ~lost)


def _int64_to_real(x: Lanes, target: ir.Type) -> Lanes:
    if target == DOUBLE.real:
        return _words(x, "sitofp")
    return _words(_sticky(x, _absolute(x)), "sitofp").convert(SINGLE)


def _uint64_to_real(x: Lanes, target: ir.Type) -> Lanes:
    if target == DOUBLE.real:
        return _words(x, "uitofp")
    return _words(_sticky(x, x), "uitofp").convert(SINGLE)


def _real_to_uint64(x: Lanes) -> Lanes:
    """x >= 0 truncated, word by word: the difference is exact. Arbitrary if x does not fit."""
    builder, x = x.builder, x.convert(DOUBLE)
    high = builder.fptoui((x * 2.0**-_WORD).value, like(x.type, _I32))
    rest = x - Lanes(builder, builder.uitofp(high, x.type)) * 2.0**_WORD
    low = Lanes(builder, builder.fptoui(rest.value, like(x.type, _I32))).convert(DOUBLE)
    return (Lanes(builder, high).convert(DOUBLE) << _WORD) | low


def _real_to_int64(x: Lanes) -> Lanes:
    return _signed(_real_to_uint64(x.magnitude()), x < 0.0)


INTRINSICS: dict[str, Callable[[Lanes], Lanes]] = {
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _truncated,
    "rint": _rint,
    "nearbyint": _rint,
    "roundeven": _rint,
    "round": _round,
}
"""Substitute of each LLVM intrinsic of one floating-point number, scalar or vector."""

DIVISIONS: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "sdiv": _sdiv,
    "srem": _srem,
    "udiv": lambda n, d: _divided(n, d)[0],
    "urem": lambda n, d: _divided(n, d)[1],
}
"""Substitute of each integer division, for scalars; arbitrary for a zero divisor."""

TO_REAL: dict[str, Callable[[Lanes, ir.Type], Lanes]] = {"sitofp": _int64_to_real, "uitofp": _uint64_to_real}
"""Substitute of each conversion of a 64-bit integer."""

TO_INTEGER: dict[str, Callable[[Lanes], Lanes]] = {"fptosi": _real_to_int64, "fptoui": _real_to_uint64}
"""Substitute of each conversion to a 64-bit integer; arbitrary for numbers that do not fit."""

_ELEMENTS: dict[str, ir.Type] = {
    "double": DOUBLE.real,
    "float": SINGLE.real,
    **{f"i{width}": ir.IntType(width) for width in (32, 64)},
}


def parsed_type(text: str) -> ir.Type | None:
    """The type that IR writes as `double` or `<8 x i64>`, say; None if no substitute takes it."""
    vector = re.fullmatch(r"<(\d+) x (\w+)>", text)
    element = _ELEMENTS.get(vector[2] if vector else text)
    return ir.VectorType(element, int(vector[1])) if element and vector else element


def define_substitute(module: ir.Module, operation: str, source: ir.Type, target: ir.Type) -> ir.Function | None:
    """The substitute of an operation, as a function that is defined in a module on first use.

    Parameters
    ----------
    module : ir.Module
    operation : str
        A key of `INTRINSICS`, `DIVISIONS`, `TO_REAL` or `TO_INTEGER`.
    source, target : ir.Type
        Types of the operands and of the result.

    Returns
    -------
    ir.Function or None
        None if this operation has no substitute for these types.
    """
    if (operation in TO_REAL and element_type(source) != _I64) or (
        operation in TO_INTEGER and element_type(target) != _I64
    ):
        return None

    def body(builder: ir.IRBuilder, *values: ir.Value) -> ir.Value:
        arguments = [Lanes(builder, value) for value in values]
        if operation in DIVISIONS and isinstance(source, ir.VectorType):
            return _lane_by_lane(builder, operation, source, values)
        if operation in TO_REAL:
            return TO_REAL[operation](arguments[0], element_type(target)).value
        table = next(table for table in (INTRINSICS, DIVISIONS, TO_INTEGER) if operation in table)
        return table[operation](*arguments).value

    name = f"shine.{operation}.{_label(source)}.{_label(target)}"
    return define_in(module, name, target, [source] * (2 if operation in DIVISIONS else 1), body)


def _label(kind: ir.Type) -> str:
    lanes = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    return lanes + {"double": "f64", "float": "f32"}.get(str(element_type(kind)), str(element_type(kind)))


def _lane_by_lane(
    builder: ir.IRBuilder, operation: str, kind: ir.VectorType, operands: tuple[ir.Value, ...]
) -> ir.Value:
    scalar = define_substitute(builder.module, operation, kind.element, kind.element)
    result = ir.Constant(kind, ir.Undefined)
    for lane in range(kind.count):
        place = _I32(lane)
        arguments = [builder.extract_element(operand, place) for operand in operands]
        result = builder.insert_element(result, builder.call(scalar, arguments), place)
    return result
