"""Which simple numbers the other constants make redundant."""

from __future__ import annotations

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference


@pytest.mark.parametrize(
    ("formula", "form"),
    [
        ("2.3*x/(1 + 0.7*x)", "c0*x/(1 + c1*x)"),
        ("2.3*x/(x + 1)", "c0*x/(x + c1)"),
        ("exp(2 - 0.3*x)", "exp(c0 - c1*x)"),
        ("4*exp(2.13 - 0.3*x)", "4*exp(c0 - c1*x)"),
        ("4.17*exp(2.13 - 0.3*x)", "c0*exp(c1 - c2*x)"),
        ("2*x + 10", "c0*x + c1"),
        ("5/(2 + 3*x)", "c0/(c1 + 3*x)"),
        ("x if x > 2 else 3", "c0*(x if x > 2 else c1)"),
    ],
)
def test_a_simple_number_that_others_make_up_for_is_no_constant(formula, form):
    x = np.random.default_rng(0).uniform(0.5, 4, 40)
    assert inference(formula, {"x": x}, x).form.text == form


def test_the_intervals_of_the_others_do_not_depend_on_the_number_that_is_held():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 4, 200)
    y = 2.3 * x / (1 + 0.7 * x) + rng.normal(0, 0.05, 200)
    one, two = (inference(text, {"x": x}, y).profile(0.95) for text in ("2.3*x/(1 + 0.7*x)", "4.6*x/(2 + 1.4*x)"))
    assert two == pytest.approx(2 * one, rel=1e-3)


def test_redundant_numbers_are_noted():
    x = np.random.default_rng(0).uniform(0.5, 4, 40)
    notes = inference("2.3*x/(1 + 0.7*x)", {"x": x}, x).uncertainty.notes
    assert "taken as exact, because the other constants make up for any change: 1" in notes
    notes = inference("2.3*x/(x + 1.7)", {"x": x}, x).uncertainty.notes
    assert not any(note.startswith("taken as exact") for note in notes)
