"""Constant folding: the number that replaces an operation on numbers has the bits of its evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from shine.base.typing import AnyArray
from shine.lang.forms.facts import FACTS, basic_where
from shine.lang.forms.tree import Tree
from shine.lang.meaning.interpret import REFERENCE, evaluate

Functions = Mapping[str, Callable[..., AnyArray]]
"""Functions on float64 arrays of shape (1,), by primitive. They raise `Inexact` if the bits are not known."""

INEXACT = basic_where(lambda facts: facts.inexact)
"""Primitives whose last bits differ between NumPy, which the reference tier uses, and compiled code."""


class Inexact(Exception):
    """The bits of a function are not known. `folded` and `folded_tree` catch it."""


def _where_exact(name: str, *arguments: AnyArray) -> AnyArray:
    exact_at = FACTS[name].exact_at
    if exact_at is None or len(arguments) != 1 or arguments[0] != exact_at:
        raise Inexact
    return REFERENCE[name](*arguments)


def _product_power(base: AnyArray, exponent: AnyArray) -> AnyArray:
    if exponent not in (2, 3):
        raise Inexact
    return REFERENCE["pow"](base, exponent)


EXACT: Functions = {
    **REFERENCE,
    **{name: partial(_where_exact, name) for name in INEXACT},
    "pow": _product_power,
}
"""The primitives with one correct result, which every tier computes. `shine.compiler.arrays.COMPILED` has all
primitives."""


def folded(name: str, numbers: Sequence[float], functions: Functions = EXACT) -> float | None:
    """The value of a basic primitive of numbers; None if it is not known or not finite."""
    with np.errstate(all="ignore"):
        try:
            value = float(functions[name](*(np.array([number], np.float64) for number in numbers))[0])
        except Inexact:
            return None
    return value if math.isfinite(value) else None


def folded_tree(tree: Tree, functions: Functions = EXACT) -> float | None:
    """The value of a formula without parameters; None if it is not known or not finite."""
    try:
        value = float(evaluate(tree, (), np.float64, functions)[0])
    except Inexact:
        return None
    return value if math.isfinite(value) else None
