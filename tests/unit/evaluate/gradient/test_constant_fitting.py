"""Constant fitting: never worse, exact where least squares is linear, and planted constants are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.search.evolution.oracles import assert_same

from shine.data.datasets.dataset import Dataset
from shine.evaluate.protocols import FirstLines
from shine.evaluate.tiers import gradients
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.scoring import places

MIXED = PrimitiveSet(
    select(STANDARD, ("add", "sub", "mul", "div", "pow", "exp", "log", "sqrt", "sin", "abs", "max", "floor", "where")),
    ("x", "y"),
)


def dataset_of(target, rows=80, weights=None, seed=0):
    """Rows of x and y between 1/2 and 3, with a target that is a function of them."""
    x, y = np.random.default_rng(seed).uniform(0.5, 3.0, (2, rows))
    return Dataset(np.array([x, y]), np.asarray(target(x, y) + 0 * x), weights, ("x", "y"))


def individuals(*texts):
    return Population.from_sources(texts, ("x", "y"))


def fit(population, dataset, loss="mse", steps=50, scaled=False, tolerance=1e-13, goals=None, **options):
    lines = FirstLines(np.ones(len(population)), np.zeros(len(population)), scaled, goals)
    return MachineLinearizer(dataset, loss).fit(population, steps, tolerance=tolerance, lines=lines, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "scaled"), [("mse", False), ("mae", True)])
@pytest.mark.parametrize("rows", [300, 9000])  # the values of longer formulas are not kept for so many rows
def test_steps_in_calls_of_their_own_give_the_same_bits(loss, scaled, rows, monkeypatch):
    dataset = dataset_of(lambda x, y: 2.5 * np.exp(-0.3 * x) + np.sin(y), rows)
    population, rng = random_population(300, 7), np.random.default_rng(2)
    options = {"fixed": rng.random((300, 12)) < 0.2, "goals": rng.random(300)}
    whole = fit(population, dataset, loss, 5, scaled, 1e-2, **options)
    monkeypatch.setattr(gradients, "QUOTA", 0)
    stepped = fit(population, dataset, loss, 5, scaled, 1e-2, **options)
    assert_same(stepped.population, whole.population)
    for name in ("slopes", "intercepts", "errors"):
        assert getattr(stepped, name).tobytes() == getattr(whole, name).tobytes()


def error_of(found, index, dataset, loss="mse"):
    """Weighted sum of errors by the reference tier."""
    prediction = evaluate(found.population.tree(index), list(dataset.columns))
    left = dataset.target - found.intercepts[index] - found.slopes[index] * prediction
    return float(dataset.row_weights @ (left**2 if loss == "mse" else np.abs(left)))


def constants_of(population, index=0):
    tape = population.tape(index)
    return tape.values[tape.codes == CONSTANT].tolist()


def random_population(n, seed, primitives=MIXED, width=24):
    return ptc2(n, primitives, width, 8, Terminals(share=0.5), np.random.default_rng(seed))


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from(["mse", "mae"]), st.booleans(), st.booleans(), st.sampled_from([1, 2, 9, 40])
)
def test_no_individual_becomes_worse(seed, loss, scaled, weighted, rows):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.0, 2.0, rows) + 1e-3 if weighted else None
    scale = 10.0 ** rng.uniform(-5, 5)
    dataset = dataset_of(lambda x, y: scale * (np.sin(x) + rng.normal(size=len(x))), rows, weights, seed)
    population = random_population(40, seed)
    before = fit(population, dataset, loss, steps=0, scaled=scaled)
    after = fit(population, dataset, loss, steps=8, scaled=scaled, tolerance=1e-2)
    assert (after.errors <= before.errors).all()
    measured = MachineLinearizer(dataset, loss).normal_equations(
        after.population, after.slopes, after.intercepts, np.full(40, np.inf)
    )
    assert np.array_equal(measured.errors, after.errors)


def test_a_fit_ends_when_its_goal_is_out_of_reach():
    dataset = dataset_of(lambda x, y: 2.0 * np.exp(-x) + y)
    given = individuals("1.0*exp(0.1*x)", "0.3*y + 0.1", "x*y*0.7")
    whole = fit(given, dataset, scaled=True)
    first = fit(given, dataset, steps=0).errors
    reached = whole.errors / first
    assert_same(fit(given, dataset, scaled=True, goals=1.01 * reached).population, whole.population)
    assert_same(fit(given, dataset, scaled=True, goals=np.array([np.nan, np.inf, 1.0])).population, whole.population)
    assert (fit(given, dataset, scaled=True, goals=np.zeros(3)).errors > whole.errors).any()


def test_errors_are_those_of_the_fitted_formulas():
    dataset = dataset_of(lambda x, y: 2.0 * np.exp(-x) + y)
    found = fit(individuals("1.0*exp(0.1*x)", "0.3*y + 0.1", "x*y"), dataset, scaled=True)
    assert found.errors.tolist() == pytest.approx([error_of(found, i, dataset) for i in range(3)])


def test_only_constants_change():
    population = random_population(100, 1)
    found = fit(population, dataset_of(lambda x, y: x + y), steps=8).population
    rows, columns, _ = places(population)
    constant = np.zeros(population.codes.shape, np.bool_)
    constant[rows, columns] = True
    assert np.array_equal(found.codes, population.codes)
    assert np.array_equal(found.sizes, population.sizes)
    assert not found.values[~constant].any()


@pytest.mark.parametrize(("loss", "scaled"), [("mse", False), ("mae", True)])
def test_an_individual_is_fitted_alike_in_any_company(loss, scaled):
    # Which individuals are fitted together depends on the speed of the machine; the result must not.
    population, dataset = random_population(150, 2), dataset_of(lambda x, y: 2.5 * np.exp(-0.3 * x) + np.sin(y))
    together = fit(population, dataset, loss, 8, scaled)
    for i in range(150):
        alone = fit(population.take([i]), dataset, loss, 8, scaled)
        assert_same(alone.population, together.population.take([i]))
        assert (alone.slopes[0], alone.intercepts[0]) == (together.slopes[i], together.intercepts[i])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("text", "basis"),
    [
        ("0.1*x + 7.0*y - 3.0", lambda x, y: (x, y, 1 + 0 * x)),
        ("5.0*sin(x) + x*y*0.5", lambda x, y: (np.sin(x), x * y)),
        ("1.0*x*x + 1.0*x + 1.0 + 1.0*x*x*x", lambda x, y: (1 + 0 * x, x, x**2, x**3)),
        ("1.5", lambda x, y: (1 + 0 * x,)),
    ],
)
def test_a_linear_problem_is_solved_as_least_squares_solves_it(text, basis, weighted):
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.1, 5.0, 80) if weighted else None
    dataset = dataset_of(lambda x, y: x**2 - 3 * y + rng.normal(size=len(x)), weights=weights)
    root = np.sqrt(dataset.row_weights)
    matrix = np.column_stack(basis(*dataset.columns)) * root[:, None]
    best = np.linalg.lstsq(matrix, root * dataset.target, rcond=None)[0]
    least = float(np.sum((root * dataset.target - matrix @ best) ** 2))
    found = fit(individuals(text), dataset)
    assert found.errors[0] == pytest.approx(least, rel=1e-11)
    assert sorted(np.abs(constants_of(found.population))) == pytest.approx(sorted(np.abs(best)), rel=1e-4)


PLANTED = [
    ("exp(-0.5*x)", lambda x, y: np.exp(-1.3 * x), [1.3]),
    ("(1.0*x + 1.0)/(1.0*y + x)", lambda x, y: (2 * x + 0.3) / (1.9 * y + x), [0.3, 1.9, 2.0]),
    ("1.0*exp(-1.0*(x - 1.0)*(x - 1.0)) + 0.0", lambda x, y: 4 * np.exp(-2.2 * (x - 1.4) ** 2) + 0.7, None),
    ("x**1.0", lambda x, y: x**2.6, [2.6]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "target", "planted"), PLANTED, ids=[text for text, *_ in PLANTED])
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_planted_constants_are_found(text, target, planted, loss):
    dataset = dataset_of(target)
    found = fit(individuals(text), dataset, loss, steps=100)
    assert found.errors[0] <= 1e-7 * float(np.abs(dataset.target).sum())
    if planted is not None:
        assert sorted(np.abs(constants_of(found.population))) == pytest.approx(planted, rel=1e-5)


def test_a_slope_and_an_intercept_are_fitted_with_the_constants():
    found = fit(individuals("exp(-0.5*x)"), dataset_of(lambda x, y: 40 * np.exp(-1.3 * x) - 7), scaled=True)
    assert [*constants_of(found.population), found.slopes[0], found.intercepts[0]] == pytest.approx([-1.3, 40, -7])


def test_fixed_constants_do_not_move():
    dataset = dataset_of(lambda x, y: 3.0 * x + 5.0 * y + 1.0)
    population = individuals("2.0*x + 7.0*y + 0.0", "2.0*x + 7.0*y + 0.0", "2.0*x + 7.0*y + 0.0")
    fixed = np.array([[True, False, False], [False, True, True], [True, True, True]])
    found = fit(population, dataset, fixed=fixed).population
    for row, held in enumerate(fixed):
        assert [now == before for now, before in zip(constants_of(found, row), [2.0, 7.0, 0.0], strict=True)] == [
            bool(each) for each in held
        ]
    # The others solve least squares for what the held ones leave.
    x, y = dataset.columns
    best = np.linalg.lstsq(np.column_stack([y, np.ones(80)]), dataset.target - 2.0 * x, rcond=None)[0]
    assert constants_of(found)[1:] == pytest.approx(best.tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("text", "left"),
    # The third improves with its second constant; the fourth can only change the factor of y.
    [("0.3*0.7*x", 1e-12), ("1.0*x + 2.0*x + 4.0*x", 1e-12), ("0.0*(0.5*x + y)", 0.01), ("x + (1.0 - 1.0)*y", 0.9)],
)
def test_constants_that_cannot_be_told_apart_are_fitted_too(text, left):
    found = fit(individuals(text), dataset_of(lambda x, y: 6.0 * x), tolerance=1e-13)
    start = fit(individuals(text), dataset_of(lambda x, y: 6.0 * x), steps=0)
    assert np.isfinite(constants_of(found.population)).all()
    assert np.abs(constants_of(found.population)).max() < 1e3
    assert found.errors[0] < left * start.errors[0]


def test_constants_without_influence_stay():
    found = fit(individuals("floor(0.3*x) + 0.5*y", "where(x, 0.1, 7.0)*y"), dataset_of(lambda x, y: 2 * y))
    assert constants_of(found.population, 0)[0] == 0.3
    assert constants_of(found.population, 1) == pytest.approx([2.0, 7.0])
    assert constants_of(found.population, 1)[1] == 7.0


def test_absolute_errors_are_fitted_by_the_median_and_not_by_the_mean():
    # The best constant of absolute errors is a weighted median; outliers do not move it.
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 81)
    dataset = dataset_of(lambda x, y: np.where(x > 2.4, 1e3, 1.0 + y), 81, weights)
    order = np.argsort(dataset.target)
    middle = np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)
    median = dataset.target[order][middle]
    found = fit(individuals("0.0*1.0 + 5.0", "5.0"), dataset, "mae", steps=200)
    least = float(weights @ np.abs(dataset.target - median))
    assert found.errors[1] == pytest.approx(least, rel=1e-3)
    assert abs(constants_of(found.population, 1)[0] - np.average(dataset.target, weights=weights)) > 10


def test_rows_of_weight_zero_do_not_count_in_a_fit():
    weights = np.ones(80)
    weights[::2] = 0.0
    dataset = dataset_of(lambda x, y: 3.5 * x, weights=weights)
    target = dataset.target.copy()
    target[::2] = 1e6
    found = fit(individuals("1.0*x"), replace(dataset, target=target))
    assert constants_of(found.population) == pytest.approx([3.5])


def test_individuals_without_finite_errors_are_left_alone():
    population = individuals("log(0.0 - 1.0*x)", "1.0/(0.0*x)", "2.0*x")
    found = fit(population, dataset_of(lambda x, y: x))
    assert_same(found.population.take([0, 1]), population.take([0, 1]))
    assert np.isinf(found.errors[:2]).all()
    assert found.errors[2] < 1e-20


def test_numbers_of_any_size_do_not_overflow_the_fit():
    texts = ("1e200*x", "1e-200*x", "exp(300.0*x)", "1e-300*x*1e-20", "x/1e-320", "(1e160*x)*(1e160*y)", "pow(x, 1e3)")
    population = individuals(*texts)
    for scaled in (False, True):
        before = fit(population, dataset_of(lambda x, y: x), steps=0, scaled=scaled)
        after = fit(population, dataset_of(lambda x, y: x), scaled=scaled)
        assert (after.errors <= before.errors).all()
