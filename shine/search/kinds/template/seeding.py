"""Guesses for the unknown functions of a template: the known part is solved for them, and the seeding sees the values.

Parameters stand in the way (see `shine.search.kinds.template.solving`). Then rough functions come first, in the second
slice (see `shine.search.kinds.template.rough_functions`). Their parameters are near the true ones, so that the known
part can be solved for the unknown functions; the seeding looks for formulas of those values. With the best formulas,
the parameters come nearer still, and the seeding looks once more, as long as that helps.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.parallel import Pool
from shine.base.stages import is_followed, so_far
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.lang.population import Population
from shine.lang.presentation import for_people
from shine.lang.simplify.simplifier import simplify
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.evolution.operators.slots import Slot, SlottedSet
from shine.search.evolution.settings import EvolutionSettings
from shine.search.kinds.template.rough_fits import RoughFit, RoughFitter
from shine.search.kinds.template.rough_functions import rough_functions
from shine.search.kinds.template.solving import Known, Solved, solved, solved_for_all
from shine.search.models.front_table import r2_text
from shine.search.models.user_units import DIGITS
from shine.search.problem.preparation import SEEDING_ROWS, seeding_task
from shine.search.problem.reference_losses import rounding_error
from shine.search.problem.scaling import with_line
from shine.search.seeding import Finding, Guesses, SeedingSettings, Slices, find_guesses
from shine.search.seeding.effort import FIRST_SLICE, Deadline, Effort
from shine.search.templates.composition import Composition

ROUNDS = (0.7, 1.0)
"""Share of the time that is left that each round of solving and looking may take."""

TIED = 5.0
"""Nats by which a rough fit may be worse than the best one: it has found other parameters that are as likely."""


def template_seeding(
    composition: Composition,
    sample: Dataset,
    settings: EvolutionSettings,
    loss: Loss,
    threads: int,
    pool: Pool | None = None,
) -> Slices | None:
    """The seeding of the unknown functions; None if the template cannot be solved for them."""
    template = composition.template
    if len(template.outputs) > 1:
        return None

    def seeded(rng: np.random.Generator, effort: Effort) -> Generator[Guesses]:
        effort.most = FIRST_SLICE
        slots = _SlotSeeding(composition, settings, threads, rng, effort, pool)
        # Rows for each parameter, and for each group of one by group, that rough fits see, if there are so many.
        rows = sample.sampled(max(SEEDING_ROWS, 10 * composition.n_leaves), rng)
        if len(template.unknowns) == 1:
            found = solved(composition, rows, template.unknowns[0].name, Known())
            if found is not None:
                yield slots.guesses([[found]], composition.starts[None], slots.until(), 1.0)
                return
        # The evolution comes first: most laws take it less time than rough functions take.
        yield slots.guesses([], np.zeros((0, composition.n_leaves)), math.inf, 1.0)
        fitter, until = RoughFitter(composition, rows, loss, threads), slots.until()
        fits = rough_functions(fitter, rng, lambda: effort.deadline.clock() >= until)
        yield slots.rounds(fitter, fits, until)

    return Slices(seeded, last=1)


@dataclass(frozen=True)
class _SlotSeeding:
    """The seeding of several functions, which share an effort."""

    composition: Composition
    settings: EvolutionSettings
    threads: int
    rng: np.random.Generator
    effort: Effort
    pool: Pool | None

    def until(self) -> float:
        """When the stage ends at the latest, on the clock."""
        now = self.effort.deadline.clock()
        return now + self.settings.seeding * (self.effort.deadline.at - now)

    def rounds(self, fitter: RoughFitter, fits: Sequence[RoughFit], until: float) -> Guesses:
        """Guesses from rough fits, the best first, and then from the best guesses themselves."""
        rows = fitter.rows
        # Most rough fits that the known part is solved with.
        fits = [fit for fit in fits if (fit.error - fits[0].error) * rows.n_rows <= 2 * TIED * fits[0].error][:2]
        found = self.guesses([], np.zeros((0, self.composition.n_leaves)), until, 1.0)
        for share in ROUNDS:
            now = self.effort.deadline.clock()
            values = [solved_for_all(self.composition, rows, fit) for fit in fits]
            tasks = [each for each in values if each is not None]
            numbers = np.array([fit.numbers for fit, each in zip(fits, values, strict=True) if each is not None])
            new = self.guesses(
                tasks,
                numbers.reshape(len(tasks), self.composition.n_leaves),
                now + share * (until - now),
                share,
            )
            candidates = fitter.with_parameters(new.candidates)
            new = replace(new, candidates=candidates)
            candidates, parts = (
                Population.concatenate([a, b])
                for a, b in ((new.candidates, found.candidates), (new.parts, found.parts))
            )
            found = replace(new, candidates=candidates, parts=parts)
            best = fitter.best(new.candidates)
            least = min((fit.error for fit in fits), default=0.0)
            if best is None or new.interrupted or best.error < rounding_error(rows, fitter.loss):
                break
            # Factor by which the best formulas must be better than the fit that they come from, for another round.
            if best.error * 4.0 > least or self.effort.deadline.clock() >= until:
                break
            fits = [best]
        return found

    def guesses(self, tasks: Sequence[list[Solved]], numbers: Floats, until: float, share: float) -> Guesses:
        """Guesses from the values of all functions, for each of several values of the parameters.

        They are found until a time on the clock, with a share of the work.
        """
        genome = self.composition.genome
        count = max(len(tasks) * len(genome.slots), 1)
        candidates, parts, last = [self._nobody()], [self._nobody()], None
        for task, (all_values, own) in enumerate(zip(tasks, numbers, strict=True)):
            found = []
            for number, (slot, values) in enumerate(zip(genome.slots, all_values, strict=True)):
                left = count - task * len(genome.slots) - number
                now = self.effort.deadline.clock()
                last = self._of_slot(slot, values, now + (until - now) / left, share * self.effort.most / count)
                found.append(last)
            candidates.append(_combined([each.candidates for each in found], genome, own))
            parts.append(_combined([each.parts for each in found], genome, own))
            if any(each.interrupted for each in found):
                break
        nothing = np.zeros(0)
        plain = last or Guesses(self._nobody(), nothing, (), self._nobody(), nothing, False)
        return replace(plain, candidates=Population.concatenate(candidates), parts=Population.concatenate(parts))

    def _of_slot(self, slot: Slot, values: Solved, until: float, work: float) -> Guesses:
        task = seeding_task(
            values.rows.sampled(SEEDING_ROWS, self.rng),
            slot.primitives,
            self.threads,
            max_size=slot.max_size,
            max_depth=slot.max_depth,
            linear_scaling=values.up_to_line,
            settings=SeedingSettings(members=self.settings.seeding_members),
            pool=self.pool,
            found=partial(_tell, slot.name) if is_followed() else None,
        )
        found = find_guesses(task, self.rng, Effort(work, Deadline(self.effort.deadline.clock, until)))
        return replace(found, candidates=_simplified(found.candidates, slot))

    def _nobody(self) -> Population:
        genome = self.composition.genome
        width = genome.width
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), genome)


def _tell(function: str, best: Finding) -> None:
    """Tell the listeners of the stages of the best formula so far for the solved values of an unknown function."""

    def text() -> str:
        formula = for_people(with_line(best.tree, best.slope, best.intercept), DIGITS).readable
        return f"{function} = {formula}, R2 {r2_text(1 - best.unexplained)}"

    so_far(text)


def _simplified(formulas: Population, slot: Slot) -> Population:
    """Formulas simplified, where that makes them shorter: so they compete with those of their true complexity."""
    trees = [formulas.tree(index) for index in range(len(formulas))]
    simple = [simplify(tree, slot.primitives, functions=COMPILED) for tree in trees]
    shorter = [
        new if not new.assignments and new.size < old.size else old for old, new in zip(trees, simple, strict=True)
    ]
    return Population.from_trees(shorter, slot.primitives, formulas.width)


def _combined(formulas: list[Population], genome: SlottedSet, numbers: Floats) -> Population:
    """Individuals of the formulas of each slot: of several slots, all pairs of neighbouring ranks of the best ones."""
    counts = [len(each) for each in formulas]
    if min(counts) == 0:
        ranks = np.zeros((0, len(formulas)), np.int64)
    elif len(formulas) == 1:
        ranks = np.arange(counts[0])[:, None]
    else:
        # Best guesses of each of several unknown functions that are combined.
        best = [min(count, 30) for count in counts]
        rows = [[min(rank, count - 1) for count in best] for rank in range(max(best))]
        for slot, count in enumerate(best):
            rows += [[rank if each == slot else 0 for each in range(len(best))] for rank in range(1, count)]
        ranks = np.array(rows)
    chosen = [each.take(ranks[:, slot]) for slot, each in enumerate(formulas)]
    return assembled(chosen, genome, np.tile(numbers, (len(ranks), 1)))
