"""Straight-line code as text in a programming language: a `Dialect` states how the language writes each primitive.

A value that is used twice, or is long or deeply nested, gets a variable. So expressions stay short and shallow, however
deep the formula is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from shine.base.errors import ExportError
from shine.formats.write.infix import ATOM
from shine.formats.write.statements.straightline import Body
from shine.lang.forms.names import unique
from shine.lang.forms.tree import Primitive

INLINE_DEPTH = 8
"""Depth to which expressions nest before a value gets a variable."""

COMPARISON_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
"""Comparisons as most languages write them."""

INLINE_LENGTH = 88
"""Length, in characters, above which a value gets a variable."""


@dataclass(frozen=True)
class Form:
    """A language's form of a primitive.

    Parameters
    ----------
    text : str
        The text, with ``{0}``, ``{1}``, ... once each in place of the operands.
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


@dataclass(frozen=True)
class Dialect:
    """Values and statements of one language.

    Parameters
    ----------
    name : str
        Name of the language, for errors.
    forms : mapping of str to Form
        Form of each basic primitive.
    conditions : mapping of str to Form
        Form, as a condition, of each primitive that has one.
    nonzero : Form
        The condition that a number is not zero.
    number : callable of a float to Form
        Writes a number.
    """

    name: str
    forms: Mapping[str, Form]
    conditions: Mapping[str, Form]
    nonzero: Form
    number: Callable[[float], Form]


@dataclass(frozen=True)
class _Text:
    """A value as text; `condition` is its text and strength as a condition, if the language has one."""

    text: str
    strength: int
    depth: int
    condition: tuple[str, int] | None = None


def write(
    body: Body,
    dialect: Dialect,
    parameters: Mapping[str, str],
    composite: Callable[[Primitive], Form],
    taken: Collection[str],
) -> tuple[list[tuple[str, str]], str]:
    """Straight-line code as assignments and a result; an `ExportError` if the dialect lacks a primitive.

    Parameters
    ----------
    body : Body
    dialect : Dialect
    parameters : mapping of str to str
        Name of each parameter in the text.
    composite : callable
        Form of a call of a composite primitive.
    taken : collection of str
        Names that variables must not have.

    Returns
    -------
    assignments : list of (str, str)
        Variables and their values, in order.
    result : str
        Expression of the result.
    """
    used = {*taken, *parameters.values()}
    texts: list[_Text] = []
    assignments: list[tuple[str, str]] = []
    for step, uses in zip(body.steps, body.uses, strict=True):
        if step.primitive is None:
            form = Form(parameters[step.leaf]) if isinstance(step.leaf, str) else dialect.number(step.leaf)
            texts.append(_Text(form.text, form.strength, 0))
            continue
        operands = [texts[operand] for operand in step.operands]
        name = step.primitive.name
        form = composite(step.primitive) if step.primitive.definition is not None else _form(name, dialect)
        text = _filled(form, operands, dialect)
        depth = 1 + max((operand.depth for operand in operands), default=0)
        last = len(texts) == len(body.steps) - 1
        if not last and (uses > 1 or depth > INLINE_DEPTH or len(text) > INLINE_LENGTH):
            variable = unique(f"v{len(assignments) + 1}", used)
            used.add(variable)
            assignments.append((variable, text))
            texts.append(_Text(variable, ATOM, 0))
        else:
            truth = dialect.conditions.get(name) if step.primitive.definition is None else None
            condition = (_filled(truth, operands, dialect), truth.strength) if truth else None
            texts.append(_Text(text, form.strength, depth, condition))
    return assignments, texts[-1].text


def _form(name: str, dialect: Dialect) -> Form:
    if name not in dialect.forms:
        raise ExportError(f"primitive {name!r} cannot be exported to {dialect.name}")
    return dialect.forms[name]


def _filled(form: Form, operands: list[_Text], dialect: Dialect) -> str:
    """A form with its operands, in parentheses if they bind too weakly."""
    written = []
    for position, operand in enumerate(operands):
        text, strength = operand.text, operand.strength
        if position in form.conditions:
            text, strength = operand.condition or (
                _filled(dialect.nonzero, [operand], dialect),
                dialect.nonzero.strength,
            )
        needed = form.needs[position] if position < len(form.needs) else 0
        written.append(f"({text})" if strength < needed else text)
    return form.text.format(*written)
