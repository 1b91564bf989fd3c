"""Angles modulo a quarter turn: x = k * pi/2 + (r + tail), |r| <= pi/4, for the trigonometric functions.

The sum `r + tail` is accurate to far more than the 53 bits of `r` relative to itself, even next to a multiple of
pi/2: no float64 comes nearer to one than about 2**-61.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from llvmlite import ir

from shine.compiler.codegen.vecmath.control import unless_all
from shine.compiler.codegen.vecmath.lanes import DOUBLE, SINGLE, Lanes, like, rounded, rounded_multiple


def table(module: ir.Module, name: str, element: ir.Type, entries: Sequence[float]) -> ir.GlobalVariable:
    """The module's constant array `name`, defined on first use."""
    known = module.globals.get(name)
    if known is not None:
        return known
    kind = ir.ArrayType(element, len(entries))
    variable = ir.GlobalVariable(module, kind, name)
    variable.initializer = ir.Constant(kind, list(entries))
    variable.linkage, variable.global_constant, variable.unnamed_addr = "private", True, True
    return variable


def entries_at(source: ir.GlobalVariable, index: Lanes, count: int) -> list[Lanes]:
    """Each lane's `count` entries of a table from `index` on, an integer that must be inside it.

    One load and one insertion per lane: most targets have no gather instruction.
    """
    builder = index.builder
    element = source.value_type.element
    vector = isinstance(index.type, ir.VectorType)
    kind = like(index.type, element)
    collected: list[ir.Value] = [ir.Constant(kind, ir.Undefined)] * count
    for lane in range(index.type.count if vector else 1):
        place = ir.Constant(ir.IntType(32), lane)
        first = builder.extract_element(index.value, place) if vector else index.value
        row = builder.gep(source, [ir.IntType(32)(0), first], inbounds=True)
        for i in range(count):
            pointer = builder.gep(row, [ir.IntType(32)(i)], inbounds=True, source_etype=element)
            entry = builder.load(pointer, typ=element)
            collected[i] = builder.insert_element(collected[i], entry, place) if vector else entry
    return [Lanes(builder, value) for value in collected]


TWO_OVER_PI = 0.6366197723675814
HALF_PI = 1.5707963267948966
# pi/2 in parts of 37 bits (the last one of 53): a part times a k of up to 16 bits is exact.
QUARTER_TURN_PARTS = (1.5707963267923333, 2.5633441515839558e-12, 1.0562999066987428e-23)
# Parts of 29 and 53 bits, for angles that were float32 numbers.
SHORT_QUARTER_TURN_PARTS = (1.570796325802803, 9.920935796805404e-10)
# Up to here k has 16 bits, or 20.
NEAR_LIMIT = 2.0**16
SHORT_NEAR_LIMIT = 2.0**20

ONE_OVER_PI = 0.3183098861837907
# pi in float32 parts, each rounded down: none is negative, so -0 keeps its sign. Up to the limit, the error of x / pi
# takes r only a little beyond pi/2.
SINGLE_HALF_TURN_PARTS = (3.141592502593994, 1.5099578831723193e-07, 1.0780605716316238e-14)
SINGLE_LIMIT = 1e5
# The least exponent field of a float32 in the table of half turns: 128.
_FIRST_FIELD = SINGLE.bias + 7

_WORD = 32
_MASK = (1 << _WORD) - 1
_WORDS_USED = 6
_LEADING_ZERO_WORDS = 2


def reduced(x: Lanes, parts: int) -> Sequence[Lanes]:
    """For float64 x >= 0: the angle in quarter turns, and the rest in one or two parts; NaN for infinity.

    Only the lowest two bits of the integer quarters have a meaning. A rest in one part is rounded once, and twice where
    it is small.
    """

    def far(x: Lanes, *near: Lanes) -> Sequence[Lanes]:
        beyond = (x > NEAR_LIMIT) & (x < math.inf)
        quarters, r, tail = _reduce_far(x)
        new = (quarters, r, tail) if parts == 2 else (quarters, r + tail)
        return [beyond.where(new, old) for new, old in zip(new, near, strict=True)]

    def is_far(x: Lanes, *_: Lanes) -> ir.Value:
        return x.any_finite_above(NEAR_LIMIT)

    near = _reduce_near(x, parts)
    return unless_all(x.any_beyond(NEAR_LIMIT), near, f"angle.{parts}", far, x, *near, register=is_far)


def reduced_short(x: Lanes) -> tuple[Lanes, Lanes]:
    """For float64 x >= 0 that are float32 numbers: quarters and r, which then needs no tail."""

    def far(x: Lanes, *near: Lanes) -> Sequence[Lanes]:
        y, rest = half_turns(x.convert(SINGLE))
        k, quarters = rounded(y + y)
        r = (((y + y) - k) + (rest + rest)) * HALF_PI
        beyond = x > SHORT_NEAR_LIMIT
        return [beyond.where(new, old) for new, old in zip((quarters, r), near, strict=True)]

    near = _reduce_near_short(x)
    quarters, r = unless_all(x.any_beyond(SHORT_NEAR_LIMIT), near, "angle.short", far, x, *near)
    return quarters, r


