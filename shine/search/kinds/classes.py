"""The problem of the odds of a class: log-loss instead of errors."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.domain import Domain
from shine.evaluate.domain.levels import Levels
from shine.evaluate.losses import loss_from
from shine.evaluate.protocols import FirstLines, Linearizer, PopulationEvaluator
from shine.evaluate.scores import Products, Scores
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Observers
from shine.search.finishing.kept_rows import directed
from shine.search.finishing.poles import individuals_to_refine, without_poles
from shine.search.finishing.polishing import (
    Polishing,
    by_odds,
    population_of,
    preferred,
    unless_interrupted,
    with_supported_digits,
)
from shine.search.finishing.required import lacking, with_required
from shine.search.finishing.shorter import tidied
from shine.search.kinds.formula import OneFormula
from shine.search.models.certainty import Choice, lengths_of, shortest
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.user_units import basis_in_user_units, front_in_user_units, model_in_user_units
from shine.search.problem.budget import planned, steps_of, with_affordable_rows
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.preparation import constraint_compiler, prepared
from shine.search.problem.reference_losses import description_length
from shine.search.problem.scaling import with_functions

TOLERANCE = 1e-5
"""Relative gain below which constants count as fitted to convergence."""

_DOUBT = 0.1
"""Rows of each class that count as rows of the other. Platt uses 1, but then good formulas cannot be certain."""

LOG_LOSS = loss_from("binomial")
"""The mean log-loss of rows, in nats; the target is 1 for rows of the class and 0 for others, or a share of it."""

LINE = ("mul", "add")
"""Functions that write a slope and an intercept into a tape."""


@dataclass(frozen=True, eq=False)
class OddsRefinement:
    """Makes models of the individuals of a search for odds (see `shine.search.finishing.refinement.Refinement`).

    Parameters
    ----------
    dataset : Dataset
        All rows; the target is 1 and 0.
    classes : Classes
    weights : mapping of str to float
        Complexity of primitives, features and constants, by name (see `shine.search.models.model.Model`).
    max_size : int
        Most nodes of a formula, its line included.
    threads : int
    rules : callable, optional
        Compiles the constraints for a primitive set.
    out_of_time : callable
        Returns whether to stop making constants simple.
    required : sequence of str
    earlier : sequence of Tree
        Formulas of an earlier part of the run, with their lines.
    """

    dataset: Dataset
    classes: Classes
    weights: Mapping[str, float]
    max_size: int
    threads: int
    rules: Callable[..., CompiledConstraints] | None
    out_of_time: Callable[[], bool]
    required: Sequence[str] = ()
    earlier: Sequence[Tree] = ()

    def models(self, outcome: Outcome, polish: bool) -> list[Model]:
        """A model of the best constant, and of each individual that can predict fresh rows."""
        share = self.dataset.target_mean
        constant = Tree(self.dataset.features, ast.Constant(math.log(share / (1 - share))))
        primitives = with_functions(outcome.front.primitives, (*LINE, "sub"))
        domain = Domain(self.dataset)
        individuals, scores = individuals_to_refine(outcome, domain)
        found = list(self.earlier)
        if len(individuals):
            complete = lined(individuals, scores.slopes, scores.intercepts, primitives)
            found += [complete.tree(index) for index in range(len(complete))]
        chosen = self._preferred(found, primitives, polish)
        rules = None if self.rules is None else partial(self.rules, scaling="written")
        models = [*self._measured([constant], primitives), *tidied(chosen, self.dataset, primitives, rules)]
        lengths = partial(lengths_of, description=description_length(self.dataset, LOG_LOSS))
        again = partial(self._preferred, primitives=primitives, polish=True) if polish else None
        models = with_required(models, self.required, self.dataset, primitives, lengths, again)
        # Individuals have at most this size; with their lines they may be larger.
        kept = [model for model in models if math.isfinite(model.loss) and model.tree.size <= self.max_size]
        return without_poles(kept, 0.0, domain)

    def _preferred(self, trees: list[Tree], primitives: PrimitiveSet, polish: bool) -> list[Model]:
        """The best version of each formula: as it is, simplified, and with fitted constants."""
        simple = [simplify(tree, primitives, functions=COMPILED, ranges=self.dataset.ranges) for tree in trees]
        versions = [trees, simple, *(self._polished(simple, primitives) if polish and trees else ())]
        measured = [self._measured(version, primitives) for version in versions]
        return list(map(partial(preferred, nats=self._nats), zip(*measured, strict=True)))

    def _polished(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> Iterator[list[Tree]]:
        """The formulas with fitted constants, and then with simple ones (see `Polishing`)."""
        smoothed = replace(self.dataset, target=self.classes.smoothed(self.dataset.target))
        tiny = float(np.finfo(np.float64).tiny)
        polishing = Polishing(LOG_LOSS, self.threads, TOLERANCE, self.out_of_time, lambda rows: tiny)
        fitted = polishing.fitted(population_of(trees, primitives), smoothed)
        return polishing.versions(fitted, primitives, smoothed)

    def _measured(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> list[Model]:
        """The formulas as models, with their log-loss on the unsmoothed classes; inf if they break a constraint."""
        if not trees:
            return []
        population = population_of(trees, primitives)
        losses = MachineEvaluator(self.dataset, LOG_LOSS, False, "float64", self.threads).score(population).losses
        share = self.dataset.target_mean
        explained = 1 - losses / entropy(share)
        if self.rules is not None:
            losses = self.rules(population.primitives, scaling="written").charged(
                population, losses, np.ones(len(trees))
            )
        measured = zip(trees, losses.tolist(), explained.tolist(), strict=True)
        return [Model(tree, loss, part, self.weights) for tree, loss, part in measured]

    def _nats(self, worse: Model, better: Model) -> float:
        """Log-likelihood by which one model is worse than another, in nats."""
        return self.dataset.effective_rows * (worse.loss - better.loss)


class ClassesProblem(OneFormula):
    """A formula for the logarithm of the odds that a row belongs to a class (see `Problem` for the parameters).

    The target is 1 for rows of the class and 0 for others; both must occur. Only ``fitness.dtype`` and
    ``fitness.threads`` matter among the fitness settings: the search minimizes log-loss, always with a slope and an
    intercept. Constraints hold for the logarithm of the odds. The search ends when a formula has less than the share
    ``stop.loss`` of the best constant's loss, not counting the loss that smoothing leaves to every formula.

    The loss of each model is the mean log-loss in nats, and its r2 the share of the constant's log-loss that it removes
    (McFadden 1974). The recommended model has the shortest description (see `shine.search.models.certainty`).

    Raises
    ------
    ValueError
        If the dtype is unknown.
    DataError
        If the rows of one class have no weight, or no formula has a finite loss and keeps the constraints.

    Notes
    -----
    During evolution and fitting, classes are smoothed after Platt (1999): otherwise the constants of a formula that
    separates the classes would have no best value. The seeding knows only squared errors; it looks for guesses that
    explain the target as a number.
    """

    loss = LOG_LOSS
    predicts = False

    def __init__(
        self, dataset: Dataset, settings: TranslatedSettings, observers: Observers, rng: np.random.Generator
    ) -> None:
        dataset = dataset.merged()
        super().__init__(dataset, settings, observers, rng)
        evolving, dtype = self.evolving, self.fitness.dtype
        if dtype not in ("float64", "float32"):
            raise ValueError(f"unknown dtype {value_text(dtype)}; use one of float64, float32")
        task = prepared(dataset, settings, LOG_LOSS, linear_scaling=True, scale_target=False)
        budget = planned(self.budget, task.dataset, steps_of(task.primitives, LOG_LOSS, self.threads))
        self.budget, self.task, _ = with_affordable_rows(budget, task, dataset)
        self.rows = self.task.dataset
        if not 0 < self.rows.target_mean < 1:
            raise DataError(
                "the weights of one class vanish beside those of the other; give both classes larger weights"
            )
        self.sample = self.rows.sampled(evolving.rows, rng)
        classes = Classes.of(self.sample)
        self.enough = classes.enough(settings.stop.loss)
        self._smoothed = replace(self.sample, target=classes.smoothed(self.sample.target))
        # Rows that the slope and the intercept of individuals are fitted on.
        self._line_rows = self._smoothed.sampled(2000, rng)
        self.rules = constraint_compiler(settings.constraints, self._smoothed, self.island_threads)
        self.fitting = self._smoothed.sampled(evolving.fitting_rows, rng)

    @property
    def scaled(self) -> bool:
        """Always."""
        return True

    def unconstrained(self, rows: Dataset) -> PopulationEvaluator:
        """Log-loss of the smoothed classes."""
        lines = MachineLinearizer(self._line_rows, LOG_LOSS, self.island_threads)
        smoothed = replace(rows, target=Classes.of(rows).smoothed(rows.target))
        return OddsEvaluator(smoothed, lines, self.fitness.dtype, self.island_threads)

    def confirmation(self, rows: Dataset) -> Confirmation:
        """By the smoothed classes."""
        return Confirmation(self._smoothed, LOG_LOSS, Levels.of(self._smoothed), enough=self.enough)

    def description(self, rows: Dataset) -> DescriptionLength:
        """Log-loss is nats per row."""
        count = rows.effective_rows
        return DescriptionLength(count, lambda losses, constants: count * losses)

    @property
    def seeding_rows(self) -> tuple[Dataset, str]:
        """The smoothed classes as numbers."""
        return self._smoothed, "absolute"

    def choose_now(self, models: Sequence[Model]) -> Choice:
        """The shortest description of the sample."""
        return shortest(models, self.description(self.sample))

    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """On the unsmoothed classes."""
        rows, evolving, task = self.rows, self.evolving, self.task
        refinement = OddsRefinement(
            dataset=rows,
            classes=Classes.of(rows),
            weights=evolving.complexity,
            max_size=evolving.max_size,
            threads=self.threads,
            rules=self.rules,
            out_of_time=self.budget.is_closing,
            required=self.settings.constraints.required,
            earlier=[task.scaling.entering(replace(model.tree, parameters=rows.features)) for model in earlier],
        )
        before = outcome
        outcome, found = unless_interrupted(outcome, lambda polish: refinement.models(before, polish))
        front = pareto_front(found, 0.0)
        if not front:
            raise DataError(
                "found no formula of finite log-loss that the constraints allow; search longer, or relax them"
            )
        front = with_supported_digits(front, rows, by_odds)
        front = front_in_user_units(front, task, 0.0, evolving.allows)
        basis = basis_in_user_units(rows, task, LOG_LOSS, "absolute")
        models = tuple(replace(model_in_user_units(model, task, self.degree), basis=basis) for model in front)
        primitives = with_functions(task.primitives, (*LINE, "sub"))
        allowed, word = directed(models, task.user_rows, self.settings.constraints, primitives, self.threads)
        choice = shortest(models, self.description(rows), allowed)
        word += lacking(models[choice.index], self.settings.constraints.required)
        return self.result(outcome, models, replace(choice, reason=choice.reason + word))


@dataclass(frozen=True)
class Classes:
    """Number of rows in a class, and of the other rows; the effective numbers if they have weights.

    Parameters
    ----------
    rows, others : float
        Both positive.
    """

    rows: float
    others: float

    @classmethod
    def of(cls, dataset: Dataset) -> Classes:
        """The classes of a target of 1 and 0."""
        count, share = dataset.effective_rows, dataset.target_mean
        return cls(count * share, count * (1 - share))

    @property
    def targets(self) -> tuple[float, float]:
        """The smoothed targets for 1 and for 0: the expected shares if a few rows of each class are doubtful."""
        rows, others = self.rows + 2 * _DOUBT, self.others + 2 * _DOUBT
        return (self.rows + _DOUBT) / rows, _DOUBT / others

    def smoothed(self, target: Floats) -> Floats:
        """The target with 1 and 0 drawn towards each other."""
        high, low = self.targets
        return np.where(target > 0.5, high, low)

    def enough(self, share: float) -> float:
        """The loss of a perfect formula, plus a share of the best constant's excess over it."""
        high, low = self.targets
        count = self.rows + self.others
        least = (self.rows * entropy(high) + self.others * entropy(low)) / count
        constant = entropy((self.rows * high + self.others * low) / count)
        return least + share * (constant - least)


