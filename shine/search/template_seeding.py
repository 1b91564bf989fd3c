"""Guesses for the unknown functions of a template: the known part is solved for them, and the seeding sees the values.

Parameters stand in the way (see `shine.search.template_solving`). Then rough functions come first: polynomials, and
exponentials and reciprocals of polynomials, are fitted together with the parameters. Their parameters are near the
true ones, so that the known part can be solved for the unknown functions; the seeding looks for formulas of those
values, and the search begins with them and with the parameters of the rough fit. Splines refine the rough functions
first (see `shine.search.template_splines`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

import numpy as np

from shine.data.dataset import Dataset
from shine.fitness.losses import Loss
from shine.gp.evolution import Seeding
from shine.gp.seeding import Guesses, SeedingSettings
from shine.gp.settings import EvolutionSettings
from shine.gp.slot_breeding import assembled
from shine.gp.slots import Slot, SlottedSet
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.tree import Tree
from shine.search.preparation import SEEDING_ROWS, guesses_on
from shine.search.template_solving import Known, Solved, solved
from shine.search.template_splines import RoughFit, rough_fits, with_splines
from shine.templates.composition import Composition
from shine.typing import Floats

DEGREES = {1: (1, 3, 5), 2: (1, 2, 3)}
"""Degrees of rough functions by the number of arguments; of more arguments, 1 and 2."""

SHAPES = ("{}", "exp({})", "1/({})")
"""Rough functions of a polynomial."""

STARTS = 6
"""Values of the parameters that a rough fit starts from; the first ones are those of new individuals."""

REFINED, REFINEMENTS = 8, 2
"""Rough fits that get splines, the best ones, and how often: the arguments, and with them the knots, move."""

ROUGH_FITS = 2
"""Rough fits that the known part is solved with: the best ones."""

ROWS_A_LEAF = 10
"""Rows for each parameter, and for each group of one by group, that rough fits see, if there are so many."""

_STEPS, _TOLERANCE = 60, 1e-4
"""Most steps of a rough fit, and the share of the error that its next step must promise to remove."""

_PAIRED = 30
"""Best guesses of each of several unknown functions that are combined."""


def template_seeding(
    composition: Composition, sample: Dataset, settings: EvolutionSettings, loss: Loss, threads: int
) -> Seeding | None:
    """What looks for guesses of the unknown functions; None if the template cannot be solved for them.

    Parameters
    ----------
    composition : Composition
    sample : Dataset
    settings : EvolutionSettings
    loss : Loss
    threads : int
    """
    template = composition.template
    if len(template.outputs) > 1 or any(by for _, by in template.calls.values()):
        return None

    def seeded(rng: np.random.Generator, deadline: float, work: float) -> Guesses:
        looking = _Looking(composition, settings, threads, rng, deadline, work)
        rows = sample.sampled(max(SEEDING_ROWS, ROWS_A_LEAF * composition.n_leaves), rng)
        if len(template.unknowns) == 1:
            found = solved(composition, rows, template.unknowns[0].name, Known())
            if found is not None:
                return looking.guesses([({}, [found])], composition.starts[None])
        fits = list(_rough_fits(composition, rows, loss, threads, rng))
        values = [_solved_for_all(composition, rows, fit) for fit in fits]
        kept = [(fit.functions, all_) for fit, all_ in zip(fits, values, strict=True) if all_ is not None]
        numbers = [fit.numbers for fit, all_ in zip(fits, values, strict=True) if all_ is not None]
        return looking.guesses(kept, np.array(numbers).reshape(len(numbers), composition.n_leaves))

    return seeded


def _rough_fits(
    composition: Composition, rows: Dataset, loss: Loss, threads: int, rng: np.random.Generator
) -> Iterator[RoughFit]:
    """The best rough fits, the best first; with splines, where functions have one argument."""
    slots = composition.genome.slots
    forms = [list(_rough_functions(slot)) for slot in slots]
    # All functions have the same shape and degree.
    together = [[own[min(place, len(own) - 1)] for own in forms] for place in range(max(map(len, forms)))]
    trees = [each for each in together for _ in range(STARTS)]
    numbers = np.array([_start(composition, start, rng) for _ in together for start in range(STARTS)])
    fits = rough_fits(composition, trees, numbers, rows, loss, threads, _STEPS, _TOLERANCE)
    best = sorted(fits, key=lambda each: each.error)[:REFINED]
    for _ in range(REFINEMENTS):
        best = [_refined(composition, fit, rows, loss, threads) for fit in best]
    yield from sorted(best, key=lambda each: each.error)[:ROUGH_FITS]


def _refined(composition: Composition, fit: RoughFit, rows: Dataset, loss: Loss, threads: int) -> RoughFit:
    """A rough fit with splines, if all functions have one argument and the known part can be solved for them."""
    if any(len(slot.primitives.features) > 1 for slot in composition.genome.slots):
        return fit
    values = _solved_for_all(composition, rows, fit)
    if values is None:
        return fit
    return with_splines(composition, fit, [each.rows.columns[0] for each in values], rows, loss, threads)


def _start(composition: Composition, number: int, rng: np.random.Generator) -> Floats:
    """Values of the leaves to start from; all groups have the same."""
    found = composition.starts
    for parameter, offset, count in zip(composition.parameters, composition.offsets, composition.counts, strict=True):
        # Whole powers of two: no transcendental function, whose bits depend on the processor.
        factor = 1.0 if number == 0 else float(np.ldexp(1 + rng.random(), int(rng.integers(-3, 3))))
        sign = -1.0 if number > STARTS // 2 and parameter.bounds[0] < 0 and rng.random() < 0.5 else 1.0
        found[offset : offset + count] = np.clip(found[offset] * factor * sign, *parameter.bounds)
    return found


def _rough_functions(slot: Slot) -> Iterator[Tree]:
    """Formulas of a rough function: polynomials in its arguments in several shapes."""
    names = slot.primitives.features
    for degree, shape in product(DEGREES.get(len(names), (1, 2)), SHAPES):
        if len(names) == 1:
            text = "0.1"
            for power in reversed(range(degree)):
                text = f"({'1.0' if power == 0 else '0.1'} + {names[0]}*{text})"
        else:
            terms = [
                "*".join(["0.1", *factors])
                for size in range(1, degree + 1)
                for factors in combinations_with_replacement(names, size)
            ]
            text = " + ".join(["1.0", *terms])
        yield parse(shape.format(text), names)


def _solved_for_all(composition: Composition, rows: Dataset, fit: RoughFit) -> list[Solved] | None:
    """The values of each unknown function, with the parameters and the other functions of a rough fit."""
    groups = np.zeros(rows.n_rows, np.int64)
    if composition.template.groups is not None:
        groups = rows.columns[rows.features.index(composition.template.groups)].astype(np.int64)
    numbers = {
        parameter.name: fit.numbers[offset + groups]
        if parameter.by_group
        else np.full(rows.n_rows, fit.numbers[offset])
        for parameter, offset in zip(composition.parameters, composition.offsets, strict=True)
    }
    found = []
    for unknown in composition.template.unknowns:
        others = {name: tree for name, tree in fit.functions.items() if name != unknown.name}
        values = solved(composition, rows, unknown.name, Known(numbers, others))
        if values is None:
            return None
        found.append(values)
    return found


@dataclass(frozen=True)
class _Looking:
    """The seeding of several functions, which share time and work."""

    composition: Composition
    settings: EvolutionSettings
    threads: int
    rng: np.random.Generator
    deadline: float
    work: float

    def guesses(self, tasks: list[tuple[Mapping[str, Tree], list[Solved]]], numbers: Floats) -> Guesses:
        """Guesses from the values of all functions, for each of several values of the parameters."""
        genome = self.composition.genome
        count = max(len(tasks) * len(genome.slots), 1)
        candidates, parts, last = [self._nobody()], [self._nobody()], None
        for task, ((_, all_values), own) in enumerate(zip(tasks, numbers, strict=True)):
            found = []
            for number, (slot, values) in enumerate(zip(genome.slots, all_values, strict=True)):
                left = count - task * len(genome.slots) - number
                last = self._of_slot(slot, values, left, count)
                found.append(last)
            candidates.append(_combined([each.candidates for each in found], genome, own))
            parts.append(_combined([each.parts for each in found], genome, own))
            if any(each.interrupted for each in found):
                break
        nothing = np.zeros(0)
        plain = last or Guesses(self._nobody(), nothing, (), self._nobody(), nothing, False)
        return replace(plain, candidates=Population.concatenate(candidates), parts=Population.concatenate(parts))

    def _of_slot(self, slot: Slot, values: Solved, left: int, count: int) -> Guesses:
        now = time.monotonic()
        return guesses_on(
            values.rows.sampled(SEEDING_ROWS, self.rng),
            slot.primitives,
            self.threads,
            self.rng,
            now + (self.deadline - now) / left,
            SeedingSettings(members=self.settings.seeding_members),
            work=self.work / count,
            max_size=slot.max_size,
            max_depth=slot.max_depth,
            linear_scaling=values.up_to_line,
        )

    def _nobody(self) -> Population:
        genome = self.composition.genome
        width = genome.width
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), genome)


def _combined(formulas: list[Population], genome: SlottedSet, numbers: Floats) -> Population:
    """Individuals of the formulas of each slot: of several slots, all pairs of neighbouring ranks of the best ones."""
    counts = [len(each) for each in formulas]
    if min(counts) == 0:
        ranks = np.zeros((0, len(formulas)), np.int64)
    elif len(formulas) == 1:
        ranks = np.arange(counts[0])[:, None]
    else:
        best = [min(count, _PAIRED) for count in counts]
        rows = [[min(rank, count - 1) for count in best] for rank in range(max(best))]
        for slot, count in enumerate(best):
            rows += [[rank if each == slot else 0 for each in range(len(best))] for rank in range(1, count)]
        ranks = np.array(rows)
    chosen = [each.take(ranks[:, slot]) for slot, each in enumerate(formulas)]
    return assembled(chosen, genome, np.tile(numbers, (len(ranks), 1)))
