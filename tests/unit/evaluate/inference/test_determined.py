"""Classes that a formula separates: what the rows say then."""

from __future__ import annotations

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference

from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.search.models.model import Model


@pytest.mark.parametrize("loss", ["binomial", "hinge"])
def test_rows_that_separate_the_classes_bound_the_odds_on_one_side(loss):
    x = np.random.default_rng(1).uniform(0, 10, 200)
    found = inference("2.5*x - 12.5", {"x": x}, np.where(x > 5, 1.0, 0.0 if loss == "binomial" else -1.0), loss)
    known = found.uncertainty
    assert np.isinf(known.errors).all()
    assert np.isinf(known.wald(0.95)).all()
    assert "do not determine" in known.notes[0] and "levels off" in known.notes[0]
    low, high = found.profile(0.95).T
    assert (low > 0).all() and np.isinf(high).all()


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["25*x - 2", "20*tanh(3.1*x) - 1"])
def test_intervals_hold_constants_that_are_less_likely_than_the_best(formula):
    rng = np.random.default_rng(1)
    x, z = rng.uniform(-1, 1, (60, 2)).T
    for hits in (x > 0.1, x + z**2 > 0.1):
        found = inference(formula, {"x": x}, 1.0 * hits, "binomial")
        low, high = found.profile(0.95).T
        outside = (found.form.values < low) | (found.form.values > high)
        told = found.uncertainty.notes
        assert all(any(f"{found.form.names[i]} =" in note for note in told) for i in np.flatnonzero(outside))
        root = np.sqrt(2 * max(found.likelihood.total(found.form.values) - found.optimum.total, 0))
        assert root > 1.96 or not outside.any()


@pytest.mark.parametrize("loss", ["binomial", "hinge"])
@pytest.mark.parametrize("steepness", [3.1, 157.3])
def test_rows_that_separate_the_classes_still_determine_where(loss, steepness):
    x = np.random.default_rng(1).uniform(0, 10, 200)
    y = np.where(x > 5, 1.0, 0.0 if loss == "binomial" else -1.0)
    found = inference(f"{steepness}*(x - 5.01)", {"x": x}, y, loss)
    known, (low, high) = found.uncertainty, found.profile(0.95)[1]
    assert known.undetermined.tolist() == [True, False]
    # The likelihood is highest anywhere between the classes, and falls beyond them.
    assert low < x[x < 5].max() and x[x > 5].min() < high
    assert low > 4.5 and high < 5.5


@pytest.mark.parametrize("seed", [2, 10])
def test_the_odds_are_determined_if_and_only_if_no_threshold_separates_the_classes(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, int(rng.integers(8, 30)))
    chances = 1 / (1 + np.exp(rng.choice([-0.3, -1.5, -6.0]) * (x - rng.uniform(1, 3))))
    y = (rng.uniform(size=len(x)) < chances) * 1.0
    hits, misses = x[y == 1], x[y == 0]
    alike = not (len(hits) and len(misses))
    separated = alike or hits.min() > misses.max() or hits.max() < misses.min()
    for formula in ("3.11*x - 6.31", "3.11*(x - 2.02)"):
        assert inference(formula, {"x": x}, y, "binomial").uncertainty.undetermined[0] == separated


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


@pytest.mark.parametrize(
    "formula",
    ["2*x + (y + 1.3)/exp(exp(exp(1.1*x + y))) - 0.12", "1.5*x + exp(-exp(exp(3.3*y)))", "2*x - 1/exp(exp(y))"],
)
def test_second_derivatives_that_overflow_leave_intervals(formula):
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1.5, (200, 2))
    tree = parse(formula, ["x", "y"])
    y = evaluate(tree, list(X.T)) + 0.1 * rng.normal(size=200)
    model = Model(tree, 0.0, 0.0).with_data(X, y)
    for method in ("wald", "profile"):
        low, high = model.conf_int(method=method)["c0"]
        assert low < float(formula[: formula.index("*")]) < high
        assert high - low == pytest.approx(2 * 1.96 * 0.1 / np.sqrt(200) / 1.5, rel=0.6)
    assert "c0" in str(model.summary())
