"""Straight-line code as text: expressions of a readable size, and a variable for what is used twice or nests deeper.

A dialect is a table of how each primitive is written. Because expressions stay small, no target's parser meets a
deep one, whatever the depth of the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from shine.errors import ExportError
from shine.export.steps import StraightLine, unique
from shine.lang.tree import Primitive

INLINE_DEPTH = 8
"""Depth to which expressions are written into one another."""

INLINE_LENGTH = 88
"""Length, in characters, above which a value gets a variable."""

ATOM = 100
"""Binding strength of what never needs parentheses."""


@dataclass(frozen=True)
class Form:
    """How a primitive is written.

    Parameters
    ----------
    text : str
        With ``{0}``, ``{1}``, ... where the operands go, each once.
    strength : int
        How strongly it binds: an operand that binds weaker than it needs to is put in parentheses.
    needs : tuple of int
        Least strength of each operand; 0 where the tuple is too short.
    conditions : tuple of int
        Positions of the operands that are wanted as conditions, not as numbers.
    """

    text: str
    strength: int = ATOM
    needs: tuple[int, ...] = ()
    conditions: tuple[int, ...] = ()


def call(function: str, arity: int) -> Form:
    """A function applied to its operands."""
    return Form(f"{function}({', '.join('{' + str(position) + '}' for position in range(arity))})")


@dataclass(frozen=True)
class Dialect:
    """How values are written in one language.

    Parameters
    ----------
    name : str
        Of the language, for errors.
    forms : mapping of str to Form
        Of the basic primitives.
    conditions : mapping of str to Form
        Of those primitives that are written in another way where only their truth matters.
    nonzero : Form
        The condition that a number is not zero.
    number : callable of a float to Form
        A number of the formula.
    """

    name: str
    forms: Mapping[str, Form]
    conditions: Mapping[str, Form]
    nonzero: Form
    number: Callable[[float], Form]


@dataclass(frozen=True)
class _Text:
    """A value as text; as a condition too, if it is written in another way then."""

    text: str
    strength: int
    depth: int
    condition: tuple[str, int] | None = None


def write(
    line: StraightLine,
    dialect: Dialect,
    parameters: Mapping[str, str],
    composite: Callable[[Primitive], Form],
    taken: Collection[str],
) -> tuple[list[tuple[str, str]], str]:
    """Straight-line code as assignments and a result.

    Parameters
    ----------
    line : StraightLine
    dialect : Dialect
    parameters : mapping of str to str
        What each parameter is called in the text.
    composite : callable
        How a composite primitive is called.
    taken : collection of str
        Names that no variable may have.

    Returns
    -------
    assignments : list of (str, str)
        Variables and their values, in order.
    result : str

    Raises
    ------
    ExportError
        If the dialect lacks a primitive.
    """
    used = {*taken, *parameters.values()}
    texts: list[_Text] = []
    assignments: list[tuple[str, str]] = []
    for step, uses in zip(line.steps, line.uses, strict=True):
        if step.primitive is None:
            form = Form(parameters[step.leaf]) if isinstance(step.leaf, str) else dialect.number(step.leaf)
            texts.append(_Text(form.text, form.strength, 0))
            continue
        operands = [texts[operand] for operand in step.operands]
        name = step.primitive.name
        if step.primitive.definition is not None:
            form = composite(step.primitive)
        elif name in dialect.forms:
            form = dialect.forms[name]
        else:
            raise ExportError(f"primitive {name!r} cannot be exported to {dialect.name}")
        text = _filled(form, operands, dialect)
        depth = 1 + max((operand.depth for operand in operands), default=0)
        last = len(texts) == len(line.steps) - 1
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


def _filled(form: Form, operands: list[_Text], dialect: Dialect) -> str:
    """A form with its operands, in parentheses where they need them."""
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
