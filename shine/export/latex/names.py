"""Names in LaTeX's mathematics mode: subscripts, Greek letters, upright words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from shine.lang.names import GREEK

_SPECIAL = re.compile(r"[\\{}_^#&$%~ ]")


def latex_name(name: str) -> str:
    r"""A name in mathematics mode: ``x1`` is ``x_{1}``, ``speed`` is ``\mathrm{speed}``, ``alpha`` is ``\alpha``."""
    words = [part for part in name.split("_") if part]
    if not words:
        return _upright(name)
    match = re.fullmatch(r"(\D+)(\d+)", words[0])
    if match:
        words[:1] = match.groups()
    subscripts = ", ".join(part if part.isdigit() else _letters(part) for part in words[1:])
    return _letters(words[0]) + (f"_{{{subscripts}}}" if subscripts else "")


def latex_names(names: Iterable[str]) -> dict[str, str]:
    """Each name in mathematics mode; a name that would look like an earlier one is written letter by letter."""
    result: dict[str, str] = {}
    for name in names:
        symbol = latex_name(name)
        result[name] = symbol if symbol not in result.values() else _upright(name)
    return result


def _letters(text: str) -> str:
    if text in GREEK:
        return f"\\{text}"
    if len(text) == 1:
        spelled = unicodedata.name(text, "").split()
        if spelled[:1] == ["GREEK"] and spelled[2:3] == ["LETTER"] and len(spelled) == 4:
            greek = "lambda" if spelled[3] == "LAMDA" else spelled[3].lower()
            greek = greek if spelled[1] == "SMALL" else greek.capitalize()
            return f"\\{greek}" if greek in GREEK else text
        if text.isascii() and text.isalpha():
            return text
    return _upright(text)


def _upright(text: str) -> str:
    return f"\\mathrm{{{_SPECIAL.sub(_escaped, text)}}}"


def _escaped(match: re.Match[str]) -> str:
    return {"\\": r"\backslash{}", "~": r"\sim{}", "^": r"\wedge{}", " ": r"\ "}.get(match[0], f"\\{match[0]}")


def operator(name: str) -> str:
    """The name of a function, with the spacing of an operator."""
    return rf"\operatorname{{{_SPECIAL.sub(_escaped, name)}}}"
