"""Floats as people write them: short, and multiples of pi by its name."""

from __future__ import annotations

import math

NAMED_POWERS = {2: "square", 3: "cube"}
"""Primitives with the bits of a power, by exponent."""

_LARGEST_FACTOR = 48
_LARGEST_DIVISOR = 12
"""Largest multiples and fractions of pi that are written with its name."""

_LEAST_POWER, _MOST_SHORT = 6, 6
"""A whole float from this power of ten on, of at most so many digits, is written with an exponent: ``1.2e9``."""


def _multiples() -> dict[float, str]:
    found: dict[float, str] = {}
    for divisor in range(1, _LARGEST_DIVISOR + 1):
        for factor in range(1, _LARGEST_FACTOR + 1):
            if math.gcd(factor, divisor) == 1:
                text = ("pi" if factor == 1 else f"{factor}*pi") + (f"/{divisor}" if divisor > 1 else "")
                found.setdefault(factor * math.pi / divisor, text)
    return found


MULTIPLES_OF_PI = _multiples()
"""The text of each simple multiple of pi; reading the text gives the number."""


def readable_number(value: float, named: bool) -> str:
    """A finite float as short as people write it; `float` reads the text back, or it is a multiple of pi.

    Parameters
    ----------
    value : float
    named : bool
        Whether multiples of pi are written with its name.
    """
    if named and abs(value) in MULTIPLES_OF_PI:
        return ("-" if value < 0 else "") + MULTIPLES_OF_PI[abs(value)]
    text = repr(value).replace("e+", "e")
    if "e" in text or not value.is_integer() or (value == 0 and text[0] == "-"):
        return text
    text = text.removesuffix(".0")
    digits = text.lstrip("-").rstrip("0")
    if abs(value) < 10**_LEAST_POWER or len(digits) > _MOST_SHORT:
        return text
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return ("-" if value < 0 else "") + f"{mantissa}e{len(text.lstrip('-')) - 1}"
