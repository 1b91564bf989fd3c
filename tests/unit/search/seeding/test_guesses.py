"""The stage end to end: it finds planted formulas of each kind, within the limits, from the given primitives."""

import logging
from functools import partial

import numpy as np
import pytest

from shine.compiler.tapes import depths
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table
from shine.search.problem.preparation import linearizer_of
from shine.search.seeding import Guesses, SeedingSettings, SeedingTask, find_guesses, search_table
from shine.search.seeding.effort import Deadline, Effort
from shine.search.seeding.screen.skeletons import Rows
from shine.search.seeding.search_table import SEARCHES, Search

STANDARD = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
FEW = ("add", "mul", "sin")
"""Functions for tests of noisy rows, on which every search runs to its end."""

QUICK = SeedingSettings(members=200, rows=60, coordinates=1)


class Problem:
    """Rows with a target, and their predictions by the reference interpreter."""

    def __init__(self, columns, target, functions=STANDARD, weights=None):
        self.columns, self.target, self.weights = np.array(columns), np.asarray(target, float), weights
        table, names = primitive_table(functions)
        self.primitives = PrimitiveSet(select(table, names), tuple(f"x{i}" for i in range(len(self.columns))))

    def predict(self, population: Population, columns=None):
        rows = self.columns if columns is None else columns
        tapes = [population.tape(i) for i in range(len(population))]
        return np.array([evaluate_tape(t.codes, t.values, self.primitives, list(rows)) for t in tapes])

    def guesses(self, generator=0, settings=None, **options) -> Guesses:
        settings = settings or SeedingSettings(members=3000, rows=120)
        rng = np.random.default_rng(generator)
        options.setdefault("linearizer_of", partial(linearizer_of, self.primitives.features, 1))
        effort = Effort(deadline=options.pop("deadline", Deadline()))
        task = SeedingTask(self.rows, self.primitives, self.predict, settings=settings, **options)
        return find_guesses(task, rng, effort)

    @property
    def rows(self) -> Rows:
        weights = np.ones(len(self.target)) if self.weights is None else self.weights
        return Rows(self.columns, self.target, weights)

    def unexplained(self, guesses: Guesses, columns, target, index=0):
        """Share of the variance of other rows that one candidate leaves unexplained."""
        prediction = self.predict(guesses.candidates.take([index]), columns)[0]
        return 1 - np.corrcoef(prediction, target)[0, 1] ** 2


def uniform(features, rows, low, high, generator=1):
    return np.random.default_rng(generator).uniform(low, high, (features, rows))


