"""The pool measures formulas on held-out rows, keeps them within limits, and ranks them."""

import logging

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, constant
from shine.search.seeding.candidate_pool import CandidatePool
from shine.search.seeding.screen.skeletons import Rows
from shine.search.seeding.task import SeedingTask


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


def test_a_failure_is_counted_and_logged_and_an_interrupt_is_not(caplog):
    primitives, every = PrimitiveSet((STANDARD["add"],), ("x",)), np.ones(4, bool)
    rows = Rows(np.ones((1, 4)), np.arange(4.0), np.full(4, 0.25))
    found = CandidatePool(SeedingTask(rows, primitives, None), every, every)
    with caplog.at_level(logging.DEBUG, logger="shine.search.seeding"):
        with found.surviving("a search"):
            raise ValueError("no")
        with pytest.raises(KeyboardInterrupt), found.surviving("another"):
            raise KeyboardInterrupt
    assert found.failures == ["a search"]
    assert [record.getMessage() for record in caplog.records] == ["the search 'a search' was skipped"]
