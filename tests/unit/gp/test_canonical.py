"""Canonical individuals are valid, no larger, predict the same bits, and meet where they are equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.gp.oracles import assert_same

from shine.gp.canonical import canonical
from shine.gp.creation import Terminals, ptc2
from shine.gp.hashing import hashes
from shine.lang.interpret import evaluate_tape
from shine.lang.library import STANDARD
from shine.lang.population import Population
from shine.lang.primitives import Primitive, PrimitiveSet, select
from shine.lang.tape import Tape

FEATURES = ("a", "b", "c")
EVERYTHING = PrimitiveSet(tuple(STANDARD.values()), FEATURES)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, 1e-200, 1e200, 5e-324, 700.0, -3.0]
ROWS = [
    np.array(column) for column in zip(*((a, b, c) for a in SPECIAL for b in SPECIAL for c in SPECIAL), strict=True)
]


@st.composite
def populations(draw: st.DrawFn) -> Population:
    """Random individuals with many constants, of which many are special."""
    names = draw(st.lists(st.sampled_from(list(STANDARD)), min_size=1, max_size=8, unique=True))
    common = draw(st.lists(st.sampled_from(["add", "sub", "mul", "div", "neg"]), unique=True))
    primitives = PrimitiveSet(select(STANDARD, dict.fromkeys([*common, *names])), FEATURES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    population = ptc2(20, primitives, draw(st.integers(1, 40)), 12, Terminals((-2.0, 2.0), 0.5), rng)
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0])[rng.integers(0, 5, population.codes.shape)]
    inside = np.arange(population.width) < population.sizes[:, None]
    chosen = (population.codes == 0) & inside & (rng.random(inside.shape) < 0.6)
    values = np.where(chosen, special, population.values)
    return Population(population.codes, values, population.sizes, primitives)


def predictions(population: Population) -> np.ndarray:
    tapes = [population.tape(i) for i in range(len(population))]
    return np.array([evaluate_tape(tape.codes, tape.values, population.primitives, ROWS) for tape in tapes])


def shuffled(population: Population, rng: np.random.Generator) -> Population:
    """The same individuals with the operands of sums and products in random order."""
    primitives, tapes = population.primitives, []
    exchangeable = [primitives.function_codes.get(name) for name in ("add", "mul", "eq", "ne")]
    for i in range(len(population)):
        tape, stack = population.tape(i), []
        for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
            arity = int(primitives.arities[code])
            arguments = stack[len(stack) - arity :]
            del stack[len(stack) - arity :]
            if code in exchangeable and rng.random() < 0.5:
                arguments.reverse()
            stack.append([*(node for argument in arguments for node in argument), (code, value)])
        codes, values = zip(*stack[0], strict=True)
        tapes.append(Tape(np.array(codes, np.int16), np.array(values)))
    return Population.from_tapes(tapes, primitives, population.width)


@settings(max_examples=200)
@given(populations())
def test_individuals_stay_valid_and_finite_predictions_keep_their_bits(population):
    given_codes, given_values = population.codes.copy(), population.values.copy()
    result = canonical(population)
    assert result.is_valid
    assert result.width == population.width
    assert (result.sizes <= population.sizes).all()
    behind = np.arange(result.width) >= result.sizes[:, None]
    assert not result.codes[behind].any()
    assert not result.values[behind | (result.codes != 0)].any()
    before, after = predictions(population), predictions(result)
    finite = np.isfinite(before)
    assert np.array_equal((before[finite] + 0.0).view(np.int64), (after[finite] + 0.0).view(np.int64))
    assert np.array_equal(population.codes, given_codes)
    assert np.array_equal(population.values, given_values)


@given(populations())
def test_a_second_time_changes_nothing(population):
    once = canonical(population)
    assert_same(canonical(once), once)


@given(populations())
def test_each_individual_is_treated_as_if_it_were_alone(population):
    together = canonical(population)
    for index in range(0, len(population), 7):
        assert_same(canonical(population.take([index])), together.take([index]))


def test_the_order_of_operands_does_not_matter():
    rng = np.random.default_rng(5)
    primitives = PrimitiveSet(select(STANDARD, ("add", "mul", "sub", "sin", "eq", "where")), FEATURES)
    population = ptc2(3000, primitives, 40, 10, Terminals(), rng)
    ordered, other = canonical(population), canonical(shuffled(population, rng))
    differ = hashes(ordered) != hashes(other)
    # Operands that the hash cannot tell apart keep their order, which is rare.
    assert differ.mean() < 0.005
    assert (hashes(population) != hashes(shuffled(population, rng))).mean() > 0.5


EXAMPLES = {
    "a + 0.0": "a",
    "0.0 + a": "a",
    "a - 0.0": "a",
    "a*1.0 + 1.0*b/1.0": "a + b",
    "a**1.0": "a",
    "--a": "a",
    "---a": "-a",
    "----a": "a",
    "a - a": "0.0",
    "sin(a*b)/sin(b*a)": "1.0",
    "a*(2.0 - 2.0) + b": "b",
    "2.0*3.0 + sin(0.0)": "6.0",
    "square(2.0)*a": "4.0*a",
    "(a - a)*b + c": "c",
    "log(-1.0) + a": "log(-1.0) + a",
    "1.0/0.0": "1.0/0.0",
    "a if a - a == 0.0 else b": "a if a - a == 0.0 else b",
    "exp(1.0/(a + 0.0))": "exp(1.0/(a + 0.0))",
    "exp(1.0/(a + -0.0))": "exp(1.0/a)",
    "max(a, b)": "max(b, a)",
    "(a < b) and (b < c)": "(b < c) and (a < b)",
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_becomes_of_an_individual(text):
    names = (*EVERYTHING.table, *())
    one, other = (canonical(Population.from_sources([formula], FEATURES, names)) for formula in (text, EXAMPLES[text]))
    assert_same(one, Population(*_widened(other, one.width), one.primitives))


def _widened(population: Population, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, values = np.zeros((1, width), np.int16), np.zeros((1, width))
    shared = min(width, population.width)
    codes[:, :shared], values[:, :shared] = population.codes[:, :shared], population.values[:, :shared]
    return codes, values, population.sizes


def test_operands_of_a_connective_that_are_no_truth_values_stay():
    population = Population.from_sources(["a and b", "b and a"], FEATURES, ())
    assert_same(canonical(population), population)


def test_constants_are_computed_in_single_precision_on_demand():
    population = Population.from_sources(["0.1 + 0.2"], FEATURES, ())
    assert canonical(population, "float32").values[0, 0] == float(np.float32(0.1) + np.float32(0.2))
    assert canonical(population).values[0, 0] == 0.1 + 0.2


def test_functions_without_a_meaning_are_left_alone():
    primitives = PrimitiveSet((Primitive("unknown", 3),), ("a",))
    population = Population(np.array([[0, 0, 0, 2]], np.int16), np.ones((1, 4)), np.array([4]), primitives)
    population.values[0, 3] = 0.0
    assert_same(canonical(population), population)


def test_no_individuals_are_no_trouble():
    empty = ptc2(5, EVERYTHING, 10, 5, Terminals(), np.random.default_rng(0)).take(np.zeros(0, int))
    assert len(canonical(empty)) == 0