def entropy(share: float) -> float:
    """Mean log-loss, in nats, of predicting the share of a class for every row."""
    return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)


def lined(population: Population, slopes: Floats, intercepts: Floats, primitives: PrimitiveSet) -> Population:
    """``intercept + slope * individual`` as individuals; intercept and slope are their first two constants.

    Parameters
    ----------
    population : Population
    slopes, intercepts : ndarray of shape (n_individuals,)
    primitives : PrimitiveSet
        The primitive set of the population with `LINE` added (see `with_functions`).
    """
    everyone, sizes = np.arange(len(population)), population.sizes
    codes, values = np.pad(population.codes, ((0, 0), (2, 2))), np.pad(population.values, ((0, 0), (2, 2)))
    codes[:, :2] = CONSTANT
    values[:, 0], values[:, 1] = intercepts, slopes
    for place, name in enumerate(LINE):
        codes[everyone, sizes + 2 + place] = primitives.function_codes[name]
    return Population(codes, values, sizes + 4, primitives)


def discriminants(products: Products, dataset: Dataset) -> tuple[Floats, Floats]:
    """Slopes and intercepts of the log-odds if the values are normal in both classes with one variance.

    After Fisher (1936). A constant individual has the slope 0. NaN where moments are not finite.

    Parameters
    ----------
    products : Products
        Products of the individuals' values and the target.
    dataset : Dataset
        Its target is the share of each row that belongs to the class.
    """
    weight, share, variance = dataset.weight, dataset.target_mean, dataset.target_square / dataset.weight
    mean, square, product = products.moments
    covariance, spread = product / weight, square / weight
    distance = covariance / variance
    # Least variance within the classes that the discriminant assumes, as a share of the total variance: below it,
    # nearly all rows are certain already.
    within = np.maximum(spread - covariance * distance, 1e-3 * spread)
    constant = ~(spread > (64 * np.finfo(np.float64).eps * mean) ** 2 + np.finfo(np.float64).tiny)
    slopes = np.where(constant, 0.0, distance / np.where(constant, 1.0, within))
    middle = mean + (0.5 - share) * distance
    return slopes * products.scale, math.log(share / (1 - share)) - slopes * middle


