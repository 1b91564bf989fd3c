"""The text of an expression, built from the inside out: each piece knows how strongly it binds.

A phrase keeps its parts and becomes one string only at the end. So time and memory are proportional to the length of
the text, however deeply it nests. Values are written out at every use, which can make a text explode: such a text is
refused before it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from shine.base.errors import ExportError

ATOM = 99
"""Binding strength of text that never needs parentheses: names, numbers, calls."""

LONGEST = 1_000_000
"""Longest text that is written, in characters."""


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    """A piece of text that stands for a value.

    Parameters
    ----------
    parts : tuple of str or Phrase
    strength : int
        Binding strength of its outermost operator.
    length : int
        Number of characters.
    depth : int
        Levels of nesting.
    condition : bool
        Whether its value is a truth value in the other language, not a number.
    value : float, optional
        Its value, if it is a number.
    opposite : Phrase, optional
        The phrase without its leading minus; for a condition, the condition that holds exactly where this one fails.
    real : bool
        Whether it is certainly a floating-point number, in a language that has integers too.
    """

    parts: tuple[str | Phrase, ...]
    strength: int
    length: int
    depth: int
    condition: bool = False
    value: float | None = None
    opposite: Phrase | None = None
    real: bool = False

    @property
    def simple(self) -> bool:
        """Whether it is one word or number, which may be repeated at no cost."""
        return self.depth == 0


def phrase(*parts: str | Phrase, strength: int = ATOM, condition: bool = False) -> Phrase:
    """A phrase made of parts."""
    length = sum(len(part) if isinstance(part, str) else part.length for part in parts)
    depth = 1 + max((part.depth for part in parts if isinstance(part, Phrase)), default=-1)
    return Phrase(parts, strength, length, depth, condition)


def word(text: str, strength: int = ATOM, condition: bool = False) -> Phrase:
    """A phrase of one word."""
    return Phrase((text,), strength, len(text), 0, condition)


def with_opposite(negative: Phrase, positive: Phrase) -> Phrase:
    """A phrase that begins with a minus, linked to the same phrase without it."""
    return replace(negative, opposite=positive)


def written(top: Phrase, form: str, limit: int = LONGEST) -> str:
    """The text of a phrase.

    Raises
    ------
    ExportError
        If it has more characters than the limit.
    """
    if top.length > limit:
        raise ExportError(
            f"the formula is too long for {form}: it has {_count(top.length)} characters, at most {limit} are allowed; "
            "values that are used several times are written out each time"
        )
    pieces: list[str] = []
    stack: list[str | Phrase] = [top]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            stack.extend(reversed(part.parts))
    return "".join(pieces)


def _count(length: int) -> str:
    return str(length) if length < 10**12 else f"about 10^{round(math.log10(length))}"
