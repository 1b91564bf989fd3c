import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.domain.levels import Levels
from shine.evaluate.losses.form import loss_of
from shine.evaluate.tiers.evaluator import evaluator_of

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.integers(1, 6, 200), RNG.choice([20.0, 35.0, 60.0], 200), RNG.uniform(0, 5, 200)])
ROWS = Dataset.from_arrays(X, RNG.normal(size=200))
SMOOTH = [
    "x0", "(x0 - 2.4)**2", "x2/x0", "x0**-4.0", "exp(x0**2)", "abs(x0 - 2.4)", "tanh(20*(x0 - 2.5))", "sin(2.3*x0)*x2",
    "sqrt(x1)*x0", "sin(40*x2)", "sin(9*x0*x2)", "cos(6*x0 + 3*x2)", "x2 + 1e-3*sin(10*x0)", "log(x1)/(x1 - 15)",
    "7.0", "cos(0.1*x1)",
]  # fmt: skip
ABSURD = [
    "sin(10.06*x0)", "x2 + 3*cos(4*x0)", "x2*exp(sin(51*x0))", "1/(x0 - 2.5)", "exp(-40*(x0 - 3.5)**2) + x2/(x0 + 20)",
    "sin(x1)*x0", "sin(0.5*x1 + 0.2)", "1/(x1 - 30) + x2", "tan(x0 + 0.9)", "log(abs(x0 - 2.5))",
    "abs(sin(3.14159*x0))",
]  # fmt: skip


def judged(sources: list[str], rows: Dataset = ROWS, enough: float = 0.0) -> list[bool]:
    population = shine.Population.from_sources(sources, rows.features)
    evaluator = evaluator_of(rows, "mse", True, "float64", "machine")
    confirmation = Confirmation(rows, loss_of("mse"), Levels.of(rows), enough=enough)
    return confirmation.confirmed(evaluator, population, evaluator.score(population)).tolist()


@pytest.mark.slow
def test_what_rows_show_is_kept_and_what_no_row_tests_is_not():
    assert [each for each, kept in zip(SMOOTH, judged(SMOOTH), strict=True) if not kept] == []
    assert [each for each, kept in zip(ABSURD, judged(ABSURD), strict=True) if kept] == []


def test_sines_of_more_values_a_period_are_kept_and_faster_ones_are_not():
    phases = np.linspace(0, 6, 13)
    assert all(judged([f"sin({each}*x0 + {phase})" for each in np.linspace(0.1, 2.4, 20) for phase in phases]))
    fast = [each for each in np.linspace(4.2, 60, 57) if abs(np.sin(each / 2)) > 0.05]
    kept = judged([f"sin({each}*x0 + {phase})" for each in fast for phase in phases])
    assert np.mean(kept) < 0.02


def test_an_exact_formula_proves_itself():
    rows = Dataset.from_arrays(X, np.sin(10.06 * X[:, 0]) + X[:, 2])
    law = "sin(10.06*x0) + x2"
    assert judged([law], rows, 1e-20) == [True]


@pytest.mark.parametrize(
    "column", [np.arange(200.0), RNG.choice([0.0, 1.0], 200), np.ones(200), RNG.integers(0, 30, 200)], ids=str
)
def test_columns_of_many_values_of_two_and_of_one_have_nothing_between(column):
    assert Levels.of(Dataset.from_arrays(column[:, None], ROWS.target)) == ()


@pytest.mark.slow
def test_a_search_answers_with_a_formula_that_holds_between_the_values():
    levels, rng = np.array([5.0, 1, 6, 2, 8]), np.random.default_rng(5)
    y = levels[X[:, 0].astype(int) - 1] + 2 * X[:, 2] + rng.normal(0, 0.3, 200)
    settings = {"generations": 30, "population": 300, "seeding": 0, "seconds": None}
    result = shine.evolve(X[:, [0, 2]] * [10, 1], y, seed=1, **settings)
    course = result.best.predict(np.column_stack([np.linspace(10, 50, 81), np.full(81, 2.0)]))
    assert result.best.r2 > 0.9
    assert np.count_nonzero(np.diff(np.sign(np.diff(course)))) <= 5


@pytest.mark.slow
def test_unknown_functions_hold_between_the_values_but_groups_have_nothing_between():
    rng = np.random.default_rng(0)
    levels, factors = np.array([1.0, 4, 1.5, 5, 2]), np.array([1.0, 2, 0.5, 1.5])
    t, group = rng.integers(1, 6, 160), rng.integers(0, 4, 160)
    y = factors[group] * levels[t - 1] + rng.normal(0, 0.1, 160)
    settings = {"generations": 15, "population": 200, "seeding": 0, "seconds": None}
    result = shine.evolve(np.column_stack([10.0 * t, group]), y, template="k[x1]*f(x0)", seed=1, **settings)
    course = result.best.predict(np.column_stack([np.linspace(10, 50, 81), np.zeros(81)]))
    assert result.best.r2 > 0.5
    assert np.count_nonzero(np.diff(np.sign(np.diff(course)))) <= 4
