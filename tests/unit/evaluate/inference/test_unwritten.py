"""Coefficients of 1 that nobody wrote: no constant is outside its interval where a search would not write one."""

import pickle

import numpy as np
import pytest

import shine

ROWS = np.random.default_rng(3).uniform(-3.0, 3.0, (60, 2))
FORMULAS = {
    "x + sin(y)": "{a}*x + {b}*sin({c}*y)",
    "x*y - sin(x)": "{a}*x*y - {b}*sin({c}*x)",
    "x*y - cos(exp(x))": "{a}*x*y - {b}*cos({c}*exp(x))",
    "x + 1.7*sin(x + y)": "{a}*x + 1.7*sin({b}*x + {c}*y)",
    "y/(exp(x) + exp(-x))": "y/({a}*exp({b}*x) + {c}*exp(-x))",
}


def values_of(law, *numbers):
    functions = {"sin": np.sin, "cos": np.cos, "exp": np.exp}
    law = law.format(**dict(zip("abc", numbers, strict=True)))
    return eval(law, functions, {"x": ROWS[:, 0], "y": ROWS[:, 1]})


def fitted(text, target):
    """The formula for rows, as a user gives it."""
    return shine.Model(shine.parse(text, ("x", "y")), 0.0, 0.0).with_data(ROWS, target)


def outside(found):
    return [row for row in found.rows() if not row["low"] <= row["coef"] <= row["high"]]


def told(found):
    return any("not the most likely ones" in note for note in found.notes)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_constant_is_outside_its_interval_where_the_rows_hardly_mind(text):
    least_squares = pytest.importorskip("scipy.optimize").least_squares
    rng, hardly = np.random.default_rng(0), 0
    for _ in range(30):
        truth = values_of(FORMULAS[text], *(1 + 0.05 * rng.normal(size=3)))
        target = truth + 0.05 * truth.std() * rng.normal(size=len(ROWS))
        errors = lambda numbers: target - values_of(FORMULAS[text], *numbers)  # noqa: B023, E731
        least = 2 * least_squares(errors, np.ones(3)).cost
        if 2.5 < np.sqrt(57 * (np.sum(errors(np.ones(3)) ** 2) / least - 1)) < 4.9:  # standard errors, all together
            model, hardly = fitted(text, target), hardly + 1
            assert not outside(model.summary()) and not told(model.summary()), model.summary()
            assert str(pickle.loads(pickle.dumps(model)).summary()) == str(model.summary())
    assert hardly


@pytest.mark.parametrize("text", [text for text in FORMULAS if "/" not in text])
def test_a_coefficient_that_the_rows_refuse_is_outside_and_a_note_says_so(text):
    target = values_of(FORMULAS[text], 1.4, 1.0, 1.3) + 0.05 * np.random.default_rng(0).normal(size=60)
    found = fitted(text, target).summary()
    assert outside(found) and told(found)
