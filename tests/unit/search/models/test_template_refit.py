"""New groups of a template's formula."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.templates import law

from shine.base.errors import DataError
from shine.search.models.template_model import TemplateModel
from shine.search.templates.law import Groups

HEADINGS = {"t": "time [s]", "g": "sample"}


def model_of(text="A[g]*exp(-k[g]*t) + f(t)", labels=("a", "b", "c"), constants=None, f="0.5*u*u", **options):
    constants = constants or {"A": [1.0, 2.0, 3.0], "k": [0.5, 1.0, 1.5]}
    groups = Groups("g", (0.0, 1.0, 2.0), labels)
    found = law(text, ("t", "g"), {"f": f}, constants, groups, unknown={"f": ["u"]}, **options)
    return TemplateModel(found.composed(), 0.0, 1.0, {}, HEADINGS, law=found)


def rows(labels, amplitudes, rates, count=60, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    t, at = rng.uniform(0, 3, count), np.arange(count) % len(labels)
    y = np.array(amplitudes)[at] * np.exp(-np.array(rates)[at] * t) + 0.5 * t * t + noise * rng.standard_normal(count)
    return pd.DataFrame({"time [s]": t, "sample": np.array(labels)[at]}), y


@pytest.mark.slow
def test_new_groups_get_their_constants_and_known_ones_keep_theirs():
    X, y = rows(["new", "b", "zebra"], [-4.0, 7.0, 0.1], [3.0, 0.2, 2.0])
    model = model_of().refit_groups(X, y)
    assert model.groups == ("a", "b", "c", "new", "zebra")
    np.testing.assert_allclose(model.constants["A"], [1, 7, 3, -4, 0.1], rtol=1e-6)
    np.testing.assert_allclose(model.constants["k"], [0.5, 0.2, 1.5, 3, 2], rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)


@pytest.mark.slow
def test_groups_with_numbers():
    X, y = rows([1.5, 7.0], [2.0, -1.0], [0.3, 0.9])
    model = model_of(labels=None).refit_groups(X[["time [s]", "sample"]].to_numpy(), y)
    assert model.groups == (0.0, 1.0, 1.5, 2.0, 7.0)
    np.testing.assert_allclose(model.constants["A"], [1, 2, 2, 3, -1], rtol=1e-6)
    np.testing.assert_allclose(model.predict(X.to_numpy()), y, atol=1e-9)


def test_shrinkage_draws_new_groups_to_the_known_ones():
    X, y = rows(["x", "y"], [4.0, 5.0], [0.9, 1.1], count=6, noise=0.5, seed=3)
    constants = {"A": [1.0, 2.0, 3.0], "k": [0.9, 1.0, 1.1]}
    plain, shrunk = (model_of(constants=constants).refit_groups(X, y, shrinkage=each) for each in (False, True))
    for name, center in (("A", 2.0), ("k", 1.0)):
        before, after = (np.abs(each.constants[name][3:] - center).max() for each in (plain, shrunk))
        assert after < before


@pytest.mark.slow
def test_whole_numbers_and_bounds_hold_for_new_groups():
    model = model_of(
        "A[g]*t**n[g] + f(t)",
        constants={"A": [1.0, 2.0, 1.5], "n": [1.0, 2.0, 3.0]},
        f="0*u",
        parameters={"A": {"bounds": [0, 2]}, "n": {"integer": True, "bounds": [0, 5]}},
    )
    rng = np.random.default_rng(0)
    t = rng.uniform(0.5, 2, 60)
    y = np.where(np.arange(60) % 2, 1.7 * t**4, 3 * t**2) + 0.01 * rng.standard_normal(60)
    X = pd.DataFrame({"time [s]": t, "sample": np.where(np.arange(60) % 2, "p", "q")})
    new = model.refit_groups(X, y).constants
    for place, own in ((3, np.arange(60) % 2 == 1), (4, np.arange(60) % 2 == 0)):
        factors = [np.clip(np.sum(y[own] * t[own] ** n) / np.sum(t[own] ** (2 * n)), 0, 2) for n in range(6)]
        errors = [np.sum((y[own] - factor * t[own] ** n) ** 2) for n, factor in enumerate(factors)]
        assert new["n"][place] == np.argmin(errors)
        assert new["A"][place] == pytest.approx(factors[int(np.argmin(errors))], rel=1e-6)


@pytest.mark.slow
def test_what_cannot_be_refitted_is_said():
    X, y = rows(["x"], [1.0], [1.0])
    with pytest.raises(DataError, match="has numbers for groups, but in the search they were texts"):
        model_of().refit_groups(X.assign(sample=1.0), y)
    with pytest.raises(DataError, match="no finite values for all rows of group x"):
        model_of("A[g]*log(t - k[g] - 10) + f(t)").refit_groups(X, y)
    plain = law("f(t)", ("t",), {"f": "u"}, {}, None, unknown={"f": ["u"]})
    with pytest.raises(DataError, match="no constants by group"):
        TemplateModel(plain.composed(), 0.0, 1.0, {}, {}, law=plain).refit_groups(X, y)
