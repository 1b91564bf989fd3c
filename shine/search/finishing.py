"""The end of a search: from the outcome of its evolution to the front, and the formula that it recommends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shine.data.dataset import Dataset
from shine.errors import DataError
from shine.fitness.losses import loss_of
from shine.gp.constraints.compiled import CompiledConstraints
from shine.gp.evolution import Outcome
from shine.search.budget import TimeBudget
from shine.search.choice import NATS_A_TURN, Choice, choose
from shine.search.front import Front, Result
from shine.search.given_units import front_in_given_units, model_in_given_units
from shine.search.lines import LINE_FUNCTIONS, with_functions
from shine.search.model import Model
from shine.search.noise import with_expected_noise
from shine.search.polishing import oddities_of
from shine.search.preparation import Task
from shine.search.refinement import refined
from shine.search.settings import SearchSettings
from shine.search.turns import turns
from shine.search.yardsticks import description_length, good_enough

Finished = tuple[Dataset, tuple[Model, ...]]
"""Rows, and the front that is fitted to them."""


@dataclass(frozen=True)
class Finish:
    """What the end of a search needs besides the outcome of its evolution.

    Parameters
    ----------
    task : Task
        Its data set has the weights of the noise.
    settings : SearchSettings
    noise : str
        The model of the noise.
    rules : callable or None
        Compiles the constraints for a primitive set and a kind of scaling.
    threads : int
    budget : TimeBudget
    """

    task: Task
    settings: SearchSettings
    noise: str
    rules: Callable[..., CompiledConstraints] | None
    threads: int
    budget: TimeBudget

    def result(self, outcome: Outcome) -> Result:
        """The result of the search.

        Raises
        ------
        DataError
            If no formula has a finite loss.
        """
        outcome, (rows, front) = self._finished(outcome)
        self._check_not_empty(front)
        front = front_in_given_units(front, self.task, self._enough(rows))
        choice = self._chosen(front, rows, _further_nats(front, self.task))
        degree = loss_of(self.settings.fitness.loss).degree
        models = tuple(model_in_given_units(model, self.task, degree) for model in front)
        return Result(
            Front(models, choice.index, choice.reason),
            choice.index,
            outcome.generations,
            outcome.evaluations,
            self.budget.spent(),
            self.settings.seed,
            outcome.stopped_by,
        )

    def _finished(self, outcome: Outcome) -> tuple[Outcome, Finished]:
        """The rows and the front; without the slow part of refinement if the user interrupts, now or before."""
        if outcome.stopped_by != "interrupted":
            try:
                return outcome, self._front(outcome, polish=True)
            except KeyboardInterrupt:
                outcome = replace(outcome, stopped_by="interrupted")
        return outcome, self._front(outcome, polish=False)

    def _front(self, outcome: Outcome, polish: bool) -> Finished:
        """The rows with the noise that the best formula implies, and the front that is fitted to them."""
        rows = self.task.dataset
        if self.noise in ("relative", "log"):
            models = self._refined(outcome, rows, polish=False)
            if models:
                best = models[self._chosen(models, rows).index]
                loss = self.settings.fitness.loss
                rows = with_expected_noise(rows, self.noise, best.predict(rows.columns.T), loss)
        return rows, self._refined(outcome, rows, polish)

    def _refined(self, outcome: Outcome, rows: Dataset, polish: bool) -> tuple[Model, ...]:
        scaling = "written" if self.settings.fitness.linear_scaling else "none"
        return refined(
            outcome,
            rows,
            self.settings.fitness.loss,
            self.settings.evolution.complexity,
            self.settings.evolution.max_size,
            self._enough(rows),
            self.threads,
            None if self.rules is None else partial(self.rules, scaling=scaling),
            polish,
            self.budget.is_over,
        )

    def _enough(self, rows: Dataset) -> float:
        """Loss below which two formulas are equally right."""
        fitness = self.settings.fitness
        return good_enough(rows, fitness.loss, self.settings.stop.loss, fitness.dtype)

    def _chosen(self, front: Sequence[Model], rows: Dataset, further: Sequence[float] | None = None) -> Choice:
        """The formula to recommend."""
        return choose(front, self._enough(rows), description_length(rows, self.settings.fitness.loss), further)

    def _check_not_empty(self, front: Sequence[Model]) -> None:
        if front:
            return
        loss = self.settings.fitness.loss
        if self.rules is not None:
            raise DataError(
                f"found no formula of finite {loss} that the constraints allow; search longer, or relax them"
            )
        raise DataError(f"no formula has a finite {loss}, not even a constant; rescale the target")


def _further_nats(front: Sequence[Model], task: Task) -> list[float]:
    """Nats of each formula's oddity and turns."""
    trees = [model.tree for model in front]
    odd = oddities_of(trees, with_functions(task.primitives, LINE_FUNCTIONS))
    return [nats + NATS_A_TURN * turns(tree, task.given) for nats, tree in zip(odd, trees, strict=True)]
