"""The constants of a formula that data determine, and their names.

Every number is a constant, however short it is written: a search writes 10 for 10.03 if the data hardly tell them
apart. So is the coefficient of each term, 1 where none is written: ``x + 3`` is ``c0*x + c1``, and ``sin(x)`` is
``c0*sin(c1*x)``. Only these belong to the structure of a formula:

* whole and half exponents: the 2 in ``x**2``, the 0.5 in ``x**0.5``;
* numbers that the user takes as exact;
* simple numbers without which the others would not be determined (see `shine.evaluate.inference.determined`): the 1 in
  ``c0/(1 + c1*x)``.

Constants are called ``c0, c1, ...`` in the order in which people read them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.kernels.jit import GradientKernel
from shine.lang.derivative import value_and_gradient
from shine.lang.forms.facts import SCALED
from shine.lang.forms.interpretation import Rebuilding
from shine.lang.forms.named_numbers import named_number
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit
from shine.lang.presentation import presented

LARGEST_SIMPLE, LARGEST_TERM = 10, 4
"""Whole numbers, and terms of fractions, up to these are simple."""

LETTERS = ("c", "k", "theta", "constant")
"""Prefixes of constants' names; the first that no name of the formula begins with, followed by digits."""


@dataclass(frozen=True)
class Held:
    """Numbers of a formula that are structure.

    Parameters
    ----------
    exact : tuple of float
        Those that the user takes as exact, without their signs.
    places : frozenset of int
        Places of simple numbers that are redundant (see `Form`).
    """

    exact: tuple[float, ...] = ()
    places: frozenset[int] = frozenset()

    def holds(self, number: float, place: int) -> bool:
        """Whether the number at a place is structure."""
        # Relative difference of a number from the one that a user means by it.
        known = any(math.isclose(abs(number), each, rel_tol=1e-9) for each in self.exact)
        return known or place in self.places or not math.isfinite(number)


NOTHING_HELD = Held()


@dataclass(frozen=True, eq=False)
class Form:
    """A formula with names in place of its constants.

    Parameters
    ----------
    tree : Tree
        Its parameters are the constants, and then those of the formula.
    names : tuple of str
    values : ndarray of shape (n_constants,)
        Their values in the formula.
    exact : tuple of float
        The numbers that count as structure, apart from exponents.
    held : Held
        These numbers, and the redundant ones.
    places : tuple of int
        Place of each constant among all numbers of the formula but exponents; -1 for parameters of templates.
    count : int
        Number of such numbers.
    implied : tuple of int
        Places of coefficients of 1 that are not written.
    written : str, optional
        The formula as people read it, if that is not the text of the tree.
    kernels : dict of str to GradientKernel
        Compiled code, by the level of optimization; `dataclasses.replace` with other values keeps it.
    """

    tree: Tree
    names: tuple[str, ...]
    values: Floats
    exact: tuple[float, ...] = ()
    held: Held = NOTHING_HELD
    places: tuple[int, ...] = ()
    count: int = 0
    implied: tuple[int, ...] = ()
    written: str | None = None
    kernels: dict[str, GradientKernel] = field(default_factory=dict, repr=False)

    def kernel(self, level: str) -> GradientKernel:
        """The formula and its derivatives by the constants; its arguments are the constants and the features."""
        if level not in self.kernels:
            self.kernels[level] = GradientKernel(value_and_gradient(self.tree, self.names), "float64", level)
        return self.kernels[level]

    @property
    def text(self) -> str:
        """The formula with names in place of its constants, as people read it."""
        return self.tree.readable if self.written is None else self.written


def form_of(
    tree: Tree, held: Held = NOTHING_HELD, *, first: int = 0, first_place: int = 0, taken: Collection[str] = ()
) -> Form:
    """The form of a formula.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers. Constants inside the functions that it calls belong to its structure.
    held : Held
    first, first_place : int
        Number in the name of the first constant, and place of the first number.
    taken : collection of str
        Further names that no constant may have.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> form_of(parse("x**2 + 3.21*exp(-0.37*x)")).text
    'c0*x**2 + c1*exp(c2*x)'
    """
    written = presented(tree)
    taken = {*taken, *written.parameters, *(name for name, _ in written.assignments)}
    letter = next(each for each in LETTERS if not any(_is_numbered(name, each) for name in taken))
    naming = _Naming(letter, first, first_place, held)
    terms = _Coefficients()
    assignments = tuple((name, naming.visit(terms.visit(value))) for name, value in written.assignments)
    result = naming.visit(_term(written.result, terms.visit(written.result)))
    names = tuple(f"{letter}{first + number}" for number in range(len(naming.values)))
    form = replace(written, parameters=(*names, *written.parameters), result=result, assignments=assignments)
    # A coefficient of 1 that is held need not be written.
    form = presented(form) if held.places or held.exact else form
    values = np.array(naming.values, np.float64)
    exact, places, implied = tuple(dict.fromkeys(naming.exact)), tuple(naming.places), tuple(naming.implied)
    return Form(form, names, values, exact, held, places, naming.count, implied)


