"""Shorter forms of exact formulas: as people write them, and with smaller parts of the same values on the data.

Algebra knows identities; the data know more: of a column of zeros and ones, the square is the column itself. So the
values of each part of a formula are looked up among those of small expressions, up to a factor and a summand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED, dot, inner
from shine.compiler.tapes import Subtrees
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.numerals import rounded
from shine.lang.population import Population
from shine.lang.simplify.terms import Range
from shine.lang.simplify.tidy import tidy
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.evolution.complexity import tree_complexity
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model
from shine.search.problem.scaling import with_line
from shine.search.seeding.bank.bank_growth import BankGrowth
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import tape

ROWS = 200
"""Rows on which values are looked up; every replacement is then checked on all rows."""

MEMBERS = 1500
"""Most small expressions: all functions of one or two features, and small products."""

LONG, BANK_ROUNDS = 8, 2
"""Nodes beyond which the bank of small expressions grows for so many rounds; else for one, to be quick."""

ROUNDING = 1e-12
"""Difference from 0 or 1, or of a part's values, as a share of the largest, that is rounding."""

FIGURES = 12
"""Significant figures of a factor and a summand."""


def shortened(
    models: Sequence[Model],
    enough: float,
    dataset: Dataset,
    primitives: PrimitiveSet,
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[Model]:
    """Shorter forms of the models whose loss is at most `enough`, where there are any.

    Parameters
    ----------
    models : sequence of Model
    enough : float
    dataset : Dataset
    primitives : PrimitiveSet
        Functions that small expressions are made of.
    out_of_time : callable
        Says whether to stop looking.
    """
    # Nodes of formulas that have no shorter form.
    exact = [model for model in models if model.loss <= enough and model.tree.size > 3]
    found = [_shortened(model, dataset, primitives, out_of_time) for model in exact]
    return [new for new, model in zip(found, exact, strict=True) if new is not model]


def _shortened(model: Model, dataset: Dataset, primitives: PrimitiveSet, out_of_time: Callable[[], bool]) -> Model:
    features = [name for name in dataset.features if ("name", name) in model.tree.tokens]
    if len(features) > 8 or out_of_time():  # most features of a formula for which this is worth its time
        return model
    sample = dataset.sampled(ROWS, np.random.default_rng(0))
    small = _SmallExpressions(sample, features, primitives, model.tree.size > LONG)
    for _ in range(6):  # most replacements in a formula, one after the other
        if out_of_time():
            break
        trees = [tidy(tree, COMPILED, dataset.ranges) for tree in small.replaced(model.tree)]
        trees = [tree for tree in trees if tree_complexity(tree, model.weights) < model.complexity]
        trees.sort(key=lambda tree: tree_complexity(tree, model.weights))
        found = next((tree for tree in trees if same_values(model.tree, tree, list(dataset.columns))), None)
        if found is None:
            break
        model = replace(model, tree=found)
    return model


class _SmallExpressions:
    """Small expressions of some features, to be looked up by their values."""

    def __init__(self, sample: Dataset, features: Sequence[str], primitives: PrimitiveSet, long: bool) -> None:
        self.columns = list(sample.columns)
        self.primitives = primitives
        self.bank = ExpressionBank(sample.n_rows, primitives, MEMBERS, MEMBERS, np.random.default_rng(0))
        at = [sample.features.index(name) for name in features]
        growth = BankGrowth(self.bank, sample.columns[at], [((i + 1, 0.0),) for i in at])
        for _ in islice(growth.rounds(), BANK_ROUNDS if long else 1):
            pass
        self.members = np.flatnonzero(self.bank.codes[: self.bank.count] != CONSTANT)
        self.members = self.members[np.argsort(self.bank.sizes[self.members], kind="stable")]
        self.units = _units(self.bank.values[self.members])

    def replaced(self, tree: Tree) -> list[Tree]:
        """The tree with each of its parts replaced by a line of the smallest expression with its values."""
        population = population_of([tree], replace(self.primitives, features=tree.parameters))
        sizes = Subtrees.of(population).sizes[0]
        codes, constants = population.codes[0], population.values[0]
        found = []
        for end in range(int(population.sizes[0])):
            begin = end + 1 - int(sizes[end])
            if end == begin:
                continue
            part = tree_from_tape(codes[begin : end + 1], constants[begin : end + 1], population.primitives)
            other = self._like(part)
            if other is None or other.size >= part.size:
                continue
            own = population_of([tree, other], replace(self.primitives, features=tree.parameters))
            whole, new = own.tape(0), own.tape(1)
            found.append(
                tree_from_tape(
                    np.concatenate([whole.codes[:begin], new.codes, whole.codes[end + 1 :]]),
                    np.concatenate([whole.values[:begin], new.values, whole.values[end + 1 :]]),
                    own.primitives,
                )
            )
        return found

    def _like(self, part: Tree) -> Tree | None:
        """A line of the smallest expression that has the values of a part."""
        with np.errstate(all="ignore"):
            values = np.broadcast_to(evaluate(part, self.columns, np.float64, COMPILED), len(self.columns[0]))
        if not np.isfinite(values).all():
            return None
        # Distance of a correlation from 1 that may be rounding.
        alike = np.flatnonzero(np.abs(inner(_units(values[None]), self.units)[0]) >= 1 - 1e-11)
        if not len(alike):
            return None
        member = int(self.members[alike[0]])
        slope, intercept = _line(self.bank.values[member], values)
        own = Population.from_tapes([tape(self.bank.nodes(member))], self.bank.primitives).tree(0)
        return with_line(own, slope, intercept)


def _units(values: Floats) -> Floats:
    """Values with mean 0 and norm 1, shape (n, n_rows); zeros where they do not vary."""
    with np.errstate(all="ignore"):
        centred = values - values.mean(axis=-1, keepdims=True)
        lengths = np.sqrt(dot(centred, centred))[:, None]
        varies = (lengths > ROUNDING * np.abs(values).max(axis=-1, keepdims=True)) & np.isfinite(lengths)
        return np.where(varies, centred / lengths, 0.0)


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept of values that lie on a line."""
    mean_x, mean_y = float(x.mean()), float(y.mean())
    centred = x - mean_x
    slope = rounded(float(dot(centred, y)) / float(dot(centred, centred)), FIGURES)
    intercept = rounded(mean_y - slope * mean_x, FIGURES)
    largest = float(np.abs(y).max())
    return slope, intercept if abs(intercept) > ROUNDING * largest else 0.0


Rules = Callable[[PrimitiveSet], CompiledConstraints]
"""Compiles the constraints for a primitive set."""


def tidied(
    models: Sequence[Model], dataset: Dataset, primitives: PrimitiveSet, rules: Rules | None = None
) -> list[Model]:
    """The models in the form that people write, given the ranges of the features in all rows.

    A model stays as it is if that form is not simpler, has other values on the data, or breaks a constraint.

    Parameters
    ----------
    models : sequence of Model
    dataset : Dataset
    primitives : PrimitiveSet
        The functions of the models; others are Shine's own.
    rules : callable, optional
        Compiles the constraints for a primitive set.
    """
    # Rows on which a tidy formula must have the values of the formula that the search found.
    columns = list(dataset.sampled(1000, np.random.default_rng(0)).columns)
    result = [_tidied(model, columns, dataset.ranges) for model in models]
    changed = [at for at, model in enumerate(models) if result[at] is not model]
    if rules is not None and changed:
        kept = _keep_constraints([(models[at].tree, result[at].tree) for at in changed], primitives, rules)
        for at, is_kept in zip(changed, kept, strict=True):
            result[at] = result[at] if is_kept else models[at]
    return result


def _tidied(model: Model, columns: Sequence[Floats], ranges: Mapping[str, Range]) -> Model:
    tree = tidy(model.tree, COMPILED, ranges)
    if tree == model.tree or tree_complexity(tree, model.weights) > model.complexity:
        return model
    return replace(model, tree=tree) if same_values(model.tree, tree, columns) else model


def _keep_constraints(pairs: Sequence[tuple[Tree, Tree]], primitives: PrimitiveSet, rules: Rules) -> list[bool]:
    """Whether the second formula of each pair keeps the constraints as well as the first."""
    trees = [tree for pair in pairs for tree in pair]
    population = population_of(trees, primitives)
    ones = np.ones(len(trees))
    # What a loss of 1 becomes: more for broken monotonicity, inf for formulas that are not allowed.
    charges = rules(population.primitives).charged(population, ones, ones)
    return (charges[1::2] <= charges[::2] * (1 + 1e-6)).tolist()  # relative change of a penalty that counts as none


def same_values(tree: Tree, other: Tree, columns: Sequence[Floats], share: float = 1e-11) -> bool:
    """Whether two formulas have the same values on all rows, up to a share of the largest one: rounding."""
    with np.errstate(all="ignore"):
        expected, found = (evaluate(form, columns, np.float64, COMPILED) for form in (tree, other))
        return bool((np.abs(found - expected) <= share * np.max(np.abs(expected), initial=0.0)).all())
