"""Terms that describe the errors of clean data leave the front; small terms of exact laws stay."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.finishing.trifles import Trifles, without_an_operand
from shine.search.models.model import Model
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions

X = np.linspace(0.1, 16, 400)
PRIMITIVES = with_functions(PrimitiveSet((), ("x",)), LINE_FUNCTIONS)


def models(texts, y, x=X):
    """Formulas of x as models, and the rows."""
    rows = Dataset.from_arrays(x[:, None], y, features=["x"])
    found = []
    for text in texts:
        tree = parse(text, ["x"])
        error = np.mean((Model(tree, 0.0, 1.0).predict(x[:, None]) - y) ** 2)
        found.append(Model(tree, float(error), 1 - float(error / np.var(y))))
    return found, rows


def left(texts, y, enough, x=X):
    """Those of the formulas that are left."""
    found, rows = models(texts, y, x)
    return [model.expression for model in Trifles.of(rows, enough).without(found)]


def plainer(text, y, enough=1e-28):
    """The plainer form of a formula, if there is one."""
    found, rows = models([text], y)
    return [Model(tree, 0.0, 1.0).expression for tree in Trifles.of(rows, enough).plainer(found, PRIMITIVES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5*x + 1e-118*exp(x**2)", ["1.5*x"]),
        ("1.5*(x + 1e-9*x**-3.3)", ["1.5*x"]),
        ("x*(1.5 - 2e-9*sin(7*x))", ["1.5*x"]),
        ("1.5*x - exp(-30 - x)", ["1.5*x"]),
        ("1.5*x + 1e-113*exp(x**2)", ["1.5*x"]),  # 1.5e-2 in the last row, and enormous beyond it
        ("1.5*x + 1e-158*x**131", ["1.5*x"]),
        ("1.5*x*exp(1e-113*exp(x**2))", ["1.5*x"]),
        ("1.5*x + 1e-3*sin(7*x)", []),
        ("1.5*x + 1e-3*exp(-5*x)", []),
        ("1.5*x + 1e-8*exp(x)", []),
        ("1.5*x", []),
    ],
)
def test_terms_that_matter_nowhere_or_explode_beyond_the_rows_are_left_out(text, expected):
    assert plainer(text, 1.5 * X + 1e-7 * np.sin(3 * X)) == expected


def test_small_terms_of_exact_laws_stay():
    y = 1.5 * X + 1e-7 * np.sin(X)
    assert plainer("1.5*x + 1e-7*sin(x)", y, enough=1e-24) == []
    assert len(left(["1.5*x", "1.5*x + 1e-7*sin(x)"], y, 1e-24)) == 2


def test_formulas_that_explode_are_left_out_if_a_simpler_one_leaves_errors_of_the_data_only():
    edge = 1.5 * X + 1e-113 * np.exp(X**2)
    assert left(["1.5*x", "1.5*x + 1e-113*exp(x**2)"], edge + 1e-7 * np.sin(3 * X), 1e-28) == ["1.5*x"]
    assert len(left(["1.5*x", "1.5*x + 1e-113*exp(x**2)"], edge, 1e-28)) == 2
    wave = 1.5 * X + np.sin(X) + 1e-7 * np.sin(3 * X)
    assert len(left(["1.5*x", "1.5*x + sin(x) + 1e-113*exp(x**2)"], wave, 1e-28)) == 2


def test_steep_laws_do_not_explode():
    volts = np.linspace(0, 0.8, 200)
    current = 1e-12 * np.expm1(volts / 0.026) * (1 + 1e-7 * np.sin(9 * volts))
    diode = "1e-12*(exp(x/0.026) - 1)"
    assert len(left(["x", diode], current, 1e-30, volts)) == 2


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_models_that_differ_by_trifles_are_left_out_unless_they_are_exact(scale):
    x = np.linspace(0, 1, 50)
    rows = Dataset.from_arrays(x[:, None], scale * 2 * x, features=["x"])

    def count(loss, size):
        texts = f"{2 * scale!r}*x", f"{2 * scale!r}*x + {size * scale!r}*exp(x)"
        found = [Model(parse(text, ["x"]), at, 1.0) for text, at in zip(texts, (2 * loss, loss), strict=True)]
        return len(Trifles.of(rows, 1e-28 * scale**2).without(found))

    assert count(1e-18 * scale**2, 1e-8) == 1
    assert count(1e-30 * scale**2, 1e-8) == 2
    assert count(1e-18 * scale**2, 1e-4) == 2


def test_a_constant_target_has_no_trifles():
    assert Trifles.of(Dataset.from_arrays(np.arange(5.0)[:, None], np.ones(5), features=["x"]), 1e-28) is None


@pytest.mark.slow
@pytest.mark.parametrize("law", ["linear", "waves"])
def test_laws_from_rates_of_splines_have_no_terms_for_the_errors_of_the_spline(law):
    t = np.linspace(0, 10, 101)
    if law == "linear":
        x = 0.84 + 1.66 * np.exp(-0.36075 * t)
        X, y, expected = x[:, None], CubicSpline(t, x)(t, 1), "0.303 - 0.36075*x0"
    else:
        u = t / 2.5 + 0.1
        X, expected = np.column_stack([np.sin(u), np.cos(1.3 * u)]), "1.5*x0*x1"
        y = 1.5 * X[:, 0] * X[:, 1] * (1 + 1e-8 * np.sin(9 * u) * np.exp(u / 2))
    best = shine.evolve(X, y, generations=20, seconds=None, seed=0).best
    wanted = parse(expected, [f"x{at}" for at in range(X.shape[1])])
    assert best.tree.size == wanted.size
    assert best.predict(X) == pytest.approx(y, abs=1e-4)


def test_each_operand_is_left_out_once():
    tree = parse("-0.5*(x*y + z) - 3", ["x", "y", "z"])
    found = {each.readable for each in without_an_operand(tree)}
    assert "-0.5*(x*y + z)" in found and "-3 - x*y - z" in found
    for shorter in without_an_operand(tree):
        assert shorter.size < tree.size
    assert without_an_operand(parse("x", ["x"])) == []


def test_an_operand_is_left_out_beside_a_function_of_the_user():
    table, _ = primitive_table([*STANDARD, "def raised(a): return a*a + 1"])
    found = without_an_operand(parse("raised(x) + y", ["x", "y"], table))
    assert {str(each) for each in found} == {"raised(x)", "y"}
