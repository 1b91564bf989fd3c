"""A bank holds the values of its formulas, each once, within its limits."""

import numpy as np
import pytest
from unit.search.seeding.banks import bank

from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import BASIC, PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import tape


@pytest.mark.slow
def test_values_are_those_of_the_formulas():
    members, columns = bank(("add", "sub", "mul", "div", "sqrt", "exp", "sin"), rounds=3)
    chosen = np.random.default_rng(1).integers(0, members.count, 300)
    formulas = [tape(members.nodes(member)) for member in chosen.tolist()]
    population = Population.from_tapes(formulas, members.primitives)
    rows = Dataset.from_arrays(columns.T, np.zeros(columns.shape[1]))
    # To the last bit: evolution then finds the values that the bank has.
    assert np.array_equal(MachineEvaluator(rows, "mse", False, "float64").predict(population), members.values[chosen])
    assert members.sizes[chosen].tolist() == [len(formula.codes) for formula in formulas]
    for member, formula in zip(chosen.tolist(), formulas, strict=True):
        expected = evaluate_tape(formula.codes, formula.values, members.primitives, list(columns))
        assert np.allclose(members.values[member], expected, rtol=1e-12, atol=1e-12)


def test_no_two_members_are_equal():
    members, _ = bank(("add", "sub", "mul", "div", "sqrt", "exp"))
    values = members.values[: members.count]
    order = np.lexsort(np.round(values.T, 8)[:3])
    neighbours = np.abs(np.diff(values[order], axis=0)).max(axis=1)
    assert (neighbours > 1e-9).all()


def test_limits_are_kept():
    members, _ = bank(("add", "mul", "exp"), capacity=57, max_size=4, rounds=6)
    assert members.count <= 57
    assert members.full
    assert members.sizes[: members.count].max() == 4


def test_a_formula_as_a_leaf_counts_as_one():
    rng = np.random.default_rng(0)
    primitives = PrimitiveSet((BASIC["sub"], BASIC["sin"]), ("x", "y"))
    x, y = rng.uniform(0, 1, (2, 30))
    difference = ((1, 0.0), (2, 0.0), (primitives.function_codes["sub"], 0.0))
    members = ExpressionBank(30, primitives, 100, 10, rng)
    leaves = members.leaves(np.array([x - y]), [difference])
    sines = members.unary("sin", leaves)
    assert members.nodes(int(sines[0])) == (*difference, (primitives.function_codes["sin"], 0.0))
    assert members.sizes[sines].tolist() == [4]
    assert members.costs[sines].tolist() == [2]
    assert np.array_equal(members.values[sines[0]], np.sin(x - y))