class OddsEvaluator:
    """Log-loss of individuals, each with its best line (see `shine.evaluate.protocols.PopulationEvaluator`).

    Parameters
    ----------
    dataset : Dataset
        Its target is the share of each row that belongs to the class, from 0 to 1, and not the same for all rows.
    linearizer : Linearizer
        Fits the lines.
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(self, dataset: Dataset, linearizer: Linearizer, dtype: str, threads: int) -> None:
        self._dataset, self._linearizer = dataset, linearizer
        self._evaluator = MachineEvaluator(dataset, LOG_LOSS, False, dtype, threads)

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Log-loss and line of each individual."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        with np.errstate(all="ignore"):
            slopes, intercepts = discriminants(self._evaluator.products(population), self._dataset)
        which = np.flatnonzero(np.isfinite(slopes) & np.isfinite(intercepts))
        if not len(which):
            return scores
        chosen = population.take(which)
        held = np.ones((len(chosen), chosen.width), np.bool_)
        lines = FirstLines(slopes[which], intercepts[which], fitted=True)
        # Steps of fitting an individual's line; the fit starts from Fisher's discriminant.
        fit = self._linearizer.fit(chosen, 4, tolerance=1e-4, lines=lines, fixed=held)
        losses = self._evaluator.losses_with(chosen, fit.slopes, fit.intercepts)
        finite = np.isfinite(losses)
        found = Scores(losses[finite], fit.slopes[finite], fit.intercepts[finite])
        return scores.replaced(which[finite], found).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Values of the individuals, without lines."""
        return self._evaluator.predict(population)
