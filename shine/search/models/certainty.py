"""The choice of the formula to recommend, its reason, and its certainty: by evidence, and on other samples of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import log
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.evidence import nats, shares
from shine.evaluate.losses.form import RowLoss
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.numerals import cost_as_written
from shine.lang.population import Population
from shine.lang.wrapping import wrapped
from shine.search.description import NATS_A_NODE, DescriptionLength
from shine.search.models.front_table import screen_width
from shine.search.models.model import Model
from shine.search.models.uncertain import share_passes
from shine.search.problem.reference_losses import good_enough
from shine.search.problem.scaling import LINE_FUNCTIONS
from shine.search.problem.unwritten import description_of

Resampling = Literal["bootstrap", "subsample"]

STEPS = 6
"""Steps that fit the constants to another sample: they begin near the best ones."""

TOLERANCE = 1e-6
"""Relative gain of a step that ends a fit."""

SAMPLE_ROWS = 5000
"""Most rows of a sample: more of them say the same about the form."""

EXACT = 1e-20
"""Share of the best constant's loss below which two formulas are equally right."""


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """Share of samples of the rows for which each formula of a front is chosen, its constants fitted anew.

    Parameters
    ----------
    shares : ndarray of shape (n_formulas,)
    formulas : tuple of str
        The formulas, for people.
    best_index : int
        Position of the recommended formula.
    resamples : int
    kind : {"bootstrap", "subsample"}
    """

    shares: Floats
    formulas: tuple[str, ...]
    best_index: int
    resamples: int
    kind: str

    @property
    def best_share(self) -> float:
        """Share of samples for which the recommended formula is chosen."""
        return float(self.shares[self.best_index])

    def __repr__(self) -> str:
        """The formulas that are chosen at all, the most frequent first."""
        order = np.argsort(-self.shares, kind="stable")
        samples = "bootstrap samples" if self.kind == "bootstrap" else "subsamples"
        lines = [f"chosen on {self.resamples} {samples} of the rows:"]
        for at in order[self.shares[order] > 0].tolist():
            mark = ">>>" if at == self.best_index else ""
            lines += wrapped(
                f"{mark:3} {self.shares[at]:>6.1%}  {at:>3}  {self.formulas[at]}", screen_width(), " " * 17
            )
        if not self.shares[self.best_index]:
            lines.append(f"    0.0%  {self.best_index:>3}  (recommended) {self.formulas[self.best_index]}")
        return "\n".join(lines)


def evidence(models: Sequence[Model]) -> Floats:
    """Weights of formulas by their description length, with the Fisher information of their constants.

    Parameters
    ----------
    models : sequence of Model
        Fitted to the same rows.

    Returns
    -------
    ndarray of shape (n_formulas,)
        They add up to 1.

    Raises
    ------
    DataError
        If a model does not know the rows that it was fitted to.
    """
    share_passes(models)
    known = [model.uncertainty for model in models]
    prices = _nats_of_features(models)
    for at, model in enumerate(models):
        written = model.form().exact
        prices[at] += NATS_A_NODE * model.tree.size + sum(cost_as_written(value) for value in written)
    return shares(nats(known, prices.tolist()))


def stability(
    models: Sequence[Model], best_index: int, resamples: int, seed: int, kind: Resampling, threads: int | None = None
) -> Stability:
    """Choose the best formula on many samples of the rows (Efron 1979; Meinshausen and Bühlmann 2010).

    Arguments and errors are those of `shine.search.models.front.Front.stability`.
    """
    if kind not in get_args(Resampling):
        raise ValueError(f"kind is {value_text(kind)}; it must be one of {', '.join(map(repr, get_args(Resampling)))}")
    if isinstance(resamples, bool) or not isinstance(resamples, int | np.integer) or resamples < 1:
        raise ValueError(f"resamples is {value_text(resamples)}; it is a number of samples, such as 200")
    basis = models[0].basis
    if basis is None or isinstance(basis.loss, RowLoss):
        raise DataError(
            "stability needs the rows that the formulas were fitted to; a front from a pickle or a file does not have "
            "them: ask for it before, or use evidence()"
        )
    rows, rng = basis.rows, np.random.default_rng(seed)
    population = population_of(models, rows.features)
    used = processors() if threads is None else threads
    counts = np.zeros(len(models))
    for _ in range(resamples):
        sample = rows.take(_drawn(rows.n_rows, kind, rng))
        counts[_chosen(models, population, sample, basis.loss, used)] += 1
    formulas = tuple(model.formula() for model in models)
    return Stability(counts / resamples, formulas, best_index, int(resamples), kind)


