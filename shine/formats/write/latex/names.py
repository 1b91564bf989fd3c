"""Names in LaTeX's mathematics mode: subscripts, Greek letters, upright words, and headings as text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby

from shine.formats.write.sources import Headings
from shine.lang.forms.names import GREEK

_SPECIAL = re.compile(r"[\\{}_^#&$%~ ]")
_ESCAPES = {"\\": r"\backslash{}", "~": r"\sim{}", "^": r"\wedge{}", " ": r"\ "}
"""Notation in mathematics mode of characters with a meaning in LaTeX; all others get a backslash."""

_SYMBOLS = {
    "°": r"{}^{\circ}", "′": r"{}^{\prime}", "″": r"{}^{\prime\prime}", "×": r"\times{}", "÷": r"\div{}", "±": r"\pm{}",
    "·": r"{\cdot}", "⋅": r"{\cdot}", "−": "{-}", "≤": r"\le{}", "≥": r"\ge{}", "≠": r"\ne{}", "≈": r"\approx{}",
    "→": r"\to{}", "←": r"\leftarrow{}", "↔": r"\leftrightarrow{}", "↑": r"\uparrow{}", "↓": r"\downarrow{}",
    "∞": r"\infty{}", "√": r"\surd{}", "∑": r"\Sigma{}", "∏": r"\Pi{}", "∂": r"\partial{}", "∇": r"\nabla{}",
    "∫": r"\smallint{}", "∈": r"\in{}", "∝": r"\propto{}", "∆": r"\Delta{}", "Ω": r"\Omega{}", "ℓ": r"\ell{}",
    "½": r"\tfrac{1}{2}", "¼": r"\tfrac{1}{4}", "¾": r"\tfrac{3}{4}", "⅓": r"\tfrac{1}{3}", "⅔": r"\tfrac{2}{3}",
    "ϑ": r"\vartheta{}", "ϕ": r"\phi{}", "ϵ": r"\epsilon{}", "ς": r"\varsigma{}", "•": r"\bullet{}", "∙": r"{\cdot}",
    "<": "{<}", ">": "{>}", "|": "{|}",
}  # fmt: skip
"""Commands of mathematics mode for characters that fonts for text often lack."""

_LOOKALIKES = dict.fromkeys("‐‑‒", "-") | {"\u00ad": "", "\ufeff": ""}
"""Characters that look like others, or like nothing."""


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


def latex_names(names: Iterable[str], headings: Headings) -> dict[str, str]:
    """Each name, or its heading, in mathematics mode; what would look like an earlier one is written letter by letter.

    Parameters
    ----------
    names : iterable of str
    headings : mapping of str to str
        Original headings of the columns, by feature.
    """
    result: dict[str, str] = {}
    for name in names:
        symbol = latex_heading(headings.get(name, name))
        result[name] = symbol if symbol not in result.values() else _upright(name)
    return result


def latex_heading(heading: str) -> str:
    r"""A heading in mathematics mode: as a name if it is one, else as text: ``{\text{my area (m}^{2}\text{)}}``.

    The text has commands that LaTeX, MathJax and KaTeX know for superscripts and subscripts, Greek letters, signs of
    mathematics, and characters with a meaning. All other letters stay as they are.
    """
    return latex_name(heading) if heading.isidentifier() else as_text(heading)


def as_text(heading: str) -> str:
    """A heading, or a text of a column, as text in mathematics mode."""
    text = "".join(
        _LOOKALIKES.get(letter, letter) for letter in unicodedata.normalize("NFC", " ".join(heading.split()))
    )
    pieces: list[str] = []
    for kind, letters in groupby(text, _kind):
        piece = _piece(kind, "".join(letters))
        # A script needs a base of its own: LaTeX takes two superscripts in a row for a mistake.
        based = kind not in "^_" or (pieces and pieces[-1].startswith("\\text"))
        pieces.append(piece if based else f"{{}}{piece}")
    return f"{{{''.join(pieces)}}}" if any(pieces) else r"\text{?}"


def _kind(letter: str) -> str:
    """Spelling of a character of a heading: itself if it has a command of its own."""
    if unicodedata.decomposition(letter).startswith("<super>") and _plain(letter).isascii():
        return "^"
    if unicodedata.decomposition(letter).startswith("<sub>") and _plain(letter).isascii():
        return "_"
    if letter in _SYMBOLS or (_SPECIAL.fullmatch(letter) and letter != " ") or _greek(letter):
        return f"{letter} "
    return "text" if unicodedata.category(letter) not in ("Cc", "Cf", "Cs") else "nothing"


def _piece(kind: str, letters: str) -> str:
    if kind in "^_":
        script = _plain(letters)
        return f"{kind}{{\\mathrm{{{script}}}}}" if script.isalpha() else f"{kind}{{{script}}}"
    if kind == "text":
        return f"\\text{{{letters}}}"
    return "" if kind == "nothing" else _command(kind[0]) * len(letters)


def _command(letter: str) -> str:
    """A character of a heading as a command of mathematics mode."""
    greek = _greek(letter)
    if greek:
        return f"\\{greek}{{}}"
    return _SYMBOLS.get(letter) or _ESCAPES.get(letter, f"\\{letter}")


def _plain(letters: str) -> str:
    """Superscripts or subscripts as ordinary characters."""
    return unicodedata.normalize("NFKC", letters).replace("−", "-")


def _greek(letter: str) -> str | None:
    """The name of LaTeX's command for a Greek letter."""
    spelled = unicodedata.name(letter, "").split()
    if letter == "µ":  # the micro sign
        return "mu"
    if spelled[:1] != ["GREEK"] or spelled[2:3] != ["LETTER"] or len(spelled) != 4:
        return None
    name = "lambda" if spelled[3] == "LAMDA" else spelled[3].lower()
    name = name if spelled[1] == "SMALL" else name.capitalize()
    return name if name in GREEK else None


def _letters(text: str) -> str:
    if text in GREEK:
        return f"\\{text}"
    if len(text) == 1:
        if greek := _greek(text):
            return f"\\{greek}"
        if text.isascii() and text.isalpha():
            return text
    return _upright(text)


def _upright(text: str) -> str:
    # Fonts of mathematics have no other letters than those of ASCII.
    return f"\\mathrm{{{_SPECIAL.sub(_escaped, text)}}}" if text.isascii() else as_text(text)


def _escaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], f"\\{match[0]}")


def operator(name: str) -> str:
    """The name of a function, with the spacing of an operator."""
    return rf"\operatorname{{{_SPECIAL.sub(_escaped, name)}}}"
