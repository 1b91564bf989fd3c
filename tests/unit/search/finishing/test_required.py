"""Required features: what the rows do not see is left out, and the reason says so."""

from __future__ import annotations

import numpy as np
import pytest

import shine

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (80, 3))
QUICK = {"generations": 0, "seconds": None, "seeding": 0, "population": 20, "threads": 1, "noise": "absolute"}
NOTHING = {
    "a trifle": "{} - 3e-17*x2",
    "a quotient with itself": "({})*x2/x2",
    "a difference from itself": "{} + x2 - x2",
    "a trifle within a function": "{} + log(3.7 - 1e-15*x2)",
}


def found(y, guess, **more):
    return shine.evolve(X, y, guesses=[guess], constraints={"required": ["x2"]}, **{**QUICK, **more})


@pytest.mark.parametrize("way", NOTHING)
def test_what_an_exact_law_does_not_need_is_left_out(way):
    result = found(np.hypot(X[:, 0], X[:, 1]), NOTHING[way].format("sqrt(x0**2 + x1**2)"))
    assert result.best.expression == "sqrt(x0**2 + x1**2)"
    assert "; without the required x2, as no formula describes the rows better with it" in result.reason


@pytest.mark.parametrize("guess", ["x0/(x1 + 1)*x2**0.001", "x0/(x1 + 1) + 0.003*x1/x2"])
def test_what_noise_hides_is_left_out(guess):
    y = X[:, 0] / (X[:, 1] + 1) + 0.05 * np.random.default_rng(1).normal(size=80)
    primitives = ["add", "sub", "mul", "div", "pow"]
    result = found(y, guess, primitives=primitives)
    assert result.best.tree.used_parameters == ("x0", "x1") and "without the required x2" in result.reason


def test_a_front_has_a_required_feature_throughout_if_the_rows_see_it():
    y = X[:, 0] + 0.3 * X[:, 2] + 0.1 * np.random.default_rng(1).normal(size=80)
    result = found(y, "x0 + 0.5*x2")
    assert all("x2" in model.tree.used_parameters for model in result.front)
    assert "required" not in result.reason


@pytest.mark.slow
def test_a_law_without_the_required_feature_is_found():
    result = found(np.hypot(X[:, 0], X[:, 1]), "x2", generations=4, seeding=0.5, population=100)
    assert result.best.expression == "sqrt(x0**2 + x1**2)" and "without the required x2" in result.reason


@pytest.mark.slow
def test_classes_have_a_required_feature_as_far_as_they_show_it():
    rng = np.random.default_rng(0)
    classes = rng.uniform(size=80) < 1 / (1 + np.exp(2 * (X[:, 1] - X[:, 0])))
    for name in ("x0", "x2"):
        model = shine.SymbolicClassifier(
            generations=4, population_size=100, max_time=None, random_state=0, constraints={"required": [name]}
        ).fit(X, classes)
        assert (name in model.best_.tree.used_parameters) == (name == "x0")
        assert ("without the required x2" in model.front_.reason) == (name == "x2")
