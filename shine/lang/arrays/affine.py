"""Whole numbers that are linear in loop variables and lengths: indices of elements, and bounds of reductions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Affine:
    """A sum of symbols with whole factors, and a constant.

    Parameters
    ----------
    terms : tuple of (str, int)
        Symbols and their factors, none of them 0, sorted by symbol. A symbol is the name of a loop variable, or
        ``len(x)`` for the length of the vector ``x``.
    constant : int
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, factors: Mapping[str, int], constant: int) -> Affine:
        """The sum of some symbols times their factors, and a constant."""
        return cls(tuple(sorted((symbol, factor) for symbol, factor in factors.items() if factor)), constant)

    @classmethod
    def symbol(cls, name: str) -> Affine:
        """A loop variable, or a length."""
        return cls(((name, 1),))

    def __add__(self, other: Affine) -> Affine:
        factors = dict(self.terms)
        for symbol, factor in other.terms:
            factors[symbol] = factors.get(symbol, 0) + factor
        return Affine.of(factors, self.constant + other.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.times(-1)

    def times(self, factor: int) -> Affine:
        """The product with a whole number."""
        return Affine.of({symbol: factor * each for symbol, each in self.terms}, factor * self.constant)

    def plus(self, number: int) -> Affine:
        """The sum with a whole number."""
        return Affine(self.terms, self.constant + number)

    def value(self, symbols: Mapping[str, Any], one: Any = 1) -> Any:
        """The number for the values of the symbols, which may be of any type that has sums and products.

        Parameters
        ----------
        symbols : mapping of str to value
        one : value
            The 1 of that type.
        """
        total = self.constant * one
        for symbol, factor in self.terms:
            total = total + symbols[symbol] * factor
        return total

    def __str__(self) -> str:
        """The number in Python: loop variables first, ``2*i + len(x) - 1``."""
        parts = [("-" if factor < 0 else "+", _product(abs(factor), symbol)) for symbol, factor in self._in_order()]
        if self.constant or not parts:
            parts.append(("-" if self.constant < 0 else "+", str(abs(self.constant))))
        (sign, first), *rest = parts
        return ("-" if sign == "-" else "") + first + "".join(f" {sign} {text}" for sign, text in rest)

    def _in_order(self) -> list[tuple[str, int]]:
        """Positive terms first, and loop variables before lengths."""
        return sorted(self.terms, key=lambda term: (term[1] < 0, term[0].startswith("len(")))


def length_of(vector: str) -> Affine:
    """The length of a vector."""
    return Affine.symbol(length_symbol(vector))


def length_symbol(vector: str) -> str:
    """The symbol of a vector's length, which is how Python writes it."""
    return f"len({vector})"


def _product(factor: int, symbol: str) -> str:
    return symbol if factor == 1 else f"{factor}*{symbol}"
