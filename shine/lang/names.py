"""Names: what formulas can call a feature, a variable or a function, and how messages show names."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from itertools import islice
from keyword import iskeyword

MOST_CHARACTERS = 255
"""Longest name: as long as Excel's names and the names of files may be, so that every export can have it."""

_COMPARED = 2_000
"""Names that are searched for a similar one: comparing texts is slow."""


def normalized(name: str) -> str:
    """A name as Python reads it: in Unicode's NFKC form (Unicode Standard Annex 31), where `µ` is `μ` and `ﬁ` is `fi`.

    Two texts that Python takes for one name are one name here.
    """
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def name_problem(name: str) -> str | None:
    """What is wrong with a normalized name, to be read after the name itself; None if formulas can have it."""
    if len(name) > MOST_CHARACTERS:
        return f"has {len(name)} characters; names have at most {MOST_CHARACTERS}"
    if not name.isidentifier() or iskeyword(name):
        return "is a keyword of Python" if iskeyword(name) else "is not an identifier"
    if name.startswith("__"):
        return "begins with two underscores, which names in formulas do not"
    return None


def symbol(name: str) -> str:
    """A name as machine code has it, in ASCII: LLVM's engine finds no others."""
    return "".join(letter if letter.isascii() else f"u{ord(letter):04x}" for letter in name)


def identifier(text: str) -> str:
    """The nearest name that formulas can have, for any text such as a column's heading."""
    text = normalized(text.strip())[:MOST_CHARACTERS]
    cleaned = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in text).lstrip("_")
    if not cleaned.isidentifier():
        cleaned = f"x_{cleaned}" if cleaned else "x"
    cleaned = cleaned[:MOST_CHARACTERS]
    return f"{cleaned}_" if iskeyword(cleaned) else cleaned


class Numbering:
    """Makes names distinct by numbers behind them: ``a, a_2, a_3``; linear in the number of names.

    Parameters
    ----------
    taken : iterable of str
        Names that are not given to anybody.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def take(self, base: str) -> str:
        """A name that nobody has yet: `base` itself if it is free."""
        name, number = base, self._last.get(base, 1)
        while name in self._taken:
            number += 1
            ending = f"_{number}"
            name = base[: MOST_CHARACTERS - len(ending)] + ending
        self._last[base] = number
        self._taken.add(name)
        return name


def shortened(text: object, length: int = 60) -> str:
    """A text for a message, its middle left out if it is long."""
    text = str(text)
    return text if len(text) <= length else f"{text[: length - 13]}...{text[-10:]}"


def shown(text: object, length: int = 60) -> str:
    """A quoted text for a message, its middle left out if it is long."""
    return repr(shortened(text, length))


def value_text(value: object, length: int = 60) -> str:
    """Any value for a message, in ASCII; Python refuses to print an integer of very many digits."""
    try:
        return cut(ascii(value), length)
    except ValueError:
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a whole number of {bits} bits" if bits else f"a {type(value).__name__} of very large numbers"


def cut(text: object, length: int = 300) -> str:
    """Somebody else's message on one line, its end left out if it is long."""
    line = " ".join(str(text)[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 3]}..."


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message, the first ones only if there are many."""
    rest = iter(names)
    first = [shortened(name) for name in islice(rest, most)]
    more = sum(1 for _ in rest)
    return ", ".join(first) + (f" and {more} more" if more else "")


def similar(name: str, names: Iterable[str]) -> str | None:
    """The name that is most alike, if one is; of very many only the first are looked at."""
    if len(name) > MOST_CHARACTERS:
        return None
    found = difflib.get_close_matches(name, list(islice(names, _COMPARED)), n=1)
    return found[0] if found else None
