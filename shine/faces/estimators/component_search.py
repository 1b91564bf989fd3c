"""The search for the components of `SymbolicTransformer`: which formulas, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.data.user_data import TrainingArrays
from shine.faces.estimators.components import Components
from shine.faces.estimators.fit_searches import FitSearches
from shine.faces.estimators.selection import Selection, selected
from shine.formats.read.guesses import Guess
from shine.search.description.lengths import NATS_A_NODE
from shine.search.models.choice import CONVINCING, fitted_constants
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.run import search

EXPLAINED = 1e-12
"""Standard deviation of the residual, as a share of the target's, below which nothing is left to explain."""


@dataclass(frozen=True)
class ComponentSearch:
    """Rows, and how to search them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    target : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,), optional
    searches : FitSearches
    guesses : callable
        Guesses of the search with a number.
    selection : str or callable
        The estimator's `model_selection`.
    max_correlation : float
        Largest correlation of two components.
    """

    rows: Floats
    target: Floats
    weights: Floats | None
    searches: FitSearches
    guesses: Callable[[int], list[Guess]]
    selection: Selection
    max_correlation: float

    def beside(self, count: int) -> list[Front]:
        """At most `count` components for a linear model that has the raw features, too.

        The first of the searches is for the target itself: its simplest laws need not be laws for the residual.
        """
        components = Components(self._all_weights, self.rows.T)
        effective = Dataset.from_arrays(self.rows, self.target, sample_weight=self.weights).effective_rows
        fronts: list[Front] = []
        candidates: list[tuple[Front, int, Floats, float]] = []
        first: Front | None = None
        while len(fronts) < count and not self.searches.stopped_by_user:
            residual = self.target if first is None else components.residual(self.target)
            if first is not None and self._is_explained(residual, components):
                break
            front = self._front(residual, len(self.searches.results))
            # Larger formulas than the recommended one fit the noise.
            chosen = range(front.best_index + 1) if self.selection == "best" else [front.best_index]
            chosen = [at for at in chosen if front[at].tree.size <= len(self.rows)]
            candidates += [(front, at, front[at].predict(self.rows), _price(front[at], effective)) for at in chosen]
            candidates = [each for each in candidates if components.is_new(each[2], self.max_correlation)]
            added = max(
                candidates,
                key=lambda each: components.nats_saved(each[2], self.target, effective) - each[3],
                default=None,
            )
            if added is not None and components.nats_saved(added[2], self.target, effective) > added[3]:
                components.add(added[2])
                fronts.append(replace(added[0], best_index=added[1], reason=""))
            elif first is not None:
                break
            first = first or front
        return fronts

    def instead(self, count: int) -> list[Front]:
        """At most `count` components that replace the raw features."""
        components = Components(self._all_weights)
        fronts: list[Front] = []
        while len(fronts) < count and not self.searches.stopped_by_user:
            residual = components.residual(self.target)
            if fronts and self._is_explained(residual, components):
                break
            front = self._front(residual, len(fronts))
            position = components.first_new(
                ((position, front[position].predict(self.rows)) for position in _by_preference(front, len(self.rows))),
                self.max_correlation,
            )
            if position is not None:
                front = replace(front, best_index=position, reason="")
            elif fronts:
                break
            components.add(front.best.predict(self.rows))
            fronts.append(front)
        return fronts

    @property
    def _all_weights(self) -> Floats:
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def _is_explained(self, residual: Floats, components: Components) -> bool:
        return components.deviation(residual) <= EXPLAINED * components.deviation(self.target)

    def _front(self, residual: Floats, number: int) -> Front:
        arrays = TrainingArrays(self.rows, residual, sample_weight=self.weights)
        found = self.searches.run(search, arrays, self.guesses(number)).front
        return selected(found, self.selection)


def _price(model: Model, rows: float) -> float:
    """Nats that a component must save: those to write it down, and what convinces."""
    return NATS_A_NODE * model.tree.size + 0.5 * fitted_constants(model.tree) * math.log(max(rows, 1.0)) + CONVINCING


def _by_preference(front: Front, rows: int) -> list[int]:
    """Positions of a front: the chosen one, then by rising loss; formulas with more nodes than rows last, by size."""

    def place(position: int) -> tuple[bool, float]:
        size = front[position].tree.size
        return size > rows, float(size) if size > rows else front[position].loss

    others = sorted(range(len(front)), key=place)
    return list(dict.fromkeys([front.best_index, *others]))
