"""View of a running search for observers, and reading of the formulas that they put into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite, nan

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.scores import Scores
from shine.formats.read.guesses import formula_tree
from shine.lang.forms.names import shortened
from shine.lang.forms.names import shown as quoted
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.lang.presentation import presented
from shine.lang.vocabulary import primitive_table
from shine.search.evolution.observers import SearchView, Shown
from shine.search.evolution.operators.slots import excess
from shine.search.models.certainty import Choice
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.models.user_units import DIGITS
from shine.search.problem.noise import with_model
from shine.search.problem.preparation import Task
from shine.search.problem.scaling import with_line, without_line
from shine.search.problem.settings import SearchSettings

ROWS = 1000
"""Most rows on which the variance that formulas explain is measured; the final report measures it on all."""

LONGEST = 100
"""Most characters that say what one can put in."""

Choose = Callable[[Sequence[Model]], Choice]
"""Models with the losses of the search -> the one to recommend."""


def view_of(
    dataset: Dataset,
    task: Task,
    settings: SearchSettings,
    *,
    enough: float,
    degree: int,
    choose: Choose,
    loss: Loss,
    noise: str = "absolute",
    fits: bool = True,
) -> SearchView:
    """A search as somebody who watches it sees it.

    Parameters
    ----------
    dataset : Dataset
        The given rows.
    task : Task
    settings : SearchSettings
    enough : float
        Loss at which the front ends.
    degree : int
        Power of the target's unit in the loss.
    choose : callable
    loss, noise : Loss, str
        By them, rows are weighted.
    fits : bool
        Whether formulas predict the target itself.
    """
    table, names = primitive_table(settings.primitives)
    functions = select(table, names)
    lines = settings.fitness.linear_scaling or not fits
    hint = f"Columns: {', '.join(task.user_rows.features)}. Functions: {', '.join(f.name for f in functions)}."

    def read(text: str) -> Population:
        tree = formula_tree(text, task.features, table, names)
        if lines and not functions_of(tree) <= set(names):
            tree = without_line(tree)  # the front has slopes and intercepts even if the search lacks their functions
        Population.from_trees([tree], PrimitiveSet(functions, task.features))  # reports missing primitives
        forbidden = [name for name in tree.used_parameters if name not in task.user_rows.features]
        if forbidden:
            raise ValueError(f"the constraints forbid {quoted(forbidden[0])}")
        tree = task.scaling.entering(replace(tree, parameters=task.user_rows.features))
        found = Population.from_trees([tree], task.primitives)
        return within_limits(found, settings)

    explained = Explained(dataset, noise, loss) if fits else None

    def shown(front: Population, scores: Scores) -> Shown:
        """A front in the units of the given data."""
        models = []
        for index, line in enumerate(zip(scores.slopes.tolist(), scores.intercepts.tolist(), strict=True)):
            tree = task.scaling.leaving(with_line(front.tree(index), *line), task.user_rows)
            tree = replace(tree, parameters=task.features)
            share = nan if explained is None else explained(tree)
            measures = float(scores.losses[index]), share, settings.evolution.complexity, task.headings, DIGITS
            models.append(_OfMoment(tree, *measures, noise=noise))
        found = pareto_front(models, enough)
        if not found:
            return Shown(())
        choice = choose(found)
        shown = [replace(model, loss=task.scaling.loss(model.loss, degree)) for model in found]
        return Shown(shown, choice.index, choice.reason)

    return SearchView(
        dataset,
        read,
        shown,
        lambda loss: task.scaling.loss(loss, degree),
        enough,
        shortened(f"A formula of {', '.join(task.user_rows.features)}", LONGEST),
        hint,
        settings.seed,
        fits,
    )


class _OfMoment(Model):
    """A formula of a running search, which has not been tidied up."""

    @property
    def expression(self) -> str:
        return presented(self.tree).readable


def within_limits(found: Population, settings: SearchSettings) -> Population:
    """One formula as an individual; a `ValueError` if it exceeds a limit of the search."""
    exceeding = excess(found, settings.evolution.max_size, settings.evolution.max_depth)
    if exceeding is not None:
        raise ValueError(f"the formula {exceeding[1]} or write a shorter one")
    return found


class Explained:
    """The share of the target's variance that formulas explain, on some of the rows, by the weights of the loss."""

    def __init__(self, dataset: Dataset, noise: str, loss: Loss) -> None:
        self._rows = with_model(dataset, noise, loss).sampled(ROWS, np.random.default_rng(0))
        weights = self._rows.row_weights
        self._weights = weights / np.sum(weights)
        target = self._rows.target
        self._variance = float(np.sum(self._weights * (target - np.sum(self._weights * target)) ** 2))

    def __call__(self, tree: Tree) -> float:
        """The share; NaN if the target does not vary, or the formula is not finite."""
        rows = self._rows
        columns = [rows.columns[rows.features.index(name)] for name in tree.parameters]
        with np.errstate(all="ignore"):
            errors = evaluate(tree, columns, np.float64, COMPILED) - rows.target
            left = float(np.sum(self._weights * errors**2))
        return 1 - left / self._variance if self._variance > 0 and isfinite(left) else nan
