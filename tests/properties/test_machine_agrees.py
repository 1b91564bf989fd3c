"""Machine, native and reference tier agree on random populations of every shape and size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from agreement import random_rows, same_bits
from machine_fuzz import (
    PRIMITIVES,
    SHAPES,
    TABLE,
    batch,
    disagreements,
    random_dataset,
    random_individual,
    random_population,
    row_counts,
)

import shine
from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.kernels.kernel import Kernel
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT
from shine.lang.tape import Tape

DTYPES = ["float64", "float32"]


def tape(*nodes: int | float | str) -> Tape:
    """A tape of features (their codes, integers), constants (floats) and functions (names), in postfix order."""
    codes = [
        PRIMITIVES.function_codes[node] if isinstance(node, str) else CONSTANT if isinstance(node, float) else node
        for node in nodes
    ]
    return Tape(np.array(codes, np.int16), np.array([node if isinstance(node, float) else 0.0 for node in nodes]))


@pytest.mark.parametrize("rows", range(9))
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_populations_agree_around_the_sizes_of_tiles(dtype, rows):
    assert batch(np.random.default_rng([rows, len(dtype)]), 6, 60, dtype, row_counts(dtype)[rows], Counter()) == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_individuals_agree(dtype, shape):
    rng = np.random.default_rng(len(shape))
    population = Population.from_tapes([random_individual(rng, shape, size) for size in (300, 1000)], PRIMITIVES)
    assert population.sizes.max() > 250
    dataset = random_dataset(rng, row_counts(dtype)[6], dtype, False, True)
    assert disagreements(population, dataset, dtype, [("mse", False), ("mae", True)], Counter()) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_agrees_on_every_mix_of_columns_constants_and_tiles(dtype):
    rng = np.random.default_rng(0)
    columns = np.array(random_rows(rng, 65, dtype))
    dataset = Dataset(columns.astype(np.float64), np.zeros(65), None, PRIMITIVES.features)
    tapes, expected = [], []
    for function in PRIMITIVES.functions:
        leaves = [1 + i % 3 for i in range(function.arity)]
        parameters = tuple(f"p{i}" for i in range(function.arity))
        text = f"{function.name}({', '.join(parameters)})"
        kernel = Kernel(shine.parse(text, parameters, TABLE), dtype, "O0")
        for kinds in np.ndindex((3,) * function.arity):
            numbers = rng.normal(size=function.arity).astype(dtype)
            operands = list(zip(kinds, leaves, numbers, strict=True))
            nodes = [((leaf,), (float(value),), (leaf, "abs"))[kind] for kind, leaf, value in operands]
            tapes.append(tape(*(node for operand in nodes for node in operand), function.name))
            values = [
                (columns[leaf - 1], np.full(65, value), np.abs(columns[leaf - 1]))[kind]
                for kind, leaf, value in operands
            ]
            expected.append(kernel(*values))
    predicted = MachineEvaluator(dataset, "mse", False, dtype).predict(Population.from_tapes(tapes, PRIMITIVES))
    assert same_bits(predicted, np.array(expected)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_individuals_of_one_leaf_or_of_constants_only_agree(dtype):
    constants = (0.0, -0.0, 1.5, 1e300, -1e-320, 5e-324, np.inf, np.nan)
    population = Population.from_tapes(
        [
            *(tape(feature) for feature in (1, 2, 3)),
            *(tape(constant) for constant in constants),
            *(tape(constant, 0.1, name) for constant in constants for name in ("add", "sub", "div")),
            tape(1.0, 2.0, "sub", 3.0, 4.0, "sub", "div"),
            tape(2.0, "sqrt"),
            tape(1.0, 2.0, 3.0, "where"),
            tape(1.0, 2.0, 3.0, 4.0, 5.0, "of_five"),
        ],
        PRIMITIVES,
    )
    with np.errstate(over="ignore"):
        for rows in (1, 65):
            dataset = random_dataset(np.random.default_rng(rows), rows, dtype, True, False)
            assert disagreements(population, dataset, dtype, [("mse", False), ("r2", True)], Counter()) == []


def test_all_functions_and_shapes_are_drawn():
    population, shapes = random_population(np.random.default_rng(0), 400, 40)
    assert set(population.codes.ravel().tolist()) == set(range(len(PRIMITIVES.arities)))
    assert set(shapes) == set(SHAPES)
    assert {TABLE["of_five"].arity, TABLE["of_one"].arity} == {5, 1}


MISTAKES = {
    "a wrong bit in one row": lambda p: np.nextafter(
        p, np.inf, out=p.copy(), where=np.arange(p.size).reshape(p.shape) == 7
    ),
    "a lost sign of zero": lambda p: p + 0.0 * np.abs(p),
    "rows shifted by one": lambda p: np.roll(p, 1, axis=1),
}
"""Mistakes that the check must notice."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_prediction_is_noticed(mistake, monkeypatch):
    original = MachineEvaluator.predict
    monkeypatch.setattr(
        MachineEvaluator, "predict", lambda self, population: MISTAKES[mistake](original(self, population))
    )
    population = Population.from_tapes([tape(1), tape(1, "neg"), tape(-0.0)], PRIMITIVES)
    dataset = Dataset(np.random.default_rng(0).normal(size=(3, 65)), np.zeros(65), None, PRIMITIVES.features)
    assert disagreements(population, dataset, "float64", [], Counter())


def test_a_wrong_loss_is_noticed(monkeypatch):
    original = MachineEvaluator.score

    def wrong(self, population, threshold=np.inf):
        scores = original(self, population, threshold)
        return type(scores)(np.nextafter(scores.losses, np.inf), scores.slopes, scores.intercepts)

    monkeypatch.setattr(MachineEvaluator, "score", wrong)
    population = Population.from_tapes([tape(1)], PRIMITIVES)
    dataset = random_dataset(np.random.default_rng(0), 65, "float64", False, False)
    assert disagreements(population, dataset, "float64", [("mse", False)], Counter())
