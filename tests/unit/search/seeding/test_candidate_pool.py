"""The pool measures formulas on held-out rows, keeps them within limits, and ranks them."""

import logging

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, constant
from shine.search.seeding.candidate_pool import CandidatePool
from shine.search.seeding.screen.estimates import node_price
from shine.search.seeding.screen.skeletons import Rows, SumSkeleton
from shine.search.seeding.task import SeedingTask

COLUMNS = np.random.default_rng(0).uniform(1, 3, (2, 100))
X, Y = LEAVES = [((1, 0.0),), ((2, 0.0),)]
WRITER = Writer(PrimitiveSet(tuple(STANDARD[name] for name in ("add", "mul", "exp")), ("x", "y")))
TRAINING = np.arange(100) < 60


def pool(target, max_size=30, max_depth=10, linear_scaling=True):
    def predict(population):
        tapes = [population.tape(i) for i in range(len(population))]
        return np.array([evaluate_tape(t.codes, t.values, WRITER.primitives, list(COLUMNS)) for t in tapes])

    rows = Rows(COLUMNS, target, np.full(100, 0.01))
    task = SeedingTask(rows, WRITER.primitives, predict, None, max_size, max_depth, linear_scaling)
    return CandidatePool(task, TRAINING, ~TRAINING)


def test_lines_are_fitted_on_training_rows_and_measured_on_others():
    target = 2 * COLUMNS[0] + COLUMNS[1]
    found = pool(target)
    found.add({X: "affine"})
    slope, intercept = np.polyfit(COLUMNS[0, TRAINING], target[TRAINING], 1)
    errors = target[~TRAINING] - slope * COLUMNS[0, ~TRAINING] - intercept
    assert found.unexplained[X] == pytest.approx(np.mean(errors**2) / np.var(target[~TRAINING]))


def test_without_linear_scaling_formulas_are_measured_as_they_are():
    found = pool(COLUMNS[0] + 0.1, linear_scaling=False)
    found.add({X: "affine"})
    assert found.unexplained[X] == pytest.approx(0.01 / np.var(COLUMNS[0, ~TRAINING]))


def test_formulas_beyond_the_limits_or_without_use_are_not_kept():
    found = pool(COLUMNS[0], max_size=3, max_depth=2)
    added = WRITER.add(X, Y)
    deep = WRITER.call("exp", WRITER.call("exp", X))
    huge = WRITER.add(added, X)
    found.add({X: "a", added: "b", deep: "c", huge: "d"})
    assert set(found.unexplained) == {X, added}
    found = pool(np.random.default_rng(1).standard_normal(100))
    found.add({WRITER.call("exp", WRITER.call("exp", WRITER.call("exp", WRITER.multiply(X, X)))): "not finite"})
    assert not found.unexplained


def test_skeletons_are_completed_and_exact_fits_noticed():
    found = pool(3 * COLUMNS[0] + 2 * COLUMNS[1])
    assert not found.exact
    found.complete([SumSkeleton("sum", (), None, (X, Y))])
    assert found.exact and found.nearly_exact
    assert set(found.best_ingredients(1)) == {X, Y}
    population, unexplained, kinds = found.chosen(10)
    assert len(population) == len(unexplained) == len(kinds)
    assert kinds[0] == "sum"


def test_the_best_of_each_kind_is_chosen():
    found = pool(COLUMNS[0] + 0.1 * COLUMNS[1])
    found.add({X: "one", WRITER.add(X, Y): "one", Y: "two", WRITER.multiply(X, X): "one", WRITER.multiply(X, Y): "one"})
    _, unexplained, kinds = found.chosen(3)
    assert len(kinds) == 3
    assert set(kinds) <= {"one", "two"}
    price = found.criterion(X) - np.log(found.unexplained[X])
    assert price == pytest.approx(node_price(0.02, 40))
    assert unexplained[0] == min(found.unexplained.values())


def test_a_failure_is_counted_and_logged_and_an_interrupt_is_not(caplog):
    found = pool(COLUMNS[0])
    with caplog.at_level(logging.DEBUG, logger="shine.search.seeding"):
        with found.surviving("a search"):
            raise ValueError("no")
        with pytest.raises(KeyboardInterrupt), found.surviving("another"):
            raise KeyboardInterrupt
    assert found.failures == ["a search"]
    assert [record.getMessage() for record in caplog.records] == ["the search 'a search' was skipped"]


def test_of_formulas_that_differ_in_constants_only_the_best_two_are_chosen():
    found = pool(COLUMNS[0] + 0.1 * COLUMNS[1])
    found.add({WRITER.multiply(X, WRITER.add(Y, constant(c))): "one" for c in (0.3, 0.4, 0.5, 0.6)})
    assert len(found.unexplained) == 4
    assert len(found.chosen(10)[0]) == 2


def test_as_many_constants_as_rows_are_no_exact_fit():
    x = np.array([[1.0, 2.0, 3.0, 5.0]])
    primitives = PrimitiveSet(tuple(STANDARD[name] for name in ("add", "mul", "square")), ("x",))
    writer, every = Writer(primitives), np.ones(4, bool)

    def found_with(formula, target):
        def predict(population):
            tapes = [population.tape(i) for i in range(len(population))]
            return np.array([evaluate_tape(t.codes, t.values, primitives, list(x)) for t in tapes])

        own = CandidatePool(SeedingTask(Rows(x, target, np.full(4, 0.25)), primitives, predict), every, every)
        own.add({formula: "a"})
        return own

    shifted = writer.call("square", writer.add(((1, 0.0),), constant(0.3)))
    assert not found_with(shifted, (x[0] + 0.3) ** 2).exact
    assert found_with(writer.call("square", ((1, 0.0),)), x[0] ** 2).exact


def test_a_skeleton_is_completed_once():
    found, completed = pool(3 * COLUMNS[0] + 2 * COLUMNS[1]), []

    class Counted(SumSkeleton):
        def complete(self, *arguments):
            completed.append(self)
            return super().complete(*arguments)

    found.complete([Counted("sum", (), None, (X, Y))])
    found.complete([Counted("sum", (), None, (X, Y)), Counted("sum", (), None, (X,))])
    assert [skeleton.terms for skeleton in completed] == [(X, Y), (X,)]


def test_the_shortest_description_is_that_of_a_formula_that_convinces():
    found = pool(3 * COLUMNS[0] + 0.1 * COLUMNS[1])
    found.add({X: "a", WRITER.add(X, Y): "b"})
    nats, size = found.shortest
    assert nats == pytest.approx(50 * min(found.criterion(nodes) for nodes in found.unexplained))
    assert size == 1
