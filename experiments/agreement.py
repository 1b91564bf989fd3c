"""Do all tiers agree? Random trees, as people write them, over random rows, special values among them.

    python experiments/agreement.py [--pairs 10000000] [--seed 0]

Five statements are checked, and each disagreement is printed:

1. Trees of + - * / sqrt (and the other primitives that are exact) have the same bits in both tiers.
2. Every other primitive alone is within 2 ulp of NumPy, whose own error is up to 1 ulp or so.
3. A whole tree has the bits of its primitives applied one by one: compiling them together changes nothing.
4. The machine has the bits of the native tier.
5. So have the values that the gradient machine computes on its way to derivatives.

All but the second hold to the bit. Together they say that the reference and the others agree up to 2 ulp a primitive,
without having to guess how errors grow in a tree, and the others among themselves altogether.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from shine import Population, PrimitiveSet
from shine.data.dataset import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import MachineEvaluator
from shine.kernels.jit import jit
from shine.kernels.kernel import Kernel
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.library import STANDARD
from shine.lang.primitives import CONSTANT
from shine.lang.tape import tree_from_tape
from shine.lang.tree import Tree

EXACT = ("add", "sub", "mul", "div", "sqrt")
BASIC_EXACT = (*EXACT, "neg", "abs", "min", "max", "floor", "ceil", "sign", "where", "lt", "le", "gt", "ge", "eq", "ne",
               "logical_and", "logical_or", "logical_not", "floordiv", "mod")  # fmt: skip
APPROXIMATE = ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "pow")
COMPOSITE = tuple(name for name, primitive in STANDARD.items() if primitive.definition is not None)
FEATURES = ("a", "b", "c")

VOCABULARIES = (EXACT, BASIC_EXACT, BASIC_EXACT + APPROXIMATE, BASIC_EXACT + APPROXIMATE + COMPOSITE)
"""Primitives of the trees: some are exact, some are all."""

EXPONENTS = (2.0, 3.0, -1.0, 0.5, 1 / 3, 4.0, -2.0, 1.5, 2 / 3, -0.5, 1.0, 0.0, 5.0)
"""Exponents that people write."""

WRITTEN = (
    *EXPONENTS, *map(float, range(-10, 11)), 0.25, 0.1, 100.0, 1000.0, 1e-3, np.pi, 2 * np.pi, np.e
)  # fmt: skip
"""Numbers that people write."""


def idiom(rng: np.random.Generator, names: tuple[str, ...]) -> list[str | float] | None:
    """What people write of one value x, as postfix: x**2, 2**x, x*x; None if its function is not among the names.

    ``"x"`` stands for the value, which comes first.
    """
    exponent, feature = float(rng.choice(EXPONENTS)), str(rng.choice(FEATURES))
    forms: list[list[str | float]] = [
        ["x", exponent, "pow"], ["x", exponent, "pow"], [float(rng.choice([2.0, 10.0, np.e])), feature, "pow"],
        [feature, feature, "mul"], [feature, feature, "mul", feature, "mul"], ["x", "square"], ["x", "cube"],
        ["x", float(rng.choice(WRITTEN)), "mul"], [1.0, feature, "div"],
    ]  # fmt: skip
    form = forms[int(rng.integers(len(forms)))]
    return form if all(not isinstance(part, str) or part in ("x", *FEATURES, *names) for part in form) else None


def random_tree(rng: np.random.Generator, names: tuple[str, ...], size: int) -> Tree:
    """A random tree of about `size` nodes: random nodes are applied to what is on the stack until one value is left."""
    primitives = PrimitiveSet(tuple(STANDARD[name] for name in names), FEATURES)
    codes: list[int] = []
    values: list[float] = []
    height = 0
    # Powers soon leave the range of numbers, and then a tree shows nothing else: half of them have none on purpose.
    usual = rng.random() < 0.5
    while len(codes) < size or height != 1:
        fits = [f.name for f in primitives.functions if f.arity <= height]
        growing = len(codes) < size
        # Past the size, only what makes the stack lower is of use.
        fits = [name for name in fits if growing or STANDARD[name].arity > 1]
        form = idiom(rng, names) if usual and growing and height and rng.random() < 0.2 else None
        if form is not None:
            for part in form[form[0] == "x" :]:
                known = primitives.function_codes | primitives.feature_codes
                codes.append(known[part] if isinstance(part, str) else CONSTANT)
                values.append(0.0 if isinstance(part, str) else part)
            height += form[0] != "x"
        elif not fits or (growing and rng.random() < 0.5):
            constant = rng.random() < 0.3
            codes.append(CONSTANT if constant else int(rng.integers(1, 1 + len(FEATURES))))
            written = usual and rng.random() < 0.5
            number = rng.choice(WRITTEN) if written else rng.normal() * 10.0 ** rng.integers(-3, 4)
            values.append(float(number) if constant else 0.0)
            height += 1
        else:
            name = fits[int(rng.integers(len(fits)))]
            codes.append(primitives.function_codes[name])
            values.append(0.0)
            height += 1 - STANDARD[name].arity
    return tree_from_tape(np.array(codes, np.int16), np.array(values), primitives)


def random_rows(rng: np.random.Generator, rows: int, dtype: str) -> list[NDArray[np.floating]]:
    """Columns of ordinary numbers, of all magnitudes, of subnormal and of special values.

    Some have whole numbers or those that people write in place of ordinary ones, some have no negative ones.
    """
    info = np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 0.5, np.pi]
    )
    columns = []
    for _ in FEATURES:
        ordinary = rng.normal(size=rows) * 3
        wide = np.ldexp(rng.uniform(-1, 1, rows), rng.integers(info.minexp, info.maxexp, rows))
        kind = rng.random(rows)
        style = rng.random()
        if style < 0.1:
            ordinary = rng.integers(-10, 11, rows).astype(np.float64)
        elif style < 0.2:
            ordinary = rng.choice(WRITTEN, rows)
        elif style < 0.3:
            ordinary, wide = np.abs(ordinary), np.abs(wide)
        elif style < 0.35:
            wide = rng.normal(size=rows) * float(info.tiny)
        column = np.where(kind < 0.8, ordinary, np.where(kind < 0.95, wide, rng.choice(special, rows)))
        with np.errstate(over="ignore", under="ignore"):
            columns.append(column.astype(dtype))
    return columns


def same_bits(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Where two arrays are identical, signs of zero included; all NaNs count as one."""
    nan = np.isnan(first) & np.isnan(second)
    return nan | ((first == second) & (np.signbit(first) == np.signbit(second)))