PLANTED = {
    "monomial": lambda x: 2 * x[0] ** 3 / (x[1] ** 2 * np.sqrt(x[2])),
    "monomial times a member": lambda x: x[0] ** 2 * np.sqrt(x[1]) * np.cos(x[2] / 2) / x[2],
    "inverse of a power": lambda x: 1 / (2.5 + 1.7 * x[0] * x[1]),
    "root": lambda x: np.sqrt(1.3 * x[0] ** 2 + x[1] * x[2] + 0.4),
    "exponential": lambda x: np.exp(0.31 * x[0] - 1.4 * x[1] / x[2]),
    "logarithm": lambda x: np.log(2 + x[0] ** 2 + x[1]),
    "sum of three": lambda x: x[0] * x[1] + 0.7 * np.sin(x[2]) + 3.1 * x[2] / x[0],
    "factor times a sum": lambda x: x[0] / x[1] * (x[2] ** 2 + 1.3 * np.cos(x[1]) + 0.2),
    "rational": lambda x: (x[0] * x[1] + 2 * x[2]) / (x[0] + 1.7 * x[1]),
    "difference of features": lambda x: np.exp(-((x[0] - x[1]) ** 2) / x[2] ** 2),
    "shifted product": lambda x: x[0] * (1 + 0.8 * x[1] * np.cos(x[2]) / x[0] ** 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_planted_formula_is_found_exactly(kind):
    formula = PLANTED[kind]
    x, fresh = uniform(3, 600, 1, 3), uniform(3, 500, 1, 3, generator=2)
    problem = Problem(x, formula(x))
    guesses = problem.guesses()
    assert guesses.exact and guesses.failures == ()
    assert problem.unexplained(guesses, fresh, formula(fresh)) < 1e-10


@pytest.mark.slow
def test_symmetries_make_many_features_few():
    def law(x):
        return x[0] * x[1] / ((x[2] - x[3]) ** 2 + (x[4] - x[5]) ** 2)

    x, fresh = uniform(6, 800, 1, 4), uniform(6, 500, 1, 4, generator=2)
    x[3], fresh[3] = x[3] + 5, fresh[3] + 5
    problem = Problem(x, law(x))
    assert problem.unexplained(problem.guesses(), fresh, law(fresh)) < 1e-10


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_structure_is_found_despite_noise():
    x, fresh = uniform(3, 800, 1, 3), uniform(3, 500, 1, 3, generator=2)
    for kind in ("root", "difference of features"):
        clean = PLANTED[kind](x)
        noise = 0.02 * np.std(clean) * np.random.default_rng(3).standard_normal(len(clean))
        problem = Problem(x, clean + noise)
        guesses = problem.guesses(settings=SeedingSettings(members=400, rows=100))
        assert not guesses.exact
        assert problem.unexplained(guesses, fresh, PLANTED[kind](fresh)) < 1e-4


@pytest.mark.slow
def test_noise_alone_is_not_explained():
    x = uniform(2, 600, -1, 1)
    guesses = Problem(x, np.random.default_rng(5).standard_normal(600), FEW).guesses(settings=QUICK)
    assert not guesses.exact
    assert (guesses.unexplained > 0.9).all()


def test_a_law_of_features_with_zeros_and_negative_values_is_found():
    def formula(x):
        return x[0] * (x[1] + x[2] ** 2) + 2 * np.cos(x[1])

    x, fresh = uniform(3, 600, -2, 2), uniform(3, 500, -2, 2, generator=2)
    x[0, ::7] = 0
    x[1, ::5] = 0
    problem = Problem(x, formula(x))
    assert problem.unexplained(problem.guesses(), fresh, formula(fresh)) < 1e-10


@pytest.mark.slow
def test_a_law_of_three_of_fifty_features_is_found():
    def formula(x):
        return x[17] * x[31] + 2 * np.sin(x[44])

    x, fresh = uniform(50, 600, -2, 2), uniform(50, 500, -2, 2, generator=2)
    problem = Problem(x, formula(x))
    assert problem.unexplained(problem.guesses(), fresh, formula(fresh)) < 1e-10


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_few_rows_give_valid_candidates(rows):
    x = uniform(2, rows, 1, 3)
    problem = Problem(x, x[0] / x[1], ("mul", "div"))
    guesses = problem.guesses(settings=SeedingSettings(members=500))
    assert len(guesses.candidates) > 0
    assert guesses.candidates.is_valid
    if rows == 20:
        fresh = uniform(2, 100, 1, 3, generator=2)
        assert problem.unexplained(guesses, fresh, fresh[0] / fresh[1]) < 1e-10


def test_a_constant_target_gets_its_constant():
    x = uniform(2, 100, 1, 3)
    guesses = Problem(x, np.full(100, 4.5)).guesses()
    assert guesses.candidates.codes[:, 0].tolist() == [0]
    assert guesses.candidates.values[0, 0] == pytest.approx(4.5)
    assert guesses.unexplained.tolist() == [0.0]


def test_constant_features_give_the_mean():
    target = np.random.default_rng(0).standard_normal(100)
    guesses = Problem(np.ones((2, 100)), target).guesses()
    assert guesses.candidates.values[0, 0] == pytest.approx(target.mean())
    assert guesses.unexplained.tolist() == [1.0]


def test_rows_without_weight_do_not_count():
    x, fresh = uniform(2, 600, 1, 3), uniform(2, 500, 1, 3, generator=2)
    target, weights = x[0] * np.exp(x[1]), np.random.default_rng(4).uniform(0.1, 2, 600)
    target[::3], weights[::3] = 1e6, 0
    problem = Problem(x, target, weights=weights)
    guesses = problem.guesses()
    assert guesses.exact
    assert problem.unexplained(guesses, fresh, fresh[0] * np.exp(fresh[1])) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(
    "functions",
    [("sub", "div"), ("exp",), ("add", "inv", "pow"), ()],
    ids=lambda names: " ".join(names) or "none",
)
def test_formulas_contain_only_primitives_of_the_set(functions):
    x = uniform(3, 200, 0.5, 3)
    problem = Problem(x, x[0] * x[1] / x[2] + np.sqrt(x[0]), functions)
    guesses = problem.guesses(settings=SeedingSettings(members=400, rows=100, coordinates=2))
    for population in (guesses.candidates, guesses.parts):
        assert population.primitives is problem.primitives
        assert population.is_valid
    assert np.isfinite(problem.predict(guesses.candidates)).all()


@pytest.mark.slow
def test_candidates_may_use_composite_primitives_of_the_user():
    def bump(t: float) -> float:
        return 1 / (1 + t * t)

    x, fresh = uniform(2, 400, -3, 3), uniform(2, 400, -3, 3, generator=2)
    problem = Problem(x, 2 - 3 / (1 + (x[0] - x[1]) ** 2), ("add", "sub", "mul", bump))
    guesses = problem.guesses()
    assert problem.unexplained(guesses, fresh, 1 / (1 + (fresh[0] - fresh[1]) ** 2)) < 1e-10
    assert guesses.candidates.sizes[0] <= 5


@pytest.mark.slow
@pytest.mark.parametrize(("max_size", "max_depth"), [(1, 1), (12, 4)])
def test_candidates_keep_the_limits(max_size, max_depth):
    x = uniform(3, 300, 1, 3)
    guesses = Problem(x, PLANTED["sum of three"](x), FEW).guesses(
        settings=QUICK, max_size=max_size, max_depth=max_depth
    )
    assert (guesses.candidates.sizes <= max_size).all()
    assert (depths(guesses.candidates) <= max_depth).all()
    assert guesses.candidates.width == guesses.parts.width == max_size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["root", "exponential"])
def test_without_linear_scaling_candidates_are_complete(kind):
    x, fresh = uniform(3, 600, 1, 3), uniform(3, 200, 1, 3, generator=2)
    problem = Problem(x, PLANTED[kind](x))
    guesses = problem.guesses(linear_scaling=False)
    prediction = problem.predict(guesses.candidates.take([0]), fresh)[0]
    target = PLANTED[kind](fresh)
    assert np.mean((prediction - target) ** 2) < 1e-10 * np.var(target)


@pytest.mark.slow
def test_candidates_are_ordered_and_diverse():
    x = uniform(3, 600, 1, 3)
    target = PLANTED["factor times a sum"](x) + np.random.default_rng(0).normal(0, 0.2, 600)
    guesses = Problem(x, target).guesses(settings=SeedingSettings(members=400, rows=100, price=0.02))
    criterion = np.log(guesses.unexplained + 1e-15) + 0.02 * guesses.candidates.sizes
    assert (np.diff(criterion) >= -1e-12).all()
    assert len(np.unique(guesses.candidates.sizes)) > 10
    assert len(set(guesses.kinds)) > 4
    assert len(guesses.kinds) == len(guesses.unexplained) == len(guesses.candidates)


@pytest.fixture(scope="module")
def noisy():
    """A problem with noise, and its guesses."""
    x = uniform(2, 600, 1, 3)
    problem = Problem(x, np.sin(x[0] * x[1]) + 0.1 * np.random.default_rng(0).standard_normal(600), FEW)
    return problem, problem.guesses(settings=QUICK)


@pytest.mark.slow
def test_equal_generators_give_equal_guesses(noisy):
    problem, one = noisy
    other = problem.guesses(settings=QUICK)
    assert np.array_equal(one.candidates.codes, other.candidates.codes)
    assert np.array_equal(one.candidates.values, other.candidates.values)
    assert np.array_equal(one.parts.codes, other.parts.codes)
    assert one.kinds == other.kinds


def test_the_deadline_ends_the_search():
    x = uniform(5, 300, 1, 3)
    problem = Problem(x, np.random.default_rng(0).standard_normal(300))
    looks = []

    def clock():
        looks.append(len(looks))
        return float(len(looks))

    guesses = problem.guesses(deadline=Deadline(clock, 6.0))
    assert len(looks) < 20
    assert guesses.candidates.is_valid
    assert len(guesses.candidates) > 0


def test_a_deadline_in_the_past_still_gives_a_candidate():
    x = uniform(2, 100, 1, 3)
    guesses = Problem(x, x[0] * x[1]).guesses(deadline=Deadline(lambda: 1.0, 0.0))
    assert len(guesses.candidates) == 1


def replace_affine(monkeypatch, function):
    """Replace the search for affine members by another."""
    rows = [Search(partial(function)) if search.name == "affine" else search for search in SEARCHES]
    monkeypatch.setattr(search_table, "SEARCHES", tuple(rows))


@pytest.mark.slow
def test_a_search_that_fails_is_skipped_and_counted_and_the_log_says_why(monkeypatch, caplog):
    error = np.linalg.LinAlgError()

    def failing(screen):
        raise error
        yield

    replace_affine(monkeypatch, failing)
    x = uniform(3, 600, 1, 3)
    with caplog.at_level(logging.DEBUG, logger="shine.search.seeding"):
        guesses = Problem(x, PLANTED["monomial"](x)).guesses()
    assert guesses.exact
    assert set(guesses.failures) == {"failing"}
    assert [record.exc_info[1] for record in caplog.records] == [error] * len(guesses.failures)


def test_an_interrupt_is_not_a_failure(monkeypatch):
    def interrupted(screen):
        raise KeyboardInterrupt
        yield

    replace_affine(monkeypatch, interrupted)
    x = uniform(3, 600, 1, 3)
    guesses = Problem(x, PLANTED["monomial"](x)).guesses()
    assert guesses.interrupted and not guesses.failures


FEW_ROWS = {
    "decay with an offset": (lambda x: 21 + 68 * np.exp(-0.043 * x), np.linspace(0, 60, 13)),
    "growth to a limit": (lambda x: 640 / (1 + np.exp(-0.55 * (x - 8.6))), np.linspace(0, 18, 19)),
    "power with an offset": (lambda x: 12 + 0.8 * x**1.6, np.linspace(0.5, 20, 20)),
    "oscillation": (lambda x: 14.2 + 9.3 * np.sin(0.517 * x + 2.2), np.linspace(1, 12, 12)),
    "bell with an offset": (lambda x: 20 + 150 * np.exp(-(((x - 42.3) / 5.2) ** 2)), np.linspace(25, 60, 36)),
}
"""Laws with a constant inside a function, the few rows they are known by."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "unit"), [*((kind, 1.0) for kind in FEW_ROWS), ("decay with an offset", 1e-30)])
def test_a_law_with_constants_inside_is_near_the_top_despite_few_noisy_rows(kind, unit):
    law, x = FEW_ROWS[kind]
    clean = law(x)
    noisy = clean + 0.01 * np.std(clean) * np.random.default_rng(4).standard_normal(len(x))
    problem = Problem([x * unit], noisy, ("add", "sub", "mul", "div", "exp", "sin", "square", "pow"))
    guesses = problem.guesses(settings=SeedingSettings(members=200))
    fresh = np.linspace(x[0], x[-1], 200)
    assert guesses.failures == ()
    assert min(problem.unexplained(guesses, [fresh * unit], law(fresh), index=i) for i in range(15)) < 2e-4


@pytest.mark.slow
def test_a_target_over_many_decades_is_exact_in_every_row_only_with_its_law():
    x = np.array([np.linspace(0.05, 1.5, 60), np.random.default_rng(2).uniform(1, 3, 60)])
    problem = Problem(x, x[1] * (np.exp(38.7 * x[0]) - 1), ("sub", "mul", "exp", "sin"))
    guesses = problem.guesses(settings=SeedingSettings(members=300))
    assert guesses.exact
    prediction = problem.predict(guesses.candidates.take([0]))[0]
    ratio = prediction / problem.target
    assert np.ptp(ratio) < 1e-8 * np.abs(ratio).max()
