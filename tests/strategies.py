"""Hypothesis strategies: random formulas as text and as trees."""

from __future__ import annotations

import ast

from hypothesis import strategies as st

from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.primitives import BASIC
from shine.lang.tape import application
from shine.lang.tree import Tree

PARAMETERS = ("a", "b", "x1")

numbers = st.one_of(
    st.integers(-1000, 1000), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 0.5, 1e308])
)
"""Constants a formula may have."""


def expressions(names: tuple[str, ...] = tuple(STANDARD), leaves: int = 12) -> st.SearchStrategy[ast.expr]:
    """Verified-looking expression nodes over `PARAMETERS` and the given primitives."""
    leaf = st.one_of(
        numbers.map(ast.Constant), st.sampled_from(PARAMETERS).map(lambda name: ast.Name(name, ast.Load()))
    )

    def applied(children: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[ast.expr]:
        return st.sampled_from(names).flatmap(
            lambda name: st.lists(children, min_size=STANDARD[name].arity, max_size=STANDARD[name].arity).map(
                lambda arguments: application(name, arguments)
            )
        )

    return st.recursive(leaf, applied, max_leaves=leaves)


def trees(names: tuple[str, ...] = tuple(STANDARD)) -> st.SearchStrategy[Tree]:
    """Verified trees with the parameters `PARAMETERS`."""
    return expressions(names).map(lambda node: parse(node, PARAMETERS))


BASIC_NAMES = tuple(BASIC)
