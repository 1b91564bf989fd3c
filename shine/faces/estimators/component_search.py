"""The search for the components of `SymbolicTransformer`: which formulas, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, dot, log
from shine.data.datasets.dataset import Dataset
from shine.data.user_data import TrainingArrays
from shine.faces.estimators.fit_searches import FitSearches
from shine.faces.estimators.parameters import Selection, selected
from shine.formats.read.guesses import Guess
from shine.search.description import NATS_A_NODE
from shine.search.models.certainty import CONVINCING, fitted_constants
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
    earlier : callable
        Formulas of the last fit for the search with a number.
    selection : str or callable
        The estimator's `model_selection`.
    max_correlation : float
        Largest correlation of two components.
    """

    rows: Floats
    target: Floats
    weights: Floats | None
    searches: FitSearches
    earlier: Callable[[int], list[Guess]]
    selection: Selection
    max_correlation: float

    def with_raw_features(self, count: int) -> list[Front]:
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
        found = self.searches.run(search, arrays, self.earlier(number)).front
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


DEPENDENT = 1e-9
"""Squared length, as a share of its own, that a column must have beyond the others to add anything to them."""

LEAST_FREEDOM = 1e-3
"""Least part of a residual that the row does not determine itself."""

LARGEST_RESIDUAL = 1000
"""Largest exponent of two of residuals: of a few rows they may be much larger than the target."""

ROUNDING = 1e-24
"""Share of squared errors that counts as none left."""


class Components:
    """Values of some formulas on weighted rows, and the residual of a target that they leave.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative; at least one is positive.
    raw : ndarray of shape (n, n_rows), optional
        Columns that stand beside the formulas: the linear model of the residual has them too.
    """

    def __init__(self, weights: Floats, raw: Floats | None = None) -> None:
        self._roots = np.sqrt(weights / weights.sum())
        self._columns: list[Floats] = []
        self._raw = [] if raw is None else [self._standardized(values) for values in raw]

    def add(self, values: Floats) -> None:
        """Add the values of another formula, shape (n_rows,)."""
        self._columns.append(self._standardized(values))

    def residual(self, target: Floats) -> Floats:
        """Residual of a linear model of all columns for a target; the target itself without columns.

        The residual of a target near float64's largest number is smaller by a power of two: it may be larger than that.
        """
        if not self._raw and not self._columns:
            return target
        # An exact power of two keeps sums of large numbers finite, and changes nothing.
        exponent = int(np.frexp(np.abs(target).max())[1])
        rest = self._model.rest(np.ldexp(target, -exponent) * self._roots)
        own = np.divide(rest, self._roots, out=np.zeros_like(target), where=self._roots > 0)
        return np.ldexp(own, min(exponent, LARGEST_RESIDUAL))

    def nats_saved(self, values: Floats, target: Floats, rows: float) -> float:
        """Nats by which another formula shortens the description of a target by a linear model, its own not counted.

        The coefficient is paid for, and each row's error is that of a model fitted to the other rows, so that a formula
        with a few extreme values gains nothing by them. `rows` is their effective number; those
        that the model's coefficients use up say nothing.
        """
        model = self._model
        # An exact power of two keeps squares of large numbers finite, and changes nothing.
        target = np.ldexp(target, -int(np.frexp(np.abs(target).max())[1]))
        rest, own = model.rest(target * self._roots), model.rest(self._standardized(values))
        before, length = float(dot(rest, rest)), float(dot(own, own))
        free = rows - len(self._raw) - len(self._columns) - 2
        if free < 1 or not before > ROUNDING * self.deviation(target) ** 2 or not length > DEPENDENT:
            return 0.0
        unit = own / np.sqrt(length)
        leverages = dot(model.basis.T, model.basis.T) / (rows * self._roots**2)
        errors = [
            _left_out(rest, leverages),
            _left_out(rest - float(dot(unit, rest)) * unit, leverages + unit**2 / (rows * self._roots**2)),
        ]
        shares = log(np.array([max(errors[1], ROUNDING * before) / errors[0], rows]))
        return -0.5 * free * float(shares[0]) - 0.5 * float(shares[1])

    @property
    def _model(self) -> Regression:
        return Regression.of(np.stack([self._roots, *self._raw, *self._columns]))

    def deviation(self, values: Floats) -> float:
        """Weighted standard deviation."""
        size = float(np.abs(values).max(initial=0.0)) or 1.0
        with np.errstate(all="ignore"):
            return size * _length(self._centred(values / size))

    def is_new(self, values: Floats, most: float) -> bool:
        """Whether values vary and correlate with each formula by at most `most`."""
        column = self._standardized(values)
        return bool(column.any()) and all(abs(dot(column, other)) <= most for other in self._columns)

    def first_new(self, candidates: Iterable[tuple[int, Floats]], most: float) -> int | None:
        """The first position whose values vary and correlate with each formula by at most `most`; None if none does."""
        return next((position for position, values in candidates if self.is_new(values, most)), None)

    def _centred(self, values: Floats) -> Floats:
        mean = float(dot(self._roots**2, values))
        return (values - mean) * self._roots

    def _standardized(self, values: Floats) -> Floats:
        """Values with mean 0 and norm 1, times the roots of the weights; zeros if they do not vary."""
        with np.errstate(all="ignore"):
            centred = self._centred(values)
            norm = _length(centred)
        largest = float(np.abs(values).max(initial=0.0))
        return centred / norm if np.isfinite(norm) and norm > 1e-12 * largest else np.zeros_like(values)


def _left_out(rest: Floats, leverages: Floats) -> float:
    """Sum of the squared errors of rows that the model does not see, from residuals and leverages (Allen 1974)."""
    return float(dot(rest, rest / np.maximum(1 - leverages, LEAST_FREEDOM) ** 2))


def _length(vector: Floats) -> float:
    """Root of the sum of squares; the sum itself may overflow or underflow."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(dot(vector / largest, vector / largest)))
