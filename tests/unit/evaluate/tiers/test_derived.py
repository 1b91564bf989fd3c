"""Values that the machines compute only once change no bit: columns of functions of features, and constants."""

from __future__ import annotations

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_rows import INDIVIDUALS, DerivedColumns
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2

UNARY = ("exp", "log", "sin", "tanh", "sqrt", "sigmoid", "square")
TAKING_LONG = ("exp", "log", "sin", "tanh", "sigmoid")
PRIMITIVES = PrimitiveSet(select(STANDARD, ("add", "mul", "div", *UNARY, "where")), ("x", "y", "z"))
ROWS = 777


def dataset(rows=ROWS):
    columns = np.random.default_rng(0).uniform(-2, 3, (3, rows))
    return Dataset(columns, columns[0] * columns[1], None, ("x", "y", "z"))


def individuals(count=300, seed=0):
    return ptc2(count, PRIMITIVES, 25, 9, Terminals(share=0.3), np.random.default_rng(seed))


def bits(values):
    whole = np.asarray(values)
    return np.where(np.isnan(whole), np.nan, whole).tobytes()  # which NaN it is, is not promised


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predictions_are_the_same_with_and_without_columns(dtype):
    population, data = individuals(), dataset()
    alone = [MachineEvaluator(data, "mse", False, dtype).predict(population.take([i])) for i in range(0, 300, 7)]
    evaluator = MachineEvaluator(data, "mse", False, dtype)
    for _ in range(3):
        together = evaluator.predict(population)
    assert bits(together[::7]) == bits(np.concatenate(alone))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_losses_and_normal_equations_are_the_same_with_and_without_columns(threads):
    population, data, ones = individuals(), dataset(), np.ones(300)
    evaluator, linearizer = MachineEvaluator(data, "mse", True, "float64", threads), MachineLinearizer(data, "mse")
    for _ in range(3):
        scores = evaluator.score(population)
        found = linearizer.normal_equations(population, ones, 0 * ones, np.inf * ones)
    for i in range(0, 300, 11):
        one = population.take([i])
        assert bits(MachineEvaluator(data, "mse", True, "float64").score(one).losses) == bits(scores.losses[i])
        alone = MachineLinearizer(data, "mse").normal_equations(one, ones[:1], 0 * ones[:1], np.inf * ones[:1])
        if np.isfinite(alone.errors[0]):
            count = alone.matrices.shape[1]
            assert bits(alone.matrices[0]) == bits(found.matrices[i, :count, :count])


SINGLE = [f"{name}({feature})" for name in TAKING_LONG for feature in "xyz"]
DOUBLE = [f"{name}({single})" for name in TAKING_LONG for single in SINGLE]


def test_columns_that_another_thread_makes_for_other_primitives_are_not_mixed_up():
    others = PrimitiveSet(select(STANDARD, ("cos", "add")), ("x", "y", "z"))
    other = Population.from_trees([parse("cos(x) + y", ("x", "y", "z"))], others).take(np.zeros(100, np.int64))
    asked = []

    def predict(population):
        """While columns are made, another thread has a population of other primitives evaluated."""
        asked.append([str(population.tree(i)) for i in range(len(population))])
        if len(asked) == 1:
            columns.tables(other, 8)
        return np.full((len(population), 16), len(population), np.float64)

    columns, count = DerivedColumns(16, predict), len(SINGLE + DOUBLE)
    tables = columns.tables(individuals(INDIVIDUALS * count), 8)
    assert tables["derived"].addresses.shape == (len(PRIMITIVES.functions), 3)
    assert (tables["nested"].columns == count).all()
    assert (columns.tables(other, 8)["derived"].columns == 6).all()


@pytest.mark.slow
def test_each_function_of_a_function_is_its_own_column():
    # Three levels deep, of which only two are columns, and with other operands around them.
    nested = [
        *SINGLE,
        *DOUBLE,
        *(f"sin({double}) + x" for double in DOUBLE),
        *(f"log(y*{double})" for double in DOUBLE),
    ]
    names, data = ("x", "y", "z"), dataset()
    population = Population.from_trees([parse(source, names) for source in nested], PRIMITIVES)
    evaluator = MachineEvaluator(data, "mse", False, "float64")
    before = evaluator.predict(population.take(np.arange(10)))
    for _ in range(4):
        together = evaluator.predict(population)
    assert bits(together[:10]) == bits(before)
    for start in range(0, len(nested), 40):
        some = population.take(np.arange(start, min(start + 40, len(nested))))
        assert bits(MachineEvaluator(data, "mse", False, "float64").predict(some)) == bits(together[start : start + 40])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_function_of_constants_has_the_bits_of_one_of_a_constant_column(dtype):
    # The oracle is the same function of a constant feature, which is computed row by row.
    names = ("a", "b", "c")
    primitives = PrimitiveSet(select(STANDARD, ("add", "sub", "mul", "div", "pow", *UNARY, "where", "max")), names)
    texts = [
        "exp({a})", "sin({a})*{b}", "{a}/{b} + {c}", "where({a}, {b}, sin({c}))", "tanh({b} - {a})",
        "sigmoid({c})", "{a}**{b} - c", "max(log({b}), {c}) + a", "log({a} - {b})", "({a} + {b})*({b} - {c})/(a - {c})",
    ]  # fmt: skip
    numbers = {"a": 0.7, "b": 2.3, "c": -1.9}
    constants = [text.format(**{k: f"({v})" for k, v in numbers.items()}) for text in texts]
    features = [text.format(**{k: k for k in numbers}) for text in texts]
    columns = np.repeat(np.array(list(numbers.values()))[:, None], 70, axis=1)
    evaluator = MachineEvaluator(Dataset(columns, columns[0], None, names), "mse", False, dtype)
    known, computed = (
        evaluator.predict(Population.from_trees([parse(source, names) for source in sources], primitives))
        for sources in (constants, features)
    )
    assert bits(known) == bits(computed)
