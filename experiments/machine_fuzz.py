"""Do the three tiers agree on whole populations? Random tapes of every shape and size over random rows.

    python experiments/machine_fuzz.py [--trees 1000] [--seed 0] [--largest 1000]

Each batch draws a number type, rows, functions (all of Shine's and two of a user's) and individuals, and checks:

1. Predictions of the machine have the bits of the native tier's.
2. So have losses, slopes and intercepts, with and without weights and linear scaling.
3. Where all functions are exact, predictions have the bits of the reference, and losses are within rounding of its.

Each disagreement is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from agreement import BASIC_EXACT, WRITTEN, random_rows, same_bits
from numpy.typing import NDArray
from tqdm import tqdm

from shine import PrimitiveSet
from shine.codegen.machine.machine import tile_rows
from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.native_tier import NativeEvaluator, NativeFitness
from shine.evaluators.reference_tier import ReferenceEvaluator
from shine.evaluators.rows import Rows, target_of
from shine.fitness.losses import LOSSES
from shine.fitness.scores import Scores, score
from shine.lang.parse import primitive_table
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT
from shine.lang.tape import Tape
from shine.lang.tree import Primitive

FEATURES = ("a", "b", "c")


def of_five(a, b, c, d, e):
    """A user's function with more arguments than any of Shine's."""
    largest = max(a, b)
    return largest - c * d if e > 0 else c + d / 2


def of_one(x):
    """A user's function of one argument."""
    return x * x + 1 if x < 1 else sqrt(x) + 1  # noqa: F821 - in the language


TABLE = primitive_table([of_five, of_one])[0]
"""All functions by name: Shine's, basic and composite, and the user's."""

PRIMITIVES = PrimitiveSet(tuple(TABLE.values()), FEATURES)


def is_exact(primitive: Primitive) -> bool:
    """Whether a function is made of operations that round correctly."""
    if primitive.definition is None:
        return primitive.name in BASIC_EXACT
    calls = {token[0] for token in primitive.definition.tokens[1:] if token[0] in TABLE}
    return all(is_exact(TABLE[name]) for name in calls)


EXACT_CODES = frozenset(PRIMITIVES.function_codes[name] for name in TABLE if is_exact(TABLE[name]))
"""Codes of the functions that have the same bits in the reference tier."""

TAME = ("add", "sub", "min", "max", "abs", "neg", "where", "of_five", "relu", "aq", "mul", "protected_div")
"""Functions under which large trees mostly stay finite."""

USUAL = ("add", "sub", "mul", "div", "pow", "square", "cube", "inv", "sqrt", "neg", "abs", "exp", "log", "sin")
"""Functions of the formulas that people write."""


@dataclass
class Writer:
    """Postfix tapes of random leaves and of functions drawn from some."""

    rng: np.random.Generator
    functions: tuple[Primitive, ...]
    constant_share: float
    primitives: PrimitiveSet = PRIMITIVES
    codes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def leaf(self) -> None:
        """Append a feature or a constant."""
        constant = self.rng.random() < self.constant_share
        self.codes.append(CONSTANT if constant else int(self.rng.integers(1, 1 + len(FEATURES))))
        kind = self.rng.random()
        ordinary = float(self.rng.normal() * 10.0 ** self.rng.integers(-2, 3))
        special = float(self.rng.choice([0.0, -0.0, 1.0, -1.0, 1e30, 1e-40, 5e-324, np.inf, np.nan]))
        value = special if kind < 0.1 else float(self.rng.choice(WRITTEN)) if kind < 0.6 else ordinary
        self.values.append(value if constant else 0.0)

    def function(self, least: int = 1, most: int = 5) -> Primitive | None:
        """One of the functions with an arity in a range, if there is any."""
        fits = [function for function in self.functions if least <= function.arity <= most]
        return fits[int(self.rng.integers(len(fits)))] if fits else None

    def apply(self, function: Primitive) -> None:
        """Append a function."""
        self.codes.append(self.primitives.function_codes[function.name])
        self.values.append(0.0)

    def tape(self) -> Tape:
        """What was written."""
        return Tape(np.array(self.codes, np.int16), np.array(self.values))


def left_chain(writer: Writer, size: int) -> None:
    """Each function's first argument is the chain so far."""
    writer.leaf()
    while len(writer.codes) < size and (function := writer.function()):
        for _ in range(function.arity - 1):
            writer.leaf()
        writer.apply(function)