def ulps(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.floating]:
    """Distance in units of the last place of the second."""
    with np.errstate(all="ignore"):
        distance = np.abs(first - second) / np.spacing(np.abs(second))
    return np.where(
        (first == second) | (np.isnan(first) & np.isnan(second)), 0, np.where(np.isfinite(distance), distance, np.inf)
    )


@contextmanager
def primitives_compiled_alone(dtype: str) -> Iterator[None]:
    """Within the context, the reference tier takes the inexact primitives from kernels of one primitive each."""
    original = dict(REFERENCE)
    arguments = {name: ("x", "y")[: STANDARD[name].arity] for name in APPROXIMATE}
    for name in APPROXIMATE:
        REFERENCE[name] = jit(f"{name}({', '.join(arguments[name])})", params=arguments[name], dtype=dtype)
    try:
        yield
    finally:
        REFERENCE.update(original)


def tree_disagreements(rng: np.random.Generator, trees: int, rows: int, dtype: str) -> list[str]:
    """What contradicts statements 1 and 3 among random trees."""
    found = []
    with primitives_compiled_alone(dtype):
        for number in range(trees):
            tree = random_tree(rng, VOCABULARIES[number % len(VOCABULARIES)], int(rng.integers(1, 40)))
            columns = random_rows(rng, rows, dtype)
            native = np.broadcast_to(Kernel(tree, dtype, "O1")(*columns), rows)
            expected = evaluate(tree, columns, dtype)
            for row in np.flatnonzero(~same_bits(native, expected))[:3]:
                at = [float(column[row]) for column in columns]
                found.append(f"{dtype}: {str(tree)[:300]} at {at}: native {native[row]!r}, reference {expected[row]!r}")
    return found


