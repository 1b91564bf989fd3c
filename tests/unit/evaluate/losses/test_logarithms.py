"""Logarithms in the sums of losses, taken of products of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.own_losses import errors_in_python, own_loss

from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.row_errors import split
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.population import Population

STUDENT = "def student(p, y):\n    return 5*log(1 + (p - y)*(p - y)/4)"
SMALL = "def small(p, y):\n    return 3*log1p((p - y)*(p - y))"
TWO = "def two(p, y):\n    d = abs(p - y)\n    return (d + log(1 + d) - log1p(d)/4)*2"
IDENTITY = Population.from_sources(["x0"], ("x0",))


def loss_of(text, predictions, target):
    dataset = Dataset.from_arrays(predictions[:, None], target, features=("x0",))
    return evaluator_of(dataset, own_loss(text), False, "float64", "machine").score(IDENTITY).losses[0]


@pytest.mark.parametrize(
    ("text", "count", "has_rest"),
    [
        ("5*log(1 + (p - y)*(p - y))", 1, False),
        ("p - log(p*p + 1)/3 - log1p(abs(y))", 2, True),
        ("2*((log(abs(p)) + y)*3)", 1, True),
        ("y*log(abs(p))", 0, True),
        ("log(abs(p)) if y > 0 else y", 0, True),
    ],
)
def test_logarithms_with_the_same_factor_in_all_rows_leave_the_sum(text, count, has_rest):
    tree = parse(text, ("p", "y"))
    rest, logarithms = split(tree)
    assert (len(logarithms), rest is not None) == (count, has_rest)
    rows = [np.linspace(0.3, 7, 50), np.linspace(-2, 2, 50)]
    value = lambda part: evaluate(part, rows)  # noqa: E731
    total = 0.0 if rest is None else value(rest)
    for each in logarithms:
        log = np.log if each.name == "log" else np.log1p
        total = total + value(each.factor) * log(value(each.argument))
    assert total == pytest.approx(value(tree), rel=1e-14, abs=1e-14)


def test_values_that_are_used_many_times_are_split_at_once():
    lines = ["    v0 = log(1 + p*p) + y", *(f"    v{at + 1} = v{at} + v{at}" for at in range(60)), "    return v60"]
    assert split(parse("\n".join(["def f(p, y):", *lines])))[0] is not None


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 32, 257, 2600])
@pytest.mark.parametrize("text", [STUDENT, SMALL, TWO])
def test_sums_are_exact_to_rounding(text, rows):
    rng = np.random.default_rng(rows)
    target = rng.normal(size=rows)
    predictions = target + rng.normal(size=rows) * 10.0 ** rng.uniform(-3, 30, rows)
    errors = errors_in_python(text.replace("log1p(", "log(1 + "), predictions, target)
    assert loss_of(text, predictions, target) == pytest.approx(math.fsum(errors) / rows, rel=1e-12)


def test_log1p_of_tiny_numbers_keeps_its_digits():
    target = np.linspace(1, 2, 512)
    predictions = target * (1 + 1e-11)
    exact = math.fsum(3 * math.log1p((p - y) ** 2) for p, y in zip(predictions, target, strict=True)) / 512
    assert loss_of(SMALL, predictions, target) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("power", [60, 100, 153])
def test_arguments_too_large_for_a_product_are_summed_one_by_one(power):
    target, predictions = np.zeros(512), np.ones(512)
    predictions[100:300] = 10.0**power
    errors = errors_in_python(STUDENT, predictions, target)
    assert loss_of(STUDENT, predictions, target) == pytest.approx(math.fsum(errors) / 512, rel=1e-13)


@pytest.mark.parametrize(("factor", "finite"), [(1e200, False), (1e100, True)])
def test_a_prediction_that_is_not_finite_has_no_loss_even_if_no_logarithm_shows_it(factor, finite):
    X = np.ones((512, 2))
    X[77] = 1e200, factor
    dataset, population = Dataset.from_arrays(X, np.zeros(512)), Population.from_sources(["x0*x1"], ("x0", "x1"))
    loss = own_loss("def flat(p, y):\n    return log(1 + exp(-abs(p - y)))")
    found = evaluator_of(dataset, loss, False, "float64", "machine").score(population).losses[0]
    assert np.isfinite(found) == finite
