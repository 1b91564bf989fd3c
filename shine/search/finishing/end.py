"""The end of a search: from the outcome of its evolution to the front, and the formula that it recommends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Mask
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import AllRows, Dataset
from shine.data.datasets.serial import ALIKE
from shine.evaluate.domain import Domain
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses.form import Loss
from shine.evaluate.losses.rows import takes_noise
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.all_rows import Allowed, FitToAllRows
from shine.search.finishing.kept_rows import KeptRows, Split, chosen_by, directed, to_refit
from shine.search.finishing.poles import without_poles
from shine.search.finishing.polishing import not_beaten, unless_interrupted, with_supported_digits
from shine.search.finishing.refinement import Refined, Refinement, measured
from shine.search.finishing.required import lacking
from shine.search.models.certainty import Choice, choose, lengths_of, shortest
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.user_units import (
    basis_in_user_units,
    each_in_user_units,
    front_in_user_units,
    model_in_user_units,
    noise_in_user_units,
)
from shine.search.problem.budget import TimeBudget
from shine.search.problem.noise import FOLLOWING_THE_FORMULA, estimated_noise, with_expected_noise, with_model
from shine.search.problem.preparation import Task
from shine.search.problem.reference_losses import Evidence, good_enough
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions
from shine.search.problem.settings import SearchSettings
from shine.search.problem.unwritten import description_of

TOO_SHORT = "the seconds were over before the first generation: allow more"
"""Addition to the reason if compiling and seeding left no time for evolution."""

Finished = tuple[Dataset, Refined]
"""Rows, and the front that is fitted to them, with what is beside it."""


@dataclass(frozen=True)
class Finish:
    """Inputs of the end of a search besides the outcome of its evolution.

    Parameters
    ----------
    task : Task
        Its data set has the rows that the search sees, with the weights of the noise.
    split : Split
        All rows, and which of them were kept back.
    settings : SearchSettings
    loss : Loss
    noise : str
        The model of the noise.
    rules : callable or None
        Compiles the constraints for a primitive set and a kind of scaling.
    threads : int
    budget : TimeBudget
    left_out : str
        What is told of rows that take no part (see `shine.search.problem.outliers`).
    all_rows : AllRows, optional
        All rows, if the given ones are a sample: the front is fitted to them and judged on them.
    earlier : tuple of Tree
        The front of an earlier part of the run, in the units of the given data (see `not_beaten`).
    """

    task: Task
    split: Split
    settings: SearchSettings
    loss: Loss
    noise: str
    rules: Callable[..., CompiledConstraints] | None
    threads: int
    budget: TimeBudget
    left_out: str = ""
    all_rows: AllRows | None = None
    earlier: tuple[Tree, ...] = ()

    def result(self, outcome: Outcome) -> Result:
        """The result of the search, with noise that the chosen formula supports.

        Raises
        ------
        DataError
            If no formula has a finite loss.
        """
        found, rows = self._result(outcome)
        if self._follows(rows) and not found.best.tree.used_parameters:
            # The weights favour the least readings, but the chosen formula is the same everywhere.
            even = replace(self, task=replace(self.task, dataset=self.task.dataset.without_deviations))
            outcome = replace(outcome, stopped_by="interrupted") if found.stopped_by == "interrupted" else outcome
            evenly, _ = even._result(outcome)
            if (named := self.settings.fitness.noise) == "auto":
                return evenly
            if not evenly.best.tree.used_parameters:
                reason = f"{evenly.front.reason}; {named} noise of a constant is the same in every row"
                return replace(evenly, front=replace(evenly.front, reason=reason))
        return found

    def _follows(self, rows: Dataset) -> bool:
        """Whether the weights of the rows are those of a noise that follows the formula."""
        return self._noise_of(rows) in FOLLOWING_THE_FORMULA

    def _noise_of(self, rows: Dataset) -> str:
        """The model of the noise; noise that does not differ from row to row is absolute."""
        return "absolute" if rows.deviations is None else self.noise

    def _result(self, outcome: Outcome) -> tuple[Result, Dataset]:
        """The result with the noise of the rows as they are weighted, and these rows."""
        outcome, (rows, (front, beside, left_out)) = self._finished(outcome, self.task.dataset)
        by_kept_rows = self._validated(front, rows) if self.split.validation else None
        if self.split.validation:
            learned, seen = front, front[by_kept_rows.index if by_kept_rows else 0]
            every_row = with_model(self.split.dataset, self._noise_of(rows), self.loss)
            outcome, (rows, (front, _, _)) = self._finished(outcome, every_row, learned)
            best = front[max((at for at, m in enumerate(front) if m.complexity <= seen.complexity), default=0)]
        front = with_supported_digits(front, rows)
        front = front_in_user_units(front, self.task, self._enough(rows), self.settings.evolution.allows)
        allowed, word = self._directed(front, self.task.user_rows)
        if by_kept_rows is None:
            choice = self._chosen(front, rows, allowed, leaving=True)
        else:
            choice = replace(by_kept_rows, index=sum(model.loss >= best.loss for model in front) - 1)
        base = choice.reason
        noise = self._noise_of(rows)
        if outcome.stopped_by == "seconds" and outcome.generations == 0:
            choice = replace(choice, reason=f"{choice.reason}; {TOO_SHORT}")
        word += lacking(front[choice.index], self.settings.constraints.required)
        choice = replace(choice, reason=choice.reason + word + left_out)
        degree = self.loss.degree
        basis = basis_in_user_units(rows, self.task, self.loss, noise)
        if self.split.validation or self.all_rows is not None:
            beside = ()  # These were found by other rows than the front is judged by.
        near = each_in_user_units(with_supported_digits(beside, rows), self.task)
        models, beside = (
            tuple(replace(model_in_user_units(model, self.task, degree), basis=basis, noise=noise) for model in each)
            for each in (front, near)
        )
        if rows.serial is not None:
            told = [rows.serial.told(rows.n_rows)]
            with suppress(DataError):  # as the summary tells it
                told[:0] = [note for note in models[choice.index].uncertainty.notes if note.startswith(ALIKE)]
            choice = replace(choice, reason=f"{choice.reason}; {told[0]}")
        choice = replace(choice, reason=choice.reason + self.left_out)
        if self.all_rows is not None:
            among = None if self.split.validation else lambda models: self._directed(models, basis.rows)[0]
            outcome, models, choice = self._on_all_rows(outcome, models, choice, base, basis, among)
        estimate = noise_in_user_units(estimated_noise(rows, noise), self.task) if takes_noise(self.loss) else None
        found = Front(models, choice.index, choice.reason, beside)
        return Result.of(outcome, found, self.budget.spent(), self.settings.seed, estimate), rows

    def _on_all_rows(
        self,
        outcome: Outcome,
        models: tuple[Model, ...],
        choice: Choice,
        base: str,
        basis: Basis,
        allowed: Allowed | None,
    ) -> tuple[Outcome, tuple[Model, ...], Choice]:
        """The models fitted to and judged on all rows, of which the search saw a sample; `base` begins the reason."""
        assert self.all_rows is not None
        fitness, notes = self.settings.fitness, choice.reason.removeprefix(base)
        if outcome.stopped_by != "interrupted":
            primitives = with_functions(self.task.primitives, LINE_FUNCTIONS)
            fit = FitToAllRows(
                all_rows=self.all_rows,
                basis=basis,
                loss=self.loss,
                stop_loss=self.settings.stop.loss,
                dtype=fitness.dtype,
                threads=self.threads,
                primitives=primitives,
                rules=self._rules_as_written,
            )
            try:
                models, choice = fit.judged(models, choice, allowed)
                return (
                    outcome,
                    models,
                    replace(choice, reason=f"{choice.reason}{notes}; by all {self.all_rows.n_rows} rows"),
                )
            except KeyboardInterrupt:
                outcome = replace(outcome, stopped_by="interrupted")
        told = f"{choice.reason}; by a sample of {basis.rows.n_rows} rows, as the rest was not read again"
        return outcome, models, replace(choice, reason=told)

    @property
    def _rules_as_written(self) -> Callable[[PrimitiveSet], CompiledConstraints] | None:
        """The constraints on formulas with their lines."""
        scaling = "written" if self.settings.fitness.linear_scaling else "none"
        return None if self.rules is None else partial(self.rules, scaling=scaling)

    def _validated(self, front: Sequence[Model], rows: Dataset) -> Choice | None:
        """The choice by the rows that were kept back."""
        primitives = self.task.primitives
        kept = KeptRows(with_model(self.split.kept, self._noise_of(rows), self.loss), self.split.validation)
        lengths = lengths_of(front, self._described(rows), self._directed(front, rows)[0])
        share = self.settings.stop.loss
        return chosen_by(front, lengths, kept, self.loss, share, primitives, self.threads)

    def _finished(
        self, outcome: Outcome, rows: Dataset, learned: Sequence[Model] | None = None
    ) -> tuple[Outcome, Finished]:
        """The rows and the front; without the slow part of refinement if the user interrupts, now or before.

        A front that was learned from fewer rows takes the place of the outcome's individuals.
        """
        found = outcome if learned is None else to_refit(outcome, learned)
        return unless_interrupted(outcome, lambda polish: self._front(found, rows, polish))

    def _front(self, outcome: Outcome, rows: Dataset, polish: bool) -> Finished:
        """The rows with the noise that the best formula implies, the front that is fitted to them, and what is beside
        it."""
        if self._follows(rows):
            # "loss" says that only the front is to be refined: it is enough to know what rows to expect.
            models, _, _ = self._refined(replace(outcome, stopped_by="loss"), rows, polish=False)
            if models:
                best = models[self._chosen(models, rows).index]
                if self.settings.fitness.noise == "auto" and not best.tree.used_parameters:
                    rows = rows.without_deviations
                else:
                    values = evaluate(best.tree, list(rows.columns), np.float64, COMPILED)
                    rows = with_expected_noise(rows, self.noise, values, self.loss)
        front, beside, left_out = self._refined(outcome, rows, polish)
        front = self._with_earlier(front, rows)
        self._check_not_empty(front)
        return rows, (front, beside, left_out)

    def _with_earlier(self, front: tuple[Model, ...], rows: Dataset) -> tuple[Model, ...]:
        """The front with the formulas of an earlier part of the run that it does not replace."""
        if not self.earlier:
            return front
        trees = [self.task.scaling.entering(replace(tree, parameters=rows.features)) for tree in self.earlier]
        weights, primitives = self.settings.evolution.complexity, self.task.primitives
        before = measured(trees, rows, self.loss, weights, primitives, self.threads, self._rules_as_written)
        evidence, enough = Evidence.of(rows, self.loss), self._enough(rows)
        finite = [model for model in (*front, *before) if math.isfinite(model.loss)]
        kept = without_poles(finite, enough, Domain(rows))
        before = [model for model in before if model in kept]
        return not_beaten(front, before, lambda a, b: evidence.nats(a.loss, b.loss), enough)

    def _refined(self, outcome: Outcome, rows: Dataset, polish: bool) -> Refined:
        refinement = Refinement(
            loss=self.loss,
            weights=self.settings.evolution.complexity,
            allows=self.settings.evolution.allows,
            enough=self._enough(rows),
            threads=self.threads,
            rules=self._rules_as_written,
            out_of_time=self.budget.is_closing,
            most=self.budget.refinable(),
            required=self.settings.constraints.required,
            constants=self.settings.evolution.constant_share > 0,
        )
        return refinement.front(outcome, rows, polish)

    def _enough(self, rows: Dataset) -> float:
        """Loss below which two formulas are equally right."""
        fitness = self.settings.fitness
        return good_enough(rows, self.loss, self.settings.stop.loss, fitness.dtype)

    def _chosen(
        self, front: Sequence[Model], rows: Dataset, allowed: Mask | None = None, leaving: bool = False
    ) -> Choice:
        """The formula to recommend, of those of the scaled data or (`leaving`) of the given ones.

        Where errors follow one another, what is new in each is described, with the correlation that the formula leaves.
        """
        seen = self.task.user_rows if leaving else rows
        choice = choose(front, self._enough(rows), self._described(rows, seen), allowed)
        exact = front[choice.index].loss <= self._enough(rows)
        if exact or rows.serial is None or not self.loss.kind.follows_from_moments:
            return choice
        given = basis_in_user_units(rows, self.task, self.loss, self.noise).rows if leaving else rows
        roots, judged = np.sqrt(rows.row_weights), []
        for model in front:
            errors = roots * (given.target - evaluate(model.tree, list(given.columns), np.float64, COMPILED))
            judged.append(replace(model, loss=model.loss * rows.serial.shrinkage(errors)))
        return shortest(judged, self._described(replace(rows, serial=None), seen), allowed)

    def _described(self, rows: Dataset, seen: Dataset | None = None) -> DescriptionLength:
        """The length of the description of rows, by formulas in the units of others if these are given."""
        return description_of(rows, self.loss, self.task.primitives, seen)

    def _check_not_empty(self, front: Sequence[Model]) -> None:
        if front:
            return
        loss = self.loss.name
        if self.rules is not None:
            raise DataError(
                f"found no formula of finite {loss} that the constraints allow; search longer, or relax them"
            )
        raise DataError(f"no formula has a finite {loss}, not even a constant; rescale the target")

    def _directed(self, front: Sequence[Model], rows: Dataset) -> tuple[Mask, str]:
        primitives = with_functions(self.task.primitives, LINE_FUNCTIONS)
        return directed(front, rows, self.settings.constraints, primitives, self.threads)
