"""Values of LLVM IR in the language: floating-point numbers, and small integers stored in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A floating-point number: a node of the value graph."""

    node: int


@dataclass(frozen=True)
class Integer:
    """An integer, stored as the equal floating-point number; never -0.0.

    Parameters
    ----------
    node : int
    low, high : int
        Bounds of the integer. A truth value (i1) is 0 or 1; all others are signed.
    width : int
        Bits.
    """

    node: int
    low: int
    high: int
    width: int


@dataclass(frozen=True)
class Bits:
    """The bits of a floating-point number as an integer; only the sign can be read."""

    node: int
    width: int


@dataclass(frozen=True)
class Address:
    """A place in a constant array.

    Parameters
    ----------
    table : str
        Name of the array.
    steps : tuple of (Integer, int)
        Pairs of an index and a number of bytes; the sum of their products is the offset.
    """

    table: str
    steps: tuple[tuple[Integer, int], ...] = ()


@dataclass(frozen=True)
class Undefined:
    """Poison or undef: any value is correct."""


Lane = Number | Integer | Bits | Address | Undefined
Value = tuple[Lane, ...]
"""One lane for each element of a vector; scalars have one lane."""
