"""Floats as people write them: short, and multiples of pi and of roots by name."""

from __future__ import annotations

from shine.lang.forms.named_numbers import named_number

NAMED_POWERS = {2: "square", 3: "cube"}
"""Primitives with the bits of a power, by exponent."""

_LEAST_POWER, _MOST_SHORT = 6, 6
"""A whole float from this power of ten on, of at most so many digits, is written with an exponent: ``1.2e9``."""


def readable_number(value: float, named: bool) -> str:
    """A finite float as short as people write it. `float` reads the text back, or it has a name.

    Parameters
    ----------
    value : float
    named : bool
        Whether numbers with a name are written by it (see `shine.lang.forms.named_numbers`).
    """
    if named and (known := named_number(abs(value))) is not None:
        return ("-" if value < 0 else "") + known.text
    text = repr(value).replace("e+", "e")
    if "e" in text or not value.is_integer() or (value == 0 and text[0] == "-"):
        return text
    text = text.removesuffix(".0")
    digits = text.lstrip("-").rstrip("0")
    if abs(value) < 10**_LEAST_POWER or len(digits) > _MOST_SHORT:
        return text
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return ("-" if value < 0 else "") + f"{mantissa}e{len(text.lstrip('-')) - 1}"
