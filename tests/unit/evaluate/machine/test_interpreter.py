"""The machine's instruction set and its assembler: pairs, operands, and how many tiles are alive."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.equality import same_bits

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.machine.instructions import ARITHMETIC
from shine.evaluate.machine.tiles import tile_rows
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import select
from shine.lang.forms.tape import Tape
from shine.lang.population import Population

OPERATIONS = dict(zip(ARITHMETIC, (np.add, np.subtract, np.multiply, np.divide), strict=True))
FEATURES = ("a", "b", "c")
PRIMITIVES = shine.PrimitiveSet(select(STANDARD, ARITHMETIC), FEATURES)
CODES = PRIMITIVES.function_codes
ROWS = 70

each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def columns(rows: int = ROWS, special: bool = True) -> np.ndarray:
    """Three columns, of ordinary numbers and some special ones."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, rows)) * 3
    if special:
        at = rng.random(values.shape) < 0.2
        values[at] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 1e308], at.sum())
    return values


def predictions(population: Population, dtype: str, values: np.ndarray) -> np.ndarray:
    """Predictions of the machine."""
    data = Dataset(values, np.zeros(values.shape[1]), None, FEATURES)
    return MachineEvaluator(data, "mse", False, dtype).predict(population)


def tape(*nodes: int | float | str) -> Tape:
    """A tape of features (integers from 1), constants (floats) and functions (names), in postfix order."""
    codes = [CODES[n] if isinstance(n, str) else 0 if isinstance(n, float) else n for n in nodes]
    return Tape(np.array(codes, np.int16), np.array([n if isinstance(n, float) else 0.0 for n in nodes]))


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether arrays are equal to the bit; any NaN equals any other."""
    return bool(same_bits(first, second).all())


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), list(product(ARITHMETIC, ARITHMETIC)))
@each_dtype
def test_every_pair_rounds_twice_whatever_its_operands_are(dtype, first, second):
    values = columns()
    numbers = (1.1, -0.7, 3.3)
    tapes, expected = [], []
    for side, kinds in product((0, 1), product((False, True), repeat=3)):
        leaves = [number if constant else i for i, (constant, number) in enumerate(zip(kinds, numbers, strict=True), 1)]
        a, b, c = leaves
        tapes.append(tape(a, b, first, c, second) if side == 0 else tape(c, a, b, first, second))
        with np.errstate(all="ignore"):
            x, y, z = (
                np.full(ROWS, leaf, dtype) if isinstance(leaf, float) else values[leaf - 1].astype(dtype)
                for leaf in leaves
            )
            inner = OPERATIONS[first](x, y)
            expected.append(OPERATIONS[second](*((inner, z) if side == 0 else (z, inner))))
    found = predictions(Population.from_tapes(tapes, PRIMITIVES), dtype, values)
    assert same(found, np.array(expected))


@pytest.mark.parametrize("second", ARITHMETIC)
@pytest.mark.parametrize("first", ARITHMETIC)
@each_dtype
def test_every_pair_takes_tiles_of_other_values(dtype, first, second):
    # c is a value computed before, so that the pair's operands are tiles, and overwrites one of them.
    values = columns()
    tapes = [
        tape(1, 2, "add", 2, 3, "mul", 1, 3, "sub", first, second),
        tape(1, 2, "add", 2, 3, "mul", first, 3, second),
        tape(3, 1, 2, "add", 2, 3, "mul", first, second),
    ]
    with np.errstate(all="ignore"):
        a, b, c = values.astype(dtype)
        one, two = OPERATIONS[first], OPERATIONS[second]
        expected = [two(a + b, one(b * c, a - c)), two(one(a + b, b * c), c), two(c, one(a + b, b * c))]
    assert same(predictions(Population.from_tapes(tapes, PRIMITIVES), dtype, values), np.array(expected))


# The table of pairs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fill", "copy", "end", "table", "assemble", "predict", "squared", "größe"])
def test_a_user_s_function_may_be_called_like_a_part_of_the_machine(name):
    population = Population.from_sources([f"{name}(a) + 1"], ("a",), [f"def {name}(x):\n    return x * 3"])
    data = Dataset.from_arrays([[1.0], [2.0]], [0.0, 0.0], features=("a",))
    assert MachineEvaluator(data, "mse", False, "float64").predict(population).tolist() == [[4.0, 7.0]]


# Tiles


@pytest.mark.parametrize("teeth", [1, 12, 13, 400])
@each_dtype
def test_many_values_alive_at_once_make_tiles_shorter_and_change_nothing(dtype, teeth):
    # As many products as teeth are alive before the first two of them are added.
    nodes = [node for i in range(teeth) for node in (1 + i % 3, 0.5 + i, "mul")]
    population = Population.from_tapes([tape(*nodes, *["add"] * (teeth - 1))], PRIMITIVES)
    values = columns(2 * tile_rows(dtype) + 1, special=False)
    typed = values.astype(dtype)
    products = [typed[i % 3] * np.dtype(dtype).type(0.5 + i) for i in range(teeth)]
    expected = products[-1]
    for earlier in reversed(products[:-1]):
        expected = earlier + expected
    assert same(predictions(population, dtype, values)[0], expected)
