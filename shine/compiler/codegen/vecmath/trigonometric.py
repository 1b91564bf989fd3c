"""sin, cos, tan and their inverses, as formulas over lanes.

Polynomials are minimax fits (Remez exchange at 200 bits, coefficients then rounded to the format); the bound in
each comment is the error of the rounded polynomial relative to the function.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.vecmath.control import unless
from shine.compiler.codegen.vecmath.lanes import DOUBLE, SINGLE, Lanes, by_pairs, by_powers, polynomial, rounded
from shine.compiler.codegen.vecmath.reduction import (
    SINGLE_LIMIT,
    half_turns,
    reduced,
    reduced_short,
    reduced_single,
    reduced_single_centred,
)

# (sin(r) / r - 1) / r**2 over r**2, for |r| <= pi/4: 2**-57.2, and 2**-37.6.
DOUBLE_SIN = (
    *(-0.16666666666666632, 0.008333333333322398, -0.00019841269829793968, 2.7557313686845767e-06),
    *(-2.5050757285670106e-08, 1.5896745747829e-10),
)
SHORT_SIN = (-0.16666666641579925, 0.008333329380351204, -0.00019839333020064035, 2.7182938844795254e-06)
# (cos(r) - 1 + r**2/2) / r**4 over r**2: 2**-59.9, and 2**-33.3.
DOUBLE_COS = (
    *(0.0416666666666666, -0.0013888888888874103, 2.4801587289467836e-05, -2.7557314347993013e-07),
    *(2.0875722658450226e-09, -1.1359614757775634e-11),
)
SHORT_COS = (0.04166664683940447, -0.0013887366120685501, 2.4438283707191622e-05)

# The first one in float32, 2**-25.5 up to pi/2 + 0.005. Chosen so that results next to 1 are not rounded beyond it.
SINGLE_SIN = (-0.16666662693023682, 0.008333101868629456, -0.00019809936929959804, 2.6031143534055445e-06)
# sin(pi f) / f over f**2, for |f| <= 1/2: 2**-35.3.
HALF_TURN_SIN = (
    *(3.1415926535232868, -5.167712762111681, 2.550163240227861, -0.5992513292801918, 0.0820464754660088),
    -0.007022158523609276,
)

# (asin(x) / x - 1) / x**2 over x**2, for |x| <= 1/2: 2**-58.8, and 2**-31.7.
DOUBLE_ASIN = (
    *(0.16666666666666763, 0.07499999999970268, 0.04464285717511607, 0.030381942683805667, 0.02237221565572884),
    *(0.017351600164671223, 0.013980960659992396, 0.011397781960807223, 0.01078649773858988),
    *(0.0036831538848035566, 0.021763239071299394, -0.021076937759954187, 0.032676674773763376),
)
SHORT_ASIN = (
    *(0.16666659872932654, 0.07500510860940685, 0.04451573063640725, 0.03181752978834804),
    *(0.014402896245207835, 0.03756481982052086),
)

# (atan(t) / t - 1) / t**2 over t**2, for |t| <= 7/16: 2**-56.9, and 2**-29.6.
DOUBLE_ATAN = (
    *(-0.3333333333333293, 0.19999999999876175, -0.14285714272481742, 0.11111110404657294, -0.09090887115646866),
    *(0.07691875955663702, -0.06661070861504444, 0.058335566483459646, -0.04976827957296878),
    *(0.03653051644504734, -0.01628485193595896),
)
SHORT_ATAN = (
    -0.33333304017491683,
    0.19997767236228278,
    -0.1423004316761276,
    0.10493675060596122,
    -0.058252471118523365,
)

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
PI = (3.141592653589793, 1.2246467991473532e-16)


def _is_odd(quarters: Lanes) -> Lanes:
    return (quarters << (quarters.format.width - 1)) < 0


def _quarter_turn_sign(quarters: Lanes) -> Lanes:
    """The sign bit of every second quarter."""
    return quarters << (quarters.format.width - 1)


def _half_turn_sign(quarters: Lanes, bits: Lanes | int) -> Lanes:
    """The sign bit of every second pair of quarters, flipped by that of `bits`."""
    return ((quarters << (quarters.format.width - 2)) ^ bits) & quarters.format.sign


def _turned(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """The quarters of an angle's magnitude, and the sine and cosine of the rest, float64."""
    quarters, r = reduced(x.magnitude(), 1)
    square = r * r
    sine = (r * square).times_plus(by_pairs(square, DOUBLE_SIN), r)
    return quarters, sine, square.times_plus(by_pairs(square, (-0.5, *DOUBLE_COS)), 1.0)


