"""Given formulas in place of the unknown functions of a template, fitted together with the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.protocols import Fit
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.evolution.operators.slots import Slot, SlottedSet
from shine.search.evolution.scoring import places
from shine.search.problem.scaling import with_functions
from shine.search.templates.composition import Composition
from shine.search.templates.fits.linearizer import TemplateLinearizer

_STEPS, _TOLERANCE = 60, 1e-5
"""Most steps of the fit, and the share of the error that its next step must promise to remove."""

_QUICK_STEPS = 12
"""Most steps of the fits of many individuals, of which the best goes on."""


@dataclass(frozen=True, eq=False)
class RoughFit:
    """Rough functions and parameters that fit together.

    Parameters
    ----------
    functions : mapping of str to Tree
        Formula of each unknown function.
    numbers : ndarray of shape (n_leaves,)
        Values of all leaves of the parameters.
    error : float
        Sum of errors.
    """

    functions: Mapping[str, Tree]
    numbers: Floats
    error: float


@dataclass(frozen=True, eq=False)
class RoughFitter:
    """Fits formulas of the unknown functions of a template, and its parameters, to some rows.

    Parameters
    ----------
    composition : Composition
    rows : Dataset
        With numbers of groups.
    loss : Loss
    threads : int
    """

    composition: Composition
    rows: Dataset
    loss: Loss
    threads: int

    def fits(
        self,
        forms: Sequence[Sequence[Tree]],
        numbers: Floats,
        steps: int = _STEPS,
        tolerance: float = _TOLERANCE,
        held: Sequence[bool] | None = None,
        only_functions: bool = False,
    ) -> list[RoughFit]:
        """Formulas of the unknown functions, fitted together with the parameters.

        Parameters
        ----------
        forms : sequence of sequence of Tree
            For each fit, a formula of each unknown function.
        numbers : ndarray of shape (n_fits, n_leaves)
            Values of the leaves to start from.
        steps, tolerance
            See `shine.evaluate.protocols.Linearizer.fit`.
        held : sequence of bool, optional
            Which constants of the formulas, in their order, keep their values.
        only_functions : bool
            Whether the parameters keep their values, too. It goes with `held`.
        """
        composition = self.composition
        slots = []
        for place, slot in enumerate(composition.genome.slots):
            names = sorted({name for trees in forms for name in functions_of(trees[place])})
            size = max(trees[place].size for trees in forms)
            slots.append(Slot(slot.name, with_functions(slot.primitives, names), size, slot.max_depth))
        wider = composition.with_genome(SlottedSet.of(slots, composition.genome.numbers))
        formulas = [
            Population.from_trees([trees[place] for trees in forms], slot.primitives)
            for place, slot in enumerate(slots)
        ]
        individuals = assembled(formulas, wider.genome, numbers)
        fixed = (
            None
            if held is None
            else np.tile(np.append(held, np.full(composition.n_leaves, only_functions)), (len(forms), 1))
        )
        linearizer = TemplateLinearizer(wider, self.rows, self.loss, self.threads)
        fit = linearizer.fit(individuals, steps, tolerance=tolerance, fixed=fixed)
        found = []
        for index in np.flatnonzero(np.isfinite(fit.errors)).tolist():
            found.append(_individual(wider, fit, index))
        return found

    def with_parameters(self, individuals: Population) -> Population:
        """Individuals with parameters fitted to their functions, which stay as they are."""
        if not len(individuals):
            return individuals
        which, columns, ranks = places(individuals)
        held = np.zeros((len(individuals), 1 + int(ranks.max(initial=-1))), np.bool_)
        held[which, ranks] = columns < individuals.sizes[which] - self.composition.genome.frame
        linearizer = TemplateLinearizer(self.composition, self.rows, self.loss, self.threads)
        return linearizer.fit(individuals, _QUICK_STEPS, tolerance=_TOLERANCE, fixed=held).population

    def best(self, individuals: Population) -> RoughFit | None:
        """The best of some individuals with all their numbers fitted; None if none has a finite error."""
        if not len(individuals):
            return None
        linearizer = TemplateLinearizer(self.composition, self.rows, self.loss, self.threads)
        fit = linearizer.fit(individuals, _QUICK_STEPS, tolerance=_TOLERANCE)
        best = int(np.argmin(fit.errors))
        if not np.isfinite(fit.errors[best]):
            return None
        fit = linearizer.fit(fit.population.take(np.array([best])), _STEPS, tolerance=_TOLERANCE)
        return _individual(self.composition, fit, 0)


def _individual(composition: Composition, fit: Fit, index: int) -> RoughFit:
    """One of some fitted individuals."""
    form = composition.functions_of(fit.population.take(np.array([index])))
    first = int(fit.population.sizes[index]) - 1 - composition.n_leaves
    leaves = fit.population.values[index, first : first + composition.n_leaves]
    functions = {slot.name: form(slot.name, ()) for slot in composition.genome.slots}
    return RoughFit(functions, leaves, float(fit.errors[index]))
