"""Moments of compiled code against sums that do not round: weights, many chunks, cancellation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import ABSOLUTE, SQUARED
from shine.evaluate.scores import Measure, products_of
from shine.evaluate.tiers.machine_rows import MachineRows, machine_of
from shine.evaluate.tiers.machine_tier import MachineMeasure
from shine.evaluate.tiers.native_tier import NativeFitness
from shine.evaluate.tiers.rows import Rows
from shine.lang.forms.primitives import BASIC

SLOPE, INTERCEPT = 1.5, -0.25
SIZES = [1, 7, 8, 129, 256, 2600]
PRIMITIVES = shine.PrimitiveSet((BASIC["add"],), ("a",))
TREE = shine.parse("a")
IDENTITY = {dtype: NativeFitness([TREE], dtype, "O1") for dtype in ("float64", "float32")}


@pytest.fixture(params=["native", "machine"])
def tier(request):
    return request.param


def measure(dataset: Dataset, dtype: str, tier: str) -> Measure:
    """The measure of the formula `a`, the only column of the data."""
    if tier == "native":
        return IDENTITY[dtype].over(Rows(dataset, dtype))
    population = shine.Population.from_trees([TREE], PRIMITIVES)
    machine = machine_of(PRIMITIVES.functions, dtype)
    return MachineMeasure(MachineRows(dataset, dtype, 1), machine, population, np.inf)


def moments(dataset: Dataset, tier: str, dtype: str = "float64") -> dict[str, float]:
    """All sums of compiled code."""
    measured, everyone = measure(dataset, dtype, tier), np.array([0])
    products = products_of(measured, everyone)
    line = np.array([SLOPE]), np.array([INTERCEPT])
    found = dict(zip(("mean", "square", "product"), products.moments, strict=True))
    found |= {kind.name: measured.errors(everyone, kind, *line) for kind in (SQUARED, ABSOLUTE)}
    return {name: float(value[0]) for name, value in found.items()}


def data(p, y, weights=None) -> Dataset:
    """A data set whose only column holds the predictions."""
    return Dataset.from_arrays(np.asarray(p)[:, None], y, sample_weight=weights, features=("a",))


def exact(p, y, weights=None) -> dict[str, float]:
    """The definitions in rational numbers, rounded once."""
    w = [Fraction(1)] * len(p) if weights is None else list(map(Fraction, weights.tolist()))
    p, y = list(map(Fraction, p.tolist())), list(map(Fraction, y.tolist()))
    total = sum(w)
    mean, target = (sum(a * b for a, b in zip(w, v, strict=True)) / total for v in (p, y))
    residuals = [b - (Fraction(INTERCEPT) + Fraction(SLOPE) * a) for a, b in zip(p, y, strict=True)]
    rows = list(zip(w, p, y, residuals, strict=True))
    return {
        "mean": float(mean),
        "square": float(sum(a * (b - mean) ** 2 for a, b, _, _ in rows)),
        "product": float(sum(a * (b - mean) * (c - target) for a, b, c, _ in rows)),
        "squared": float(sum(a * r * r for a, _, _, r in rows)),
        "absolute": float(sum(a * abs(r) for a, _, _, r in rows)),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", mostly_slow(SIZES, fast=[1, 256]))
def test_moments_are_those_of_exact_arithmetic(rows, weighted, tier):
    rng = np.random.default_rng(rows)
    p, y = rng.normal(size=rows) + 3, rng.normal(size=rows)
    weights = rng.choice([0.0, 0.5, 1.0, 3.7], rows) + (np.arange(rows) == 0) if weighted else None
    assert moments(data(p, y, weights), tier) == pytest.approx(exact(p, y, weights), rel=1e-13, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [9, 1300])
def test_predictions_in_float32_are_summed_in_float64(rows, tier):
    rng = np.random.default_rng(0)
    p, y = rng.normal(size=rows).astype(np.float32), rng.normal(size=rows)
    assert moments(data(p, y), tier, "float32") == pytest.approx(exact(p, y), rel=1e-13, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_a_large_offset_does_not_cancel_the_variance(offset, tier):
    rng = np.random.default_rng(1)
    p, y = rng.normal(size=3000) + offset, rng.normal(size=3000) + offset
    found, expected = moments(data(p, y), tier), exact(p, y)
    assert found["square"] == pytest.approx(expected["square"], rel=1e-9)
    # The sum of the products may be near zero; its terms are not.
    assert found["product"] == pytest.approx(expected["product"], abs=1e-9 * expected["square"])


@pytest.mark.slow
@pytest.mark.parametrize("zero", [slice(0, 512), slice(512, 1536), slice(1100, 1700), slice(1, 1700)])
def test_rows_of_weight_zero_do_not_count_even_as_whole_chunks(zero, tier):
    rng = np.random.default_rng(2)
    p, y, weights = rng.normal(size=1700), rng.normal(size=1700), rng.uniform(0.1, 2, 1700)
    weights[zero] = 0
    p[zero], y[zero] = 1e6, -1e6
    assert moments(data(p, y, weights), tier) == pytest.approx(exact(p, y, weights), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rows", [5, 8, 515, 1024])
def test_memory_after_the_last_row_changes_no_bit(rows, tier):
    rng = np.random.default_rng(6)
    columns, y = rng.normal(size=(1, 1100)), rng.normal(size=1100)
    alone = moments(data(columns[0, :rows].copy(), y[:rows]), tier)
    columns[0, rows:] = np.nan
    # A view of the longer array: contiguous, so it is read in place.
    assert moments(Dataset(columns[:, :rows], y[:rows], None, ("a",)), tier) == alone


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("row", [0, 8, 1299])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_prediction_that_is_not_finite_reaches_every_sum_wherever_it_stands(row, value, weighted, tier):
    columns, y = np.ones((1, 1300)), np.ones(1300)
    columns[0, row] = value
    weights = np.where(np.arange(1300) == row, 0.0, 1.0) if weighted else None
    found = moments(Dataset(columns, y, weights, ("a",)), tier)
    assert not np.isfinite([found[name] for name in ("square", "squared", "absolute")]).any()
