"""Terms that describe no law: those that matter on no row, and those that explode just beyond the rows.

The errors of clean data are not noise: rates of a spline, or readings that were smoothed, are off by a smooth 1e-8. Its
description has room for `9e-114*exp(x**2)`, which is 0 but at the last few rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Codes, Floats
from shine.compiler.arrays import COMPILED
from shine.compiler.tapes import Subtrees
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain.neighbourhood import NEARER
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate, evaluate_tape
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model

CHECKED_ROWS, FEW_ROWS = 1000, 32
"""Rows on which terms are examined, and those that show most differences."""

TRIFLE = 1e-6
"""Largest change of the values, in standard deviations of the target, by terms that matter on no row; and the share of
the variance that a formula without exploding terms may leave, which is then the data's errors."""

BEYOND = 0.5
"""Distance beyond the rows, in ranges of a column, at which a formula must not have exploded."""

RUNAWAY = 1e12
"""Value there, in standard deviations of the target, that no law has: `exp(k*x)` has k times the range above 55."""

NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0}
"""Operations, and the operand that changes nothing; the second one of a difference."""


@dataclass(frozen=True, eq=False)
class Trifles:
    """Finds formulas with terms that describe no law.

    Parameters
    ----------
    rows : Dataset
    shares : ndarray of shape (n_rows,)
        Roots of weights, in the inverse of the target's standard deviation.
    enough : float
        Loss at which a formula is exact: it stays.
    """

    rows: Dataset
    shares: Floats
    enough: float
    _known: dict[Tree, Floats] = field(default_factory=dict)
    _wild: dict[Tree, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset, enough: float) -> Trifles | None:
        """For some rows; None if their target does not vary."""
        rows = dataset.sampled(CHECKED_ROWS, np.random.default_rng(0))
        spread = math.sqrt(rows.target_square / rows.weight) if np.isfinite(rows.target_square) else math.inf
        if not 0 < spread < math.inf:
            return None
        weights = rows.row_weights / max(rows.weight / rows.n_rows, np.finfo(np.float64).tiny)
        return cls(rows, np.sqrt(weights) / spread, enough)

    def plainer(self, models: Sequence[Model], primitives: PrimitiveSet) -> list[Tree]:
        """The formulas that are not exact, without terms that matter on no row, or explode beyond the rows.

        Those that explode may be needed: they are left to `without`, which looks at the losses.
        """
        found = []
        for model in models:
            if model.loss > self.enough:
                tree = model.tree
                while (shorter := self._shorter(tree, primitives)) is not None:
                    tree = shorter
                if tree is not model.tree:
                    found.append(simplify(tree, primitives, functions=COMPILED, ranges=self.rows.ranges))
        return found

    def without(self, models: Sequence[Model]) -> list[Model]:
        """The models, without those whose further terms matter on no row, or explode and leave little to explain."""
        kept: list[tuple[Model, Floats]] = []
        nearly = False
        for model in sorted(models, key=lambda each: (each.complexity, each.loss)):
            values = self._values(model.tree)
            if model.loss > self.enough:
                near = (self._alike(values, other) for each, other in kept if each.complexity < model.complexity)
                explodes = self._runs_away(model.tree)
                if any(near) or (nearly and explodes):
                    continue
                nearly = nearly or (1 - model.r2 <= TRIFLE and not explodes)
            kept.append((model, values))
        stay = {model for model, _ in kept}
        return [model for model in models if model in stay]

    def _shorter(self, tree: Tree, primitives: PrimitiveSet) -> Tree | None:
        """The formula without the largest such term."""
        values, explodes = self._values(tree), self._runs_away(tree)
        whole = population_of([tree], primitives)
        few = [column[:FEW_ROWS] for column in self.rows.columns]
        for codes, numbers in _without_an_operand(whole):
            with np.errstate(all="ignore"):
                some = self.shares[:FEW_ROWS] * evaluate_tape(codes, numbers, whole.primitives, few, COMPILED)
            if explodes or self._alike(some, values[:FEW_ROWS]):
                other = tree_from_tape(codes, numbers, whole.primitives)
                if self._alike(self._values(other), values) or (explodes and not self._runs_away(other)):
                    return other
        return None

    def _values(self, tree: Tree) -> Floats:
        if tree not in self._known:
            with np.errstate(all="ignore"):
                self._known[tree] = self.shares * evaluate(tree, list(self.rows.columns), np.float64, COMPILED)
        return self._known[tree]

    def _alike(self, values: Floats, others: Floats) -> bool:
        with np.errstate(all="ignore"):
            return bool((np.abs(values - others) <= TRIFLE).all())

    def _runs_away(self, tree: Tree) -> bool:
        """Whether the formula explodes if one of its columns goes beyond its ends, and the others stay."""
        if tree not in self._wild:
            self._wild[tree] = any(map(partial(self._explodes, tree), tree.used_parameters))
        return self._wild[tree]

    def _explodes(self, tree: Tree, name: str) -> bool:
        columns, at = list(self._twice), self.rows.features.index(name)
        columns[at] = _pushed(self.rows.columns[at])
        with np.errstate(all="ignore"):
            values = self.shares * evaluate(tree, columns, np.float64, COMPILED).reshape(2, -1)
            return bool((np.abs(values) > RUNAWAY).any())

    @cached_property
    def _twice(self) -> Floats:
        """The rows, and the rows again."""
        return np.tile(self.rows.columns, 2)