def with_values(form: Form, values: Sequence[float] | Floats) -> Tree:
    """The formula with other values of its constants."""
    numbers = dict(zip(form.names, map(float, values), strict=True))
    writing = _Writing(numbers)
    assignments = tuple((name, writing.visit(value)) for name, value in form.tree.assignments)
    parameters = form.tree.parameters[len(form.names) :]
    return replace(form.tree, parameters=parameters, result=writing.visit(form.tree.result), assignments=assignments)


def is_simple(number: float) -> bool:
    """Whether a number is so simple that it may be redundant: a small whole number or fraction, or one with a name."""
    size = abs(number)
    if size <= LARGEST_SIMPLE and size.is_integer():
        return True
    fractions = (above / below for above in range(1, LARGEST_TERM + 1) for below in range(2, LARGEST_TERM + 1))
    return any(abs(size - each) <= 1e-15 * each for each in fractions) or named_number(size) is not None


def _is_numbered(name: str, letter: str) -> bool:
    return name.startswith(letter) and name[len(letter) :].isdigit()


def _is_exponent_of_structure(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and (2 * float(node.value)).is_integer()  # type: ignore[arg-type]


class Implied(ast.Constant):
    """A coefficient of 1 that is not written."""


class _Coefficients(Rebuilding):
    """Gives each term one coefficient: the product of its numbers, 1 if there is none."""

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        rebuilt = yield from super().visit_BinOp(node)
        if _is_sum(node):
            rebuilt = ast.BinOp(_term(node.left, rebuilt.left), node.op, _term(node.right, rebuilt.right))
        return rebuilt

    def visit_Call(self, node: ast.Call) -> Visit:
        rebuilt = yield from super().visit_Call(node)
        if rebuilt.func.id in SCALED:  # a coefficient of the argument would be that of the function, or a summand
            return rebuilt
        arguments = [_term(before, after) for before, after in zip(node.args, rebuilt.args, strict=True)]
        return ast.Call(node.func, arguments, [])


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _term(before: ast.expr, node: ast.expr) -> ast.expr:
    """A term with its coefficient; a sum stays, because its terms have theirs."""
    if _is_sum(before):
        return node
    coefficient, rest = _split_coefficient(node, 100)  # factors of a product that are looked at for numbers
    if rest is node:
        return _multiplied(Implied(1.0), node)
    return ast.Constant(coefficient) if rest is None else _multiplied(ast.Constant(coefficient), rest)


def _split_coefficient(node: ast.expr, depth: int) -> tuple[float, ast.expr | None]:
    """The product of the numbers among a term's factors and divisors, and the rest; None if there is none."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value), None
        case ast.UnaryOp(ast.USub(), operand) if depth:
            number, rest = _split_coefficient(operand, depth - 1)
            return -number, rest
        case ast.BinOp(left, ast.Mult() | ast.Div() as operator, right) if depth:
            (first, before), (second, after) = _split_coefficient(left, depth - 1), _split_coefficient(right, depth - 1)
            if before is left and after is right:
                return 1.0, node
            if isinstance(operator, ast.Mult):
                return first * second, ast.BinOp(before, operator, after) if before and after else before or after
            if second:
                number = first / second
                return number, before if after is None else ast.BinOp(before or ast.Constant(1.0), operator, after)
    return 1.0, node


def _multiplied(number: ast.Constant, node: ast.expr) -> ast.expr:
    """A term without numbers, with a number in front."""
    match node:
        case ast.BinOp(left, ast.Mult() | ast.Div() as operator, right):
            return ast.BinOp(_multiplied(number, left), operator, right)
        case ast.Constant():
            return number
    return ast.BinOp(number, ast.Mult(), node)


class _Naming(Rebuilding):
    """Replaces constants by names, in the order of the text."""

    def __init__(self, letter: str, first: int, first_place: int, held: Held) -> None:
        self.letter, self.first, self.first_place, self.held = letter, first, first_place, held
        self.count = 0
        self.values: list[float] = []
        self.places: list[int] = []
        self.implied: list[int] = []
        self.exact: list[float] = []

    def keeps(self, exponent: ast.expr) -> bool:
        """Whether the exponent belongs to the structure."""
        return _is_exponent_of_structure(exponent)

    def visit_Implied(self, node: Implied) -> ast.expr:
        place = self.first_place + self.count
        self.implied.append(place)
        if place in self.held.places:
            self.count += 1  # nobody sees it, and nobody needs it
            return ast.Constant(node.value)
        return self.visit_Constant(ast.Constant(node.value))

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        number, place = float(node.value), self.first_place + self.count  # type: ignore[arg-type]
        self.count += 1
        if self.held.holds(number, place):
            self.exact.append(number)
            return node
        self.values.append(number)
        self.places.append(place)
        return ast.Name(f"{self.letter}{self.first + len(self.values) - 1}")


class _Writing(Rebuilding):
    """Replaces names of constants by numbers."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node
