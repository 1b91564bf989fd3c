"""What one language decides about the text of a formula: operators, functions, numbers, conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from shine.lang.forms.library import STANDARD

ATOM = 99
"""Binding strength of text that never needs parentheses: names, numbers, calls."""

SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
"""Comparisons as most languages write them."""

SPACED = {name: f" {sign} " for name, sign in SIGNS.items()}
"""The same with spaces around them."""


@dataclass(frozen=True)
class Form:
    """A language's form of a primitive.

    Parameters
    ----------
    text : str
        The text, with ``{0}``, ``{1}``, ... in place of the operands.
    strength : int
        How strongly the text binds.
    needs : tuple of int
        Least strength of each operand; an operand that binds more weakly gets parentheses. 0 beyond the tuple's end.
    conditions : tuple of int
        Positions of the operands that are conditions, not numbers.
    """

    text: str
    strength: int = ATOM
    needs: tuple[int, ...] = ()
    conditions: tuple[int, ...] = ()


def call(function: str, arity: int) -> Form:
    """The form of a function call."""
    return Form(f"{function}({', '.join('{' + str(position) + '}' for position in range(arity))})")


def calls(names: str = "", spelling: Callable[[str], str] = str, **others: str) -> dict[str, Form]:
    """The forms of primitives that are functions of the language.

    Parameters
    ----------
    names : str
        Primitives whose functions have their names.
    spelling : callable
        How the language spells these names.
    **others : str
        The function of each other primitive.
    """
    functions = {name: spelling(name) for name in names.split()} | others
    return {name: call(function, STANDARD[name].arity) for name, function in functions.items()}


def binary(text: str, strength: int, *conditions: int) -> Form:
    """The form of an operator of two operands that groups to the left; `conditions` as of `Form`."""
    return Form(text, strength, (strength, strength + 1), conditions)


def comparisons(signs: Mapping[str, str], strength: int, need: int) -> dict[str, Form]:
    """The form of each comparison, from its sign with the spaces around it."""
    return {name: Form(f"{{0}}{sign}{{1}}", strength, (need, need)) for name, sign in signs.items()}


def identifiers(
    free: Callable[[str, Collection[str]], str], names: Iterable[str], taken: Collection[str]
) -> dict[str, str]:
    """An identifier for each name; `free` makes one that is not among those that are taken."""
    used, result = set(taken), dict[str, str]()
    for name in names:
        if name not in result:
            result[name] = free(name, used)
            used.add(result[name])
    return result


@dataclass(frozen=True)
class Language:
    """How a language writes a formula.

    Parameters
    ----------
    name : str
        Name of the language, for errors.
    forms : mapping of str to Form
        Form, as a number, of each primitive that has a fixed one. Sums, products and signs need none.
    conditions : mapping of str to Form
        Form, as a condition, of each primitive that has one.
    nonzero : Form, optional
        The condition that a number is not zero.
    zero : Form, optional
        The condition that a number is zero; by default ``logical_not`` of the condition above.
    as_number : Form, optional
        The number of a condition, unless `forms` has one.
    number : callable of a number to str
        Text of a number that is not negative, or NaN.
    strengths : tuple of int
        Binding strengths of sums, products, signs and powers.
    times, over : str
        Operators of products and quotients.
    folds : bool
        Whether primitives of numbers are computed before they are written, because languages disagree on ``1/0`` and
        ``1/2``.
    rearranges : bool
        Whether numbers move to the front of products, and signs into sums.
    """

    name: str
    forms: Mapping[str, Form]
    conditions: Mapping[str, Form]
    nonzero: Form | None = None
    zero: Form | None = None
    as_number: Form | None = None
    number: Callable[[int | float], str] = repr
    strengths: tuple[int, int, int, int] = (4, 5, 6, 7)
    times: str = "*"
    over: str = "/"
    folds: bool = True
    rearranges: bool = True
