"""Templates for targets near the ends of float64's range."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.kinds.template.scaling import TemplateScaling

T = np.random.default_rng(0).uniform(0.5, 3, 80)
LAW = (T**2 + 1) * np.exp(-T)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", mostly_slow([1e-308, 1e-300, 1e-200, 1e-160, 1e-130, 1e130, 1e155, 1e160, 1e300], [1e-200, 1e160])
)
def test_a_law_is_found_in_any_unit_of_the_target(unit):
    found = shine.evolve(
        pd.DataFrame({"t": T}), LAW * unit, template="f(t)*exp(-t)", generations=5, population=100, seed=0
    )
    np.testing.assert_allclose(found.predict(pd.DataFrame({"t": T})) / unit, LAW, rtol=1e-6)
    assert found.best.r2 == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "scaled"),
    [
        ("f(t)*k", {"f"}),
        ("k*f(t) + c*t", {"f", "c"}),
        ("(f(t) + g(t)**2)*c", {"c"}),
        ("f(t)/g(t) - h(t)", {"f", "h"}),
        ("-f(t) if t > c else g(t)", {"f", "g"}),
        ("exp(f(t))", set()),
        ("D(f, 0)(t)*k", {"f"}),
    ],
)
def test_what_the_output_is_proportional_to_is_scaled(text, scaled):
    data = Dataset.from_arrays(T[:, None], LAW * 1e200, features=("t",))
    assert TemplateScaling.of(shine.template(text), data).scaled == scaled


def test_ordinary_targets_are_not_scaled():
    data = Dataset.from_arrays(T[:, None], LAW * 1e100, features=("t",))
    assert TemplateScaling.of(shine.template("f(t)"), data) is None


@pytest.mark.slow
@pytest.mark.parametrize("template", ["(f(t) + g(t)**2)*c", "exp(f(t))", "f(t)**2 + c"])
@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_a_template_that_cannot_be_scaled_ends_in_a_result_or_a_clear_error(template, unit):
    try:
        found = shine.evolve(
            pd.DataFrame({"t": T}), LAW * unit, template=template, generations=1, population=30, seconds=3, seed=0
        )
    except shine.base.errors.DataError as error:
        assert "no formula of the template has a finite mse" in str(error)
    else:
        error = np.mean((found.predict(pd.DataFrame({"t": T})) / unit - LAW) ** 2) / np.var(LAW)
        assert found.best.r2 == pytest.approx(1 - error, abs=1e-3)
