"""Units as people write them -> dimensions: exponents of the seven SI base units.

Consistency depends only on dimensions: the size of a unit (a kilometre is 1000 metres) is not read.

Shine reads units itself: constraints need only the tables and the grammar below. pint 0.25 agrees with them, but has
four dependencies, takes 0.25 s to load, raises four kinds of exceptions, and computes `m^9^9^9` for minutes; astropy 8
with its dependencies has 77 MB, and lacks `cal`, `Wh`, `rpm` and `degC`.

References
----------
The International System of Units (SI Brochure), 9th edition, BIPM, 2019: tables 2 to 8.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from fractions import Fraction

Dimension = tuple[Fraction, ...]
"""Exponents of `BASE`."""

BASE = ("m", "kg", "s", "A", "K", "mol", "cd")
"""The SI base units, in the order of a dimension's exponents."""

DIMENSIONLESS: Dimension = (Fraction(0),) * len(BASE)

PREFIXES = ("da", *"QRYZEPTGMkhdcmuµμnpfazyrq")
"""SI prefixes; micro has three spellings."""

LONGEST = 200
"""Most characters of a unit; units are shorter, and the bound keeps recursion and exponents small."""


def _dimension(**exponents: int) -> Dimension:
    return tuple(Fraction(exponents.get(name, 0)) for name in BASE)


PREFIXED: dict[str, Dimension] = {
    "m": _dimension(m=1), "g": _dimension(kg=1), "s": _dimension(s=1), "A": _dimension(A=1), "K": _dimension(K=1),
    "mol": _dimension(mol=1), "cd": _dimension(cd=1), "rad": DIMENSIONLESS, "sr": DIMENSIONLESS,
    "Hz": _dimension(s=-1), "N": _dimension(kg=1, m=1, s=-2), "Pa": _dimension(kg=1, m=-1, s=-2),
    "J": _dimension(kg=1, m=2, s=-2), "W": _dimension(kg=1, m=2, s=-3), "C": _dimension(A=1, s=1),
    "V": _dimension(kg=1, m=2, s=-3, A=-1), "F": _dimension(kg=-1, m=-2, s=4, A=2),
    "ohm": _dimension(kg=1, m=2, s=-3, A=-2), "Ω": _dimension(kg=1, m=2, s=-3, A=-2),
    "S": _dimension(kg=-1, m=-2, s=3, A=2), "Wb": _dimension(kg=1, m=2, s=-2, A=-1), "T": _dimension(kg=1, s=-2, A=-1),
    "H": _dimension(kg=1, m=2, s=-2, A=-2), "lm": _dimension(cd=1), "lx": _dimension(cd=1, m=-2),
    "Bq": _dimension(s=-1), "Gy": _dimension(m=2, s=-2), "Sv": _dimension(m=2, s=-2), "kat": _dimension(mol=1, s=-1),
    "eV": _dimension(kg=1, m=2, s=-2), "l": _dimension(m=3), "L": _dimension(m=3), "t": _dimension(kg=1),
    "bar": _dimension(kg=1, m=-1, s=-2), "Wh": _dimension(kg=1, m=2, s=-2), "cal": _dimension(kg=1, m=2, s=-2),
    "pc": _dimension(m=1), "M": _dimension(mol=1, m=-3),
}  # fmt: skip
"""Units that take a prefix."""

UNPREFIXED: dict[str, Dimension] = {
    "min": _dimension(s=1), "h": _dimension(s=1), "d": _dimension(s=1), "day": _dimension(s=1), "yr": _dimension(s=1),
    "degC": _dimension(K=1), "°C": _dimension(K=1), "deg": DIMENSIONLESS, "°": DIMENSIONLESS,
    "percent": DIMENSIONLESS, "%": DIMENSIONLESS,
    "ha": _dimension(m=2), "au": _dimension(m=1), "ly": _dimension(m=1), "Da": _dimension(kg=1),
    "u": _dimension(kg=1), "atm": _dimension(kg=1, m=-1, s=-2), "angstrom": _dimension(m=1), "Å": _dimension(m=1),
    "rpm": _dimension(s=-1),
}  # fmt: skip
"""Units that take no prefix; a name in this table is never read as a prefixed unit."""

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_TOKEN = re.compile(
    r"\s*(?:(?P<power>\*\*|\^)|(?P<operator>[*/·])|(?P<bracket>[()])|(?P<sign>[-+])"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<name>°?[^\W\d_]+|[%°]))"
)


