"""Fits of 3 to 20 rows end in sensible formulas, and what the campaign `tiny_fits` calls sensible."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import tiny_fits
from helpers.markers import mostly_slow
from helpers.tiny_fits import fitted_constants, tiny_outcome
from helpers.tiny_tables import COLUMNS, TARGETS, TinyCase, tiny_case

CASES = 25


@pytest.mark.slow
@pytest.mark.parametrize("number", mostly_slow(range(CASES), fast=[0, 3, 8]))
def test_a_fit_of_a_few_rows_of_any_scale_is_sensible(number):
    kind, text = tiny_outcome(tiny_case(number))
    assert kind == "ok", f"{tiny_case(number).notes}: {text}"


def test_a_number_names_one_table_of_3_to_20_finite_rows():
    for number in range(200):
        case, again = tiny_case(number), tiny_case(number)
        np.testing.assert_array_equal(case.X, again.X)
        assert 3 <= len(case.y) <= 20
        assert 1 <= case.X.shape[1] <= 5
        assert np.isfinite(case.X).all()
        assert np.isfinite(case.y).all()


def test_the_tables_have_every_kind_of_column_and_target():
    notes = " ".join(tiny_case(number).notes for number in range(300))
    assert [kind for kind in (*COLUMNS, *TARGETS, "repeated rows", "copy") if kind not in notes] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x0", 0),
        ("2.0*x0 + 1", 0),
        ("2.5*x0 - 0.1", 2),
        ("1.7e-30*(x0 + 0.25)/(x1 - 0.25)", 2),
        ("sin(3.141592653589793*x0)", 0),
        ("123456.0*x0", 1),
    ],
)
def test_constants_are_counted_that_rows_must_have_determined(text, count):
    assert fitted_constants(text) == count


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
