"""Very many rows: a sample and sums over all rows say what a computation on all rows does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference import many_rows
from shine.evaluate.inference.constants import NOTHING_HELD, form_of
from shine.evaluate.inference.inference import Basis, Inference
from shine.evaluate.inference.many_rows import InferenceOfManyRows, least_sums
from shine.evaluate.losses import loss_for
from shine.lang.parse import parse

ROWS = 6000
RNG = np.random.default_rng(3)
X = RNG.uniform(0, 4, (ROWS, 2))
LAW = 2.4 * np.exp(-0.9 * X[:, 0]) + 0.7 * X[:, 1]
FORMULA = "2.39*exp(-0.91*x) + 0.71*y"

FITS = {
    "even noise": ("mse", LAW + RNG.normal(0, 0.2, ROWS), {}),
    "uneven noise": ("mse", LAW + RNG.normal(0, 0.2, ROWS) * X[:, 1], {}),
    "weights": ("mse", LAW + RNG.normal(0, 0.2, ROWS), {"sample_weight": RNG.integers(1, 4, ROWS)}),
    "known deviations": ("mse", LAW + RNG.normal(0, 0.1, ROWS), {"sigma": np.full(ROWS, 0.1)}),
    "absolute errors": ("mae", LAW + RNG.laplace(0, 0.2, ROWS), {}),
    "counts": ("poisson", RNG.poisson(LAW).astype(float), {}),
}
"""Loss, target and options of the rows by what is special."""

TOLERANCE = {"uneven noise": 0.15, "absolute errors": 0.2}
"""Share by which standard errors may differ that the unevenness of the noise in the sample scales."""


@pytest.fixture(autouse=True)
def _few_sampled(monkeypatch):
    monkeypatch.setattr(many_rows, "SAMPLED_ROWS", 2000)


def both(which):
    loss, target, options = FITS[which]
    rows = Dataset.from_arrays(X, target, features=["x", "y"], **options)
    form = form_of(parse(FORMULA, ["x", "y"]), NOTHING_HELD)
    basis = Basis(rows, loss_for(loss, rows), "sigma" if "sigma" in options else "absolute")
    return InferenceOfManyRows(form, basis), Inference(form, basis)


@pytest.mark.slow
@pytest.mark.parametrize("which", FITS)
def test_errors_constants_noise_and_evidence_are_those_of_all_rows(which):
    some, exact = (each.uncertainty for each in both(which))
    assert some.errors == pytest.approx(exact.errors, rel=TOLERANCE.get(which, 0.05))
    assert some.kind == exact.kind
    away = (some.best - exact.best) / exact.errors
    # A step over errors with kinks is as uneven as the signs of the residuals.
    assert np.abs(away).max() < (1.0 if which == "absolute errors" else 0.1)
    assert (some.rows, some.freedom) == (exact.rows, exact.freedom)
    assert some.total == pytest.approx(exact.total, rel=0.02)
    assert some.scale == pytest.approx(exact.scale, rel=0.03, nan_ok=True)
    assert some.ranges == exact.ranges
    assert some.information == pytest.approx(exact.information, rel=0.1)


def test_sums_stand_for_rows_that_are_not_there():
    everything, _ = both("even noise")
    form, basis = everything.form, everything.basis
    sample = replace(basis, rows=basis.rows.sampled(2000, np.random.default_rng(0)), of=float(ROWS))
    found = InferenceOfManyRows(form, sample, "auto", *least_sums([form], basis)).uncertainty
    assert found.errors == pytest.approx(everything.uncertainty.errors)
    assert found.best == pytest.approx(everything.uncertainty.best)
    assert found.rows == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("which", ["even noise", "weights", "absolute errors"])
def test_formulas_that_share_a_pass_have_the_sums_of_their_own_passes(which):
    basis = both(which)[0].basis
    texts = [FORMULA, "2.1*exp(-0.8*x) + 0.8", "1.1*x*x - 0.2*y**3 + 0.5", "3.1 - 0.4*(x + y)/(x + y + 1.3)"]
    forms = [form_of(parse(text, ["x", "y"]), NOTHING_HELD) for text in texts]
    for form, shared in zip(forms, least_sums(forms, basis), strict=True):
        (own,) = least_sums([form], basis)
        assert shared.values == pytest.approx(own.values, rel=1e-9)
        assert shared.errors == pytest.approx(own.errors, rel=1e-12)
        assert shared.normal == pytest.approx(own.normal, rel=1e-9)
        assert shared.slope == pytest.approx(own.slope, rel=1e-6, abs=1e-9 * np.abs(own.normal).max())


def test_a_constant_that_no_row_determines_is_told_without_a_warning():
    rows = Dataset.from_arrays(np.zeros((ROWS, 1)), RNG.normal(0, 1, ROWS), features=["x"])
    found = InferenceOfManyRows(form_of(parse("1.53*x + 0.21", ["x"]), NOTHING_HELD), Basis(rows, "mse"))
    assert found.uncertainty.undetermined.tolist() == [True, False]
