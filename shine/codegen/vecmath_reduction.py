"""Angles modulo a quarter turn: x = k * pi/2 + (r + tail), |r| <= pi/4, for the trigonometric functions.

The sum `r + tail` is accurate to far more than the 53 bits of `r` relative to itself, even next to a multiple of
pi/2: no float64 comes nearer to one than about 2**-61.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from llvmlite import ir

from shine.codegen.vecmath_control import RarePath, repeat
from shine.codegen.vecmath_lanes import DOUBLE, Lanes, rounded

TWO_OVER_PI = 0.6366197723675814
# pi/2 in parts of 37 bits (the last one of 53): a part times a k of up to 16 bits is exact.
QUARTER_TURN_PARTS = (1.5707963267923333, 2.5633441515839558e-12, 1.0562999066987428e-23)
# Parts of 29 and 53 bits, for angles that were float32 numbers.
SHORT_QUARTER_TURN_PARTS = (1.570796325802803, 9.920935796805404e-10)
# Up to here k has 16 bits, or 20.
NEAR_LIMIT = 2.0**16
SHORT_NEAR_LIMIT = 2.0**20

# For float32: 12 bits, 17 bits and then zeros up to 2**-38, the rest; and up to where k has 7 bits.
SINGLE_QUARTER_TURN_PARTS = (1.57080078125, -4.45445766672492e-06, 2.5633440682570896e-12)
SINGLE_LIMIT = 200.0

_WORD = 32
_MASK = (1 << _WORD) - 1
_WORDS_USED = 6
_WORDS_KEPT = 4
_LEADING_ZERO_WORDS = 2
_LARGEST_EXPONENT = 971  # of the last bit of a float64


class Reduced(NamedTuple):
    """An angle `quarters * pi/2 + r + tail`; of `quarters`, an integer, only the lowest two bits have a meaning."""

    quarters: Lanes
    r: Lanes
    tail: Lanes


def reduced(x: Lanes) -> Reduced:
    """For float64 x >= 0: the angle in quarter turns and the rest; NaN for infinity."""
    return Reduced(*_FAR_ANGLE.replace(x.any_finite_above(NEAR_LIMIT), _reduce_near(x), x))


def reduced_short(x: Lanes) -> tuple[Lanes, Lanes]:
    """For float64 x >= 0 that are float32 numbers: quarters and r, which then needs no tail."""
    near = _reduce_near_short(x)
    quarters, r, _ = _FAR_SHORT_ANGLE.replace(x.any_finite_above(SHORT_NEAR_LIMIT), (*near, near[1]), x)
    return quarters, r


def reduced_single(x: Lanes, quarters_ahead: int) -> tuple[Lanes, Lanes, Lanes]:
    """For float32 0 <= x <= SINGLE_LIMIT: quarters, plus `quarters_ahead`, r, and nearly r a little earlier.

    The products with the first two parts and the first difference are exact. The second one is rounded, the last
    one too small to be so again unless r itself is small.
    """
    k, quarters = rounded(x * TWO_OVER_PI)
    *parts, last = SINGLE_QUARTER_TURN_PARTS
    for part in parts:
        x = x - k * part
    return quarters + quarters_ahead if quarters_ahead else quarters, x - k * last, x


def _reduce_near(x: Lanes) -> Reduced:
    """For float64 0 <= x <= NEAR_LIMIT, after Cody and Waite (1980), with the rounding error kept.

    The first difference is exact: both sides are multiples of the last bit of x or of k * part, and it is below 1.
    The second loses at most what the tail recovers (if its minuend is the smaller one in magnitude, it is exact,
    as all bits of both lie between 2**-73 and 2**-20). Next to a multiple of pi/2 the tail may be as large as r; it is
    right to about 2**-114.
    """
    k, quarters = rounded(x * TWO_OVER_PI)
    first, second, third = (k * part for part in QUARTER_TURN_PARTS)
    coarse = x - first
    r = coarse - second
    return Reduced(quarters, r, ((coarse - r) - second) - third)


def _reduce_near_short(x: Lanes) -> tuple[Lanes, Lanes]:
    """For float64 0 <= x <= SHORT_NEAR_LIMIT that are float32 numbers: quarters and r, without a tail.

    Such an angle is at least 2**-30 away from a multiple of pi/2; the error of r is below 2**-57.
    """
    k, quarters = rounded(x * TWO_OVER_PI)
    first, second = (k * part for part in SHORT_QUARTER_TURN_PARTS)
    return quarters, (x - first) - second


def _reduce_far(x: Lanes) -> Reduced:
    """For one float64 1 <= x < inf, after Payne and Hanek (1983): exact integer arithmetic on the digits of 2/pi.

    With x = m * 2**e, digits of 2/pi worth a multiple of 4 / 2**e only add whole turns, so six words from there
    on suffice: m times the digits dropped behind them is less than 2**-137. The four highest words of the product
    leave 65 bits next to a multiple of pi/2.
    """
    bits = x.bits()
    fraction = DOUBLE.fraction
    significand = (bits & ((1 << fraction) - 1)) | (1 << fraction)
    # The first digit used is worth 2 / 2**e.
    digit = (bits >> fraction) - (DOUBLE.bias + fraction - (_LEADING_ZERO_WORDS * _WORD - 2))
    product = _times_digits(significand, digit)
    # Two integer bits, then the fraction of a quarter; from a half on it belongs to the next quarter.
    upper_half = (product[0] >> 29) & 1
    quarters = (product[0] >> 30) + upper_half
    # All ones for the upper half: its complement is the distance to the next quarter, but for the last bit.
    flip = (0 - upper_half) & _MASK
    limbs = [_as_real((product[0] ^ flip) & (_MASK >> 2)), *(_as_real(word ^ flip) for word in product[1:])]
    scaled = [limb * 2.0 ** (2 - _WORD * (i + 1)) for i, limb in enumerate(limbs)]
    head, tail = _sum(scaled)
    r, rest = _times_quarter_turn(head, tail)
    sign = upper_half << 63
    return Reduced(quarters, r.flip_sign(sign), rest.flip_sign(sign))


def _is_far(x: Lanes) -> Lanes:
    return (x > NEAR_LIMIT) & (x < float("inf"))


def _is_far_for_single(x: Lanes) -> Lanes:
    return (x > SHORT_NEAR_LIMIT) & (x < float("inf"))


_FAR_SHORT_ANGLE = RarePath("angle.short", _is_far_for_single, _reduce_far)
_FAR_ANGLE = RarePath("angle", _is_far, _reduce_far)


def _times_digits(significand: Lanes, digit: Lanes) -> Sequence[Lanes]:
    """The significand times six words of 2/pi from a binary digit on: the highest words, highest first.

    Schoolbook multiplication from the lowest word up, in products of 32 bits that with their carries stay below
    64. Modulo 2**192: what would be carried out of the highest word are whole turns.
    """
    builder = significand.builder
    table = _digit_table(builder.module)
    low, high = significand & _MASK, significand >> _WORD
    first_place, shift = digit >> 5, digit & (_WORD - 1)

    def step(
        place: Lanes, word_below: Lanes, low_carry: Lanes, high_carry: Lanes, *product: Lanes
    ) -> tuple[Lanes, Sequence[Lanes]]:
        pair = significand.constant(0)
        for address in (place, place + 1):
            pointer = builder.gep(table, [ir.IntType(32)(0), address.value], inbounds=True)
            pair = (pair << _WORD) | Lanes(builder, builder.zext(builder.load(pointer), digit.type))
        word = (pair << shift) >> _WORD
        low_product = low * word + low_carry
        total = high * word_below + (low_product & _MASK) + high_carry
        carries = low_product >> _WORD, total >> _WORD
        return place > first_place, (place - 1, word, *carries, total & _MASK, *product[:-1])

    zeros = [digit.constant(0)] * (3 + _WORDS_KEPT)
    return repeat("word", (first_place + (_WORDS_USED - 1), *zeros), step)[4:]


def _as_real(word: Lanes) -> Lanes:
    """An integer below 2**32 as a float64, without a conversion that some targets lack."""
    return (word | DOUBLE.bits_of(2.0**52)).real() - 2.0**52


def _sum(terms: list[Lanes]) -> tuple[Lanes, Lanes]:
    """Head and tail of a sum of terms none of which overlaps the next; leading ones may be zero."""
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


def _digit_table(module: ir.Module) -> ir.GlobalVariable:
    known = module.globals.get("shine.two_over_pi")
    if known is not None:
        return known
    words = (0,) * _LEADING_ZERO_WORDS + two_over_pi_words()
    table_type = ir.ArrayType(ir.IntType(32), len(words))
    table = ir.GlobalVariable(module, table_type, "shine.two_over_pi")
    table.initializer = ir.Constant(table_type, words)
    table.linkage, table.global_constant, table.unnamed_addr = "private", True, True
    return table


@cache
def two_over_pi_words() -> tuple[int, ...]:
    """The binary digits of 2/pi, as many words of 32 as the largest float64 needs."""
    count = -(-(_LARGEST_EXPONENT - 2) // _WORD) + _WORDS_USED + 1
    precision = _WORD * count
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
    digits = ((2 << (2 * (precision + guard))) // pi) >> guard
    return tuple((digits >> (_WORD * (count - 1 - i))) & ((1 << _WORD) - 1) for i in range(count))
