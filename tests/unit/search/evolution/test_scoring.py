from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NodeCounter, assert_same, population_of, primitive_set, scores_without_lines

from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.losses.form import loss_of
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.archive import Archive
from shine.search.evolution.memory import Memory
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.scoring import OutOfTime, Scorer, Scoring, fitter
from shine.search.seeding.effort import Deadline

PRIMITIVES = primitive_set()
NEG = PRIMITIVES.function_codes["neg"]


class Clock:
    """A clock that an evaluator moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class SlowCounter(NodeCounter):
    def __init__(self, clock, seconds_each):
        super().__init__(NEG, 3)
        self.clock, self.seconds_each = clock, seconds_each

    def score(self, population):
        self.clock.now += self.seconds_each * len(population)
        return super().score(population)


def scorer_of(evaluator, clock=lambda: 0.0, deadline=np.inf, width=20, fitter=None, first=None):
    scoring = Scoring(evaluator, fitter, first=first)
    return Scorer(scoring, Archive.empty(PRIMITIVES, width), Deadline(clock, deadline))


def random_population(n=1000):
    return ptc2(n, PRIMITIVES, 20, 10, Terminals(), np.random.default_rng(0))


def test_an_individual_is_evaluated_once_over_all_populations():
    evaluator = NodeCounter(NEG, 3)
    scorer = scorer_of(evaluator)
    _, first = scorer.scored(random_population())
    _, again = scorer.scored(random_population())
    assert np.array_equal(first, again)
    assert scorer.evaluations == sum(map(len, evaluator.seen))
    assert scorer.evaluations == len({p.codes[i].tobytes() + p.values[i].tobytes() + bytes([p.sizes[i]])
                                      for p in evaluator.seen for i in range(len(p))})  # fmt: skip


def test_the_deadline_ends_a_population_between_slices():
    clock = Clock()
    scorer = scorer_of(SlowCounter(clock, 0.01), clock, deadline=3.0)
    with pytest.raises(OutOfTime):
        scorer.scored(random_population())
    assert 3.0 <= clock.now < 3.3
    assert scorer.archive.best_loss < np.inf


class SumOfConstants:
    """An evaluator whose loss is the distance from the sum of the constants to a goal."""

    def __init__(self, clock=None, seconds_each=0.0):
        self.clock, self.seconds_each, self.count = clock, seconds_each, 0

    def score(self, population, threshold=np.inf):
        self.count += len(population)
        if self.clock is not None:
            self.clock.now += self.seconds_each * len(population)
        return scores_without_lines(np.abs(population.values.sum(axis=1) - 100.0).tolist()).within(threshold)


def rounded_up(population, scores, limits):
    """A fitter that rounds constants up and adds 1: many individuals become the same."""
    return changed(population, np.where(population.constants, np.ceil(population.values) + 1.0, population.values))


def rounded_down(population, scores, limits):
    return changed(population, np.floor(population.values) - 5.0 * (population.values != 0))


def unchanged(population, scores, limits):
    return changed(population, population.values)


def changed(population, values):
    """The individuals that have other values, and which they are."""
    which = np.flatnonzero((values != population.values).any(axis=1))
    return replace(population, values=values).take(which), which


def test_new_individuals_come_back_with_fitted_constants():
    population = population_of(["1.5 x mul", "x", "1.5 x mul", "2 3 add"], PRIMITIVES, 20)
    same, losses = scorer_of(SumOfConstants(), fitter=rounded_up).scored(population)
    assert_same(same, population_of(["3 x mul", "x", "3 x mul", "3 4 add"], PRIMITIVES, 20))
    assert losses.tolist() == [97.0, 100.0, 97.0, 93.0]


def test_constants_do_not_change_if_the_fit_is_worse():
    population = population_of(["1.5 x mul", "2 3 add"], PRIMITIVES, 20)
    same, losses = scorer_of(SumOfConstants(), fitter=rounded_down).scored(population)
    assert_same(same, population)
    assert losses.tolist() == [98.5, 95.0]


@pytest.mark.slow
@pytest.mark.parametrize("first", [None, SumOfConstants()])
def test_slices_change_neither_the_archive_nor_the_memory(monkeypatch, first):
    # The memory is so small that it forgets all the time: the order of its entries matters.
    monkeypatch.setattr("shine.search.evolution.scoring.Memory", lambda capacity, known: Memory(700, known))
    clock = Clock()
    slow = scorer_of(SumOfConstants(clock, 0.01), clock, fitter=rounded_up, first=first)
    fast = scorer_of(SumOfConstants(), fitter=rounded_up, first=first)
    terminals = Terminals((0.0, 3.0), 0.7)
    for seed in range(40):
        population = ptc2(400, PRIMITIVES, 20, 10, terminals, np.random.default_rng(seed % 7 + seed // 20))
        limits = np.linspace(80.0, 100.0, 400)
        one, other = slow.scored(population, limits), fast.scored(population, limits)
        assert_same(one[0], other[0])
        assert np.array_equal(one[1], other[1])
        assert slow.evaluations == fast.evaluations
    assert_same(slow.archive.individuals, fast.archive.individuals)


def test_slices_do_not_decide_which_of_equals_stays_in_the_archive(monkeypatch):
    class Ties(NodeCounter):
        def score(self, population):
            fitted = (population.codes[:, 0] != 0) | (population.values[:, 0] == 3.0)
            return scores_without_lines(np.where(fitted, 0.0, 1.0))

    # Among them are formulas whose fit becomes as good as a formula in a later slice is before its fit.
    population = population_of([*(f"{i / 64} x mul" for i in range(64, 80)), "x x mul", "x x add"], PRIMITIVES, 20)
    found = []
    for size in (1, len(population)):
        monkeypatch.setattr("shine.search.evolution.scoring.FIRST_SLICE", size)
        scorer = scorer_of(Ties(NEG, 3), iter(range(10_000)).__next__, fitter=rounded_up)
        scorer.scored(population)
        found.append(scorer.archive)
    assert_same(found[0].individuals, found[1].individuals)


MIXED = PrimitiveSet(
    select(STANDARD, ("add", "sub", "mul", "div", "pow", "exp", "log", "sqrt", "sin", "abs", "max", "floor", "where")),
    ("x", "y"),
)


def dataset_of(target):
    """Rows of x and y between 1/2 and 3, with a target that is a function of them."""
    x, y = np.random.default_rng(0).uniform(0.5, 3.0, (2, 80))
    return Dataset(np.array([x, y]), np.asarray(target(x, y)), None, ("x", "y"))


def test_only_individuals_above_their_limits_that_the_archive_would_not_take_are_given_up():
    data = dataset_of(lambda x, y: x * y + np.sin(x))
    scorers = [
        Scorer(
            Scoring(evaluator_of(data, "mse", True, "float64", "machine"), unchanged, first=first),
            Archive.empty(MIXED, 15),
            Deadline(lambda: 0.0, np.inf),
        )
        for first in (None, evaluator_of(data.take(np.arange(20)), "mse", True, "float64", "machine"))
    ]
    for seed in range(3):
        population, limits = ptc2(300, MIXED, 15, 8, Terminals(), np.random.default_rng(seed)), np.linspace(0.5, 3, 300)
        exact, found = (scorer.scored(population, limits)[1] for scorer in scorers)
        assert (np.isin(found, exact) | np.isinf(found)).all()
        assert (found == exact)[exact <= limits].all()
    assert np.count_nonzero(found != exact) > 50
    assert_same(scorers[0].archive.individuals, scorers[1].archive.individuals)


def test_a_fitter_changes_individuals_with_constants_and_finite_losses_only():
    population = Population.from_sources(("0.5*x", "x*y", "log(0.0 - 1.0*x)", "0.5*x + 1.0"), ("x", "y"))
    dataset = dataset_of(lambda x, y: 3.0 * x)
    scores = Scores(np.array([1.0, 1.0, np.inf, np.inf]), np.ones(4), np.zeros(4))
    found, which = fitter(MachineLinearizer(dataset, "mse"), 20, scaled=False)(population, scores, np.full(4, np.inf))
    assert which.tolist() == [0]
    assert (found.values != population.values[which]).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "linear_scaling", "share"),
    # The lines of linear scaling have the least squared error; absolute errors may even grow with them.
    [("mse", False, 0.4), ("mse", True, 0.05), ("mae", False, 0.4)],
)
def test_fitted_individuals_have_lower_losses(loss, linear_scaling, share):
    dataset = dataset_of(lambda x, y: 2.5 * np.exp(-0.3 * x) + np.sin(y) / 3)
    population = ptc2(200, MIXED, 24, 8, Terminals(share=0.5), np.random.default_rng(3))
    evaluator = evaluator_of(dataset, loss, linear_scaling, "float64", "machine", 1)
    before = evaluator.score(population)
    fit = fitter(MachineLinearizer(dataset, loss), 8, scaled=linear_scaling)
    found, which = fit(population, before, np.full(200, np.inf))
    after, before = evaluator.score(found).losses, before.losses
    assert (after <= before[which] * (1 + 1e-9)).all()
    assert np.sum(after < 0.9 * before[which]) > share * np.isfinite(before).sum()


class Lying:
    """An evaluator that reports a hundredth of the loss of every formula of more than one node."""

    def __init__(self, evaluator):
        self.evaluator = evaluator

    def score(self, population):
        scores = self.evaluator.score(population)
        return replace(scores, losses=np.where(population.sizes > 1, 0.01 * scores.losses, scores.losses), simpler=None)

    def predict(self, population):
        return self.evaluator.predict(population)


def test_a_formula_whose_loss_is_refuted_is_worthless_and_displaces_nothing():
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.normal(size=(50, 2)), rng.normal(size=50))
    loss = loss_of("mse")
    honest = evaluator_of(data, loss, True, "float64", "machine")
    scoring = Scoring(Lying(honest), confirmation=Confirmation(data, loss))
    scorer = Scorer(scoring, Archive.empty(PRIMITIVES, 20), Deadline(lambda: 0.0))
    population = population_of(["x", "x neg", "y", "x y add"], PRIMITIVES, 20)
    _, losses = scorer.scored(population)
    assert np.isfinite(losses).tolist() == [True, False, True, False]
    assert scorer.refuted == 2
    assert (scorer.archive.individuals.sizes[np.isfinite(scorer.archive.scores.losses)] == 1).all()
    _, again = scorer.scored(population)
    assert np.array_equal(losses, again)
