"""Values by group as trees of comparisons."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from shine.search.templates.law import by_group


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 1000])
def test_each_group_has_its_number_and_the_tree_is_flat(count):
    rng = np.random.default_rng(count)
    values, numbers = np.sort(rng.normal(size=count)), rng.normal(size=count)
    tree = by_group("g", values.tolist(), numbers.tolist())
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "tree", "eval")
    assert [eval(code, {"g": value}) for value in values.tolist()] == numbers.tolist()
    assert ast.unparse(tree).count("if") == count - 1


def test_large_values_do_not_overflow():
    tree = by_group("g", [-1.7e308, 1.7e308], [1.0, 2.0])
    assert ast.unparse(tree) == "1.0 if g <= 0.0 else 2.0"
