"""Python identifiers for names of features and functions."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Collection, Iterable


def identifiers(names: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """A Python identifier for each name: the name itself if it is valid and free.

    Python treats two names as the same if their NFKC forms are equal.
    """
    used, result = set(taken), {}
    for name in names:
        if name not in result:
            result[name] = identifier(name, used)
            used.add(result[name])
    return result


def identifier(name: str, used: Collection[str]) -> str:
    """An identifier like a name that is not used yet."""
    text = unicodedata.normalize("NFKC", name)
    text = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in text)
    if not text.isidentifier() or keyword.iskeyword(text):
        text = f"{text}_" if text.isidentifier() else f"_{text}"
    return numbered(text, used, {})


def numbered(text: str, used: Collection[str], numbers: dict[str, int]) -> str:
    """A free identifier: the text, with a number added if it is used; `numbers` holds the last number of each text."""
    candidate, number = text, numbers.get(text, 1)
    while candidate in used:
        number += 1
        candidate = f"{text}_" if number == 2 else f"{text}_{number - 1}"
    numbers[text] = number
    return candidate
