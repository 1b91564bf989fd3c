"""The best formula gets the constants that the rows ask for, and no others."""

import numpy as np
import pytest

import shine

RNG = np.random.default_rng(5)
ROWS = RNG.uniform(0.5, 3.0, (80, 2))
NOISE = RNG.normal(size=80)


def ended(guess, law, noise=0.02, **settings):
    """The result of an end alone: nothing is seeded, nothing evolves."""
    values = eval(law, {"exp": np.exp, "sin": np.sin, "log": np.log}, {"x": ROWS[:, 0], "y": ROWS[:, 1]})
    target = values + noise * values.std() * NOISE
    options = {"generations": 0, "seeding": 0, "population": 2, "seed": 0, **settings}
    return shine.evolve(ROWS, target, features=["x", "y"], guesses=[guess], **options)


@pytest.mark.parametrize(
    ("guess", "law"),
    [
        ("sin(x)*exp(-y)", "sin(1.4*x)*exp(-y)"),
        ("sin(x)*exp(-y)", "sin(1.4*x)*exp(-0.6*y)"),
        ("log(x + y)*y", "log(x + y + 2)*y"),
        ("x/(x + y)", "x/(x + 3*y)"),
        ("exp(sin(x)/y)", "exp(0.5*sin(x)/y)"),
    ],
)
def test_constants_that_a_law_has_and_the_formula_lacks_are_found(guess, law):
    best = ended(guess, law).best
    assert best.r2 > 0.999, best


@pytest.mark.parametrize("law", ["sin(x)*exp(-y)", "x/(x + y)", "log(x + y)*y"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_law_that_needs_none_gets_none(law, noise):
    best = ended(law, law, noise).best
    assert best.complexity <= 8, best


def test_a_function_that_the_search_may_not_use_is_not_used():
    best = ended("sin(x)*y", "sin(x + 1)*y", primitives=["mul", "sin"], linear_scaling=False).best
    assert "+" not in best.expression and "-" not in best.expression, best
