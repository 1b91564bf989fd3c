"""Lanes: an IR value with Python's operators, so that the elementary functions read as formulas.

One `Lanes` is a scalar or a vector; every operation works on each lane alone. It offers only operations that every
target has as instructions (no rounding to integers, no call), so results have the same bits everywhere. The one
exception is the fused multiply-add: of float32, targets without it get it from float64 (`shine.compiler.llvm.engine`);
of float64, it is for code of this process alone.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format, and the numbers that its bit tricks need."""

    real: ir.Type
    integer: ir.IntType
    fraction: int
    bias: int

    @property
    def width(self) -> int:
        """Bits of a number."""
        return int(self.integer.width)

    @property
    def magic(self) -> float:
        """Adding it rounds a smaller number to an integer, in the lowest bits of the sum."""
        return 1.5 * 2.0**self.fraction

    @property
    def sign(self) -> int:
        """Bit pattern of -0."""
        return 1 << (self.width - 1)

    @property
    def smallest_normal(self) -> float:
        """The least positive number that is not subnormal."""
        return 2.0 ** (1 - self.bias)

    def bits_of(self, number: float) -> int:
        """The bit pattern of a number."""
        real, integer = ("<d", "<Q") if self.fraction == 52 else ("<f", "<I")
        return int(struct.unpack(integer, struct.pack(real, number))[0])


DOUBLE = Format(ir.DoubleType(), ir.IntType(64), 52, 1023)
SINGLE = Format(ir.FloatType(), ir.IntType(32), 23, 127)


class InliningBuilder(ir.IRBuilder):  # llvmlite has no types
    """A builder of a loop around one elementary function: inlined, it loads its numbers once."""


class FusingBuilder(InliningBuilder):
    """A builder for which `Lanes.times_plus` rounds once in float64, too: for code of this process, faster so."""


REGISTER = 32
"""Bytes of one vector register, or of two, on most processors."""


def element_type(type_: ir.Type) -> ir.Type:
    """The type of one lane."""
    return type_.element if isinstance(type_, ir.VectorType) else type_


def like(type_: ir.Type, element: ir.Type) -> ir.Type:
    """The type with the lanes of `type_` and another element."""
    return ir.VectorType(element, type_.count) if isinstance(type_, ir.VectorType) else element


def suffix(type_: ir.Type) -> str:
    """LLVM's name of a type in the names of intrinsics, such as `v8f64`."""
    element = {ir.DoubleType(): "f64", ir.FloatType(): "f32"}[element_type(type_)]
    return f"v{type_.count}{element}" if isinstance(type_, ir.VectorType) else element


def splat(type_: ir.Type, number: float) -> ir.Constant:
    """`number` in every lane of `type_`."""
    element = ir.Constant(element_type(type_), number)
    return _Splat(type_, element) if isinstance(type_, ir.VectorType) else element


class _Splat(ir.Constant):  # llvmlite has no types
    """One constant in every lane of a vector, spelled short."""

    def __init__(self, type_: ir.VectorType, element: ir.Constant) -> None:
        super().__init__(type_, None)
        self.element = element

    def _get_reference(self) -> str:
        return f"splat ({self.element})"


