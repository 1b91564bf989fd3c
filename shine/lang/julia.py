"""Julia's conditions, as PySR's users write them, in Python's words."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 10_000
"""Most characters of a text that is read as Julia's."""

_SIGNS = re.compile(r"\?|&&|\|\||!(?!=)")
_WORDS = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "))


def in_python(text: str) -> str | None:
    """An expression with ``?:``, ``&&``, ``||`` or ``!`` in Python's words; None if there are none, or it is wrong."""
    if len(text) > LONGEST or not _SIGNS.search(text):
        return None
    for sign, words in _WORDS:
        text = re.sub(sign, words, text)
    try:
        found = _list(text).strip()
    except RecursionError:
        return None
    return None if "?" in found else found


def _list(text: str) -> str:
    """Expressions with commas between them."""
    ends = [at for at, sign in _outside(text) if sign == ","]
    return ",".join(_choice(text[begin + 1 : end]) for begin, end in zip([-1, *ends], [*ends, len(text)], strict=True))


def _choice(text: str) -> str:
    """An expression that may be a choice: ``condition ? value : value``."""
    signs = [(at, sign) for at, sign in _outside(text) if sign in "?:"]
    if not signs or signs[0][1] != "?":
        return _with_brackets(text)
    waiting = 0
    for at, sign in signs:
        waiting += 1 if sign == "?" else -1
        if not waiting:
            first = signs[0][0]
            condition, value = _with_brackets(text[:first]), _choice(text[first + 1 : at])
            return f"(({value}) if ({condition}) else ({_choice(text[at + 1 :])}))"
    return _with_brackets(text)


def _with_brackets(text: str) -> str:
    """An expression outside whose brackets nothing is to be done."""
    found, begin = "", 0
    for at, sign in _outside(text):
        if sign == "(":
            found, begin = found + text[begin : at + 1], at + 1
        elif sign == ")":
            found, begin = found + _list(text[begin:at]), at
    return found + text[begin:]


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """Signs outside all parentheses, and the outermost parentheses themselves, with their places."""
    depth = 0
    for at, sign in enumerate(text):
        depth -= sign == ")"
        if not depth:
            yield at, sign
        depth += sign == "("
