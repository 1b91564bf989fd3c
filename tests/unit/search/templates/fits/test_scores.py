"""Scores of templates' individuals against the composed formulas, group by group."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.composers import TextComposer, grouped_rows
from helpers.templates import composition, individuals

from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.search.templates.fits.scores import TemplateEvaluator
from shine.search.templates.template import Parameter

LAWS = ["f(a, b)*exp(-k[g]*b) + c", "f(a, k[g]) - f(b, c*c)", "(f(a, b) + k[g], c*f(b, a))", "f(a, b)*c"]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_scores_are_those_of_the_formulas_of_each_group(law, weighted):
    """The oracle interprets the formula of each group and output over that group's rows."""
    rng = np.random.default_rng(0)
    groups, rows = 3 if "[g]" in law else 0, 77
    names = ("a", "b", "g")
    composed = composition(law, names, groups, unknown={"f": ["u", "v"]}, **({"groups": "g"} if groups else {}))
    population = individuals(composed, 60)
    outputs = len(composed.template.outputs)
    columns = {"a": rng.uniform(0.5, 2, rows), "b": rng.uniform(0.5, 2, rows), "g": rng.integers(0, 3, rows)}
    if outputs > 1:
        columns["output"] = rng.integers(0, outputs, rows)
    y = rng.standard_normal(rows)
    dataset = grouped_rows(columns, y, rng.uniform(0.5, 2, rows) if weighted else None)
    wanted, predictions = np.zeros(len(population)), np.empty((len(population), rows))
    for output, formulas in enumerate(composed.composed(population)):
        for group in range(max(groups, 1)):
            which = np.flatnonzero(
                (columns.get("output", np.zeros(rows)) == output) & ((columns["g"] == group) | (groups == 0))
            )
            at = np.where(formulas.sources >= 0, formulas.sources + group * formulas.grouped, 0)
            values = np.where(
                formulas.sources >= 0, np.take_along_axis(population.values, at, 1), formulas.population.values
            )
            own = type(formulas.population)(
                formulas.population.codes, values, formulas.population.sizes, formulas.population.primitives
            )
            section = dataset.take(which).without(["output"])
            predictions[:, which] = ReferenceEvaluator(section, "mse", False, "float64").predict(own)
    with np.errstate(all="ignore"):
        wanted = (dataset.row_weights * (predictions - y) ** 2).sum(axis=1) / dataset.weight
    wanted = np.where(np.isfinite(wanted), wanted, np.inf)
    evaluator = TemplateEvaluator(composed, dataset, "mse")
    losses = evaluator.score(population).losses
    assert np.isfinite(wanted).sum() > 10
    np.testing.assert_allclose(losses, wanted, rtol=1e-12)
    np.testing.assert_allclose(evaluator.predict(population), predictions, rtol=1e-12)
    threshold = float(np.median(wanted))
    below = evaluator.score(population, threshold).losses
    np.testing.assert_array_equal(below, np.where(losses <= threshold, losses, np.inf))


@pytest.mark.slow
def test_threads_change_no_bit():
    composed = composition(LAWS[0], ("a", "b", "g"), 4, unknown={"f": ["u", "v"]}, groups="g")
    population, rng = individuals(composed, 500), np.random.default_rng(1)
    columns = {"a": rng.uniform(1, 2, 6000), "b": rng.uniform(1, 2, 6000), "g": rng.integers(0, 4, 6000)}
    dataset = grouped_rows(columns, rng.standard_normal(6000))
    alone, three = (TemplateEvaluator(composed, dataset, "mse", n).score(population).losses for n in (1, 3))
    np.testing.assert_array_equal(alone, three)


def test_mean_absolute_error_over_groups():
    t, group = np.linspace(1, 2, 20), np.arange(20) % 2
    composer = TextComposer([["A*t"]], (Parameter("A", by_group=True),), ("t", "group"), 2, "group")
    dataset = grouped_rows({"t": t, "group": group}, 3 * t)
    losses = TemplateEvaluator(composer, dataset, "mae").score(composer.population([2, 5])).losses
    assert losses[0] == pytest.approx(np.mean(np.where(group == 0, t, 2 * t)))
