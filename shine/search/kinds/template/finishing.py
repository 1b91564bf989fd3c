"""The end of a search with a template: constants fitted to convergence, each unknown function simplified, the front."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain import Domain
from shine.evaluate.losses.form import Loss
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.terms import Range
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.operators.slot_breeding import assembled, formulas_in
from shine.search.evolution.operators.slots import Slot, SlottedSet
from shine.search.evolution.snapping import rounded_off, snapped, without_idle_digits
from shine.search.finishing.poles import without_poles
from shine.search.finishing.polishing import POLISHING_ROWS, preferred
from shine.search.kinds.template.constraints import SlotConstraints
from shine.search.kinds.template.ranges import SharedConstants, ranges_of_arguments, without_redundant
from shine.search.models.certainty import written_length
from shine.search.models.front import pareto_front
from shine.search.models.template_model import TemplateModel
from shine.search.problem.reference_losses import Evidence, nats_of_errors, rounding_error
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions
from shine.search.templates.composition import Composition
from shine.search.templates.fits.linearizer import TemplateEvaluator, TemplateLinearizer
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.grouping import in_values
from shine.search.templates.law import Groups, law_of

TOLERANCE = 1e-13
"""Relative gain below which constants count as fitted to convergence."""

_STEPS, _LAST_STEPS = 50, 5
"""Most steps of the first fit of all constants, and of the last fit, on all rows."""


def least_rows(composition: Composition) -> int:
    """Rows that constants are fitted on, if there are so many: each group needs its own."""
    # Rows for each parameter, and for each group of one by group, that fits see, if there are so many. With fewer, the
    # noise of the parameters hides which of two similar formulas is better.
    return 50 * composition.n_leaves * len(composition.template.outputs)


@dataclass(frozen=True)
class TemplateFinish:
    """Inputs of the end of a template's search besides the outcome of its evolution.

    Parameters
    ----------
    composition : Composition
    groups : Groups, optional
    rows : Dataset
        All rows, with numbers of groups.
    loss : Loss
    weights : mapping of str to float
        Complexity of functions and constants, by name.
    rules : SlotConstraints
    enough : float
        Loss below which two formulas are equally right.
    threads : int
    is_closing : callable
        Says whether to stop making constants simple.
    most : float
        Most individuals, if the front has fewer.
    headings : mapping of str to str
    """

    composition: Composition
    groups: Groups | None
    rows: Dataset
    loss: Loss
    weights: Mapping[str, float]
    rules: SlotConstraints
    enough: float
    threads: int
    is_closing: Callable[[], bool]
    most: float
    headings: Mapping[str, str]

    def front(self, outcome: Outcome, polish: bool) -> tuple[TemplateModel, ...]:
        """The Pareto front of a finished search.

        Without `polish`, constants stay as the evolution left them.
        """
        individuals = self._chosen(outcome)
        if not len(individuals):
            return ()
        if not polish:
            versions = [list(self._measured(individuals, self.composition))]
        else:
            versions = list(self._polished(individuals))
        evidence = Evidence.of(self.rows, self.loss)

        def nats(worse: TemplateModel, better: TemplateModel) -> float:
            return evidence.nats(worse.loss, better.loss)

        chosen = [cast(TemplateModel, preferred(models, cast(Any, nats))) for models in zip(*versions, strict=True)]
        finite = [model for model in chosen if math.isfinite(model.loss)]
        finite = self.without_poles(finite)

        def surprise(model: TemplateModel) -> float:
            """The loss that a formula without constants would have, if it were as likely."""
            return evidence.worsened(model.loss, sum(map(written_length, model.law.functions.values())))

        return pareto_front(finite, self.enough, surprise)  # type: ignore[arg-type, return-value]

    def without_poles(self, models: Sequence[TemplateModel]) -> list[TemplateModel]:
        """The models that keep their place whichever of their outputs is looked at (see
        `shine.search.finishing.poles.without_poles`)."""
        # Groups up to which formulas are looked at for poles: with more, their trees are large.
        if not models or self.composition.n_groups > 100:
            return list(models)
        kept = set(models)
        for output, rows in enumerate(self._rows_of_outputs()):
            own = {model.outputs[output]: model for model in models}
            kept &= {own[cast(TemplateModel, each)] for each in without_poles(list(own), self.enough, Domain(rows))}
        return [model for model in models if model in kept] or list(models)

    def _rows_of_outputs(self) -> list[Dataset]:
        """The rows of each output."""
        rows = in_values(self.rows, self.groups)
        if len(self.composition.template.outputs) == 1:
            return [rows]
        numbers = rows.columns[rows.features.index(OUTPUT)]
        return [rows.take(np.flatnonzero(numbers == each)).without([OUTPUT]) for each in np.unique(numbers)]

    def _chosen(self, outcome: Outcome) -> Population:
        """The individuals on the front, and those nearly on it."""
        if outcome.stopped_by == "loss":
            return outcome.front
        archive = outcome.archive
        # Nats by which an individual may describe the data worse than the front and still be refined.
        rows = archive.nearly_on_front(Evidence.of(self.rows, self.loss).tied(outcome.scores.losses, 3.0))
        front = set(archive.front_rows().tolist())
        others = [row for row in rows.tolist() if row not in front]
        room = int(min(max(self.most - len(front), 0), len(others)))
        return archive.individuals.take(np.array(sorted([*front, *others[:room]]), np.int64))

    def _polished(self, individuals: Population) -> Iterator[list[TemplateModel]]:
        """The individuals with fitted constants, and then with simple ones, both simplified."""
        if self.rules or not self.composition.genome.slots:
            # A simplified formula may break a constraint.
            fitted = self._on_all_rows(self.composition, self._converged(self.composition, individuals))
            yield list(self._measured(fitted, self.composition))
        if not self.composition.genome.slots:
            return
        composition, simple = self._simplified(self.composition, individuals)
        sample = self._sample
        fitted = self._converged(composition, simple)
        nats = nats_of_errors(sample, self.loss)
        rows, least = sample.effective_rows, rounding_error(sample, self.loss)
        # Most constants of an individual that are looked at for being redundant, one after the other.
        for _ in range(4):
            fitted, changed = without_redundant(fitted, self._linearizer(composition, sample), nats, least)
            if not changed or self.is_closing():
                break
            composition, fitted = self._simplified(composition, fitted)
        yield list(self._measured(self._on_all_rows(composition, fitted), composition))
        shared = self._shared(composition)
        short = shared.hidden(fitted)
        short = snapped(short, shared, rows, least, nats=nats, out_of_time=self.is_closing)
        composition, short = self._simplified(composition, shared.shown(short))
        shared = self._shared(composition)
        short = shared.hidden(short)
        short = rounded_off(short, shared, rows, least, nats=nats, out_of_time=self.is_closing)
        short = shared.shown(without_idle_digits(short, shared, rows, least))
        composition, short = self._simplified(composition, short)
        yield list(self._measured(short, composition))

    def _shared(self, composition: Composition) -> SharedConstants:
        return SharedConstants(composition, self._linearizer(composition, self._sample))

    @cached_property
    def _sample(self) -> Dataset:
        """Rows that constants are made simple on: on all of them, they are fitted once more."""
        return self.rows.sampled(max(POLISHING_ROWS, least_rows(self.composition)), np.random.default_rng(0))

    def _linearizer(self, composition: Composition, rows: Dataset) -> TemplateLinearizer:
        return TemplateLinearizer(composition, rows, self.loss, self.threads)

    def _converged(self, composition: Composition, individuals: Population) -> Population:
        """The individuals with constants fitted to the sample."""
        return self._fit(composition, individuals, self._sample, _STEPS)

    def _on_all_rows(self, composition: Composition, fitted: Population) -> Population:
        """Individuals that are fitted to the sample, fitted to all rows."""
        return fitted if self._sample is self.rows else self._fit(composition, fitted, self.rows, _LAST_STEPS)

    def _fit(self, composition: Composition, individuals: Population, rows: Dataset, steps: int) -> Population:
        return self._linearizer(composition, rows).fit(individuals, steps, tolerance=TOLERANCE).population

    def _simplified(self, composition: Composition, individuals: Population) -> tuple[Composition, Population]:
        """The individuals with each unknown function simplified by itself, in a composition that has what they need."""
        genome = composition.genome
        slots, formulas = [], []
        for number, slot in enumerate(genome.slots):
            plain = formulas_in(individuals, number, slot.max_size)
            allowed = with_functions(slot.primitives, LINE_FUNCTIONS)
            trees = [_shorter(plain.tree(index), allowed, self._ranges[number]) for index in range(len(plain))]
            names = sorted({name for tree in trees for name in functions_of(tree)})
            own = with_functions(slot.primitives, names)
            size = max(slot.max_size, *(len(tree.tokens) for tree in trees))
            formulas.append(Population.from_trees(trees, own, size))
            slots.append(Slot(slot.name, own, size, slot.max_depth))
        first = individuals.sizes - genome.frame
        at = first[:, None] + np.arange(len(genome.numbers))
        numbers = individuals.values[np.arange(len(individuals))[:, None], at]
        wider = SlottedSet.of(slots, genome.numbers)
        return composition.with_genome(wider), assembled(formulas, wider, numbers)

    @cached_property
    def _ranges(self) -> tuple[Mapping[str, Range], ...]:
        """Ranges of the arguments of each unknown function."""
        return ranges_of_arguments(self.composition, self.rows, self.groups)

    def _measured(self, individuals: Population, composition: Composition) -> Iterator[TemplateModel]:
        """The individuals as models."""
        if composition.template.shrinkage:
            individuals = self._linearizer(composition, self.rows).shrunk(individuals)
        losses = TemplateEvaluator(composition, self.rows, self.loss, self.threads).score(individuals).losses
        r2 = self._r2(individuals, composition, losses)
        losses = self.rules.charged(individuals, losses) if self.rules else losses
        output = 0 if len(composition.template.outputs) == 1 else None
        for index, (loss, share) in enumerate(zip(losses.tolist(), r2.tolist(), strict=True)):
            law = law_of(composition, individuals, index, self.groups)
            yield TemplateModel(law.composed(), loss, share, self.weights, self.headings, law=law, output=output)

    def _r2(self, individuals: Population, composition: Composition, losses: Floats) -> Floats:
        """Coefficients of determination; the mean of several outputs."""
        if len(composition.template.outputs) > 1:
            return _mean_r2(
                TemplateEvaluator(composition, self.rows, "mse", self.threads).predict(individuals), self.rows
            )
        errors = losses
        if self.loss.name != "mse":
            errors = TemplateEvaluator(composition, self.rows, "mse", self.threads).score(individuals).losses
        return _explained(errors, self.rows)


def _mean_r2(predictions: Floats, rows: Dataset) -> Floats:
    """Coefficient of determination of each individual, the mean over the outputs."""
    outputs = rows.columns[rows.features.index(OUTPUT)]
    found = []
    for output in np.unique(outputs):
        which = np.flatnonzero(outputs == output)
        own = rows.take(which)
        squares = own.row_weights * (predictions[:, which] - own.target) ** 2
        found.append(_explained(stable_sum(squares) / own.weight, own))
    return np.asarray(sum(found) / len(found))


def _explained(errors: Floats, rows: Dataset) -> Floats:
    """Share of the target's variance that is explained; a constant target is explained fully or not at all."""
    variance = rows.target_square / rows.weight
    with np.errstate(all="ignore"):
        return 1 - errors / variance if variance > 0 else np.where(errors > 0, 0.0, 1.0)


def _shorter(tree: Tree, primitives: PrimitiveSet, ranges: Mapping[str, Range]) -> Tree:
    """A formula simplified for arguments in some ranges, unless that is no shorter."""
    simple = simplify(tree, primitives, functions=COMPILED, ranges=ranges)
    return simple if not simple.assignments and simple.size <= tree.size else tree