def parse_unit(text: str) -> Dimension:
    """Dimension of a unit: exponents of `BASE`.

    Parameters
    ----------
    text : str
        Units, products, quotients, powers and brackets: ``"kg*m^2/s**2"``, ``"J/(kg K)"``, ``"1/s"``, ``"m/s²"``,
        ``"m^(1/2)"``; ``"1"`` has no dimension. Operators apply from the left: ``"J/kg*K"`` is ``"(J/kg)*K"``.

    Raises
    ------
    ValueError
        If the text is not a unit; the message says what is wrong, and what is allowed.

    Examples
    --------
    >>> [int(exponent) for exponent in parse_unit("kN")]
    [1, 1, -2, 0, 0, 0, 0]
    """
    if len(text) > LONGEST:
        raise ValueError(f"unit {text[:20]!r}... has {len(text)} characters; at most {LONGEST} are allowed")
    return _Parser(text).parsed()


def is_product(unit: str, units: Iterable[str]) -> bool:
    """Whether some product of powers of units has the dimension of a unit.

    Examples
    --------
    >>> is_product("m/s", ["km", "h"]), is_product("m/s", ["km", "kg"])
    (True, False)
    """
    rows = [list(parse_unit(each)) for each in units]
    rest = list(parse_unit(unit))
    for column in range(len(BASE)):  # elimination by exact fractions
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        for row in (*rows, rest):
            factor = row[column] / pivot[column]
            row[:] = [own - factor * other for own, other in zip(row, pivot, strict=True)]
    return not any(rest)


class _Parser:
    """A recursive-descent parser; the text is short, so the recursion is shallow."""

    def __init__(self, text: str) -> None:
        self.text = text
        plain = re.sub("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda power: "^" + power.group().translate(_SUPERSCRIPTS), text)
        self.tokens: list[tuple[str, str]] = []
        position, end = 0, len(plain.rstrip())
        while position < end:
            token = _TOKEN.match(plain, position)
            if token is None:
                raise self._error(f"{plain[position:].strip()[0]!r} is not allowed in a unit")
            self.tokens.append((token.lastgroup or "", token.group(token.lastgroup or 0)))
            position = token.end()
        self.next = 0

    def parsed(self) -> Dimension:
        dimension = self._product()
        if self.next < len(self.tokens):
            raise self._error(f"{self.tokens[self.next][1]!r} is not expected")
        return dimension

    def _product(self) -> Dimension:
        dimension = self._factor()
        while True:
            sign = 1
            if self._kind() == "operator":
                sign = -1 if self._take() == "/" else 1
            elif self._kind() not in ("name", "number") and self._peek() != "(":
                return dimension
            dimension = tuple(a + sign * b for a, b in zip(dimension, self._factor(), strict=True))

    def _factor(self) -> Dimension:
        kind, text = self._kind(), self._take()
        if text == "(":
            dimension = self._product()
            self._close()
        elif kind == "name":
            dimension = self._unit(text)
        elif text == "1":
            dimension = DIMENSIONLESS
        else:
            raise self._error(f"a unit is expected, not {text!r}" if text else "a unit is missing; 1 means none")
        if self._kind() != "power":
            return dimension
        self._take()
        exponent = self._exponent()
        return tuple(exponent * e for e in dimension)

    def _exponent(self) -> Fraction:
        if self._peek() != "(":
            return self._number()
        self._take()
        exponent = self._number()
        if self._peek() == "/":
            self._take()
            divisor = self._number()
            if not divisor:
                raise self._error("an exponent divides by zero")
            exponent /= divisor
        self._close()
        return exponent

    def _number(self) -> Fraction:
        sign = -1 if self._kind() == "sign" and self._take() == "-" else 1
        kind, text = self._kind(), self._take()
        if kind != "number":
            raise self._error(f"an exponent is a number, such as 2, -1, 0.5 or (1/2), not {text!r}")
        return sign * Fraction(text)

    def _close(self) -> None:
        if self._take() != ")":
            raise self._error("')' is missing")

    def _kind(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def _peek(self) -> str:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else ""

    def _take(self) -> str:
        text = self._peek()
        self.next += 1
        return text

    def _unit(self, name: str) -> Dimension:
        if name in UNPREFIXED:
            return UNPREFIXED[name]
        if name in PREFIXED:
            return PREFIXED[name]
        for prefix in PREFIXES:
            if name.startswith(prefix) and name[len(prefix) :] in PREFIXED:
                return PREFIXED[name[len(prefix) :]]
        known = [*PREFIXED, *UNPREFIXED]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise self._error(f"unknown {name!r}; {hint}known are {', '.join(known)}, also with a prefix as in kg or mm")

    def _error(self, problem: str) -> ValueError:
        return ValueError(f"unit {self.text!r} cannot be read: {problem}")
