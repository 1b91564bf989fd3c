"""How the report writes numbers, counts and times."""

from __future__ import annotations

import math
from decimal import Decimal

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
"""Written if there is no number."""

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_PLAIN = range(-4, 6)
"""Numbers whose first digit has one of these powers of ten are written without an exponent."""


def decimal_parts(value: float | Decimal, digits: int = 6) -> tuple[str, int | None]:
    """Absolute value rounded to `digits` significant digits: the digits, and the power of ten of the notation, if any.

    Examples
    --------
    >>> decimal_parts(765.9502377245128), decimal_parts(-1.5e-26)
    (('765.95', None), ('1.5', -26))
    """
    if isinstance(value, float) and not math.isfinite(value):
        return ("NaN" if math.isnan(value) else "∞"), None
    # A Decimal holds every integer; a float does not.
    mantissa, _, exponent = f"{abs(Decimal(value)):.{digits - 1}e}".partition("e")
    power = int(exponent)
    if value == 0 or power not in _PLAIN:
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return mantissa, None if value == 0 else power
    fixed = f"{Decimal(mantissa).scaleb(power):f}"
    return (fixed.rstrip("0").rstrip(".") if "." in fixed else fixed), None


def number(value: float | None, digits: int = 4) -> str:
    """A number in a sentence or a table, rounded to `digits` significant digits; a dash if there is none."""
    if value is None or math.isnan(value):
        return NOTHING
    mantissa, power = decimal_parts(value, digits)
    sign = MINUS if value < 0 else ""
    return f"{sign}{mantissa}" if power is None else f"{sign}{mantissa}×10{superscript(power)}"


def fraction(value: float | None) -> str:
    """A coefficient of determination, rounded to four digits; 1 only if it is exactly 1.

    Examples
    --------
    >>> fraction(0.48152), fraction(0.9999999), fraction(1.0)
    ('0.4815', '> 0.9999', '1')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 1:
        return "1"
    if value > 0.99995:
        return "> 0.9999"
    return f"{value + 0.0:.4f}".replace("-0.0000", "0.0000").replace("-", MINUS) if value > -1000 else number(value)


def superscript(power: int) -> str:
    """An exponent in small raised digits."""
    return str(power).translate(_SUPERSCRIPTS)


def count(value: float, thing: str = "") -> str:
    """A whole number with grouped digits and the thing it counts: ``1 row``, ``12 000 rows``."""
    digits = f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{digits} {thing}{'' if value == 1 else 's'}" if thing else digits


def duration(seconds: float) -> str:
    """A time in familiar units: ``0.21 s``, ``12.3 s``, ``4 min 5 s``, ``3 h 12 min``."""
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def shortened(text: str, length: int) -> str:
    """A text of at most `length` characters; a longer text loses its middle."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"
