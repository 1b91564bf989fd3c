import numpy as np
import pytest
from unit.gp.oracles import NodeCounter, assert_same, population_of, primitive_set

from shine.gp.archive import Archive
from shine.gp.creation import Terminals, ptc2
from shine.gp.scoring import FIRST_SLICE, OutOfTime, Scorer

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


def scorer_of(evaluator, clock=lambda: 0.0, deadline=np.inf, width=20, fitter=None):
    return Scorer(evaluator, Archive.empty(PRIMITIVES, width), clock, deadline, fitter)


def random_population(n=1000):
    return ptc2(n, PRIMITIVES, 20, 10, Terminals(), np.random.default_rng(0))


def test_losses_come_in_the_order_of_the_individuals():
    scorer = scorer_of(NodeCounter(NEG, 3))
    population = population_of(["x", "x neg neg", "y neg", "x"], PRIMITIVES, 20)
    same, losses = scorer.scored(population)
    assert losses.tolist() == [3.0, 1.0, 2.0, 3.0]
    assert_same(same, population)


def test_an_individual_is_evaluated_once_within_a_population():
    evaluator = NodeCounter(NEG, 3)
    scorer_of(evaluator).scored(population_of(["x", "x", "y", "x"], PRIMITIVES, 20))
    assert sum(map(len, evaluator.seen)) == 2


def test_an_individual_is_evaluated_once_over_all_populations():
    evaluator = NodeCounter(NEG, 3)
    scorer = scorer_of(evaluator)
    _, first = scorer.scored(random_population())
    _, again = scorer.scored(random_population())
    assert np.array_equal(first, again)
    assert scorer.evaluations == sum(map(len, evaluator.seen))
    assert scorer.evaluations == len({p.codes[i].tobytes() + p.values[i].tobytes() + bytes([p.sizes[i]])
                                      for p in evaluator.seen for i in range(len(p))})  # fmt: skip


def test_slices_do_not_change_the_losses():
    clock = Clock()
    slow = scorer_of(SlowCounter(clock, 0.01), clock)
    fast = scorer_of(NodeCounter(NEG, 3))
    assert np.array_equal(slow.scored(random_population())[1], fast.scored(random_population())[1])


def test_slow_evaluators_get_small_slices():
    clock = Clock()
    evaluator = SlowCounter(clock, 0.01)
    scorer_of(evaluator, clock).scored(random_population())
    assert len(evaluator.seen[0]) == FIRST_SLICE
    assert max(map(len, evaluator.seen[1:])) == 20


def test_the_deadline_ends_a_population_between_slices():
    clock = Clock()
    scorer = scorer_of(SlowCounter(clock, 0.01), clock, deadline=3.0)
    with pytest.raises(OutOfTime):
        scorer.scored(random_population())
    assert 3.0 <= clock.now < 3.3
    assert scorer.archive.best_loss < np.inf
