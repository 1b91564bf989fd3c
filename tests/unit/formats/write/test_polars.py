"""The expressions are computed by Polars."""

from __future__ import annotations

import ast

import numpy as np
import polars
import pytest
from helpers.equality import ulps
from helpers.formulas import FEATURES, random_tree
from helpers.rows import random_rows
from unit.formats.write.oracles import expected_where
from unit.formats.write.test_sql import STRUCTURAL

from shine.formats.write.polars import polars_source
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse

COLUMNS = random_rows(np.random.default_rng(1), 10_000, "float64")
ULPS = {"expm1": 8, "hypot": 4, "log2": 4, "sigmoid": 6, "aq": 4, "pow": 4, "cube": 4}
"""How far a primitive may be off that is made of several operations; all others 2 ulp."""


def selected(tree, names, columns):
    space = {}
    exec(polars_source(tree), space)
    frame = polars.DataFrame(dict(zip(names, columns, strict=True)))
    return frame.select(space["f"])["f"].to_numpy()


@pytest.mark.parametrize("name", [name for name in STANDARD if name not in ("floordiv", "mod")])
def test_polars_has_the_values_of_each_primitive(name):
    columns = COLUMNS[: STANDARD[name].arity]
    names = FEATURES[: len(columns)]
    tree = parse(f"{name}({', '.join(names)})", names)
    # Polars compares NaN as the greatest number.
    ordinary = np.isfinite if name in ("hypot", "pow") else lambda values: ~np.isnan(values)
    expected, kept = expected_where(tree, columns, ordinary)
    found = selected(tree, names, columns)
    assert kept.sum() > 2000
    assert (ulps(found, expected)[kept] <= ULPS.get(name, 2)).all()


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_have_the_values_of_the_reference_tier(seed):
    rng = np.random.default_rng(seed)
    names = [name for name in STRUCTURAL if name not in ("floordiv", "mod")]
    tree = random_tree(rng, names, int(rng.integers(1, 40)))
    columns = [column[:2000] for column in COLUMNS]
    expected, kept = expected_where(tree, columns, lambda values: ~np.isnan(values))
    found = np.broadcast_to(selected(tree, FEATURES, columns), expected.shape)
    assert (found == expected)[kept].all(), polars_source(tree)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("-a**2 + (-a)**2 - -3*b", "-a**2.0 + (-a)**2.0 + 3.0*b"),
        ("log(a + b)*2", "2.0*(a + b).log()"),
        ("a if a < b <= 2 else log(b)", "pl.when((a < b) & (b <= 2.0)).then(a).otherwise(b.log())"),
        ("(not a) + 1", "pl.when(a == 0).then(1.0).otherwise(0.0) + 1.0"),
        ("1 if not (a < b or a != 2) else 0", "pl.when(~((a < b) | (a != 2.0))).then(1.0).otherwise(0.0)"),
        ("max(a, 0)", "pl.when(a > 0.0).then(a).otherwise(0.0)"),
    ],
)
def test_expressions_read_as_one_would_write_them(formula, expected):
    last = polars_source(parse(formula)).splitlines()[-1]
    assert last in (f"f = ({expected}).alias('f')", f"f = {expected}.alias('f')")


def test_a_constant_is_an_expression_too():
    assert polars_source(parse("2.5", ["a"])).splitlines() == ["import polars as pl", "", "f = pl.lit(2.5).alias('f')"]


def test_a_deep_formula_is_broken_into_statements():
    deep = ast.Name("a", ast.Load())
    for _ in range(300):
        deep = application("sin", [deep])
    found = selected(Tree(("a",), deep), ["a"], [np.array([1.0])])
    expected = 1.0
    for _ in range(300):
        expected = np.sin(expected)
    np.testing.assert_allclose(found, expected)


def test_names_of_python_and_of_the_module_are_free_for_columns():
    frame = polars.DataFrame({"pl": [1.0], "f": [2.0], "step": [3.0]})
    space = {}
    exec(polars_source(parse("pl + f*step")), space)
    assert frame.select(space["f"])["f"].to_list() == [7.0]


def test_what_polars_cannot_have_is_refused():
    with pytest.raises(ValueError, match="'1st' is not a name for a Python variable"):
        polars_source(parse("a"), "1st")