def right_chain(writer: Writer, size: int) -> None:
    """Each function's last argument is the rest of the chain."""
    functions = []
    nodes = 1
    while nodes < size and (function := writer.function()):
        functions.append(function)
        for _ in range(function.arity - 1):
            writer.leaf()
        nodes += function.arity
    writer.leaf()
    for function in reversed(functions):
        writer.apply(function)


def balanced(writer: Writer, size: int) -> None:
    """Each function's arguments are about equally large."""
    function = writer.function() if size > 1 else None
    if function is None:
        writer.leaf()
        return
    for _ in range(function.arity):
        balanced(writer, (size - 1) // function.arity)
    writer.apply(function)


def comb(writer: Writer, size: int) -> None:
    """Many values are alive before the first of them is used: one for each four nodes or so."""
    teeth, start = 0, len(writer.codes)
    while len(writer.codes) - start + teeth < size and (function := writer.function()):
        for _ in range(function.arity):
            writer.leaf()
        writer.apply(function)
        teeth += 1
    if not teeth:
        writer.leaf()
    while teeth > 1:
        function = writer.function(2, min(5, teeth)) or TABLE["add"]
        writer.apply(function)
        teeth -= function.arity - 1


def mixed(writer: Writer, size: int) -> None:
    """Functions are applied at random to what is on the stack."""
    height = 0
    while len(writer.codes) < size or height != 1:
        growing = len(writer.codes) < size
        function = writer.function(1 if growing else 2, height) if height else None
        if not growing and function is None:
            function = TABLE["add"] if height > 1 else None
        if function is None or (growing and writer.rng.random() < 0.5):
            writer.leaf()
            height += 1
        else:
            writer.apply(function)
            height += 1 - function.arity


SHAPES = {shape.__name__: shape for shape in (left_chain, right_chain, balanced, comb, mixed)}
"""How tapes are made, by name."""


def random_individual(rng: np.random.Generator, shape: str, size: int) -> Tape:
    """A tape of about `size` nodes, of a few functions drawn at random."""
    kind = rng.random()
    names = TAME if size > 50 or kind < 0.3 else USUAL if kind < 0.6 else tuple(TABLE)
    chosen = rng.choice(names, size=min(len(names), int(rng.integers(1, 8))), replace=False)
    constants = float(rng.choice([0.0, 0.3, 0.6, 1.0], p=[0.2, 0.4, 0.35, 0.05]))
    writer = Writer(rng, tuple(TABLE[str(name)] for name in chosen), constants)
    SHAPES[shape](writer, size)
    return writer.tape()


def random_population(rng: np.random.Generator, count: int, largest: int) -> tuple[Population, list[str]]:
    """Individuals of all shapes; half of them small, the others of any size up to the largest."""
    shapes = [str(shape) for shape in rng.choice(list(SHAPES), count)]
    limits = np.where(rng.random(count) < 0.5, min(20, largest), largest)
    sizes = rng.integers(1, limits + 1)
    tapes = [random_individual(rng, shape, int(size)) for shape, size in zip(shapes, sizes, strict=True)]
    return Population.from_tapes(tapes, PRIMITIVES), shapes


def random_dataset(rng: np.random.Generator, rows: int, dtype: str, special: bool, weighted: bool) -> Dataset:
    """Rows with or without special values; made without the check that all values are finite."""
    columns = random_rows(rng, rows, dtype) if special else rng.normal(size=(len(FEATURES), rows)) * 2
    weights = rng.choice([0.0, 0.5, 1.0, 3.7], rows) if weighted else None
    if weights is not None:
        weights[rng.integers(rows)] = 2.5
    return Dataset(np.array(columns, np.float64), rng.normal(size=rows), weights, FEATURES)


def exact_individuals(population: Population) -> NDArray[np.bool_]:
    """Which individuals have only functions that are exact."""
    codes = np.array(sorted(EXACT_CODES), np.int16)
    return (np.isin(population.codes, codes) | (population.codes < PRIMITIVES.first_function)).all(axis=1)


def native_scores(population: Population, dataset: Dataset, dtype: str, asked: list[tuple[str, bool]]) -> list[Scores]:
    """Scores of the native tier for several losses, compiled once."""
    trees = [population.tree(i) for i in range(len(population))]
    compiled = NativeFitness(trees, dtype, "O0", selection=1)
    try:
        measure, target = compiled.over(Rows(dataset, dtype)), target_of(dataset, dtype)
        return [score(measure, len(trees), target, loss, scaling) for loss, scaling in asked]
    finally:
        compiled.close()


def disagreements(
    population: Population, dataset: Dataset, dtype: str, asked: list[tuple[str, bool]], counts: Counter[str]
) -> list[str]:
    """What contradicts the three statements for one population and data set."""
    found = []

    def report(what: str, which: NDArray[np.bool_], first: NDArray, second: NDArray) -> None:
        for index in np.flatnonzero(which)[:3]:
            text = str(population.tree(int(index)))[:200]
            pair = np.atleast_1d(first[index])[:3], np.atleast_1d(second[index])[:3]
            found.append(f"{dtype}, {dataset.n_rows} rows, {what}: {text}: {pair[0]} and {pair[1]}")

    def different(first: NDArray, second: NDArray) -> NDArray[np.bool_]:
        same = same_bits(first, second)
        return ~(same.all(axis=1) if same.ndim == 2 else same)

    exact = exact_individuals(population)
    predictions = MachineEvaluator(dataset, "mse", False, dtype).predict(population)
    native = NativeEvaluator(dataset, "mse", False, dtype).predict(population)
    reference = ReferenceEvaluator(dataset, "mse", False, dtype).predict(population)
    report("prediction of machine and native", different(predictions, native), predictions, native)
    report("prediction of machine and reference", different(predictions, reference) & exact, predictions, reference)
    counts["predictions"] += predictions.size
    counts["finite predictions"] += int(np.isfinite(predictions).sum())
    counts["predictions compared with the reference"] += int(exact.sum()) * dataset.n_rows
    for (loss, scaling), compiled in zip(asked, native_scores(population, dataset, dtype, asked), strict=True):
        scores = MachineEvaluator(dataset, loss, scaling, dtype).score(population)
        for name in ("losses", "slopes", "intercepts"):
            first, second = getattr(scores, name), getattr(compiled, name)
            report(f"{loss}, scaled {scaling}, {name} of machine and native", different(first, second), first, second)
        expected = ReferenceEvaluator(dataset, loss, False, dtype).score(population).losses
        with np.errstate(all="ignore"):
            close = np.isclose(scores.losses, expected, rtol=1e-10, atol=0) | (scores.losses == expected)
        # Where squares come near the largest number, sums in another order may overflow; scaled losses are compared
        # in the tests of losses.
        ordinary = exact & (np.maximum(scores.losses, expected) < 1e300)
        if not scaling:
            report(f"{loss} of machine and reference", ~close & ordinary, scores.losses, expected)
        counts["losses"] += len(population)
        counts["finite losses"] += int(np.isfinite(scores.losses).sum())
    return found


def row_counts(dtype: str) -> list[int]:
    """Rows around the sizes at which the machine does something else."""
    tile = tile_rows(dtype)
    return [1, 63, 64, 65, tile - 1, tile, tile + 1, 2 * tile + 1, 10_007]


def batch(rng: np.random.Generator, count: int, largest: int, dtype: str, rows: int, counts: Counter[str]) -> list[str]:
    """What a random population over random rows disagrees in."""
    population, shapes = random_population(rng, count, largest)
    dataset = random_dataset(rng, rows, dtype, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    losses = list(LOSSES)
    asked = [(str(rng.choice(losses)), scaling) for scaling in (False, True)]
    counts.update({f"trees of shape {shape}": shapes.count(shape) for shape in set(shapes)})
    counts["trees"] += count
    counts["nodes"] += int(population.sizes.sum())
    counts["largest tree"] = max(counts["largest tree"], int(population.sizes.max()))
    with np.errstate(all="ignore"):
        return disagreements(population, dataset, dtype, asked, counts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=1000, help="nodes")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts: Counter[str] = Counter()
    found: list[str] = []
    begin = time.perf_counter()
    with tqdm(total=options.trees, unit="tree", disable=None) as progress:
        while counts["trees"] < options.trees:
            dtype = ("float64", "float32")[int(rng.integers(2))]
            rows = int(rng.choice(row_counts(dtype))) if rng.random() < 0.7 else int(rng.integers(1, 3000))
            count = min(int(rng.choice([1, 3, 20])), options.trees - counts["trees"])
            found += batch(rng, count, options.largest, dtype, rows, counts)
            progress.update(count)
    print("\n".join(found[:50]))
    for name, number in sorted(counts.items()):
        print(f"{name}: {number}")
    print(f"{time.perf_counter() - begin:.0f} s, {len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