PRIMITIVES = PrimitiveSet(tuple(STANDARD.values()), FEATURES)
"""What the machines are compiled for: once, and kept on disk."""

GRADIENT_ROWS = 25
"""Rows of a tree that the gradient machine is asked for, one at a time: it adds them up otherwise."""


def machine_disagreements(rng: np.random.Generator, trees: int, rows: int, dtype: str) -> list[str]:
    """What contradicts statements 4 and 5 among random trees."""
    found = []
    sizes = rng.integers(1, 40, trees).tolist()
    each = [random_tree(rng, VOCABULARIES[i % len(VOCABULARIES)], size) for i, size in enumerate(sizes)]
    population, columns = Population.from_trees(each, PRIMITIVES), random_rows(rng, rows, dtype)
    # Made without the check that all values are finite.
    dataset = Dataset(np.array(columns, np.float64), np.zeros(rows), None, FEATURES)
    native = np.array([np.broadcast_to(Kernel(tree, dtype, "O1")(*columns), rows) for tree in each])
    others = {"machine": (native, MachineEvaluator(dataset, "mse", False, dtype).predict(population))}
    if dtype == "float64":
        chosen = rng.choice(rows, min(rows, GRADIENT_ROWS), replace=False)
        values = np.array([gradient_values(population, [float(c[row]) for c in columns]) for row in chosen]).T
        expected = np.abs(native[:, chosen])
        others["gradient machine"] = np.where(np.isfinite(expected), expected, np.inf), values
    for name, (first, second) in others.items():
        for tree, row in np.argwhere(~same_bits(first, second))[:3]:
            found.append(f"{dtype}: {str(each[tree])[:300]}: native {first[tree, row]!r}, {name} {second[tree, row]!r}")
    return found


def gradient_values(population: Population, row: list[float]) -> NDArray[np.float64]:
    """What the gradient machine has for individuals over one row, without its sign; inf where it is not finite."""
    dataset = Dataset(np.array(row)[:, None], np.zeros(1), None, FEATURES)
    one = np.ones(len(population))
    with np.errstate(all="ignore"):
        # The sum of absolute errors of one row whose target is 0.
        return MachineLinearizer(dataset, "mae").normal_equations(population, one, 0 * one, np.inf * one).errors


def primitive_disagreements(rng: np.random.Generator, rows: int, dtype: str, limit: float = 2.0) -> list[str]:
    """What contradicts statement 2."""
    found = []
    for name in APPROXIMATE:
        columns = random_rows(rng, rows, dtype)[: STANDARD[name].arity]
        parameters = FEATURES[: len(columns)]
        native = jit(f"{name}({', '.join(parameters)})", params=parameters, dtype=dtype)(*columns)
        with np.errstate(all="ignore"):
            # In float32, NumPy's own functions are up to 4 ulp off: round the float64 value instead.
            expected = REFERENCE[name](*(column.astype(np.float64) for column in columns)).astype(dtype)
        off = ulps(native, expected)
        for row in np.flatnonzero(off > limit)[:3]:
            at = [float(column[row]) for column in columns]
            found.append(
                f"{dtype}: {name} at {at}: native {native[row]!r}, reference {expected[row]!r}: {off[row]} ulp"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="(tree, row) pairs")
    parser.add_argument("--rows", type=int, default=5_000, help="rows each tree is evaluated on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    found = []
    batches = max(1, options.pairs // (2 * options.rows * 20))
    for _ in tqdm(range(batches), unit="batch", disable=None):
        for dtype in ("float64", "float32"):
            found += tree_disagreements(rng, 20, options.rows, dtype)
            found += machine_disagreements(rng, 20, options.rows, dtype)
            found += primitive_disagreements(rng, options.rows, dtype)
    print("\n".join(found[:50]))
    pairs = batches * 2 * 20 * options.rows
    asked = batches * 20 * min(options.rows, GRADIENT_ROWS)
    print(f"{pairs} pairs of tree and row: native and reference, and as many: native and machine")
    print(f"{asked} pairs: native and gradient machine")
    print(f"{len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
