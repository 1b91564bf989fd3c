"""Scaling of data near the ends of float64's range, so that their squares and products stay within it.

Columns and target are divided by powers of two, which changes no bit of their mantissas, and formulas get the factors
back. Numbers of ordinary size, such as those of physics in SI units, stay as they are: otherwise constants of nature
that cancel in a formula would no longer cancel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import ORDINARY, Dataset
from shine.lang.interpret import evaluate
from shine.lang.library import STANDARD
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.simplify.simplifier import simplify
from shine.lang.tape import functions_of, tape_from_tree, tree_from_tape
from shine.lang.tree import Tree
from shine.typing import Floats, Indices

ALIKE = 60
"""Columns whose exponents differ by at most this are divided by the same power: it keeps their sums and ratios."""

LEAST_EXPONENT = -1000
"""Least exponent that scaling may give a number: smaller numbers lose digits."""

LONGEST_FACTOR = 900
"""Largest absolute exponent that is written as one factor; a larger one becomes two factors."""

_AT_ONCE = 1 << 20
"""Numbers read at a time, to bound memory."""

CHECKED_ROWS = 1000
"""Rows on which a simplified formula must have the same values as before."""


@dataclass(frozen=True)
class Scaling:
    """Exponents of the powers of two that a data set is divided by.

    Parameters
    ----------
    columns : mapping of str to int
        By feature; features that are not divided are left out.
    target : int
    """

    columns: Mapping[str, int]
    target: int

    @classmethod
    def of(cls, dataset: Dataset, *, target: bool = True) -> Scaling:
        """The scaling that a data set needs; an empty one in most cases.

        Parameters
        ----------
        dataset : Dataset
        target : bool
            Whether the target may be scaled.
        """
        largest, least = _exponents(dataset.columns)
        columns: dict[str, int] = {}
        group: list[int] = []
        awkward = np.flatnonzero(np.abs(largest) > ORDINARY)
        for index in [*awkward[np.argsort(-largest[awkward], kind="stable")].tolist(), None]:
            if group and (index is None or largest[group[0]] - largest[index] > ALIKE):
                exponent = int(min(largest[group[0]], least[group].min() - LEAST_EXPONENT))
                columns |= {dataset.features[member]: exponent for member in group}
                group = []
            if index is not None:
                group.append(index)
        own = int(_exponents(dataset.target[None])[0][0])
        return cls(columns, own if target and abs(own) > ORDINARY else 0)

    def __bool__(self) -> bool:
        return bool(self.columns) or self.target != 0

    def applied(self, dataset: Dataset) -> Dataset:
        """The data set, scaled; the same object if there is nothing to do."""
        if not self:
            return dataset
        columns = dataset.columns
        if self.columns:
            columns = np.ldexp(columns, [[-self.columns.get(name, 0)] for name in dataset.features])
        return replace(dataset, columns=columns, target=np.ldexp(dataset.target, -self.target), known_ranges=None)

    def entering(self, tree: Tree) -> Tree:
        """Rewrite a formula of the given data for the scaled data."""
        return self._rescaled(tree, 1) if self else tree

    def leaving(self, tree: Tree, dataset: Dataset) -> Tree:
        """Rewrite a formula of the scaled data for the given data.

        Parameters
        ----------
        tree : Tree
        dataset : Dataset
            The given data. The formula is simplified if this changes its values there only by rounding.
        """
        if not self:
            return tree
        written = self._rescaled(tree, -1)
        simple = simplify(written, _primitives_of(written))
        if simple.size >= written.size:
            return written
        columns = list(dataset.sampled(CHECKED_ROWS, np.random.default_rng(0)).columns)
        values, others = (
            np.ldexp(evaluate(form, columns, np.float64, COMPILED), -self.target) for form in (written, simple)
        )
        with np.errstate(all="ignore"):
            alike = np.abs(others - values) <= 1e-12 * np.abs(values)
        return simple if alike.all() else written

    def loss(self, value: float, degree: int) -> float:
        """A loss of the scaled target in the units of the given target.

        A loss beyond float64's range becomes its largest number, or 0.

        Parameters
        ----------
        value : float
        degree : int
            Power of the target's unit that the loss is measured in (see `shine.fitness.losses.Loss`).
        """
        try:
            return math.ldexp(value, self.target * degree)
        except OverflowError:
            return math.copysign(float(np.finfo(np.float64).max), value)

    def _rescaled(self, tree: Tree, direction: int) -> Tree:
        primitives = _primitives_of(tree)
        tape = tape_from_tree(tree, primitives)
        mul = primitives.function_codes["mul"]
        nodes: list[tuple[int, float]] = []
        for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
            nodes.append((code, value))
            if CONSTANT < code < primitives.first_function:
                nodes += _times(direction * self.columns.get(primitives.features[code - 1], 0), mul)
        nodes += _times(-direction * self.target, mul)
        codes, values = (np.array(part) for part in zip(*nodes, strict=True))
        written = tree_from_tape(codes.astype(np.int16), values.astype(np.float64), primitives)
        return replace(written, parameters=tree.parameters, name=tree.name)


def _times(exponent: int, mul: int) -> list[tuple[int, float]]:
    """Postfix nodes that multiply the value before them by a power of two."""
    parts = [exponent] if abs(exponent) <= LONGEST_FACTOR else [exponent // 2, exponent - exponent // 2]
    return [node for part in parts if part for node in ((CONSTANT, math.ldexp(1.0, part)), (mul, 0.0))]


def _primitives_of(tree: Tree) -> PrimitiveSet:
    """Primitive set of the functions that a formula calls, and multiplication."""
    known = {**STANDARD, **tree.functions}
    return PrimitiveSet(tuple(known[name] for name in sorted({*functions_of(tree), "mul"})), tree.parameters)


def _exponents(columns: Floats) -> tuple[Indices, Indices]:
    """Binary exponents of the largest and of the smallest nonzero number of each column; 0 for columns of zeros."""
    step = max(_AT_ONCE // max(columns.shape[1], 1), 1)
    found = []
    for start in range(0, len(columns), step):
        sizes = np.abs(columns[start : start + step])
        smallest = sizes.min(axis=1, where=sizes > 0, initial=np.inf)
        ends = np.array([sizes.max(axis=1), np.where(np.isfinite(smallest), smallest, 0.0)])
        found.append(np.frexp(ends)[1].astype(np.int64))
    largest, least = np.concatenate(found, axis=1)
    return largest, least
