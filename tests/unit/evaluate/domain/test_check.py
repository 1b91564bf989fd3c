"""The neighbourhood of a data set, and formulas that have poles or are undefined in it."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.domain.neighbourhood import Column, LineSegments, neighbourhood
from shine.lang.forms.tree import Tree

KINDS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "positive": lambda rng, shape: rng.uniform(1, 5, shape),
    "binary": lambda rng, shape: (rng.random(shape) < 0.4).astype(float),
    "ratings": lambda rng, shape: rng.integers(1, 5, shape).astype(float),
    "counts": lambda rng, shape: rng.poisson(4, shape).astype(float),
}


def domain_of(kind: str, rows: int, columns: int = 3, seed: int = 0) -> Domain:
    X = KINDS[kind](np.random.default_rng(seed), (rows, columns))
    return Domain(Dataset.from_arrays(X, X.sum(axis=1), features=("a", "b", "c")[:columns]))


def around(*columns: np.ndarray) -> LineSegments:
    return neighbourhood([Column.of(column) for column in columns])


def defines(domain: Domain, text: str) -> bool:
    return domain.defines(shine.parse(text, domain.dataset.features))


@pytest.mark.parametrize("rows", [20, 2000])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        # Between the rows: poles of odd and of even order, tiny poles, needles, and stretches without values.
        ("normal", "1/(a - 0.3)"),
        ("normal", "1/square(a - 0.3)"),
        ("normal", "b + 0.0001/(a - 0.3)"),
        ("normal", "a/(b + c)"),
        ("normal", "tan(2*a)"),
        ("normal", "a + 1e-7/(square(a - 0.3) + 1e-12)"),
        ("normal", "sqrt(square(a - 0.3) - 1e-9)"),
        ("normal", "1/(a - b*c)"),
        ("uniform", "b/(0.2 + a)"),
        ("lognormal", "1/(a - 2*b)"),
        ("positive", "1/(a - 3)"),
        ("counts", "1/(0.5*a - 1.5)"),
    ],
)
def test_formulas_without_a_value_somewhere_are_found(kind, text, rows):
    domain = domain_of(kind, rows)
    assert not defines(domain, text)


@pytest.mark.parametrize("rows", [100, 2000])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("normal", "log(a + 2.5)"),
        ("normal", "sqrt(3.2 - b)"),
        ("normal", "a**0.5"),
        ("lognormal", "sqrt(12 - a)"),
        ("uniform", "log(a + b + 1.9)"),
        ("positive", "sqrt(a - 1.01)"),
        ("normal", "exp(exp(square(a)))"),
    ],
)
def test_formulas_without_a_value_beyond_the_known_rows_are_found(kind, text, rows):
    assert not defines(domain_of(kind, rows), text)


@pytest.mark.parametrize("rows", [100])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("normal", "a*b - 3*c"),
        ("normal", "1/(square(a) + 1)"),
        ("normal", "1/(a*a - 2*a + 1.5)"),
        ("normal", "exp(a)"),
        ("normal", "log(abs(a))"),
        ("normal", "sin(a)/a"),
        ("normal", "aq(a, b) + hypot(a, c) + log1p(square(b))"),
        ("normal", "protected_div(a, b*b + 1)"),
        ("normal", "protected_log(a) + protected_sqrt(b)"),
        ("normal", "1/a if abs(a) > 0.5 else 2*a"),
        ("normal", "2.5"),
        ("uniform", "sqrt(a + 2)"),
        ("uniform", "tan(0.7*a)"),
        # Positive columns stay positive.
        ("lognormal", "a/b + log(c)"),
        ("lognormal", "sqrt(a) + b**-0.5 + c**0.3"),
        ("positive", "a*b/c**2"),
        ("positive", "log(a)/sqrt(b)"),
        ("positive", "1/(a + b)"),
        # Columns of few values have no others in between, and these whole numbers are never negative.
        ("binary", "1/(a - 0.3) + log(b + 0.5)"),
        ("binary", "1/(2*a + b - 0.5)"),
        ("ratings", "1/(a - 2.5) + log(b - 0.5) + sqrt(4.9 - c)"),
        ("counts", "sqrt(a) + log(b + 0.5)"),
    ],
)
def test_formulas_with_values_everywhere_pass(kind, text, rows):
    assert defines(domain_of(kind, rows), text)


@pytest.mark.parametrize("unit", [1.0, 0.1, -1.0])
@pytest.mark.parametrize(
    "values",
    [
        # Each number of a trial by ten subjects: there is no trial 0.
        np.tile(np.arange(1, 11), 10),
        # Days of a test: nobody measures on day 0.
        np.repeat([1, 3, 7, 14, 28, 56, 90, 100, 180, 365], [2, 90, 85, 50, 300, 60, 30, 40, 20, 10]),
        np.repeat([2, 4, 8, 16, 32], 7),
    ],
)
def test_numbers_that_end_before_zero_stay_positive(values, unit):
    assert (around(unit * values).ends * np.sign(unit)).min() > 0


def test_correlated_columns_stay_together():
    a = np.random.default_rng(0).uniform(1, 2, 200)
    domain = Domain(Dataset.from_arrays(np.column_stack([a, 2 * a]), a, features=("a", "b")))
    assert defines(domain, "1/(b - a)")
    assert not defines(domain, "1/(b - a - 1.5)")


def test_rows_of_weight_zero_do_not_count():
    X = np.concatenate([np.full(20, -1.0), np.linspace(1, 2, 30)])[:, None]
    weights = np.repeat([0.0, 1.0], [20, 30])
    assert defines(Domain(Dataset.from_arrays(X, X[:, 0], sample_weight=weights)), "1/x0")
    assert not defines(Domain(Dataset.from_arrays(X, X[:, 0])), "1/x0")


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e150])
def test_units_do_not_matter(scale):
    plain = domain_of("normal", 50).dataset
    scaled = Domain(replace(plain, columns=plain.columns * scale, target=plain.target * scale))
    assert not defines(scaled, f"1/(a/{scale!r} - 0.3)*{scale!r}")
    assert defines(scaled, f"1/(square(a/{scale!r}) + 1)*{scale!r}")


@pytest.mark.parametrize("reach", ["beyond", "recombined"])
def test_counts_of_few_values_hide_no_explosion_beyond_them(reach):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.minimum(rng.poisson(4, 200), 9)])
    domain = Domain(Dataset.from_arrays(X, rng.normal(size=200), features=("a", "b")))
    assert not domain.defines(shine.parse("1 - 0.6*exp(-2000*sin(sqrt(b)) - a)", ("a", "b")), reach)
    assert domain.defines(shine.parse("1 - 0.6*exp(-2*sin(sqrt(b)) - a)", ("a", "b")), reach)


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0, 2.0], [0.0] * 5, [1.0, 2.0], [-1e308, 1e308], [0.0, 5e-324]])
def test_a_few_rows_are_enough(values):
    domain = Domain(Dataset.from_arrays(np.array(values)[:, None], np.arange(float(len(values)))))
    with np.errstate(all="raise"):
        assert defines(domain, "0*x0 + 1")
        assert not defines(domain, "log(-1 - x0*x0)")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [20, 1000])
def test_the_neighbourhood_reaches_as_far_as_nearly_all_fresh_rows(kind, rows):
    outside = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        known, fresh = KINDS[kind](rng, rows), KINDS[kind](rng, 10_000)
        ends = around(known).ends
        outside.append(np.mean((fresh < ends.min()) | (fresh > ends.max())))
    # 20 rows do not show the kind of a column with certainty; small counts are coarse.
    assert np.mean(outside) < (0.05 if rows == 20 else 0.01)


def test_a_formula_may_be_deeper_than_the_stack():
    node: ast.expr = ast.Name("a", ast.Load())
    for _ in range(5000):
        node = ast.UnaryOp(ast.USub(), node)
    assert domain_of("normal", 30).defines(Tree(("a", "b", "c"), node))


def test_a_column_that_is_nearly_always_zero_may_have_any_sign():
    x = np.zeros((40, 1))
    x[:3, 0] = 1.1, 2.3, 3.7
    domain = Domain(Dataset.from_arrays(x, np.arange(40.0), features=("x",)))
    assert not domain.defines(shine.parse("sqrt(x)", ["x"]))
    x[:20, 0] = np.linspace(1, 3, 20)
    domain = Domain(Dataset.from_arrays(x, np.arange(40.0), features=("x",)))
    assert domain.defines(shine.parse("sqrt(x)", ["x"]))


def test_heavy_tails_go_far():
    x = np.random.default_rng(1).standard_cauchy((200, 1))
    domain = Domain(Dataset.from_arrays(x, x[:, 0], features=("x",)))
    beyond = 10 * np.abs(x).max()
    assert not domain.defines(shine.parse(f"sqrt({beyond} - x)", ["x"]))
    normal = np.random.default_rng(1).standard_normal((200, 1))
    domain = Domain(Dataset.from_arrays(normal, normal[:, 0], features=("x",)))
    assert domain.defines(shine.parse(f"sqrt({10 * np.abs(normal).max()} - x)", ["x"]))


@pytest.mark.parametrize("step", [1.0, 0.25, 3e-7, 1e100])
def test_fresh_rows_may_have_unseen_multiples_between_seen_ones(step):
    x = step * np.array([[-3.0, -2, -1, 1, 2, 4, 5, -4, 3, -5, 6]]).T
    domain = Domain(Dataset.from_arrays(x, np.cos(x[:, 0] / step), features=("x",)))
    # Bounded, and undefined only at zero.
    assert not domain.defines(shine.parse(f"cos({step}/x)", ["x"]))
    assert domain.defines(shine.parse(f"cos({step}/(x + {step / 2}))", ["x"]))