def reduced_single(x: Lanes) -> tuple[Lanes, Lanes]:
    """For float32 |x| <= SINGLE_LIMIT: x = k * pi + r with |r| <= pi/2 + 0.005; k as bits, and r.

    The first difference is exact: it is a multiple of the last bit of the first part of pi, and below 2**24 such
    bits. Next to a multiple of pi the second one is exact too; elsewhere the third part does not matter.
    """
    k, bits = rounded_multiple(x, ONE_OVER_PI)
    for part in SINGLE_HALF_TURN_PARTS:
        x = k.times_plus(-part, x)
    return bits, x


def reduced_single_centred(x: Lanes) -> tuple[Lanes, Lanes]:
    """`reduced_single` for x >= 0 and x = (k + 1/2) * pi - r; below 1 the first difference is rounded."""
    # The larger of both is 2**24 + 2k: numbers from 2**24 on are even. Less 2**24 - 1, it is twice k + 1/2.
    shifted = x.times_plus(2.0 * ONE_OVER_PI, 2.0**24 - 1.0).at_least(2.0**24)
    odd = shifted - (2.0**24 - 1.0)
    r = -x
    for part in SINGLE_HALF_TURN_PARTS:
        r = odd.times_plus(0.5 * part, r)
    return shifted.bits(), r


def half_turns(x: Lanes) -> tuple[Lanes, Lanes]:
    """x / pi for float32 x >= 128, modulo 2: a multiple of 2**-28 below 2**25, and a small rest, both float64.

    x is m * 2**e with m of 24 bits, and 2**e / pi modulo 2 comes from a table, as a number of 29 bits, whose product
    with m is exact, and 53 bits more. The sum is right to 2**-57; no float32 is nearer to a multiple of pi/2 than about
    2**-31. Infinity and NaN give NaN, numbers below 128 arbitrary results.
    """
    bits = x.bits()
    fraction = SINGLE.fraction
    m = ((bits & ((1 << fraction) - 1)) | SINGLE.bits_of(1.0)).real().convert(DOUBLE)
    row = ((bits >> fraction) - _FIRST_FIELD).at_least(0)
    powers = table(x.builder.module, "shine.powers_over_pi", DOUBLE.real, powers_over_pi())
    head, tail = entries_at(powers, row << 1, 2)
    return m * head, m * tail


def _reduce_near(x: Lanes, parts: int) -> Sequence[Lanes]:
    """For float64 0 <= x <= NEAR_LIMIT, after Cody and Waite (1980), with the rounding error kept.

    The first difference is exact: both sides are multiples of the last bit of x or of k * part, and it is below 1.
    The second loses at most what the tail recovers (if its minuend is the smaller one in magnitude, it is exact,
    as all bits of both lie between 2**-73 and 2**-20). Next to a multiple of pi/2 the tail may be as large as r; it is
    right to about 2**-114.
    """
    k, quarters = rounded_multiple(x, TWO_OVER_PI)
    first, second, third = QUARTER_TURN_PARTS
    coarse = k.times_plus(-first, x)
    r = k.times_plus(-second, coarse)
    if parts == 1:
        return quarters, k.times_plus(-third, r)
    return quarters, r, k.times_plus(-third, k.times_plus(-second, coarse - r))


def _reduce_near_short(x: Lanes) -> tuple[Lanes, Lanes]:
    """For float64 0 <= x <= SHORT_NEAR_LIMIT that are float32 numbers: quarters and r, without a tail.

    Such an angle is at least 2**-30 away from a multiple of pi/2; the error of r is below 2**-57.
    """
    k, quarters = rounded(x * TWO_OVER_PI)
    first, second = (k * part for part in SHORT_QUARTER_TURN_PARTS)
    return quarters, (x - first) - second


