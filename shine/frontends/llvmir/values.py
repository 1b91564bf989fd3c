"""What a value of LLVM IR is in the language: floating-point numbers, and small integers kept in such."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A floating-point number: a value of the graph."""

    node: int


@dataclass(frozen=True)
class Integer:
    """An integer, as the floating-point number that equals it; never -0.0.

    Parameters
    ----------
    node : int
    low, high : int
        Bounds of it. A truth value (i1) is 0 or 1; all others are signed.
    width : int
        Bits.
    """

    node: int
    low: int
    high: int
    width: int


@dataclass(frozen=True)
class Bits:
    """The bits of a floating-point number as an integer, of which only the sign can be looked at."""

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
        Numbers whose sum, each times a number of bytes, is the distance from its beginning.
    """

    table: str
    steps: tuple[tuple[Integer, int], ...] = ()


@dataclass(frozen=True)
class Undefined:
    """Poison or undef: any value will do."""


Lane = Number | Integer | Bits | Address | Undefined
Value = tuple[Lane, ...]
"""One element a lane; scalars have one."""
