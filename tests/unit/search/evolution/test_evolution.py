from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import (
    NO_VARIATION,
    NodeCounter,
    assert_same,
    assert_valid,
    evolve,
    population_of,
    primitive_set,
    tree_of,
)

from shine.data.datasets.dataset import Dataset
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.population import Population
from shine.search.evolution.scoring import fitter
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.seeding import Guesses

PRIMITIVES = primitive_set()
NEG = PRIMITIVES.function_codes["neg"]
SETTINGS = EvolutionSettings(population=100, max_size=20, max_depth=8)
UNREACHABLE = 50
STOP = StopSettings(generations=5, seconds=None, loss=0.0)


class Infinite:
    def score(self, population):
        n = len(population)
        return Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))


class InterruptedAfter(NodeCounter):
    def __init__(self, calls):
        super().__init__(NEG, UNREACHABLE)
        self.calls = calls

    def score(self, population):
        if len(self.seen) >= self.calls:
            raise KeyboardInterrupt
        return super().score(population)


def run(evaluator=None, settings=SETTINGS, stop=STOP, seed=0, **options):
    evaluator = evaluator or NodeCounter(NEG, UNREACHABLE)
    return evolve(evaluator, PRIMITIVES, settings, stop, np.random.default_rng(seed), **options)


def test_the_front_ascends_in_size_and_descends_in_loss():
    outcome = run()
    assert len(outcome.front) > 2
    assert (np.diff(outcome.front.sizes) > 0).all()
    assert (np.diff(outcome.scores.losses) < 0).all()


def test_all_evaluated_individuals_keep_the_limits():
    evaluator = NodeCounter(NEG, UNREACHABLE)
    run(evaluator)
    assert_valid(Population.concatenate(evaluator.seen), 20, 8)


def test_no_individual_is_evaluated_twice():
    evaluator = NodeCounter(NEG, UNREACHABLE)
    outcome = run(evaluator)
    everyone = Population.concatenate(evaluator.seen)
    tapes = np.hstack([everyone.codes, everyone.values.view(np.int64), everyone.sizes[:, None]])
    assert len(np.unique(tapes, axis=0)) == len(everyone) == outcome.evaluations


@pytest.mark.slow
def test_slow_machines_fit_the_same_constants():
    class Clock:
        """Time passes at changing rates: every slice has another size."""

        now, calls = 0.0, 0

        def __call__(self):
            self.calls += 1
            self.now += 0.4 / (1 + self.calls % 7)
            return self.now

    rng = np.random.default_rng(0)
    dataset = Dataset(rng.uniform(1, 3, (2, 60)), rng.normal(size=60), None, ("x", "y"))
    primitives = PrimitiveSet(select(STANDARD, ("add", "mul", "div", "exp", "sin")), ("x", "y"))
    fit = fitter(MachineLinearizer(dataset, "mse"), 8, scaled=True)
    evaluator = evaluator_of(dataset, "mse", True, "float64", "machine", 1)
    slow, fast = (
        evolve(evaluator, primitives, SETTINGS, STOP, np.random.default_rng(1), fitter=fit, clock=clock)
        for clock in (Clock(), lambda: 0.0)
    )
    assert_same(slow.front, fast.front)
    assert slow.scores.losses.tobytes() == fast.scores.losses.tobytes()
    assert slow.evaluations == fast.evaluations


def test_a_good_enough_loss_ends_the_run():
    outcome = run(NodeCounter(NEG, 1), stop=replace(STOP, generations=1000))
    assert outcome.stopped_by == "loss"
    assert outcome.scores.losses[-1] == 0.0
    assert np.count_nonzero(outcome.scores.losses == 0) == 1


def test_time_ends_the_run():
    ticks = iter(range(10_000))
    outcome = run(stop=StopSettings(generations=10_000, seconds=100.0, loss=0.0), clock=lambda: float(next(ticks)))
    assert outcome.stopped_by == "seconds"
    assert 100 <= outcome.seconds < 110
    assert len(outcome.front) > 0


@pytest.mark.parametrize("calls", [0, 4])
def test_an_interrupt_ends_the_run_with_the_results_so_far(calls):
    evaluator = InterruptedAfter(calls)
    outcome = run(evaluator)
    assert outcome.stopped_by == "interrupted"
    assert outcome.evaluations == sum(map(len, evaluator.seen))
    assert (len(outcome.front) > 0) == (calls > 0)


