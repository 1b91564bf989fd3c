"""Hypothesis strategies: random formulas as text and as trees."""

from __future__ import annotations

import ast
import math

from hypothesis import strategies as st

from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse

PARAMETERS = ("a", "b", "x1")

WRITTEN = (
    1, 2, 3, 4, 10, -1, -2, 2.0, 3.0, 0.5, 1 / 3, 2 / 3, 0.25, 1.5, -0.5, 0.1, 100.0, math.pi, 2 * math.pi, math.e
)  # fmt: skip
"""Numbers that people write, exponents among them."""

numbers = st.one_of(
    st.integers(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 0.5, 1e308]),
    st.sampled_from(WRITTEN),
)
"""Constants a formula may have."""


def expressions(names: tuple[str, ...] = tuple(STANDARD), leaves: int = 12) -> st.SearchStrategy[ast.expr]:
    """Expression nodes over `PARAMETERS` and the given primitives, which the parser accepts."""
    leaf = st.one_of(
        numbers.map(ast.Constant), st.sampled_from(PARAMETERS).map(lambda name: ast.Name(name, ast.Load()))
    )

    def applied(children: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[ast.expr]:
        anything = st.sampled_from(names).flatmap(
            lambda name: st.lists(children, min_size=STANDARD[name].arity, max_size=STANDARD[name].arity).map(
                lambda arguments: application(name, arguments)
            )
        )
        if "pow" not in names:
            return anything
        written = st.sampled_from(WRITTEN).map(ast.Constant)
        powers = st.builds(lambda base, exponent: application("pow", [base, exponent]), children, written)
        return st.one_of(anything, anything, powers)

    return st.recursive(leaf, applied, max_leaves=leaves)


def trees(names: tuple[str, ...] = tuple(STANDARD)) -> st.SearchStrategy[Tree]:
    """Verified trees with the parameters `PARAMETERS`."""
    return expressions(names).map(lambda node: parse(node, PARAMETERS))
