"""Reports and fronts of a search over scaled data, turned back into the units of the given data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from shine.base.stages import is_followed, so_far
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses.form import Loss
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.presentation import for_people
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Progress
from shine.search.models.front import pareto_front
from shine.search.models.front_table import loss_text, r2_text
from shine.search.models.model import Model
from shine.search.problem.noise import NoiseEstimate
from shine.search.problem.preparation import Task
from shine.search.problem.scaling import Scaling, with_functions, with_line
from shine.search.seeding import Finding

DIGITS = 5
"""Significant digits of the numbers of a formula that is still evolving: enough to recognise it."""

Report = Callable[[Progress], object]
"""Receives the progress of every generation; ends the run by returning True."""


def report_in_user_units(report: Report, task: Task, degree: int) -> Report:
    """A report that receives the progress of a search over scaled data in the units of the given data.

    Parameters
    ----------
    report : callable
    task : Task
    degree : int
        Power of the target's unit in the loss (see `shine.evaluate.losses.form.Loss`).
    """
    scaling = task.scaling

    def converted(progress: Progress) -> object:
        front, scores = progress.front, progress.scores

        def write(position: int) -> str:
            slope, intercept = float(scores.slopes[position]), float(scores.intercepts[position])
            return _written(front.tree(position), slope, intercept, task)

        if not scaling:
            return report(replace(progress, write=write))
        trees = [scaling.leaving(front.tree(index), task.user_rows) for index in range(len(front))]
        given = Population.from_trees(trees, with_functions(front.primitives, ["mul"])) if trees else front
        losses = np.array([scaling.loss(value, degree) for value in scores.losses.tolist()])
        return report(replace(progress, front=given, scores=replace(scores, losses=losses), write=write))

    return converted


def teller(task: Task) -> Callable[[Finding], None] | None:
    """Reporter of the seeding's best formula so far to the listeners of the stages; None without listeners."""

    def tell(best: Finding) -> None:
        so_far(lambda: f"R2 {r2_text(1 - best.unexplained)}, {_written(best.tree, best.slope, best.intercept, task)}")

    return tell if is_followed() else None


def tell_best(outcome: Outcome, task: Task, degree: int) -> None:
    """Tell the listeners of the stages of the best formula of an evolution."""
    front, scores = outcome.front, outcome.scores
    if not len(front):
        return

    def text() -> str:
        loss = task.scaling.loss(float(scores.losses[-1]), degree)
        line = float(scores.slopes[-1]), float(scores.intercepts[-1])
        return f"loss {loss_text(loss)}, {_written(front.tree(-1), *line, task)}"

    so_far(text)


@np.errstate(all="ignore")  # texts are also made in threads of displays
def _written(tree: Tree, slope: float, intercept: float, task: Task) -> str:
    """A formula of the search with its line, as people write it, in the names and units of the given data."""
    return for_people(task.scaling.leaving(with_line(tree, slope, intercept), task.user_rows), DIGITS).readable


def front_in_user_units(
    front: Iterable[Model], task: Task, enough: float, allows: Callable[[int, bool], bool]
) -> tuple[Model, ...]:
    """The front with formulas of the given data; its losses stay those of the scaled target.

    The factors that formulas get back make them larger, and values beyond float64's range become infinite, so some may
    leave the front. If all are too large, the smallest stays.

    Parameters
    ----------
    front : iterable of Model
    task : Task
    enough : float
        Loss below which two formulas are equally right.
    allows : callable
        Says whether a formula may have so many nodes, and be exact or not.
    """
    models = list(front)
    given = each_in_user_units(models, task) or [
        replace(model, tree=task.scaling.leaving(model.tree, task.user_rows)) for model in models
    ]
    small = [model for model in given if allows(model.tree.size, model.loss <= enough)]
    return pareto_front(small or [min(given, key=lambda model: model.tree.size)], enough)


def each_in_user_units(models: Iterable[Model], task: Task) -> list[Model]:
    """Models as formulas of the given data, those whose values are finite there."""
    given = [replace(model, tree=task.scaling.leaving(model.tree, task.user_rows)) for model in models]
    rows, weighed = task.user_rows.columns.T, task.user_rows.row_weights > 0
    return [model for model in given if not task.scaling or np.isfinite(model.predict(rows)[weighed]).all()]


def model_in_user_units(model: Model, task: Task, degree: int) -> Model:
    """A model of all features, with their headings; its loss is in the units of the given target.

    See `report_in_user_units` for the parameters.
    """
    tree = replace(model.tree, parameters=task.features)
    headings = {name: task.headings.get(name, name) for name in task.features}
    return replace(model, tree=tree, loss=task.scaling.loss(model.loss, degree), headings=headings)


def basis_in_user_units(rows: Dataset, task: Task, loss: Loss, noise: str) -> Basis:
    """The rows, loss and noise that the formulas of the user's data were fitted to.

    Parameters
    ----------
    rows : Dataset
        Scaled rows, with the weights of the noise.
    task : Task
    loss : Loss
    noise : str
    """
    back = Scaling({name: -exponent for name, exponent in task.scaling.columns.items()}, -task.scaling.target)
    return Basis(back.applied(rows), loss, noise)


def noise_in_user_units(noise: NoiseEstimate | None, task: Task) -> NoiseEstimate | None:
    """An estimate of the noise in the units of the given target."""
    if noise is None:
        return None
    # Power of the target's unit in an estimate of the noise.
    loss, low, high = (task.scaling.loss(value, 2) for value in (noise.loss, noise.low, noise.high))
    return replace(noise, loss=loss, low=low, high=high)
