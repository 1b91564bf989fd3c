"""The functions and names that a formula uses, read from its text without parsing it.

A query reads hundreds of thousands of formulas, of any depth; a parser would take minutes.
"""

from __future__ import annotations

import re

from shine.lang.forms.synonyms import FUNCTIONS, OPERATORS

POWERS = {"square": "pow", "cube": "pow"}
"""Functions that people read as a power."""

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[<>=!]=|[-+*/%<>])"
    r"|(?P<open>[(,])|(?P<close>\))"
)
_WORDS_BETWEEN = {"if", "else", "and", "or", "not"}


def words_of(formula: str) -> frozenset[str]:
    """The primitives, features and other names in a formula.

    Parameters
    ----------
    formula : str
        In Shine's language.

    Examples
    --------
    >>> sorted(words_of("2.5*exp(-a) + b"))
    ['a', 'add', 'b', 'exp', 'mul', 'neg']
    """
    words = set()
    operand = False  # whether the last token ends an operand, so that a sign after it has two of them
    for token in _TOKEN.finditer(formula):
        text = token.group()
        match token.lastgroup:
            case "name" if text in _WORDS_BETWEEN:
                words.add(OPERATORS.get(text, ""))
                operand = False
            case "name":
                words.update((text, POWERS.get(text, "")))
                operand = True
            case "sign" if text == "-" and not operand:
                # The sign of a number is part of the number.
                if not formula[token.end() : token.end() + 1].isdigit():
                    words.add("neg")
            case "sign":
                words.add(OPERATORS[text])
                operand = False
            case kind:
                operand = kind in ("number", "close")
    return frozenset(words - {""})


def word(given: str) -> str:
    """The word for a function, an operator or a feature as users name it."""
    return OPERATORS.get(given) or FUNCTIONS.get(given, given)
