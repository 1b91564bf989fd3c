"""Agreement of the tiers on random trees: formulas as people write them, over random rows.

Five statements are checked:

1. Trees of + - * / sqrt (and the other exact primitives) have the same bits in the reference and the native tier.
2. Every other primitive alone is within 2 ulp of NumPy, whose own error is about 1 ulp.
3. A whole tree has the bits of its primitives applied one by one: compiling them together changes nothing.
4. The machine has the bits of the native tier.
5. So have the values that the gradient machine computes on its way to derivatives.

All but the second hold to the bit. Together they say that the reference and the compiled tiers differ by at most 2 ulp
a primitive, without a guess of how errors grow in a tree, and that the compiled tiers do not differ at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from helpers.equality import same_bits, ulps
from helpers.formulas import APPROXIMATE, FEATURES, VOCABULARIES, random_tree
from helpers.rows import random_rows
from numpy.typing import NDArray

from shine import Population, PrimitiveSet
from shine.data.dataset import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine import MachineEvaluator
from shine.kernels.kernel import Kernel, jit
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.library import STANDARD


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
