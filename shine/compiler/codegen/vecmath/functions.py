"""Shine's own elementary functions as LLVM IR: no libm, and the same bits on every target.

`call(builder, "exp", x)` calls `@shine.exp.v8f64`, say, and defines it in the module on first use. Every function
is within 2 units in the last place of the true value over its whole domain (docs/accuracy.md has the errors).

Only plain additions, multiplications, divisions, square roots, comparisons and integer operations are emitted, and
fused multiply-adds of float32. A target without that instruction gets its bits from float64
(`shine.compiler.llvm.engine`). float64 code has them only with a `FusingBuilder`, in code for this process: a target
without the instruction would call libm. No fast-math flag is set. The result of a lane depends on that lane only, in
the rare branches too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from shine.base.errors import LoweringError
from shine.compiler.codegen.vecmath import exponential, trigonometric
from shine.compiler.codegen.vecmath.control import RarePath, define, repeat
from shine.compiler.codegen.vecmath.lanes import DOUBLE, SINGLE, InliningBuilder, Lanes, element_type, suffix

Body = Callable[..., Lanes]


@dataclass(frozen=True)
class Rule:
    """Code of one function: `double` and `single` take and return lanes of their format.

    `in_chains` says that its operations wait for one another so long that four registers have to be in flight.
    """

    arity: int
    double: Body
    single: Body
    in_chains: bool = False


def _widened(body: Body) -> Body:
    """A float32 function made of a float64 one."""

    def single(*arguments: Lanes) -> Lanes:
        return body(*(x.convert(DOUBLE) for x in arguments)).convert(SINGLE)

    return single


def _fmod(x: Lanes, y: Lanes) -> Lanes:
    """The exact remainder of x / y, with the sign of x.

    Up to quotients of 2**25 (2**11 in float32), q = round(x / y) is off by at most one half and a bit, q times
    each half of y is exact, and so are both differences: the first is below 0.8 |y|, the second not above it, and
    both are multiples of the last bit of y.
    """
    size, divisor = x.magnitude(), y.magnitude()
    largest = 2.0 ** ((x.format.fraction - 2) // 2)
    quotient = size / divisor
    whole = (quotient + x.format.magic) - x.format.magic
    head = divisor.head()
    remainder = (size - whole * head) - whole * (divisor - head)
    remainder = (remainder < 0.0).where(remainder + divisor, remainder)
    remainder = (size < divisor).where(size, remainder)
    valid = (size < math.inf) & (divisor > 0.0)
    remainder = valid.where(remainder, x.constant(math.nan))
    # From half the largest number on, the product with a quotient rounded up may overflow.
    bound = (divisor * largest).at_most(2.0**x.format.bias)
    (remainder,) = _FAR_REMAINDER.replace((size > bound).any(), [remainder], size, divisor)
    return remainder.flip_sign(x.sign())


def _remainder_is_far(x: Lanes, y: Lanes) -> Lanes:
    return (x > y) & (x < math.inf) & (y > 0.0)


def _far_remainder(x: Lanes, y: Lanes) -> tuple[Lanes]:
    """x mod y for finite x > y > 0, by long division of the significands, eleven binary digits per step."""
    x_significand, x_exponent = _integer_parts(x.convert(DOUBLE))
    y_significand, y_exponent = _integer_parts(y.convert(DOUBLE))

    def step(rest: Lanes, left: Lanes) -> tuple[Lanes, tuple[Lanes, Lanes]]:
        digits = (left < 11).where(left, 11)
        left = left - digits
        return left > 0, ((rest << digits).modulo(y_significand), left)

    first = x_significand.modulo(y_significand)
    rest, _ = repeat("digits", (first, x_exponent - y_exponent), step)
    return (_from_integer_parts(rest, y_exponent).convert(x.format),)


_FAR_REMAINDER = RarePath("remainder", _remainder_is_far, _far_remainder)


def _integer_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """x > 0 as significand * 2**(exponent - bias - fraction) in integers; the exponent is at least 1."""
    bits = x.bits()
    field = bits >> DOUBLE.fraction
    subnormal = field.equals(0)
    significand = bits & ((1 << DOUBLE.fraction) - 1)
    significand = subnormal.where(significand, significand | (1 << DOUBLE.fraction))
    return significand, subnormal.where(field.constant(1), field)


def _from_integer_parts(significand: Lanes, exponent: Lanes) -> Lanes:
    """significand < 2**53 times 2**(exponent - bias - fraction), exactly, for an exponent of at least 1."""
    # Without a leading bit, the number is 1.f * 2**e - 2**e; the difference is exact.
    power = (exponent << DOUBLE.fraction).real()
    implicit = 1 << DOUBLE.fraction
    has_leading = significand >= implicit
    fraction = significand & (implicit - 1)
    normal = ((exponent << DOUBLE.fraction) | fraction).real()
    return has_leading.where(normal, normal - power)


FUNCTIONS: dict[str, Rule] = {
    "exp": Rule(1, exponential.exp, exponential.exp, in_chains=True),
    "log": Rule(1, exponential.log, exponential.log, in_chains=True),
    "sin": Rule(1, trigonometric.sin, trigonometric.single_sin, in_chains=True),
    "cos": Rule(1, trigonometric.cos, trigonometric.single_cos, in_chains=True),
    "tan": Rule(1, trigonometric.tan, trigonometric.single_tan),
    "asin": Rule(1, trigonometric.asin, _widened(trigonometric.short_asin)),
    "acos": Rule(1, trigonometric.acos, _widened(trigonometric.short_acos)),
    "atan": Rule(1, trigonometric.atan, _widened(trigonometric.short_atan)),
    "sinh": Rule(1, exponential.sinh, _widened(exponential.short_sinh)),
    "cosh": Rule(1, exponential.cosh, _widened(exponential.short_cosh)),
    "tanh": Rule(1, exponential.tanh, exponential.tanh, in_chains=True),
    "pow": Rule(
        2,
        exponential.with_products(exponential.pow_),
        exponential.with_products(_widened(exponential.short_pow)),
    ),
    "fmod": Rule(2, _fmod, _fmod),
}


def call(builder: ir.IRBuilder, name: str, *arguments: ir.Value) -> ir.Value:
    """Emit a call of an elementary function, and the function itself if its module does not have it yet.

    Parameters
    ----------
    builder : ir.IRBuilder
        Position of the call.
    name : str
        A key of `FUNCTIONS`.
    *arguments : ir.Value
        One or two values of one type: float, double, or a vector of either.

    Returns
    -------
    ir.Value
        The result, of the arguments' type. Angles are in radians.

    Raises
    ------
    LoweringError
        If there is no such function, or it does not take such arguments.
    """
    rule = FUNCTIONS.get(name)
    if rule is None:
        raise LoweringError(f"there is no elementary function {name!r}; known are: {', '.join(FUNCTIONS)}")
    if len(arguments) != rule.arity:
        raise LoweringError(f"{name} takes {rule.arity} argument(s), not {len(arguments)}")
    type_ = arguments[0].type
    element = element_type(type_)
    if element not in (DOUBLE.real, SINGLE.real) or any(argument.type != type_ for argument in arguments):
        types = ", ".join(str(argument.type) for argument in arguments)
        raise LoweringError(f"{name} takes float or double lanes, all of one type; got {types}")
    emit = rule.double if element == DOUBLE.real else rule.single

    def body(inner: ir.IRBuilder, *values: ir.Value) -> ir.Value:
        return emit(*(Lanes(inner, value) for value in values)).value

    function = define(builder, f"shine.{name}.{suffix(type_)}", type_, [type_] * rule.arity, body)
    if isinstance(builder, InliningBuilder):
        function.attributes.add("alwaysinline")
    return builder.call(function, arguments)