def test_an_interrupt_while_reporting_ends_the_run_too():
    def report(progress):
        if progress.generation == 2:
            raise KeyboardInterrupt

    outcome = run(report=report)
    assert (outcome.stopped_by, outcome.generations) == ("interrupted", 2)


def test_the_guesses_of_an_interrupted_seeding_are_kept():
    def interrupted(rng, effort):
        guesses = population_of(["x y add", "x neg"], PRIMITIVES, 20)
        yield Guesses(guesses, np.zeros(2), ("a", "b"), guesses, np.zeros(2), False, interrupted=True)

    outcome = run(seeding=interrupted)
    assert (outcome.stopped_by, outcome.generations, outcome.evaluations) == ("interrupted", 0, 2)
    assert outcome.front.tree(-1).size == 2  # x neg has the lower loss of the two


def test_infinite_losses_leave_an_empty_front():
    outcome = run(Infinite())
    assert (len(outcome.front), outcome.stopped_by) == (0, "generations")


def test_progress_is_reported_after_each_generation():
    reports = []
    run(report=reports.append)
    assert [progress.generation for progress in reports] == [0, 1, 2, 3, 4, 5]
    assert all(np.diff([progress.best_loss for progress in reports]) <= 0)
    assert all(np.diff([progress.evaluations for progress in reports]) > 0)


def test_progress_without_a_finite_loss_has_no_best():
    reports = []
    run(Infinite(), report=reports.append)
    assert (reports[-1].best, reports[-1].best_loss) == (None, np.inf)


def test_initial_individuals_join_the_first_population():
    evaluator = NodeCounter(NEG, 12)
    initial = population_of(["x" + " neg" * 12], PRIMITIVES, 13)
    outcome = run(evaluator, settings=replace(SETTINGS, max_depth=13), guesses=initial)
    assert (outcome.generations, outcome.stopped_by) == (0, "loss")
    assert tree_of(outcome.front, -1).size == 13


def test_arrivals_join_the_search_before_the_next_report():
    long = population_of(["x" + " neg" * 12], PRIMITIVES, 13)
    waiting, fronts = [None, None, long], []
    run(
        NodeCounter(NEG, 12),
        replace(SETTINGS, max_depth=13, population=20),
        report=lambda progress: fronts.append(progress.best_loss),
        arrivals=lambda: waiting.pop(0) if waiting else None,
    )
    assert 0 not in fronts[:2]
    assert fronts[2:] == [0]


def test_arrivals_beyond_a_limit_are_rejected():
    long = population_of(["x" + " neg" * 12], PRIMITIVES, 13)
    with pytest.raises(ValueError, match="arriving individual 0 has 13 levels, and max_depth is 8"):
        run(arrivals=lambda: long)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" + " y add" * 10, "guesses: initial individual 1 has 21 nodes, and max_size is 20"),
        ("x" + " neg" * 8, "guesses: initial individual 1 has 9 levels, and max_depth is 8"),
    ],
)
def test_initial_individuals_beyond_a_limit_are_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        run(guesses=population_of(["x", text], PRIMITIVES, 30))


def test_initial_individuals_of_another_primitive_set_are_rejected():
    with pytest.raises(ValueError, match="another primitive set"):
        run(guesses=population_of(["x"], primitive_set("add"), 3))


@pytest.mark.slow
@pytest.mark.parametrize("functions", ["", "where"])
@pytest.mark.parametrize("features", ["", "x"])
@pytest.mark.parametrize(("max_size", "max_depth"), [(1, 1), (9, 4)])
def test_every_primitive_set_and_limit_can_run(functions, features, max_size, max_depth):
    primitives = primitive_set(functions, features)
    settings = EvolutionSettings(population=20, max_size=max_size, max_depth=max_depth)
    evaluator = NodeCounter(1, UNREACHABLE)
    evolve(evaluator, primitives, settings, replace(STOP, generations=3), np.random.default_rng(0))
    assert_valid(Population.concatenate(evaluator.seen), max_size, max_depth)


@pytest.mark.parametrize("only", ["crossover", "subtree_mutation", "hoist_mutation", "point_mutation"])
def test_each_operator_can_be_the_only_one(only):
    settings = replace(SETTINGS, **{**NO_VARIATION, only: 1.0})
    assert run(settings=settings).generations == 5