def _sine(x: Lanes, quarters: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    """The sine of the reduced angle in even quarters, its cosine in odd ones."""
    return _is_odd(quarters).where(cosine, sine).flip_sign(_half_turn_sign(quarters, x.bits()))


def _cosine(quarters: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    """The cosine of the reduced angle in even quarters, its sine in odd ones."""
    return _is_odd(quarters).where(sine, cosine).flip_sign(_half_turn_sign(quarters + 1, 0))


def sin(x: Lanes) -> Lanes:
    """sin(x) by its reduced angle."""
    return _sine(x, *_turned(x))


def cos(x: Lanes) -> Lanes:
    """cos(x) by its reduced angle."""
    return _cosine(*_turned(x))


def sin_and_slope(x: Lanes) -> tuple[Lanes, Lanes]:
    """sin(x) and its derivative cos(x), for little more than one of them."""
    turned = _turned(x)
    return _sine(x, *turned), _cosine(*turned)


def cos_and_slope(x: Lanes) -> tuple[Lanes, Lanes]:
    """cos(x) and its derivative -sin(x)."""
    sine, cosine = sin_and_slope(x)
    return cosine, -sine


def tan(x: Lanes) -> Lanes:
    """The quotient of sine and cosine, or of cosine and sine, corrected by its exact remainder."""
    quarters, r, tail = reduced(x.magnitude(), 2)
    square = r * r
    half = 0.5 * square
    one_less = 1.0 - half
    sin_tail = (r * square).times_plus(polynomial(square, DOUBLE_SIN), tail * one_less)
    cos_tail = ((1.0 - one_less) - half) + (square * square).times_plus(polynomial(square, DOUBLE_COS), r * -tail)
    odd = _is_odd(quarters)
    above, above_tail = odd.where(one_less, r), odd.where(cos_tail, sin_tail)
    below, below_tail = odd.where(r, one_less), odd.where(sin_tail, cos_tail)
    numerator, denominator = above + above_tail, below + below_tail
    inverse = 1.0 / denominator
    quotient = numerator * inverse
    q_head, d_head = quotient.head(), denominator.head()
    q_tail, d_tail = quotient - q_head, denominator - d_head
    remainder = (((numerator - q_head * d_head) - q_head * d_tail) - q_tail * d_head) - q_tail * d_tail
    lost = ((above - numerator) + above_tail) - quotient * ((below - denominator) + below_tail)
    result = quotient + (remainder + lost) * inverse
    return result.flip_sign(_quarter_turn_sign(quarters) ^ x.sign())


def _near_sine(bits: Lanes, r: Lanes) -> Lanes:
    """sin(r) in float32 for |r| <= pi/2, negated where the last bit of `bits` is set.

    Reduced to half turns, the sine needs no choice between two polynomials. Adding zero keeps -0: the products then are
    positive zeros; without it they are negative zeros, whose sum is not -0.
    """
    square = r * r
    curve = square.times_plus(by_powers(square, SINGLE_SIN), 0.0)
    sine = r.times_plus(curve, r)
    return sine.flip_sign(bits << (SINGLE.width - 1))


def _far_sine(x: Lanes, ahead: float) -> Lanes:
    """sin(x + ahead * pi) for float32 x >= 128, in float64."""
    turns, rest = half_turns(x)
    if ahead:
        turns = turns + ahead
    k, bits = rounded(turns)
    f = (turns - k) + rest
    return (f * polynomial(f * f, HALF_TURN_SIN)).flip_sign(bits << (DOUBLE.width - 1)).convert(SINGLE)


def _with_far_sine(x: Lanes, near: Lanes, name: str, ahead: float) -> Lanes:
    """`near` for float32 |x| <= SINGLE_LIMIT, sin(x + ahead * pi) beyond; infinity and NaN become NaN either way."""

    def far(x: Lanes, near: Lanes) -> Lanes:
        size = x.magnitude()
        sine = _far_sine(size, ahead)
        return (size <= SINGLE_LIMIT).where(near, sine if ahead else sine.flip_sign(x.sign()))

    def is_far(x: Lanes, near: Lanes) -> ir.Value:
        return x.magnitude().any_finite_above(SINGLE_LIMIT)

    suspected = x.any_beyond(SINGLE_LIMIT)
    return unless(suspected, near, f"{name}.far", far, x, near, register=is_far)


def single_sin(x: Lanes) -> Lanes:
    """sin in float32: its own polynomial for angles up to `SINGLE_LIMIT`, float64 beyond."""
    return _with_far_sine(x, _near_sine(*reduced_single(x)), "sin", 0.0)


def single_cos(x: Lanes) -> Lanes:
    """cos in float32, as `single_sin`: |x| = (k + 1/2) * pi - r, and the cosine is plus or minus the sine of r."""
    size = x.magnitude()
    return _with_far_sine(size, _near_sine(*reduced_single_centred(size)), "cos", 0.5)


def single_tan(x: Lanes) -> Lanes:
    """tan in float64 throughout, with polynomials of float32's accuracy."""
    quarters, r = reduced_short(x.magnitude().convert(DOUBLE))
    square = r * r
    sin = r + r * square * polynomial(square, SHORT_SIN)
    cos = (1.0 - 0.5 * square) + square * square * polynomial(square, SHORT_COS)
    odd = _is_odd(quarters)
    quotient = odd.where(cos, sin) / odd.where(sin, cos)
    return quotient.flip_sign(_quarter_turn_sign(quarters)).convert(SINGLE).flip_sign(x.sign())


def _arcsine_parts(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Whether |x| < 1/2, and asin(|x|) there or asin(sqrt((1 - |x|) / 2)) elsewhere, as two numbers to be added.

    Beyond 1 they are NaN. The float64 square root is continued by its remainder.
    """
    size = x.magnitude()
    small = size < 0.5
    square = small.where(size * size, (1.0 - size) * 0.5)
    root = square.sqrt()
    s = small.where(size, root)
    head = small.where(size, root.head())
    # The denominator must not be zero; next to a root it is never small enough to notice.
    remainder = small.where(x.constant(0.0), (square - head * head) / ((root + head) + 1e-300))
    return small, head, s * (square * polynomial(square, DOUBLE_ASIN)) + remainder


def asin(x: Lanes) -> Lanes:
    """asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) brings x below 1/2."""
    small, head, tail = _arcsine_parts(x)
    far_head = HALF_PI[0] - 2.0 * head
    lost = (HALF_PI[0] - far_head) - 2.0 * head
    far = far_head - (2.0 * tail - (HALF_PI[1] + lost))
    return small.where(head + tail, far).flip_sign(x.sign())


def acos(x: Lanes) -> Lanes:
    """pi/2 - asin(x); 2 asin(sqrt((1 - x) / 2)) for large x; pi - acos(-x) for large -x."""
    small, head, tail = _arcsine_parts(x)
    sign = x.sign()
    negative = x < 0.0
    # start + (head + tail): 0, pi or pi/2 plus or minus the arc sine.
    start = small.where(x.constant(HALF_PI[0]), negative.where(x.constant(PI[0]), 0.0))
    start_tail = small.where(x.constant(HALF_PI[1]), negative.where(x.constant(PI[1]), 0.0))
    factor = small.where(x.constant(-1.0), 2.0).flip_sign(sign)
    head, tail = head * factor, tail * factor
    total = start + head
    lost = (start - total) + head
    return total + (tail + (start_tail + lost))


def _short_arcsine(x: Lanes) -> tuple[Lanes, Lanes]:
    size = x.magnitude()
    small = size < 0.5
    square = small.where(size * size, (1.0 - size) * 0.5)
    s = small.where(size, square.sqrt())
    return small, s + s * (square * polynomial(square, SHORT_ASIN))


def short_asin(x: Lanes) -> Lanes:
    """asin for float64 lanes that were float32 numbers."""
    small, arc = _short_arcsine(x)
    return small.where(arc, HALF_PI[0] - 2.0 * arc).flip_sign(x.sign())


def short_acos(x: Lanes) -> Lanes:
    """acos for float64 lanes that were float32 numbers."""
    small, arc = _short_arcsine(x)
    start = small.where(x.constant(HALF_PI[0]), (x < 0.0).where(x.constant(PI[0]), 0.0))
    return start + (small.where(x.constant(-1.0), 2.0) * arc).flip_sign(x.sign())


ARCTANGENTS = (
    (7 / 16, 0.5, 0.4636476090008061, 2.2698777452961687e-17),
    (11 / 16, 1.0, 0.7853981633974483, 3.061616997868383e-17),
    (19 / 16, 1.5, 0.982793723247329, 1.3903311031230998e-17),
)
"""Intervals of atan, as in fdlibm: beginning, centre c, and atan(c) in two parts."""

ARCTANGENT_FAR = 39 / 16
"""End of the last interval; beyond it, atan(x) = pi/2 + atan(-1/x)."""


def _arctangent(x: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    size = x.magnitude()
    centre = start = start_tail = x.constant(0.0)
    for begin, c, arc, arc_tail in ARCTANGENTS:
        beyond = size >= begin
        centre = beyond.where(x.constant(c), centre)
        start = beyond.where(x.constant(arc), start)
        start_tail = beyond.where(x.constant(arc_tail), start_tail)
    far = size >= ARCTANGENT_FAR
    start = far.where(x.constant(HALF_PI[0]), start)
    start_tail = far.where(x.constant(HALF_PI[1]), start_tail)
    # atan(x) = atan(c) + atan((x - c) / (1 + c x)); the numerator is exact.
    t = far.where(x.constant(-1.0), size - centre) / far.where(size, 1.0 + centre * size)
    square = t * t
    return (start + (t + (start_tail + t * square * polynomial(square, coefficients)))).flip_sign(x.sign())


def atan(x: Lanes) -> Lanes:
    """atan of the nearest of four centres, plus atan of the remaining quotient."""
    return _arctangent(x, DOUBLE_ATAN)


def short_atan(x: Lanes) -> Lanes:
    """atan for float64 lanes that were float32 numbers."""
    return _arctangent(x, SHORT_ATAN)
