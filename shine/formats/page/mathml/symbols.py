"""Names and numbers of a formula as MathML."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from shine.formats.page.markup import Element, element
from shine.formats.page.wording import MINUS, decimal_parts, shortened
from shine.lang.forms.names import GREEK

_GREEK = {name: letter for name, letter in GREEK.items() if name.islower() and name not in ("iota", "pi", "upsilon")}
"""Greek letters by name; not `pi`, which looks like the constant, nor those that look like Latin letters."""

ROUNDED = 6
"""Significant digits of constants if nothing is known about the data."""

LONGEST_NAME = 28
"""Most characters shown of a name."""


def name_element(name: str) -> Element:
    """A name: letters in italics, words upright, Greek letters, and digits and short endings as subscripts.

    A heading that is no name is text. A long name is shortened; ``data-exact`` holds it in full.
    """
    shown = shortened(name, LONGEST_NAME)
    exact = name if shown != name else None
    if not name.isidentifier():
        return element("mtext", shown.strip() or "?", data_exact=exact)
    base, subscript = _split(shown)
    if not subscript:
        return element("mi", _GREEK.get(base, base), data_exact=exact)
    digits = element("mn" if subscript.isdigit() else "mi", subscript)
    return element("msub", element("mi", _GREEK.get(base, base)), digits, data_exact=exact)


def is_word(name: str) -> bool:
    """Whether a name is typeset as more than one letter."""
    base, _ = _split(name)
    return len(base) > 1 and base not in _GREEK


def number_element(value: float, exact: str, digits: int = ROUNDED) -> Element:
    """The absolute value of a constant, rounded to significant digits; scientific where it is very large or small.

    ``data-exact`` holds the text `exact` if the rounded constant differs from it.
    """
    # The exact text has no more digits than the number needs, which its binary value has.
    mantissa, power = decimal_parts(Decimal(exact) if math.isfinite(value) else value, digits)
    told = None if mantissa == exact.removesuffix(".0") else exact
    if power is None:
        return element("mn", mantissa, data_exact=told)
    exponent = element("mn", str(power).replace("-", MINUS))
    scale = element("msup", element("mn", "10"), exponent)
    mantissa_times = () if mantissa == "1" else (element("mn", mantissa), element("mo", "×"))
    return element("mrow", *mantissa_times, scale, data_exact=told)


def _split(name: str) -> tuple[str, str]:
    """The letter or word of a name, and its subscript, which may be empty."""
    counted = re.fullmatch(r"([^\W\d_]+)_?(\d{1,4})", name)
    if counted and (len(counted[1]) <= 2 or counted[1] in _GREEK or "_" in name):
        return counted[1], counted[2]
    ending = re.fullmatch(r"([^\W\d_]+)_([^\W_]+)", name)
    if ending and (len(ending[1]) == 1 or ending[1] in _GREEK):
        return ending[1], ending[2]
    return name, ""
