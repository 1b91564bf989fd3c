"""Elementary functions for ONNX, written out in nodes.

ONNX Runtime lacks six of them in float64, and its sine, cosine and hyperbolic tangent are many ulp off. These are the
algorithms of Shine's own compiled functions, with the same coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

from shine.compiler.codegen.vecmath.exponential import DOUBLE_SINH, DOUBLE_TANH
from shine.compiler.codegen.vecmath.reduction import QUARTER_TURN_PARTS
from shine.compiler.codegen.vecmath.trigonometric import (
    ARCTANGENT_FAR,
    ARCTANGENTS,
    DOUBLE_ASIN,
    DOUBLE_ATAN,
    DOUBLE_COS,
    DOUBLE_SIN,
    HALF_PI,
    PI,
)
from shine.formats.write.onnx.graph import Value

REDUCED = 2.0**16
"""Largest angle that is reduced to the first quarter turn here; ONNX Runtime's own functions take larger ones."""


def unit(a: Value) -> Value:
    """1 or -1, the sign of a number, zeros included."""
    return (a.equals(0.0).where(1.0 / a, a) < 0.0).where(a.number(-1.0), 1.0)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    result = x.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _reduced(a: Value) -> tuple[Value, Value, Value]:
    """|a| as quarter turns and r + tail, |r| <= pi/4, for |a| <= REDUCED; the turns modulo 4."""
    size = a.magnitude()
    k = (size * (2.0 / PI[0]) + 0.5).apply("Floor")
    first, second, third = (k * part for part in QUARTER_TURN_PARTS)
    # The first two products and the first difference are exact.
    coarse = size - first
    middle = coarse - second
    lost = (coarse - middle) - second
    r = middle + (lost - third)
    tail = (middle - r) + (lost - third)
    return k - 4.0 * (k * 0.25).apply("Floor"), r, tail


def _sine_and_cosine(r: Value, tail: Value) -> tuple[Value, Value]:
    square = r * r
    half = 0.5 * square
    one_less = 1.0 - half
    sine = r + (r * square * _polynomial(square, DOUBLE_SIN) + tail * one_less)
    cosine = one_less + (((1.0 - one_less) - half) + (square * square * _polynomial(square, DOUBLE_COS) - r * tail))
    return sine, cosine


def _circular(a: Value, library: Value, name: str) -> Value:
    """`sin`, `cos` or `tan`; beyond `REDUCED` the library's value for the angle without its sign."""
    quarters, r, tail = _reduced(a)
    sine, cosine = _sine_and_cosine(r, tail)
    odd = quarters.equals(1.0) | quarters.equals(3.0)
    if name == "tan":
        result = odd.where(-cosine, sine) / odd.where(sine, cosine)
    elif name == "sin":
        turned = odd.where(cosine, sine)
        result = (quarters > 1.5).where(-turned, turned)
    else:
        turned = odd.where(sine, cosine)
        result = (quarters.equals(1.0) | quarters.equals(2.0)).where(-turned, turned)
    result = (a.magnitude() > REDUCED).where(library, result)
    if name == "cos":
        return result
    return result * unit(a)


def sin(a: Value) -> Value:
    """The sine."""
    return _circular(a, a.magnitude().apply("Sin"), "sin")


def cos(a: Value) -> Value:
    """The cosine."""
    return _circular(a, a.apply("Cos"), "cos")


def tan(a: Value) -> Value:
    """The tangent."""
    return _circular(a, a.magnitude().apply("Sin") / a.apply("Cos"), "tan")


def _arcsine_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether |a| < 1/2; then asin(|a|), else asin(sqrt((1 - |a|) / 2)), as the sum of two numbers."""
    size = a.magnitude()
    small = size < 0.5
    square = small.where(size * size, (1.0 - size) * 0.5)
    root = square.apply("Sqrt")
    s = small.where(size, root)
    head = small.where(size, root.head())
    # The denominator must not be zero.
    remainder = small.where(a.number(0.0), (square - head * head) / root.equals(0.0).where(a.number(1.0), root + head))
    return small, head, s * (square * _polynomial(square, DOUBLE_ASIN)) + remainder


def asin(a: Value) -> Value:
    """The arc sine."""
    small, head, tail = _arcsine_parts(a)
    far_head = HALF_PI[0] - 2.0 * head
    lost = (HALF_PI[0] - far_head) - 2.0 * head
    return small.where(head + tail, far_head - (2.0 * tail - (HALF_PI[1] + lost))) * unit(a)


def acos(a: Value) -> Value:
    """The arc cosine."""
    small, head, tail = _arcsine_parts(a)
    negative = a < 0.0
    start = small.where(a.number(HALF_PI[0]), negative.where(a.number(PI[0]), 0.0))
    start_tail = small.where(a.number(HALF_PI[1]), negative.where(a.number(PI[1]), 0.0))
    factor = small.where(a.number(-1.0), 2.0)
    factor = negative.where(-factor, factor)
    head, tail = head * factor, tail * factor
    total = start + head
    return total + (tail + (start_tail + ((start - total) + head)))


def atan(a: Value) -> Value:
    """The arc tangent."""
    size = a.magnitude()
    centre = start = start_tail = a.number(0.0)
    for begin, middle, arc, arc_tail in ARCTANGENTS:
        before = size < begin
        centre = before.where(centre, middle)
        start = before.where(start, arc)
        start_tail = before.where(start_tail, arc_tail)
    far = size > ARCTANGENT_FAR
    start = far.where(a.number(HALF_PI[0]), start)
    start_tail = far.where(a.number(HALF_PI[1]), start_tail)
    t = far.where(a.number(-1.0), size - centre) / far.where(size, 1.0 + centre * size)
    square = t * t
    return (start + (t + (start_tail + t * square * _polynomial(square, DOUBLE_ATAN)))) * unit(a)


def _exponential_halves(size: Value) -> tuple[Value, Value, Value]:
    """Whether e**size may overflow; e**size where it does not; e**size / 2, from two factors, where it may."""
    large = size > 700.0
    power = large.where(size.number(0.0), size).apply("Exp")
    half = (large.where(size, 0.0) * 0.5).apply("Exp")
    return large, power, (half * 0.5) * half


def sinh(a: Value) -> Value:
    """The hyperbolic sine."""
    size = a.magnitude()
    large, power, huge = _exponential_halves(size)
    square = size * size
    near = size + size * square * _polynomial(square, DOUBLE_SINH)
    far = large.where(huge, (power - 1.0 / power) * 0.5)
    return (size < 1.0).where(near, far) * unit(a)


def cosh(a: Value) -> Value:
    """The hyperbolic cosine."""
    large, power, huge = _exponential_halves(a.magnitude())
    return large.where(huge, (power + 1.0 / power) * 0.5)


def tanh(a: Value) -> Value:
    """The hyperbolic tangent."""
    size = a.magnitude()
    square = size * size
    above, below = (_polynomial(square, coefficients) for coefficients in DOUBLE_TANH)
    near = size + size * square * above / below
    # Beyond 22 the result is 1; the bound keeps the power from overflowing.
    bounded = (size > 22.0).where(size.number(22.0), size)
    far = 1.0 - 2.0 / ((bounded + bounded).apply("Exp") + 1.0)
    return (size < 0.55).where(near, far) * unit(a)
