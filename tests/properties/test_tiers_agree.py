"""All tiers agree: reference, native code, machine, gradient machine and their mixture; and the check would notice.

`helpers/agreement.py` lists what is compared. The individuals are the same in all tests of a number type, and compiled
once. The rows vary: their number, around the sizes of vectors, tiles and chunks; special values; magnitudes; weights;
and the threads that share them.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from helpers.agreement import (
    ASKED,
    Tiers,
    primitive_disagreements,
    random_dataset,
    reference_predictions,
    row_counts,
)
from helpers.equality import same_bits
from helpers.formulas import VOCABULARIES, random_tree
from helpers.markers import mostly_slow
from helpers.populations import PRIMITIVES, SHAPES, TABLE, random_individual, random_population
from helpers.rows import random_rows
from llvmlite import ir

import shine
from shine.compiler.codegen.lowering import FLOAT_LOWERINGS, Emitter
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.losses import loss_for
from shine.evaluate.tiers import machine_rows
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import CONSTANT
from shine.lang.forms.tape import Tape
from shine.lang.population import Population

each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])

WRITTEN = [
    "a**2", "square(a)", "a*a", "a**3", "cube(a)", "a**b", "2**a", "(a + 1)**2.5", "a**-1", "abs(a)**0.5",
    "exp(a)*b**3", "a", "3.5", "b - b", "sqrt(a)", "1/(a - a)", "sin(a)*cos(b) + 0.1*c", "a*1e200", "a*1e-200",
]  # fmt: skip
"""Formulas that people write, some of them constant, undefined, huge or tiny."""

CONSTANTS = (0.0, -0.0, 1.5, 1e300, -1e-320, 5e-324, np.inf, np.nan)


def tape(*nodes: int | float | str) -> Tape:
    """A tape of features (their codes, integers), constants (floats) and functions (names), in postfix order."""
    codes = [
        PRIMITIVES.function_codes[node] if isinstance(node, str) else CONSTANT if isinstance(node, float) else node
        for node in nodes
    ]
    return Tape(np.array(codes, np.int16), np.array([node if isinstance(node, float) else 0.0 for node in nodes]))


def individuals(seed: int) -> Population:
    """Formulas as people write them, random ones of every shape, single leaves, and formulas of constants."""
    rng = np.random.default_rng(seed)
    usual = [random_tree(rng, VOCABULARIES[i % len(VOCABULARIES)], int(rng.integers(1, 40))) for i in range(16)]
    written = [shine.parse(text, PRIMITIVES.features) for text in WRITTEN]
    leaves = [
        *(tape(feature) for feature in (1, 2, 3)),
        *(tape(constant) for constant in CONSTANTS),
        *(tape(constant, 0.1, name) for constant in CONSTANTS for name in ("add", "div")),
        tape(1.0, 2.0, "sub", 3.0, 4.0, "sub", "div"),
        tape(2.0, "sqrt"),
        tape(1.0, 2.0, 3.0, "where"),
        tape(1.0, 2.0, 3.0, 4.0, 5.0, "of_five"),
    ]
    shaped, _ = random_population(rng, 12, 60)
    each = Population.from_trees([*usual, *written], PRIMITIVES)
    tapes = [*(each.tape(i) for i in range(len(each))), *(shaped.tape(i) for i in range(len(shaped))), *leaves]
    return Population.from_tapes(tapes, PRIMITIVES)


@pytest.fixture(scope="module")
def tiers() -> dict[str, Tiers]:
    """The same individuals, compiled for each number type."""
    return {dtype: Tiers(individuals(0), dtype) for dtype in ("float64", "float32")}


@pytest.mark.slow
@pytest.mark.parametrize("rows", mostly_slow(range(9), fast=[7]))
@each_dtype
def test_all_tiers_agree_around_the_sizes_of_vectors_tiles_and_chunks(dtype, rows, tiers):
    rng, count = np.random.default_rng([rows, len(dtype)]), row_counts(dtype)[rows]
    # Weights and special values take turns, so that each size sees both.
    special = bool(rows % 2)
    assert tiers[dtype].disagreements(random_dataset(rng, count, dtype, special, not special)) == []
    some = ASKED[rows % len(ASKED) :: 3]
    assert tiers[dtype].disagreements(random_dataset(rng, count, dtype, not special, special), some) == []


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_they_agree_at_the_ends_of_the_range(scale, tiers):
    data = random_dataset(np.random.default_rng(0), 500, "float64", False, False)
    scaled = Dataset(data.columns * scale, data.target * scale, None, data.features)
    assert tiers["float64"].disagreements(scaled) == []


def exact_error(predictions: list[float], target: list[float], weights: list[float]) -> tuple[Fraction, Fraction]:
    """Mean squared error of the best line, in exact arithmetic, and its slope."""
    p, y, w = ([Fraction(each) for each in column] for column in (predictions, target, weights))
    whole = sum(w)
    p, y = ([each - sum(map(mul, w, column)) / whole for each in column] for column in (p, y))
    square, product = sum(a * b * b for a, b in zip(w, p, strict=True)), sum(map(mul, w, map(mul, p, y)))
    slope = product / square if square else Fraction(0)
    return (sum(a * b * b for a, b in zip(w, y, strict=True)) - slope * product) / whole, slope


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["reference", "machine", "native"])
@pytest.mark.parametrize("weighted", [False, True])
@each_dtype
def test_a_scaled_loss_is_right_at_every_scale_or_the_line_is_none(dtype, weighted, tier):
    rng, facts = np.random.default_rng(0), np.finfo(dtype)
    X = rng.uniform(0.5, 2, (21, 2))
    y, weights = X[:, 0] * X[:, 1] + rng.normal(size=21), rng.uniform(0.1, 9, 21) if weighted else None
    scales = [2.0**exponent for exponent in range(-1074, 1023, 31)]
    sources = [f"{scale!r}*(x0 + {offset})" for scale in scales for offset in (0.0, 1e3)]
    population = shine.Population.from_sources(sources)
    data = Dataset.from_arrays(X, y, sample_weight=weights)
    scores = evaluator_of(data, "mse", True, dtype, tier).score(population)
    predictions = evaluator_of(data, "mse", False, dtype, "reference").predict(population)
    constant = data.target_square / data.weight
    for loss, values in zip(scores.losses.tolist(), predictions.astype(float), strict=True):
        largest = abs(values).max()
        if not np.isfinite(largest):
            assert loss == np.inf
            continue
        spread = largest * np.std(values / largest) if largest else 0.0
        if spread <= 8 * float(facts.eps) * max(float(facts.tiny), largest):
            assert loss == pytest.approx(constant)  # it varies by rounding only
        elif spread > 256 * float(facts.eps) * float(facts.tiny):
            error, slope = exact_error(values.tolist(), y.tolist(), data.row_weights.tolist())
            representable = 2.0**-1019 < abs(slope) < 2.0**1023
            assert loss == (pytest.approx(float(error), rel=1e-6) if representable else np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["log_cosh", "student_t"])
@each_dtype
def test_sums_of_logarithms_have_the_same_bits_in_machine_and_native_code(dtype, loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1100, 2))
    X[700] = 1e6  # beyond the range of products of logarithms
    population = shine.Population.from_sources(["x0 + x1", "x0*x1 - 3"])
    for rows in (1, 255, 256, 257, 600, 1100):
        for weights in (None, rng.uniform(0.5, 2, rows)):
            data = Dataset.from_arrays(X[:rows], X[:rows, 0] ** 2, sample_weight=weights)
            found = [evaluator_of(data, loss_for(loss, data), False, dtype, tier) for tier in ("machine", "native")]
            assert same_bits(*(each.score(population).losses for each in found)).all(), (rows, weights is None)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 500])
@each_dtype
def test_they_agree_whatever_the_number_of_threads(dtype, threads, tiers, monkeypatch):
    monkeypatch.setattr(machine_rows, "SHARED_WORK", 0)
    data = random_dataset(np.random.default_rng(threads), row_counts(dtype)[-1], dtype, False, True)
    assert tiers[dtype].disagreements(data, ASKED[1::4], threads) == []


@pytest.mark.slow
@pytest.mark.parametrize("size", mostly_slow([300, 1000], fast=[300]))
@pytest.mark.parametrize("dtype", mostly_slow(["float64", "float32"], fast=["float64"]))
def test_large_individuals_agree(dtype, size):
    rng = np.random.default_rng(size)
    large = Population.from_tapes([random_individual(rng, shape, size) for shape in SHAPES], PRIMITIVES)
    assert large.sizes.max() > 0.8 * size
    data = random_dataset(rng, row_counts(dtype)[6], dtype, False, True)
    assert Tiers(large, dtype, "O0").disagreements(data, [("mse", False), ("mae", True)]) == []


def operand(kind: str, feature: int, number: float, columns: np.ndarray) -> tuple[tuple, np.ndarray]:
    """Nodes and values of an operand: a column, a constant, or a tile that the machine has computed."""
    column = columns[feature - 1]
    return {
        "column": lambda: ((feature,), column),
        "constant": lambda: ((number,), np.full(column.shape, number, column.dtype)),
        "tile": lambda: ((feature, "abs"), np.abs(column)),
    }[kind]()


@pytest.mark.slow
@each_dtype
def test_every_function_agrees_on_every_mix_of_columns_constants_and_tiles(dtype):
    rng = np.random.default_rng(0)
    columns = np.array(random_rows(rng, 65, dtype))
    tapes, compiled = [], []
    for function in PRIMITIVES.functions:
        parameters = tuple(f"p{i}" for i in range(function.arity))
        kernel = Kernel(shine.parse(f"{function.name}({', '.join(parameters)})", parameters, TABLE), dtype, "O0")
        for kinds in itertools.product(("column", "constant", "tile"), repeat=function.arity):
            operands = [operand(kind, 1 + i % 3, float(rng.normal()), columns) for i, kind in enumerate(kinds)]
            tapes.append(tape(*(node for nodes, _ in operands for node in nodes), function.name))
            compiled.append(kernel(*(values for _, values in operands)))
    dataset = Dataset(columns.astype(np.float64), np.zeros(65), None, PRIMITIVES.features)
    population = Population.from_tapes(tapes, PRIMITIVES)
    predicted = MachineEvaluator(dataset, "mse", False, dtype).predict(population)
    assert same_bits(predicted, np.array(compiled)).all()
    assert same_bits(predicted, reference_predictions(population, columns, dtype)).all()


@pytest.mark.slow
@each_dtype
def test_every_inexact_primitive_is_within_two_ulp_of_numpy(dtype):
    assert primitive_disagreements(np.random.default_rng(2), 20_000, dtype) == []


def test_no_rows_have_no_predictions_and_no_loss(tiers):
    nothing = [np.empty(0)] * 3
    assert tiers["float64"].predictions(nothing).shape == (len(tiers["float64"].population), 0)
    for tier in ("machine", "native", "reference"):
        with pytest.raises(shine.DataError, match="at least one row"):
            shine.Evaluator(np.empty((0, 3)), np.empty(0), tier=tier)


# The check would notice


def test_the_individuals_have_all_functions_and_shapes():
    population, shapes = random_population(np.random.default_rng(0), 400, 40)
    assert set(population.codes.ravel().tolist()) == set(range(len(PRIMITIVES.arities)))
    assert set(shapes) == set(SHAPES)
    assert {TABLE["of_five"].arity, TABLE["of_one"].arity} == {5, 1}


def _fused(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of a product rounded once."""
    if getattr(a, "opname", None) != "fmul":
        return emit.builder.fadd(a, b)
    return emit.intrinsic("llvm.fma", *a.operands, b)


