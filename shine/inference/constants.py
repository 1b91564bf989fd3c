"""Which numbers of a formula are constants that data determine, and what they are called.

A number belongs to the structure of a formula if another number in its place would make another law of it:

* whole and half exponents: the 2 in ``x**2``, the 0.5 in ``x**0.5``;
* whole numbers up to 10, and fractions of whole numbers up to 4: the 2 in ``2*x``, the 0.5 in ``0.5*m*v**2``;
* numbers with a name: the pi in ``2*pi*r``.

Searches write such a number only where the data cannot tell it from the fitted one. All other numbers are constants.
They are called ``c0, c1, ...`` in the order in which people read them. If a formula is nothing but a number, that is a
constant.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from shine.kernels.gradient import GradientKernel
from shine.lang.derivative import value_and_gradient
from shine.lang.named_numbers import named_number
from shine.lang.names import value_text
from shine.lang.presentation import presented
from shine.lang.rebuilding import Rebuilding
from shine.lang.tree import Tree
from shine.typing import Floats

Which = Literal["fitted", "all"]
"""Constants by the rule above, or all numbers but whole and half exponents."""

LARGEST_WHOLE, LARGEST_TERM = 10, 4
"""Whole numbers, and terms of fractions, up to these are structure."""

LETTERS = ("c", "k", "theta", "constant")
"""What constants are called; the first that no name of the formula begins with, followed by digits."""

_ROUNDING = 1e-15


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
    written : str, optional
        The formula as people read it, if that is not the text of the tree.
    kernels : dict of str to GradientKernel
        What was compiled, by the level of optimization; `dataclasses.replace` with other values keeps it.
    """

    tree: Tree
    names: tuple[str, ...]
    values: Floats
    exact: tuple[float, ...] = ()
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


def form_of(tree: Tree, which: Which = "fitted", *, first: int = 0, taken: Collection[str] = ()) -> Form:
    """The form of a formula.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers. Constants inside the functions that it calls belong to its structure.
    which : {"fitted", "all"}
    first : int
        Number in the name of the first constant.
    taken : collection of str
        Further names that no constant may have.

    Raises
    ------
    ValueError
        If `which` is neither.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> form_of(parse("2*x**2 + 3.21*exp(-0.37*x)")).text
    '2*x**2 + c0*exp(c1*x)'
    """
    if which not in get_args(Which):
        raise ValueError(f"constants is {value_text(which)}; use 'fitted' or 'all'")
    written = presented(tree)
    taken = {*taken, *written.parameters, *(name for name, _ in written.assignments)}
    letter = next(each for each in LETTERS if not any(_is_numbered(name, each) for name in taken))
    naming = _Naming(letter, first, every=which == "all" or written.size == 1)
    assignments = tuple((name, naming.visit(value)) for name, value in written.assignments)
    result = naming.visit(written.result)
    names = tuple(f"{letter}{first + number}" for number in range(len(naming.values)))
    form = replace(written, parameters=(*names, *written.parameters), result=result, assignments=assignments)
    return Form(form, names, np.array(naming.values, np.float64), tuple(dict.fromkeys(naming.exact)))


def with_values(form: Form, values: Sequence[float] | Floats) -> Tree:
    """The formula with other values of its constants."""
    numbers = dict(zip(form.names, map(float, values), strict=True))
    writing = _Writing(numbers)
    assignments = tuple((name, writing.visit(value)) for name, value in form.tree.assignments)
    parameters = form.tree.parameters[len(form.names) :]
    return replace(form.tree, parameters=parameters, result=writing.visit(form.tree.result), assignments=assignments)


def is_structure(number: float) -> bool:
    """Whether a number belongs to the structure of a formula."""
    size = abs(number)
    if size <= LARGEST_WHOLE and size.is_integer():
        return True
    fractions = (above / below for above in range(1, LARGEST_TERM + 1) for below in range(2, LARGEST_TERM + 1))
    return any(abs(size - each) <= _ROUNDING * each for each in fractions) or named_number(size) is not None


def _is_numbered(name: str, letter: str) -> bool:
    return name.startswith(letter) and name[len(letter) :].isdigit()


def _is_exponent_of_structure(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and (2 * float(node.value)).is_integer()  # type: ignore[arg-type]


class _Naming(Rebuilding):
    """Replaces constants by names, in the order of the text."""

    def __init__(self, letter: str, first: int, every: bool) -> None:
        self.letter, self.first, self.every = letter, first, every
        self.values: list[float] = []
        self.exact: list[float] = []

    def keeps(self, exponent: ast.expr) -> bool:
        """Whether the exponent belongs to the structure."""
        return _is_exponent_of_structure(exponent)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        number = float(node.value)  # type: ignore[arg-type]
        if not self.every and (is_structure(number) or not math.isfinite(number)):
            self.exact.append(number)
            return node
        self.values.append(number)
        return ast.Name(f"{self.letter}{self.first + len(self.values) - 1}")


class _Writing(Rebuilding):
    """Replaces names of constants by numbers."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node