@dataclass(frozen=True, eq=False)
class Lanes:
    """A value of real, integer or truth lanes, and the builder that operates on it."""

    builder: ir.IRBuilder
    value: ir.Value

    @property
    def type(self) -> ir.Type:
        """LLVM type of the value."""
        return self.value.type

    @property
    def format(self) -> Format:
        """Binary format of the lanes; for integer lanes, that of reals of the same width."""
        element = element_type(self.type)
        return DOUBLE if element in (DOUBLE.real, DOUBLE.integer) else SINGLE

    @property
    def is_real(self) -> bool:
        """Whether the lanes are floating-point numbers."""
        return not isinstance(element_type(self.type), ir.IntType)

    def constant(self, number: float) -> Lanes:
        """`number`, in the type of this value."""
        return Lanes(self.builder, splat(self.type, number))

    def _operand(self, other: Lanes | float) -> ir.Value:
        return other.value if isinstance(other, Lanes) else splat(self.type, other)

    def _apply(self, real: str, integer: str, other: Lanes | float, swapped: bool = False) -> Lanes:
        operands = (self.value, self._operand(other))
        emit = getattr(self.builder, real if self.is_real else integer)
        return Lanes(self.builder, emit(*(reversed(operands) if swapped else operands)))

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._apply("fadd", "add", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._apply("fsub", "sub", other)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._apply("fmul", "mul", other)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._apply("fdiv", "udiv", other)

    def times_plus(self, factor: Lanes | float, addend: Lanes | float) -> Lanes:
        """self * factor + addend: rounded once in float32 and by a `FusingBuilder`, else twice."""
        if self.format is DOUBLE and not isinstance(self.builder, FusingBuilder):
            return self * factor + addend
        name, module = f"llvm.fma.{suffix(self.type)}", self.builder.module
        fused = module.globals.get(name) or ir.Function(module, ir.FunctionType(self.type, [self.type] * 3), name)
        return Lanes(self.builder, self.builder.call(fused, [self.value, self._operand(factor), self._operand(addend)]))

    def modulo(self, other: Lanes) -> Lanes:
        """The remainder of unsigned integers."""
        return Lanes(self.builder, self.builder.urem(self.value, other.value))

    def __radd__(self, other: float) -> Lanes:
        return self._apply("fadd", "add", other, swapped=True)

    def __rsub__(self, other: float) -> Lanes:
        return self._apply("fsub", "sub", other, swapped=True)

    def __rmul__(self, other: float) -> Lanes:
        return self._apply("fmul", "mul", other, swapped=True)

    def __rtruediv__(self, other: float) -> Lanes:
        return self._apply("fdiv", "udiv", other, swapped=True)

    def __neg__(self) -> Lanes:
        """The negative of real lanes."""
        return Lanes(self.builder, self.builder.fneg(self.value))

    def __and__(self, other: Lanes | int) -> Lanes:
        return Lanes(self.builder, self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: Lanes | int) -> Lanes:
        return Lanes(self.builder, self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: Lanes | int) -> Lanes:
        return Lanes(self.builder, self.builder.xor(self.value, self._operand(other)))

    def __invert__(self) -> Lanes:
        """The negation of truth lanes."""
        return self ^ 1

    def __lshift__(self, other: Lanes | int) -> Lanes:
        return Lanes(self.builder, self.builder.shl(self.value, self._operand(other)))

    def __rshift__(self, other: Lanes | int) -> Lanes:
        """Logical: zeros come in from the left."""
        return Lanes(self.builder, self.builder.lshr(self.value, self._operand(other)))

    def _compare(self, operator: str, other: Lanes | float) -> Lanes:
        compare = self.builder.fcmp_ordered if self.is_real else self.builder.icmp_signed
        return Lanes(self.builder, compare(operator, self.value, self._operand(other)))

    def __lt__(self, other: Lanes | float) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Lanes | float) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Lanes | float) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Lanes | float) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other: Lanes | float) -> Lanes:
        """Truth lanes: whether both are the same number; false for NaN."""
        return self._compare("==", other)

    def is_nan(self) -> Lanes:
        """Truth lanes: whether the number is NaN."""
        return Lanes(self.builder, self.builder.fcmp_unordered("uno", self.value, self.value))

    def where(self, yes: Lanes, no: Lanes | float) -> Lanes:
        """`yes` where these truth lanes are true, else `no`."""
        return Lanes(self.builder, self.builder.select(self.value, yes.value, yes._operand(no)))

    def bits(self) -> Lanes:
        """The bit patterns of real lanes."""
        return Lanes(self.builder, self.builder.bitcast(self.value, like(self.type, self.format.integer)))

    def real(self) -> Lanes:
        """The real numbers with these bit patterns."""
        return Lanes(self.builder, self.builder.bitcast(self.value, like(self.type, self.format.real)))

    def number(self) -> Lanes:
        """Signed integers as real numbers of the same width; rounded if they need more bits."""
        return Lanes(self.builder, self.builder.sitofp(self.value, like(self.type, self.format.real)))

    def convert(self, target: Format) -> Lanes:
        """Real lanes in another format, rounded if it is narrower; integers keep their lowest bits."""
        if self.format is target:
            return self
        narrower = target is SINGLE
        if self.is_real:
            convert, element = (self.builder.fptrunc if narrower else self.builder.fpext), target.real
        else:
            convert, element = (self.builder.trunc if narrower else self.builder.zext), target.integer
        return Lanes(self.builder, convert(self.value, like(self.type, element)))

    def magnitude(self) -> Lanes:
        """The number without its sign."""
        return (self.bits() & (self.format.sign - 1)).real()

    def sign(self) -> Lanes:
        """The sign bits, as a bit pattern."""
        return self.bits() & self.format.sign

    def flip_sign(self, sign: Lanes) -> Lanes:
        """Negated where the bit pattern `sign` has its highest bit set; its other bits must be zero."""
        return (self.bits() ^ sign).real()

    def sqrt(self) -> Lanes:
        """The correctly rounded square root."""
        name = f"llvm.sqrt.{suffix(self.type)}"
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(self.type, [self.type]), name)
        return Lanes(self.builder, self.builder.call(function, [self.value]))

    def head(self) -> Lanes:
        """The upper half of the fraction: two heads have an exact product. Truncates towards zero."""
        dropped = (self.format.fraction + 2) // 2
        return (self.bits() & ~((1 << dropped) - 1) & (2 * self.format.sign - 1)).real()

    def at_most(self, bound: float) -> Lanes:
        """The smaller of both; NaN stays NaN."""
        return (self > bound).where(self.constant(bound), self)

    def at_least(self, bound: float) -> Lanes:
        """The larger of both; NaN stays NaN."""
        return (self < bound).where(self.constant(bound), self)

    def registers(self, size: int = REGISTER) -> list[Lanes]:
        """The value in parts of `size` bytes, if their number is a power of two; else in one part."""
        count = self.type.count if isinstance(self.type, ir.VectorType) else 1
        part = size * 8 // self.format.width
        if count <= part or count % part or (count // part).bit_count() > 1:
            return [self]
        undefined, places = ir.Constant(self.type, ir.Undefined), ir.VectorType(ir.IntType(32), part)
        starts = range(0, count, part)
        indices = [ir.Constant(places, list(range(start, start + part))) for start in starts]
        return [Lanes(self.builder, self.builder.shuffle_vector(self.value, undefined, index)) for index in indices]

    def any_finite_above(self, bound: float) -> ir.Value:
        """Whether any of these real lanes is finite and above `bound`, as one `i1`."""
        return ((self > bound) & (self < math.inf)).any()

    def any_beyond(self, bound: float) -> ir.Value:
        """Whether any of these real lanes is NaN or of a magnitude above `bound`, as one `i1`.

        It adds squares: where several registers come near the bound, it may be true, too.
        """
        pieces = self.registers(64)
        total = pieces[0].constant(1.0)  # sums that are not subnormal: those are slow
        for piece in pieces:
            total = piece.times_plus(piece, total)
        return (~(total <= bound * bound)).any()

    def any(self) -> ir.Value:
        """Whether any of these truth lanes is true, as one `i1`."""
        if not isinstance(self.type, ir.VectorType):
            return self.value
        together = self.builder.bitcast(self.value, ir.IntType(self.type.count))
        return self.builder.icmp_unsigned("!=", together, together.type(0))


def joined(registers: Sequence[Lanes]) -> Lanes:
    """The inverse of `Lanes.registers`."""
    parts = list(registers)
    while len(parts) > 1:
        builder, width = parts[0].builder, 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [Lanes(builder, builder.shuffle_vector(low.value, high.value, order)) for low, high in pairs]
    return parts[0]


def polynomial(x: Lanes, coefficients: Sequence[Lanes | float]) -> Lanes:
    """Sum of coefficients[i] * x**i by Estrin's scheme: it joins neighbours, then neighbours of the results, and so on.

    The chain of dependent operations is logarithmic: with a longer one, processors run out of room for waiting
    operations.
    """
    terms: list[Lanes | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        joined: list[Lanes | float] = [power.times_plus(high, low) for low, high in pairs]
        terms = joined + terms[len(joined) * 2 :]
        power = power * power
    only = terms[0]
    return only if isinstance(only, Lanes) else x.constant(only)


def by_powers(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """The sum of `polynomial` by Horner's scheme: the fewest operations, in the longest chain."""
    total = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = x.times_plus(total, coefficient)
    return total


def by_pairs(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """The sum of `polynomial` by Horner's scheme in x**2: fewer operations, in a longer chain."""
    terms = list(coefficients)
    square = x * x
    pairs: list[Lanes | float] = [x.times_plus(high, low) for low, high in zip(terms[::2], terms[1::2], strict=False)]
    if len(terms) % 2:
        pairs.append(terms[-1])
    total = pairs.pop()
    while pairs:
        total = square.times_plus(total, pairs.pop())
    return total if isinstance(total, Lanes) else x.constant(total)


def rounded(x: Lanes, offset: int = 0) -> tuple[Lanes, Lanes]:
    """Nearest integer of numbers below 2**(fraction - 1), as a number and as bits.

    The low bits of the second are the integer plus `offset`; the higher bits are arbitrary.
    """
    return _parted(x + (x.format.magic + offset), offset)


def rounded_multiple(x: Lanes, factor: float, offset: int = 0) -> tuple[Lanes, Lanes]:
    """`rounded` of x * factor."""
    return _parted(x.times_plus(factor, x.format.magic + offset), offset)


def _parted(shifted: Lanes, offset: int) -> tuple[Lanes, Lanes]:
    return shifted - (shifted.format.magic + offset), shifted.bits()


def exponent_offset(format_: Format) -> int:
    """Offset of the exponents that `scaled_twice` takes: two biases, one for each step."""
    return 2 * format_.bias


def scaled_twice(exponent: Lanes, *numbers: Lanes) -> tuple[Lanes, ...]:
    """`numbers` times 2**(exponent - exponent_offset), which may leave the range of normal numbers.

    Two steps of half the exponent each round a subnormal result only once, and overflow to infinity.
    """
    half = exponent >> 1
    steps = [(step << numbers[0].format.fraction).real() for step in (half, exponent - half)]
    return tuple(number * steps[0] * steps[1] for number in numbers)
