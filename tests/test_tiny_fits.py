"""Fits of 3 to 20 rows end in sensible formulas, and what the campaign `tiny_fits` calls sensible."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import tiny_fits
from helpers.markers import mostly_slow
from helpers.tiny_fits import tiny_outcome
from helpers.tiny_tables import TinyCase, tiny_case

CASES = 10


@pytest.mark.slow
@pytest.mark.parametrize("number", mostly_slow(range(CASES), fast=[0, 3, 8]))
def test_a_fit_of_a_few_rows_of_any_scale_is_sensible(number):
    kind, text = tiny_outcome(tiny_case(number))
    assert kind == "ok", f"{tiny_case(number).notes}: {text}"


class FakeResult:
    """A result with one formula and its predictions."""

    def __init__(self, expression, values):
        self.best, self.expression, self._values = self, expression, values

    def predict(self, X):
        return np.asarray(self._values, dtype=float)


@pytest.mark.parametrize(
    ("expression", "values", "message"),
    [
        ("1/x0", [1, 2, np.inf], "not finite"),
        ("9*x0", [9, 18, 27], "worse than the mean"),
        ("1.1*x0 + 2.2*x0 + 3.3*x0", [1, 2, 3], "3 fitted constants for 3 rows"),
    ],
)
def test_a_formula_that_is_not_sensible_is_a_failure(monkeypatch, expression, values, message):
    monkeypatch.setattr(tiny_fits.shine, "evolve", lambda *rows, **settings: FakeResult(expression, values))
    kind, text = tiny_outcome(TinyCase(0, np.arange(1.0, 4)[:, None], np.arange(1.0, 4), ""))
    assert kind == "FAILED"
    assert message in text


def test_an_internal_error_and_a_warning_are_failures(monkeypatch):
    def fails(*rows, **settings):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(tiny_fits.shine, "evolve", fails)
    assert tiny_outcome(tiny_case(0)) == ("FAILED", "ZeroDivisionError in test_tiny_fits.py:fails: inside")
    monkeypatch.setattr(tiny_fits.shine, "evolve", lambda *rows, **settings: np.log(np.array([-1.0])))
    assert tiny_outcome(tiny_case(0))[0] == "FAILED"