WRONG = {
    "a difference that is a sum": ("sub", lambda emit, a, b: emit.builder.fadd(a, b)),
    "a fused sum of a product": ("add", _fused),
    "a maximum that forgets NaN": ("max", lambda emit, a, b: emit.builder.select(emit.compare(">", a, b), a, b)),
    "a negation that loses the sign of zero": ("neg", lambda emit, a: emit.builder.fsub(emit.constant(0), a)),
}
"""Wrong lowerings that the check must notice."""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_lowering_is_noticed(mistake, monkeypatch):
    name, rule = WRONG[mistake]
    data = random_dataset(np.random.default_rng(0), 200, "float64", True, False)
    assert Tiers(individuals(0), "float64").disagreements(data, []) == []
    monkeypatch.setitem(FLOAT_LOWERINGS, name, rule)
    assert any("reference" in line for line in Tiers(individuals(0), "float64").disagreements(data, []))


@pytest.mark.slow
def test_an_error_of_a_few_ulp_in_one_primitive_is_noticed(monkeypatch):
    rule = FLOAT_LOWERINGS["sin"]
    monkeypatch.setitem(
        FLOAT_LOWERINGS, "sin", lambda emit, a: emit.builder.fmul(rule(emit, a), emit.constant(1 + 2.0**-50))
    )
    found = primitive_disagreements(np.random.default_rng(4), 2000, "float64")
    assert found
    assert all("sin at" in line for line in found)