def _pushed(column: Floats) -> Floats:
    """A column below its values, and then above. It keeps its sign."""
    low, high = float(column.min()), float(column.max())
    pushed = np.concatenate([column - BEYOND * (high - low), column + BEYOND * (high - low)])
    return np.clip(pushed, NEARER * low if low > 0 else -np.inf, NEARER * high if high < 0 else np.inf)


def without_an_operand(tree: Tree) -> list[Tree]:
    """The formulas that have an operand less of a sum, a difference or a product, the largest left out first.

    A negative factor becomes -1.
    """
    functions = select({**STANDARD, **tree.functions}, sorted(functions_of(tree)))
    population = population_of([tree], PrimitiveSet(functions, tree.parameters))
    tapes = (tree_from_tape(*each, population.primitives) for each in _without_an_operand(population))
    # Sorted terms are shorter, or else expanded.
    forms = ([simplify(each, rounding=rounding, functions=COMPILED) for rounding in (True, False)] for each in tapes)
    found = [min(each, key=lambda form: form.size) for each in forms]
    return [each for each in dict.fromkeys(found) if each.size < tree.size]


def _without_an_operand(population: Population) -> Iterator[tuple[Codes, Floats]]:
    """Tapes of a formula with an operand of a sum, a difference or a product left out, the largest first."""
    codes, values = population.codes[0], population.values[0]
    names = {code: name for name, code in population.primitives.function_codes.items()}
    sizes, count = Subtrees.of(population).sizes[0].tolist(), int(population.sizes[0])
    found: list[tuple[int, int, float]] = []
    for root in range(count):
        neutral = NEUTRAL.get(names.get(int(codes[root]), ""))
        if neutral is not None:
            second = root - 1
            first = second - sizes[second]
            found.append((sizes[second], second, neutral))
            found.append((sizes[first], first, neutral))
    for size, end, neutral in sorted(found, key=lambda each: -each[0]):
        neutral = math.copysign(neutral, values[end]) if codes[end] == CONSTANT and neutral else neutral
        if codes[end] != CONSTANT or values[end] != neutral:
            begin = end + 1 - size
            yield (
                np.concatenate([codes[:begin], [CONSTANT], codes[end + 1 : count]]),
                np.concatenate([values[:begin], [neutral], values[end + 1 : count]]),
            )