def _reduce_far(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """For float64 1 <= x < inf, after Payne and Hanek (1983): exact integer arithmetic on the digits of 2/pi.

    With x = m * 2**e, digits of 2/pi worth a multiple of 4 / 2**e only add whole turns, so six words from there
    on suffice: m times the remaining digits is less than 2**-137. The four highest words of the product
    leave 65 bits next to a multiple of pi/2. Other numbers give arbitrary results.
    """
    bits = x.bits()
    fraction = DOUBLE.fraction
    significand = (bits & ((1 << fraction) - 1)) | (1 << fraction)
    field = (bits >> fraction).at_least(DOUBLE.bias).at_most(2 * DOUBLE.bias)
    # The first digit used is worth 2 / 2**e.
    product = _times_digits(significand, field - (DOUBLE.bias + fraction - (_LEADING_ZERO_WORDS * _WORD - 2)))
    # Two integer bits, then the fraction of a quarter; from a half on it belongs to the next quarter.
    upper_half = (product[0] >> 29) & 1
    quarters = (product[0] >> 30) + upper_half
    # All ones for the upper half: its complement is the distance to the next quarter, except in the last bit.
    flip = (0 - upper_half) & _MASK
    limbs = [_as_real((product[0] ^ flip) & (_MASK >> 2)), *(_as_real(word ^ flip) for word in product[1:])]
    scaled = [limb * 2.0 ** (2 - _WORD * (i + 1)) for i, limb in enumerate(limbs)]
    head, tail = _sum(scaled)
    r, rest = _times_quarter_turn(head, tail)
    sign = upper_half << 63
    return quarters, r.flip_sign(sign), rest.flip_sign(sign)


def _times_digits(significand: Lanes, digit: Lanes) -> list[Lanes]:
    """The significand times six words of 2/pi from a binary digit on: the highest words, highest first.

    Schoolbook multiplication from the lowest word up, in products of 32 bits, which stay below 64 bits with their
    carries. Modulo 2**192: a carry out of the highest word is whole turns.
    """
    padded = (0,) * _LEADING_ZERO_WORDS + two_over_pi_words()
    digits = table(significand.builder.module, "shine.two_over_pi", ir.IntType(32), padded)
    low, high = significand & _MASK, significand >> _WORD
    shift = digit & (_WORD - 1)
    words = [word.convert(DOUBLE) for word in entries_at(digits, digit >> 5, _WORDS_USED + 1)]
    shifted = [(((above << _WORD) | below) << shift) >> _WORD for above, below in pairwise(words)]
    product: list[Lanes] = []
    word_below = low_carry = high_carry = digit.constant(0)
    for word in reversed(shifted):
        low_product = low * word + low_carry
        total = high * word_below + (low_product & _MASK) + high_carry
        word_below, low_carry, high_carry = word, low_product >> _WORD, total >> _WORD
        product.insert(0, total & _MASK)
    return product[:4]


def _as_real(word: Lanes) -> Lanes:
    """An integer below 2**32 as a float64, without a conversion that some targets lack."""
    return (word | DOUBLE.bits_of(2.0**52)).real() - 2.0**52


def _sum(terms: list[Lanes]) -> tuple[Lanes, Lanes]:
    """Head and tail of a sum of terms that do not overlap; leading ones may be zero."""
    head, lost = terms[-1], []
    for term in reversed(terms[:-1]):
        total = term + head
        lost.append(head - (total - term))
        head = total
    tail = lost[0]
    for error in lost[1:]:
        tail = error + tail
    return head, tail


def _times_quarter_turn(head: Lanes, tail: Lanes) -> tuple[Lanes, Lanes]:
    """(head + tail) * pi/2, by Dekker's product with 26-bit halves."""
    upper, lower = 1.5707963109016418, 1.5893254773528196e-08  # pi/2, 26 and 53 bits
    left = head.head()
    right = (head - left) + tail
    large = left * upper
    small = left * lower + right * 1.5707963267948966
    r = large + small
    return r, small - (r - large)


@cache
def powers_over_pi() -> tuple[float, ...]:
    """2**e / pi modulo 2, between -1 and 1, times 2**23, in two parts: for e = -16 to 104, then NaN.

    They belong to float32 numbers from 128 = 2**23 * 2**-16 up to the largest, by the field of their exponents.
    """
    precision = 200
    one_over_pi = _two_over_pi_bits(precision + SINGLE.bias) >> 1
    parts: list[float] = []
    for e in range(_FIRST_FIELD - SINGLE.bias - SINGLE.fraction, SINGLE.bias - SINGLE.fraction + 1):
        scaled = one_over_pi << e >> SINGLE.bias if e >= 0 else one_over_pi >> (SINGLE.bias - e)
        turns = scaled % (2 << precision)
        turns -= (2 << precision) if turns >= 1 << precision else 0
        head = (turns + (1 << (precision - 29))) >> (precision - 28) << (precision - 28)
        parts += [math.ldexp(part, SINGLE.fraction - precision) for part in (head, turns - head)]
    return (*parts, math.nan, math.nan)


@cache
def two_over_pi_words() -> tuple[int, ...]:
    """The binary digits of 2/pi in words of 32 bits, enough for the largest float64."""
    # A float64 has an exponent of 971 at most, of its last bit.
    count = -(-(971 - 2) // _WORD) + _WORDS_USED + 1
    digits = _two_over_pi_bits(_WORD * count)
    return tuple((digits >> (_WORD * (count - 1 - i))) & _MASK for i in range(count))


def _two_over_pi_bits(precision: int) -> int:
    """2/pi times 2**precision, rounded down."""
    guard = 64

    def arctangent_of_inverse(n: int) -> int:
        term = total = (1 << (precision + guard)) // n
        k, sign = 1, -1
        while term:
            term //= n * n
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))  # Machin's formula
    return ((2 << (2 * (precision + guard))) // pi) >> guard
