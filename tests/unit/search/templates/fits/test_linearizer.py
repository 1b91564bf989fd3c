"""Fits of templates' individuals against SciPy and NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.composers import TextComposer, grouped_rows
from helpers.templates import composition, individuals
from scipy.optimize import least_squares

from shine.evaluate.losses.form import Loss, RowLoss
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.search.templates.fits.linearizer import TemplateEvaluator, TemplateLinearizer
from shine.search.templates.template import Parameter

A, K, C = Parameter("A", by_group=True), Parameter("k", by_group=True), Parameter("c")


def decays(rows=120, groups=4, noise=0.05, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    t, group = rng.uniform(0, 3, rows), rng.integers(0, groups, rows)
    y = rng.uniform(1, 4, groups)[group] * np.exp(-rng.uniform(0.4, 2, groups)[group] * t)
    y = y + 0.7 * np.sin(1.3 * t) + noise * rng.standard_normal(rows)
    weights = rng.uniform(0.2, 3, rows) if weighted else None
    return t, group, y, weights


def fit(composer, dataset, population, steps=60, tolerance=1e-13, loss="mse", threads=1, **options):
    return TemplateLinearizer(composer, dataset, loss, threads).fit(population, steps, tolerance=tolerance, **options)


def leaves(composer, found, index=0):
    last = int(found.population.sizes[index]) - 1
    return found.population.values[index, last - composer.n_leaves : last]


@pytest.mark.slow
def test_a_fit_with_groups_is_that_of_scipy():
    t, group, y, weights = decays(weighted=True)
    composer = TextComposer([["A*exp(-k*t) + c*sin(1.1*t)"]], (A, K, C), ("t", "group"), 4, "group")
    found = fit(composer, grouped_rows({"t": t, "group": group}, y, weights), composer.population())
    root = np.sqrt(weights)

    def rest(p):
        return root * (p[:4][group] * np.exp(-p[4:8][group] * t) + p[8] * np.sin(p[9] * t) - y)

    wanted = least_squares(rest, np.append(np.ones(9), 1.1), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert found.errors[0] == pytest.approx(2 * wanted.cost, rel=1e-9)
    np.testing.assert_allclose(leaves(composer, found), wanted.x[:9], rtol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_linear_formulas_are_fitted_exactly(seed):
    """Random models that are linear in shared and own constants: the oracle is a dense least squares problem."""
    rng = np.random.default_rng(seed)
    own, shared, groups = int(rng.integers(0, 3)), int(rng.integers(0, 4)), int(rng.integers(1, 6))
    own = max(own, 1 - shared)
    rows = int(rng.integers(own * groups + shared, 150)) + 20
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, rows - groups)])
    columns = {f"x{i}": rng.standard_normal(rows) for i in range(own + shared)}
    y = rng.standard_normal(rows)
    parameters = (
        *(Parameter(f"a{i}", by_group=True) for i in range(own)),
        *(Parameter(f"b{i}") for i in range(shared)),
    )
    text = " + ".join(f"{each.name}*x{i}" for i, each in enumerate(parameters))
    composer = TextComposer([[text]], parameters, (*columns, "group"), groups, "group")
    found = fit(composer, grouped_rows({**columns, "group": group}, y), composer.population())
    matrix = [columns[f"x{i}"] * (group == g) for i in range(own) for g in range(groups)]
    matrix += [columns[f"x{own + i}"] for i in range(shared)]
    wanted, *_ = np.linalg.lstsq(np.array(matrix).T, y, rcond=None)
    np.testing.assert_allclose(leaves(composer, found), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_a_thousand_groups_are_fitted():
    rng = np.random.default_rng(1)
    groups, rows = 1000, 5000
    group = np.concatenate([np.repeat(np.arange(groups), 2), rng.integers(0, groups, rows - 2 * groups)])
    t, slopes = rng.uniform(1, 2, rows), rng.uniform(-1, 1, groups)
    y = slopes[group] * t + np.exp(0.6 * t)
    composer = TextComposer([["A*t + exp(c*t)"]], (A, C), ("t", "group"), groups, "group")
    found = fit(composer, grouped_rows({"t": t, "group": group}, y), composer.population())
    np.testing.assert_allclose(leaves(composer, found), [*slopes, 0.6], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("loss", "steps"), [("mse", 10), ("mae", 60)])
def test_without_groups_the_steps_are_those_of_plain_fits(loss, steps):
    rng = np.random.default_rng(6)
    t = rng.uniform(0, 3, 200)
    y = 2 * np.exp(-1.3 * t) + 0.5 * t + 0.1 * rng.standard_t(1.5, 200)
    texts = ["1.0*exp(-1.0*t) + 1.0*t", "1.0*exp(-1.0*t*t) + 1.0", "1.0 + 1.0*t"]
    composer = TextComposer([[text] for text in texts], (), ("t",))
    dataset, population = grouped_rows({"t": t}, y), composer.population()
    (composed,) = composer.composed(population)
    plain = MachineLinearizer(dataset, loss).fit(composed.population, steps, tolerance=1e-10)
    found = fit(composer, dataset, population, steps, tolerance=1e-10, loss=loss)
    np.testing.assert_allclose(found.errors, plain.errors, rtol=1e-9)


def test_outputs_share_constants():
    rng = np.random.default_rng(2)
    t = rng.uniform(0, 2, 40)
    stacked = {"t": np.tile(t, 2), "output": np.repeat([0, 1], 40)}
    targets = 3 * np.exp(-0.7 * t), np.append(1.5 * np.exp(-1.4 * t[:20]), np.exp(-1.4 * t[20:]))
    y = np.concatenate(targets) + 0.1 * rng.standard_normal(80)
    parameters = (Parameter("k"), Parameter("a"), Parameter("b"))
    composer = TextComposer([["a*exp(-k*t)", "b*exp(-2*k*t)"]], parameters, ("t",))
    dataset = grouped_rows(stacked, y)
    found = fit(composer, dataset, composer.population())

    def rest(p):
        return np.concatenate([p[1] * np.exp(-p[0] * t), p[2] * np.exp(-p[3] * p[0] * t)]) - y

    wanted = least_squares(rest, [1, 1, 1, 2], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert found.errors[0] == pytest.approx(2 * wanted.cost, rel=1e-8)
    assert TemplateEvaluator(composer, dataset, "mse").score(found.population).losses[0] == pytest.approx(
        found.errors[0] / 80
    )


def test_values_stay_within_bounds_and_are_the_best_there():
    rng = np.random.default_rng(3)
    group, x = rng.integers(0, 5, 200), rng.uniform(-1, 1, (2, 200))
    y = rng.uniform(-2, 2, 5)[group] * x[0] + 1.5 * x[1] + 0.1 * rng.standard_normal(200)
    parameters = (Parameter("A", by_group=True, bounds=(-1, 0.5)), Parameter("c", bounds=(0, 1.2)))
    composer = TextComposer([["A*x0 + c*x1"]], parameters, ("x0", "x1", "group"), 5, "group")
    found = fit(composer, grouped_rows({"x0": x[0], "x1": x[1], "group": group}, y), composer.population([0] * 6))
    matrix = np.column_stack([*(x[0] * (group == g) for g in range(5)), x[1]])
    wanted = least_squares(
        lambda p: matrix @ p - y, np.full(6, 0.1), bounds=([-1] * 5 + [0], [0.5] * 5 + [1.2]), xtol=1e-15, ftol=1e-15
    )
    np.testing.assert_allclose(leaves(composer, found), wanted.x, atol=1e-6)


@pytest.mark.slow
def test_whole_numbers_are_those_of_an_exhaustive_search():
    rng = np.random.default_rng(4)
    t, group = rng.uniform(0.5, 2, 150), rng.integers(0, 2, 150)
    y = 2.5 * t ** np.array([1, 3])[group] + 0.8 * t**4 + 0.05 * rng.standard_normal(150)
    parameters = (
        Parameter("n", by_group=True, bounds=(0, 5), integer=True),
        Parameter("m", bounds=(1, 6), integer=True),
        Parameter("c"),
        Parameter("d"),
    )
    composer = TextComposer([["c*t**n + d*t**m"]], parameters, ("t", "group"), 2, "group")
    found = fit(composer, grouped_rows({"t": t, "group": group}, y), composer.population([1, 2, 5, 1, 0.5]))

    def error(powers):
        matrix = np.column_stack([t ** np.array(powers[:2])[group], t ** powers[2]])
        best, *_ = np.linalg.lstsq(matrix, y, rcond=None)
        return float(np.sum((matrix @ best - y) ** 2))

    best = min(itertools.product(range(6), range(6), range(1, 7)), key=error)
    assert leaves(composer, found)[:3].tolist() == list(best)
    assert found.errors[0] == pytest.approx(error(best), rel=1e-9)


@pytest.mark.slow
def test_fixed_constants_keep_their_values():
    t, group, y, _ = decays()
    composer = TextComposer([["A*exp(-k*t) + 2.5*t"]], (A, K), ("t", "group"), 4, "group")
    fixed = np.zeros((1, 9), np.bool_)
    fixed[0, [0, 3]] = True
    found = fit(composer, grouped_rows({"t": t, "group": group}, y), composer.population(), fixed=fixed)
    assert found.population.values[0, 1] == 2.5
    assert leaves(composer, found)[2] == 1.0
    assert leaves(composer, found)[1] != 1.0


@pytest.mark.slow
def test_no_individual_becomes_worse():
    t, group, y, _ = decays()
    texts = [
        "A*log(k - t)",
        "A/(k - t)",
        "exp(exp(A*t))*k",
        "A*exp(k*t) + 1e-300*t",
        "sqrt(A - t)*k",
        "A**k",
        "A*0 + k*0",
    ]
    composer = TextComposer([[text] for text in texts], (A, K), ("t", "group"), 4, "group")
    dataset, population = grouped_rows({"t": t, "group": group}, y), composer.population()
    evaluator = TemplateEvaluator(composer, dataset, "mse")
    before = evaluator.score(population).losses
    for steps in (1, 3, 30):
        after = evaluator.score(fit(composer, dataset, population, steps).population).losses
        assert (after <= before).all()


@pytest.mark.slow
def test_an_individual_gets_the_same_bits_alone_and_among_others_and_with_threads():
    t, group, y, _ = decays(rows=2000)
    texts = ["A*exp(-k*t) + c*sin(1.1*t)", "A + c*t", "A*exp(-k*t)*(1.3 + c)", "c + A/(2.0 + k*t)"] * 10
    composer = TextComposer([[text] for text in texts], (A, K, C), ("t", "group"), 4, "group")
    dataset, population = grouped_rows({"t": t, "group": group}, y), composer.population()
    together = fit(composer, dataset, population, 8).errors
    threads = fit(composer, dataset, population, 8, threads=3).errors
    alone = [fit(composer, dataset, population.take([i]), 8).errors[0] for i in range(4)]
    np.testing.assert_array_equal(together, threads)
    np.testing.assert_array_equal(together[:4], alone)


def test_a_loss_that_reads_a_column_beside_the_features():
    rng = np.random.default_rng(5)
    group, x = rng.integers(0, 3, 90), rng.uniform(1, 2, 90)
    y, sigma = rng.uniform(1, 2, 3)[group] * x + rng.standard_normal(90), rng.uniform(0.5, 2, 90)
    source = "def scaled(prediction, target, spread):\n    return ((target - prediction)/spread)**2\n"
    function = with_definitions(STANDARD, source)["scaled"]
    loss = Loss("scaled", RowLoss("scaled", function, ("spread",), least=0.0))
    composer = TextComposer([["A*x"]], (A,), ("x", "group"), 3, "group")
    dataset = grouped_rows({"x": x, "group": group}, y, loss_columns={"spread": sigma})
    found = fit(composer, dataset, composer.population(), loss=loss)
    wanted = [np.sum((x * y / sigma**2)[group == g]) / np.sum((x * x / sigma**2)[group == g]) for g in range(3)]
    np.testing.assert_allclose(leaves(composer, found), wanted, rtol=1e-7)
    left = np.sum(((y - np.array(wanted)[group] * x) / sigma) ** 2)
    score = TemplateEvaluator(composer, dataset, loss).score(found.population).losses[0]
    assert found.errors[0] == pytest.approx(left)
    assert score == pytest.approx(left / 90)


def test_shared_equations_have_the_groups_eliminated():
    t, group, y, _ = decays()
    composer = TextComposer([["A*exp(-k*t) + c*sin(1.1*t)"]], (A, K, C), ("t", "group"), 4, "group")
    dataset = grouped_rows({"t": t, "group": group}, y)
    found = fit(composer, dataset, composer.population())
    equations = TemplateLinearizer(composer, dataset, "mse").shared_equations(found.population)
    frequency, (a, k, c) = found.population.values[0, 1], np.split(leaves(composer, found), [4, 8])
    decay = np.exp(-k[group] * t)
    own = [decay * (group == g) for g in range(4)] + [-t * a[group] * decay * (group == g) for g in range(4)]
    jacobian = np.column_stack([*own, c * t * np.cos(frequency * t), np.sin(frequency * t)])
    whole = jacobian.T @ jacobian
    wanted = whole[8:, 8:] - whole[8:, :8] @ np.linalg.solve(whole[:8, :8], whole[:8, 8:])
    np.testing.assert_allclose(equations.matrices[0, 3:, 3:], wanted, rtol=1e-8)
    assert equations.counts.tolist() == [2]


LAWS = ["f(a, b)*exp(-k[g]*b) + c", "f(a, k[g]) - f(b, c*c)", "(f(a, b) + k[g], c*f(b, a))", "f(a, b)*c"]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_scores_are_those_of_the_formulas_of_each_group(law):
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
    dataset = grouped_rows(columns, y, rng.uniform(0.5, 2, rows))
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
