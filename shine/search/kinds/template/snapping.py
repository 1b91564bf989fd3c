"""Constants of templates made simple: those that all groups share; the groups' own are fitted again after each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.evaluate.fitness.protocols import FirstLines, Fit, NormalEquations
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population
from shine.search.evolution.constants import places
from shine.search.templates.composition import Composition
from shine.search.templates.fits.linearizer import TemplateLinearizer

_HIDDEN = 1
"""Code of a feature: a leaf that is no constant."""


@dataclass(frozen=True)
class SharedConstants:
    """A linearizer of individuals whose parameters by group do not count as constants (see `hidden`).

    Parameters
    ----------
    composition : Composition
    linearizer : TemplateLinearizer
    """

    composition: Composition
    linearizer: TemplateLinearizer

    def hidden(self, population: Population) -> Population:
        """The individuals with the leaves of parameters by group as something else than constants."""
        return self._with_code(population, _HIDDEN)

    def shown(self, population: Population) -> Population:
        """The individuals as they were before `hidden`."""
        return self._with_code(population, CONSTANT)

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Normal equations of the shared constants, those of the groups eliminated."""
        del slopes, intercepts, limits
        return self.linearizer.shared_equations(self.shown(population))

    def fit(
        self,
        population: Population,
        steps: int,
        *,
        tolerance: float,
        lines: FirstLines | None = None,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit all constants, those of the groups too (see `shine.evaluate.fitness.protocols.Linearizer`)."""
        whole = self.shown(population)
        held = None if fixed is None else self._of_all(population, whole, fixed)
        fit = self.linearizer.fit(whole, steps, tolerance=tolerance, fixed=held)
        return replace(fit, population=self.hidden(fit.population))

    def _with_code(self, population: Population, code: int) -> Population:
        rows, at = self._leaves(population)
        codes = population.codes.copy()
        codes[rows, at] = code
        return replace(population, codes=codes)

    def _leaves(self, population: Population) -> tuple[Indices, Indices]:
        """Rows and columns of the leaves of parameters by group."""
        composition = self.composition
        own = [
            offset + np.arange(count)
            for parameter, offset, count in zip(
                composition.parameters, composition.offsets, composition.counts, strict=True
            )
            if parameter.by_group
        ]
        offsets = np.concatenate([np.zeros(0, np.int64), *own])
        first = population.sizes - 1 - composition.n_leaves
        return np.arange(len(population))[:, None], first[:, None] + offsets

    @staticmethod
    def _of_all(hidden: Population, whole: Population, fixed: Mask) -> Mask:
        """Mask of all constants that keep their values, from that of the shared ones."""
        held = np.zeros(whole.codes.shape, np.bool_)
        rows, columns, ranks = places(hidden)
        held[rows, columns] = fixed[rows, ranks]
        rows, columns, ranks = places(whole)
        found = np.zeros((len(whole), 1 + int(ranks.max(initial=-1))), np.bool_)
        found[rows, ranks] = held[rows, columns]
        return found
