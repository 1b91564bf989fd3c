import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.lang.population import Population
from shine.search.evolution.scoring import without_common_factors

ROWS = np.random.default_rng(0).uniform(0.5, 2, (40, 3))


def largest_exponent(population: Population) -> int:
    constants = np.abs(population.values[population.constants & (population.values != 0)])
    return int(np.abs(np.log2(constants)).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "1e160*(x0 + x1)",
        "x0/-5.1e160*(x0*x1 + x2/(1.93 + 10.9*x0))",
        "3e160*x0*(x1/1e-90)",
        "1e100*x0 + 3e100*x1",
        "1e-100*x0 - x1/3e100",
        "-(1e200/(x0 + 2))",
        "1e90*x0*1e-90*x1",
        "(1e90*x0 + 1e90*x1)/(1e70*x2 - 1e70)",
    ],
)
def test_a_factor_of_the_whole_formula_becomes_ordinary_and_the_loss_keeps_its_bits(source):
    population = Population.from_sources([source], ("x0", "x1", "x2"))
    found = without_common_factors(population)
    assert largest_exponent(found) <= 64
    data = Dataset.from_arrays(ROWS, ROWS[:, 0] * ROWS[:, 2])
    before, after = (evaluator_of(data, "mse", True, "float64", "machine").score(each) for each in (population, found))
    assert after.losses == before.losses


@pytest.mark.parametrize(
    "source",
    ["2.5*x0", "6.6e-19*x0/x1", "x0 + 1e100", "sin(1e100*x0)", "0.0*x0 + 0.0", "x0 + 1e-300*x1"],
)
def test_other_formulas_stay_as_they_are(source):
    population = Population.from_sources([source], ("x0", "x1", "x2"))
    assert without_common_factors(population).values.tobytes() == population.values.tobytes()


def test_only_the_individuals_with_extreme_constants_change():
    population = Population.from_sources(["2*x0", "1e99*x0", "3*x1 + 1"], ("x0", "x1", "x2"))
    changed = (without_common_factors(population).values != population.values).any(axis=1)
    assert changed.tolist() == [False, True, False]


def test_a_guess_of_a_tiny_scale_changes_no_search():
    X = np.random.default_rng(1).uniform(0.5, 2, (60, 2))
    y = X[:, 0] / (1 + X[:, 1]) + 0.01 * np.random.default_rng(2).normal(size=60)
    guess = "x1/-5.1e160*(x1*x0 + x0/(1.93 + 10.9*x1))"
    options = {"seed": 0, "population": 100, "generations": 5, "seeding": 0}
    with_guess, without = (shine.evolve(X, y, guesses=given, **options) for given in ([guess], []))
    assert with_guess.best.r2 > without.best.r2 - 0.01
    assert not any("e1" in model.expression or "e-1" in model.expression for model in with_guess.front)
