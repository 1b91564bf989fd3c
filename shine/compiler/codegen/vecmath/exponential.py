"""exp, log, pow and the hyperbolic functions, as formulas over lanes.

Polynomials are minimax fits (Remez exchange at 200 bits, coefficients then rounded to the format); the bound in
each comment is the error of the rounded polynomial in the result it is part of.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from shine.compiler.codegen.vecmath.control import merge, unless
from shine.compiler.codegen.vecmath.lanes import (
    DOUBLE,
    SINGLE,
    Lanes,
    by_pairs,
    by_powers,
    exponent_offset,
    polynomial,
    rounded,
    rounded_multiple,
    scaled_twice,
)

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
# ln 2 in two parts; the first is short, so that its product with a binary exponent is exact.
DOUBLE_LN_2_PARTS = (0.6931471803691238, 1.9082149292705877e-10)
SINGLE_LN_2_PARTS = (0.693145751953125, 1.428606765330187e-06)

# (e**r - 1 - r) / r**2 for |r| <= ln(2)/2. Relative to e**r: 2**-56.5.
DOUBLE_EXP = (
    *(0.5000000000000013, 0.166666666666667, 0.041666666666515, 0.008333333333307066, 0.0013888888947141227),
    *(0.00019841269917685565, 2.4801489798824436e-05, 2.7557216033789543e-06, 2.763133567858549e-07),
    2.511794425568049e-08,
)
# The same, 2**-60.5, for results that are rounded twice and so have no room for more error.
PRECISE_EXP = (
    *(0.5, 0.16666666666666685, 0.04166666666666673, 0.008333333333316689, 0.001388888888885869),
    *(0.0001984126989718635, 2.480158737333625e-05, 2.755723410615648e-06, 2.755723365678289e-07),
    *(2.5112286383898094e-08, 2.0926862373233125e-09),
)
# The same, 2**-28.2 in float32 and 2**-34.3 in float64.
SINGLE_EXP = (
    *(0.4999999403953552, 0.16666516661643982, 0.041668105870485306, 0.00836914125829935),
    0.001383674913085997,
)
SHORT_EXP = (
    *(0.5000000078073601, 0.16666666860567453, 0.041666269337835654, 0.008333264381553063),
    *(0.0013946117748157654, 0.00019918374356284378),
)

# (log(1 + f) - f) / f**2 for |f| <= 1/3: 2**-25.1 relative to the logarithm.
SINGLE_LOG = (
    *(-0.499999361, 0.333331982, -0.250078186, 0.200111676, -0.164159645, 0.139958244, -0.153885252),
    0.140262787,
)
# (2 artanh(s) / s - 2) / s**2 over s**2, for |s| <= 3 - 2 sqrt(2): 2**-57.9 relative to s, and 2**-43.9.
DOUBLE_LOG = (
    *(0.6666666666666734, 0.39999999999414565, 0.2857142874242992, 0.22222198567492035, 0.18183564682098174),
    *(0.15314040076086188, 0.14796066976684696),
)
SHORT_LOG = (0.666666666758012, 0.3999999562171005, 0.2857210917203512, 0.22176188140551908, 0.1958415922831776)
# (3 artanh(s) / s - 3 - s**2) / s**4 over s**2: 2**-67 relative to the 3 that it is added to.
POW_LOG = (
    *(0.5999999999999996, 0.4285714285716742, 0.33333333326354886, 0.2727272830022834, 0.23076835618054142),
    *(0.20004465508657687, 0.17512421352141774, 0.17982056089332205),
)

# (sinh(x) / x - 1) / x**2 over x**2, for |x| <= 1: 2**-56.3 relative to x, and 2**-34.
DOUBLE_SINH = (
    *(0.16666666666666669, 0.008333333333333139, 0.0001984126984143769, 2.75573191553335e-06),
    *(2.505212339912771e-08, 1.605724029580144e-10, 7.75931358304286e-13),
)
SHORT_SINH = (0.16666666488738516, 0.00833335059670677, 0.00019836066498874017, 2.8174382923382744e-06)

# (tanh(x) / x - 1) / x**2 over x**2. The float64 one, for |x| < 0.625, is the rational function published with the
# Cephes library (numerator, denominator): 2**-57.6 relative to x. The float32 one, for |x| < 0.55: 2**-27.7.
DOUBLE_TANH = (
    (-1614.6876844170845, -99.28772310019186, -0.9643991794250522),
    (4844.063053251255, 2235.4883906010045, 112.81167849163293, 1.0),
)
SINGLE_TANH = (
    *(-0.33333319425582886, 0.13332602381706238, -0.05385385826230049, 0.021077759563922882),
    -0.006282474845647812,
)
LOWEST_SIGNIFICAND = {DOUBLE: math.sqrt(0.5), SINGLE: 2 / 3}


def _reduced_exponent(x: Lanes, offset: int) -> tuple[Lanes, Lanes]:
    """x = k ln 2 + r, |r| <= ln(2)/2 (Cody and Waite, 1980): k + offset as bits, and r."""
    if x.format is DOUBLE:
        bits, coarse, small = _split_reduced_exponent(x, offset)
        return bits, coarse - small
    k, bits = rounded_multiple(x, LOG2_E, offset)
    head, tail = SINGLE_LN_2_PARTS
    return bits, k.times_plus(-tail, k.times_plus(-head, x))


def _split_reduced_exponent(x: Lanes, offset: int) -> tuple[Lanes, Lanes, Lanes]:
    """`_reduced_exponent` in float64, with r as the difference of two numbers."""
    k, bits = rounded_multiple(x, LOG2_E, offset)
    return bits, k.times_plus(-DOUBLE_LN_2_PARTS[0], x), k * DOUBLE_LN_2_PARTS[1]


def _significand(r: Lanes) -> Lanes:
    """e**r for |r| <= ln(2)/2. In float64 as 1 + ((r + r**2 (c0 + c1 r)) + r**4 P(r)), which is a short chain."""
    if r.format is SINGLE:
        return by_powers(r, (1.0, 1.0, *SINGLE_EXP))
    square = r * r
    low = square.times_plus(r.times_plus(DOUBLE_EXP[1], DOUBLE_EXP[0]), r)
    return 1.0 + (square * square).times_plus(by_pairs(r, DOUBLE_EXP[2:]), low)


def exp(x: Lanes) -> Lanes:
    """2**k * e**r; where the result is far from both ends of the range, k is added to its exponent field."""
    format_ = x.format
    exponent, r = _reduced_exponent(x, 0)
    result = (_significand(r).bits() + (exponent << format_.fraction)).real()
    return unless(x.any_beyond(708.0 if format_ is DOUBLE else 87.0), result, "exp.general", _general_exp, x)


def _general_exp(x: Lanes) -> Lanes:
    """exp of any number. The bounds lie beyond overflow and beyond underflow to zero.

    Where the result underflows to zero, the factors are zeros: many processors multiply slowly when a product that is
    not zero is rounded to zero or to a subnormal number.
    """
    double = x.format is DOUBLE
    lowest = -746.0 if double else -105.0
    bounded = x.at_most(710.0 if double else 90.0).at_least(lowest)
    exponent, r = _reduced_exponent(bounded, exponent_offset(x.format))
    return scaled_twice(exponent, (x <= lowest).where(x.constant(0.0), _significand(r)))[0]


def _split_exponential(r: Lanes, tail: Lanes) -> tuple[Lanes, Lanes]:
    """e**(r + tail) as head and tail, for |r| <= ln(2)/2 in float64; right to about 2**-57."""
    curve = r * r * polynomial(r, PRECISE_EXP) + (tail + tail * r)
    beyond_one = r + curve
    lost = curve - (beyond_one - r)
    head = 1.0 + beyond_one
    return head, (beyond_one - (head - 1.0)) + lost


def _half_exponential(x: Lanes) -> tuple[Lanes, Lanes]:
    """e**x / 2 as head and tail, for float64 x >= 0."""
    exponent, coarse, small = _split_reduced_exponent(x.at_most(712.0), exponent_offset(DOUBLE) - 1)
    r = coarse - small
    head, tail = _split_exponential(r, (coarse - r) - small)
    head, tail = scaled_twice(exponent, head, tail)
    return head, tail


def sinh(x: Lanes) -> Lanes:
    """(e**x - e**-x) / 2 from 1 on, a polynomial below."""
    size = x.magnitude()
    square = size * size
    near = size + size * square * polynomial(square, DOUBLE_SINH)
    head, tail = _half_exponential(size)
    far = head + (tail - 0.25 / head)
    return (size < 1.0).where(near, far).flip_sign(x.sign())


def cosh(x: Lanes) -> Lanes:
    """(e**x + e**-x) / 2."""
    head, tail = _half_exponential(x.magnitude())
    inverse = 0.25 / head
    return head + (inverse + (tail - 4.0 * inverse * inverse * tail))


def _short_half_exponential(x: Lanes) -> Lanes:
    """e**x / 2 for lanes x >= 0 that were float32 numbers; far from overflow."""
    exponent, r = _reduced_exponent(x.at_most(100.0), DOUBLE.bias - 1)
    significand = 1.0 + (r + r * r * polynomial(r, SHORT_EXP))
    return significand * (exponent << DOUBLE.fraction).real()


def short_sinh(x: Lanes) -> Lanes:
    """sinh for float64 lanes that were float32 numbers, accurate to 2**-32."""
    size = x.magnitude()
    square = size * size
    near = size + size * square * polynomial(square, SHORT_SINH)
    half = _short_half_exponential(size)
    return (size < 1.0).where(near, half - 0.25 / half).flip_sign(x.sign())


def short_cosh(x: Lanes) -> Lanes:
    """cosh for float64 lanes that were float32 numbers, accurate to 2**-32."""
    half = _short_half_exponential(x.magnitude())
    return half + 0.25 / half


def tanh(x: Lanes) -> Lanes:
    """x + x**3 R(x**2) near zero, 1 - 2 / (e**2x + 1) from about 0.55 on; one division serves both."""
    double = x.format is DOUBLE
    size = x.magnitude()
    square = size * size
    twice = (size + size).at_most(44.0)
    exponent, r = _reduced_exponent(twice, x.format.bias)
    beyond_one = r + r * r * polynomial(r, DOUBLE_EXP if double else SINGLE_EXP)
    power = (exponent << x.format.fraction).real()
    # e**2x + 1, rounded once: power + 1 is exact as long as the 1 matters.
    denominator = power * beyond_one + (power + 1.0)
    near = size < 0.55
    if double:
        above, below = (polynomial(square, coefficients) for coefficients in DOUBLE_TANH)
        part = near.where(size * square * above, -2.0) / near.where(below, denominator)
    else:
        part = near.where(size * square * polynomial(square, SINGLE_TANH), -2.0 / denominator)
    return (near.where(size, 1.0) + part).flip_sign(x.sign())


def _split_number(x: Lanes) -> tuple[Lanes, Lanes]:
    """x > 0 as 2**k * m, m from `LOWEST_SIGNIFICAND` to its double: k as a number, m. Also for subnormal numbers."""
    format_ = x.format
    width = format_.fraction + 2
    tiny = x < format_.smallest_normal
    bits = tiny.where(x * 2.0**width, x).bits()
    root = format_.bits_of(LOWEST_SIGNIFICAND[format_])
    # The carry into the exponent field happens from twice that number on.
    moved = bits + (format_.bits_of(1.0) - root)
    m = ((moved & ((1 << format_.fraction) - 1)) + root).real()
    # The exponent, written into the fraction bits of 2**fraction, gives the number 2**fraction + exponent.
    biased = ((moved >> format_.fraction) | format_.bits_of(2.0**format_.fraction)).real()
    bias = 2.0**format_.fraction + format_.bias
    return biased - tiny.where(x.constant(bias + width), bias), m


def log(x: Lanes) -> Lanes:
    """k ln 2 + log(m) for normal x > 0; special numbers are replaced.

    In float32, log(m) is a polynomial in f = m - 1. In float64, it is 2 artanh(s) = f - s (f - R(s)) with
    s = f / (2 + f), as in fdlibm: only small terms are rounded before the last sums; k times the first part of ln 2 is
    exact.
    """
    format_ = x.format
    bits = x.bits()
    root = format_.bits_of(LOWEST_SIGNIFICAND[format_])
    moved = bits - root
    field = moved & -(1 << format_.fraction)
    if format_ is SINGLE:
        m = (bits - field).real()
        # The exponent stays in its field; the factor that it has there goes into the parts of ln 2.
        k, unit = field.number(), 2.0**-format_.fraction
    else:
        # AVX2 cannot convert 64-bit integers.
        biased = bits + (format_.bits_of(1.0) - root)
        k = ((biased >> format_.fraction) | format_.bits_of(2.0**format_.fraction)).real()
        k, unit = k - (2.0**format_.fraction + format_.bias), 1.0
        m = (bits - field).real()
    # The k of negative and subnormal numbers, zero, infinity and NaN is beyond this bound.
    far = k.any_beyond((format_.bias - 1.5) / unit)
    return unless(far, _log_of(k, unit, m), "log.general", _general_log, x)


def _log_of(k: Lanes, unit: float, m: Lanes) -> Lanes:
    """(k unit) ln 2 + log(m)."""
    f = m - 1.0
    if m.format is SINGLE:
        return k.times_plus(LN_2 * unit, (f * f).times_plus(by_pairs(f, SINGLE_LOG), f))
    head, tail = (part * unit for part in DOUBLE_LN_2_PARTS)
    s = f / (m + 1.0)
    square = s * s
    curve = by_pairs(square, DOUBLE_LOG)
    return k * head - ((s * square).times_plus(-curve, s.times_plus(f, k * -tail)) - f)


def _general_log(x: Lanes) -> Lanes:
    k, m = _split_number(x)
    result = _log_of(k, 1.0, m)
    # Negative numbers give NaN; +inf and NaN stay.
    result = (x < math.inf).where(result, x)
    result = (x < 0.0).where(x.constant(math.nan), result)
    return x.equals(0.0).where(x.constant(-math.inf), result)


def _split_log2(x: Lanes) -> tuple[Lanes, Lanes]:
    """log2 of x > 0 in float64, as a head of 26 bits and a tail; right to about 2**-65 relative to itself.

    log2(m) = 2 / (3 ln 2) * s * (3 + s**2 + s**4 H(s**2)), s = (m - 1) / (m + 1); heads make the large products
    exact, as in fdlibm, so that more than 53 bits are right.
    """
    k, m = _split_number(x)
    f = m - 1.0
    total = m + 1.0
    inverse = 1.0 / total
    nearly_s = f / total
    # The small terms start from the rounded quotient, beside the work on the exact one.
    nearly_square = nearly_s * nearly_s
    curve = nearly_square * nearly_square * polynomial(nearly_square, POW_LOG)
    factor_head = (3.0 + (nearly_square + curve)).head()
    total_head, s_head = total.head(), nearly_s.head()
    total_tail = m - (total_head - 1.0)
    s_tail = ((f - s_head * total_head) - s_head * total_tail) * inverse
    s = s_head + s_tail
    square_head, square_tail = s_head * s_head, s_tail * (s + s_head)
    factor_tail = (curve + square_tail) - ((factor_head - 3.0) - square_head)
    large = s_head * factor_head
    small = s_tail * factor_head + factor_tail * s
    product_head = (large + small).head()
    product_tail = small - (product_head - large)
    # 2 / (3 ln 2): its first 26 bits, the rest, and their sum.
    scaled = product_head * 0.9617966860532761
    rest = product_head * 7.872699542894897e-09 + product_tail * 0.9617966939259756
    head = ((scaled + rest) + k).head()
    return head, rest - ((head - k) - scaled)


def _power(x: Lanes, y: Lanes) -> Lanes:
    """x**y for float64 x > 0, finite or not, and |y| <= 2**66."""
    log_head, log_tail = _split_log2(x)
    y_head = y.head()
    large = y_head * log_head
    small = (y - y_head) * log_head + y * log_tail
    # Beyond these the result is 0 or inf, and only the sign of the exponent counts.
    total = large + small
    bounded = total.at_most(1030.0).at_least(-1080.0)
    inside = bounded.equals(total)
    large = inside.where(large, bounded)
    small = inside.where(small, 0.0)
    k, exponent = rounded(bounded, exponent_offset(DOUBLE))
    above = large - k
    fraction = above + small
    r = fraction * LN_2
    fraction_head = fraction.head()
    fraction_tail = small - (fraction_head - above)
    exact = fraction_head * 0.6931471675634384  # ln 2 in 26 bits, and the rest
    rest = fraction_tail * LN_2 + fraction_head * 1.2996506893889889e-08
    head, tail = _split_exponential(r, (exact - r) + rest)
    return scaled_twice(exponent, head + tail)[0]


def with_products(general: Callable[[Lanes, Lanes], Lanes]) -> Callable[[Lanes, Lanes], Lanes]:
    """x**y: the bits of ``x*x`` for y = 2, of ``x*x*x`` for y = 3, and of `general` for all other exponents.

    The value of the exponent decides, lane by lane: a power is the same whether its exponent is written in the
    formula, fitted, or a column. `general` is skipped if no lane needs it.
    """

    def power(x: Lanes, y: Lanes) -> Lanes:
        builder = x.builder
        square = x * x
        cube = square * x
        is_square, is_cube = y.equals(2.0), y.equals(3.0)
        products = is_square.where(square, cube)
        before = builder.block
        with builder.if_then((~(is_square | is_cube)).any()):
            others = is_square.where(square, is_cube.where(cube, general(x, y)))
            inside = builder.block
        return merge(builder, [(products.value, before), (others.value, inside)])

    return power


def pow_(x: Lanes, y: Lanes) -> Lanes:
    """x**y for float64, with the special cases of IEEE 754 and C99."""
    # Beyond 2**66, y overflows or underflows every x except 1: bounded, it overflows no product in between.
    return _with_special_powers(x, y, _power(x.magnitude(), y.at_most(2.0**66).at_least(-(2.0**66))))


def short_pow(x: Lanes, y: Lanes) -> Lanes:
    """x**y for float64 lanes that were float32 numbers: right to about 2**-40, unless beyond the range of float32."""
    k, m = _split_number(x.magnitude())
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    logarithm = k + (s * (2.0 + square * polynomial(square, SHORT_LOG))) * LOG2_E
    # The product of an infinite y and log2(1) would be NaN.
    y_bounded = y.at_most(2.0**66).at_least(-(2.0**66))
    bounded = (y_bounded * logarithm).at_most(300.0).at_least(-300.0)
    k, exponent = rounded(bounded, DOUBLE.bias)
    r = (bounded - k) * LN_2
    significand = 1.0 + (r + r * r * polynomial(r, SHORT_EXP))
    return _with_special_powers(x, y, significand * (exponent << DOUBLE.fraction).real())


def _with_special_powers(x: Lanes, y: Lanes, power: Lanes) -> Lanes:
    """`power` = |x|**y for finite x != 0, extended to every x and y.

    It selects instead of combining masks: using a mask as wide as its numbers is free, combining masks is expensive.
    """
    size = x.magnitude()
    falls = y < 0.0
    result = size.equals(0.0).where(falls.where(x.constant(math.inf), 0.0), power)
    # In float64, the last bit of a number from 2**52 to 2**53 tells odd from even: smaller numbers get 2**52 added;
    # above, every number is even.
    whole_from = 2.0**x.format.fraction
    y_size = y.magnitude().at_most(2.0 * whole_from)
    fractional = y_size < whole_from
    moved = fractional.where(y_size + whole_from, y_size)
    nearest = fractional.where(moved - whole_from, y_size)
    whole = nearest.equals(y_size)
    result = (x < 0.0).where(whole.where(result, math.nan), result)
    result = size.equals(math.inf).where(falls.where(x.constant(0.0), math.inf), result)
    odd_sign = x.sign() & (moved.bits() << (x.format.width - 1))
    result = whole.where(result.flip_sign(odd_sign), result)
    result = x.is_nan().where(x, result)
    result = y.is_nan().where(y, result)
    result = x.equals(1.0).where(x, result)
    return y.equals(0.0).where(x.constant(1.0), result)