def _drawn(rows: int, kind: Resampling, rng: np.random.Generator) -> Indices:
    """Rows of a sample."""
    if kind == "bootstrap":
        return np.sort(rng.integers(0, rows, min(rows, SAMPLE_ROWS)))
    return np.sort(rng.permutation(rows)[: min(max((rows + 1) // 2, 1), SAMPLE_ROWS)])


def population_of(models: Sequence[Model], features: tuple[str, ...]) -> Population:
    """The formulas as individuals."""
    trees = [replace(model.tree, parameters=features) for model in models]
    known = {**STANDARD, **{name: each for tree in trees for name, each in tree.functions.items()}}
    used = sorted({*LINE_FUNCTIONS, *(name for tree in trees for name in functions_of(tree))})
    return Population.from_trees(trees, PrimitiveSet(tuple(known[name] for name in used), features))


def _chosen(models: Sequence[Model], population: Population, sample: Dataset, loss: Any, threads: int) -> int:
    """The formula that the choice of a search recommends on a sample."""
    fitted = MachineLinearizer(sample, loss, threads).fit(population, STEPS, tolerance=TOLERANCE)
    evaluator = MachineEvaluator(sample, loss, False, "float64", threads)
    losses = np.minimum(evaluator.score(fitted.population).losses, evaluator.score(population).losses)
    there = [Model(model.tree, float(each), 0.0, model.weights) for model, each in zip(models, losses, strict=True)]
    described = description_of(sample, loss, population.primitives)
    return choose(there, good_enough(sample, loss, EXACT, "float64"), described).index


CONVINCING = 3.0
"""Nats by which a formula's description must be shorter than the constant's, or nothing was found: odds of 20 to 1. The
best of the many formulas that a search tries explains a little of anything."""


@dataclass(frozen=True)
class Choice:
    """A position in a front, and why it was chosen, in words."""

    index: int
    reason: str


def choose(
    front: Sequence[Model], enough: float, description: DescriptionLength, allowed: Mask | None = None
) -> Choice:
    """The formula to recommend.

    This is the simplest formula whose loss is at most `enough`, if there is one, and otherwise the formula with the
    shortest description. Formulas that meet few rows exactly by chance do not count.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity, falling loss; not empty.
    enough : float
        Loss below which two formulas are equally right.
    description : DescriptionLength
        Of the rows that the losses were measured on.
    allowed : ndarray of shape (n_formulas,), bool, optional
        Formulas that may be chosen; by default all.
    """
    sizes, constants = _sizes_and_constants(front)
    convincing = description.convinces(sizes, constants)
    for at, model in enumerate(front):
        may_be = allowed is None or allowed[at]
        if may_be and model.loss <= enough and (convincing[at] or len(front) == 1):
            return Choice(at, "the simplest formula that is exact to within rounding or to within stop_loss")
    return shortest(front, description, allowed)


def shortest(front: Sequence[Model], description: DescriptionLength, allowed: Mask | None = None) -> Choice:
    """The formula with the shortest description, the first of equals (see `choose`)."""
    lengths = lengths_of(front, description, allowed)
    best = int(np.argmin(lengths))
    others = np.delete(lengths, best)
    if not np.isfinite(others).any():
        excluded = allowed is not None and not allowed.all()
        return Choice(best, f"the only formula that {'may be chosen' if excluded else 'the rows can determine'}")
    best = _convincing(front, lengths, best)
    second = int(np.argmin(np.where(np.arange(len(front)) == best, np.inf, lengths)))
    reason = "the shortest description of formula, constants and errors"
    if front[best].is_constant:
        reason = "no formula describes the target so much better that it is worth its length"
    nats = lengths[second] - lengths[best]
    return Choice(best, f"{reason}; formula {second} needs {abs(nats):.1f} nats {'more' if nats >= 0 else 'less'}")


def _convincing(front: Sequence[Model], lengths: Floats, best: int) -> int:
    """The best formula, or the constant if that needs hardly more nats (see `CONVINCING`)."""
    constants = [at for at, model in enumerate(front) if model.is_constant and np.isfinite(lengths[at])]
    near = [at for at in constants if lengths[at] < lengths[best] + CONVINCING]
    return min(near, key=lambda at: lengths[at], default=best)


def lengths_of(front: Sequence[Model], description: DescriptionLength, allowed: Mask | None = None) -> Floats:
    """Nats of the description by each formula (see `choose`)."""
    losses = np.array([model.loss for model in front])
    lengths = description.final(losses, *_sizes_and_constants(front)) + _nats_of_features(front)
    if description.unwritten is not None:
        lengths += NATS_A_NODE * description.unwritten([model.tree for model in front])
    return lengths if allowed is None else np.where(allowed, lengths, np.inf)


def _nats_of_features(models: Sequence[Model]) -> Floats:
    """Nats to tell which of all features each formula has (Chen and Chen 2008), shape (n_formulas,).

    The more columns a table has, the better do some of them fit by chance.
    """
    nats = []
    for model in models:
        every = len(model.tree.parameters)
        named = np.arange(1, min(len(model.tree.used_parameters), every // 2) + 1)
        nats.append(float(np.sum(log((every + 1 - named) / named))))
    return np.array(nats)


def written_length(tree: Tree, most: float = math.inf) -> float:
    """Nats to write down a formula with the digits that its constants have, each constant at most so many."""
    constants = (float(token[1]) for token in tree.tokens[1:] if token[0] == "constant")
    return NATS_A_NODE * tree.size + sum(min(cost_as_written(value), most) for value in constants)


def fitted_constants(tree: Tree) -> int:
    """Number of constants in a formula."""
    return sum(token[0] == "constant" for token in tree.tokens[1:])


def _sizes_and_constants(front: Sequence[Model]) -> tuple[Indices, Indices]:
    sizes, constants = zip(*(model.counts for model in front), strict=True)
    return np.array(sizes), np.array(constants)
