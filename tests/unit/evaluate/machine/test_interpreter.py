"""The machine's instruction set and its assembler: pairs, operands, and how many tiles are alive."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.equality import same_bits
from llvmlite import ir

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.machine.instructions import ARITHMETIC, fused_instructions, primitive_instructions
from shine.evaluate.machine.interpreter import emit_machine
from shine.evaluate.machine.job import JOB
from shine.evaluate.machine.tiles import CACHE_BYTES, TILE_BYTES, tile_rows
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


@pytest.mark.parametrize(("op", "constant"), list(product(ARITHMETIC, (0.0, -0.0, 2.5, np.inf, np.nan, 1e300, 5e-324))))
@each_dtype
def test_a_constant_may_come_first_or_second(dtype, op, constant):
    values = columns()
    found = predictions(
        Population.from_tapes([tape(constant, 1, op), tape(1, constant, op)], PRIMITIVES), dtype, values
    )
    with np.errstate(all="ignore"):
        x, k = values[0].astype(dtype), np.float64(constant).astype(dtype)
        assert same(found, np.array([OPERATIONS[op](k, x), OPERATIONS[op](x, k)]))


@pytest.mark.parametrize("op", ARITHMETIC)
@each_dtype
def test_both_operands_may_be_constants(dtype, op):
    found = predictions(
        Population.from_tapes([tape(1.1, 3.3, op), tape(1, 1.1, 3.3, op, "add")], PRIMITIVES), dtype, columns()
    )
    x, y = np.float64([1.1, 3.3]).astype(dtype)
    assert same(found[0], np.full(ROWS, OPERATIONS[op](x, y)))
    with np.errstate(all="ignore"):
        assert same(found[1], columns()[0].astype(dtype) + OPERATIONS[op](x, y))


# The table of pairs


def reachable_pairs() -> set[tuple[int, int, int, int, int]]:
    """Places that the assembler can look up: a commutative operation has its constant second, and the result of the
    inner operation first."""
    commutes = [name in ("add", "mul") for name in ARITHMETIC]
    places = set()
    for i, (a, b), j, side, c in product(range(4), product((0, 1), (0, 1)), range(4), (0, 1), (0, 1)):
        kind = {(0, 0): 0, (0, 1): 1, (1, 0): 1 if commutes[i] else 2, (1, 1): 1}[a, b]
        places.add((i, kind, j, 0 if commutes[j] else side, c))
    return places


def test_the_table_has_every_pair_that_the_assembler_can_reach_and_no_other():
    assert {place for place, _ in fused_instructions()} == reachable_pairs()


def test_no_two_pairs_share_a_place_or_a_name():
    pairs = list(fused_instructions())
    assert len({place for place, _ in pairs}) == len({instruction.name for _, instruction in pairs}) == len(pairs)


def handlers_in(module: ir.Module) -> set[str]:
    return {name for name in module.globals if name.startswith("shine.") and ".table." not in name}


def test_a_machine_without_an_operation_has_no_pair_of_it():
    names = handlers_in(emit_machine(select(STANDARD, ["add", "mul", "sin"]), "float64"))
    assert {"shine.add.mul.left.ttt", "shine.mul.add.left.tct", "shine.sin.t"} <= names
    assert not [name for name in names if "sub" in name or "div" in name]


def test_functions_of_two_arguments_have_an_instruction_for_each_place_of_a_constant():
    kinds = {name: [i.constants for i in primitive_instructions(STANDARD[name])] for name in ("sin", "max", "where")}
    assert kinds["sin"] == [(False,)]
    assert kinds["max"] == [(False, False), (False, True), (True, False)]
    assert kinds["where"] == [(False, False, False)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fill", "copy", "end", "table", "assemble", "predict", "squared", "größe"])
def test_a_user_s_function_may_be_called_like_a_part_of_the_machine(name):
    population = Population.from_sources([f"{name}(a) + 1"], ("a",), [f"def {name}(x):\n    return x * 3"])
    data = Dataset.from_arrays([[1.0], [2.0]], [0.0, 0.0], features=("a",))
    assert MachineEvaluator(data, "mse", False, "float64").predict(population).tolist() == [[4.0, 7.0]]


# Tiles


@pytest.mark.parametrize("teeth", [1, 2, 11, 12, 13, 24, 25, 47, 100, 400])
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


def test_live_tiles_of_full_length_fit_the_cache():
    assert CACHE_BYTES % TILE_BYTES == 0
    assert CACHE_BYTES <= 32 * 1024 - 2 * TILE_BYTES


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_tile_is_whole_vectors_and_chunks(dtype):
    assert tile_rows(dtype) % 256 == 0


def test_the_fields_of_a_job_have_names_of_their_own():
    assert len(set(JOB)) == len(JOB)


@pytest.mark.parametrize("size", [1, 3, 999])
@pytest.mark.parametrize("direction", ["left", "right"])
@each_dtype
def test_long_chains_are_evaluated_in_order(dtype, direction, size):
    rng = np.random.default_rng(size)
    features, operations = rng.integers(1, 4, size // 2 + 1), rng.choice(["add", "sub"], size // 2)
    values = columns(special=False)
    typed = values.astype(dtype)
    if direction == "left":
        nodes = [int(features[0])]
        expected = typed[features[0] - 1]
        for feature, op in zip(features[1:], operations, strict=True):
            nodes += [int(feature), str(op)]
            expected = OPERATIONS[op](expected, typed[feature - 1])
    else:
        nodes = [int(feature) for feature in features] + [str(op) for op in operations]
        expected = typed[features[-1] - 1]
        for feature, op in zip(features[-2::-1], operations, strict=True):
            expected = OPERATIONS[op](typed[feature - 1], expected)
    assert same(predictions(Population.from_tapes([tape(*nodes)], PRIMITIVES), dtype, values)[0], expected)
