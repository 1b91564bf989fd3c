"""Uncertainty of a fitted estimator: intervals of its constants and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from shine.base.typing import Floats
from shine.faces.estimators.fitted import FittedEstimator, Index

if TYPE_CHECKING:
    from shine.evaluate.inference.intervals.bands import Kind as Band
    from shine.search.models.measuring.box import Limits
    from shine.search.models.measuring.prices import Cost
    from shine.search.models.uncertain import Exact, Method


class UncertainEstimator(FittedEstimator):
    """The part of an estimator that tells how sure it is; with several fronts, results are lists of one for each.

    A copy from a pickle does not have the rows of the fit: see `shine.search.models.uncertain.UncertainModel`.
    """

    def conf_int(
        self, level: float = 0.95, method: Method | None = None, *, index: Index = None, **options: Any
    ) -> Any:
        """Intervals of the constants of a formula, by their names in `summary`.

        Parameters
        ----------
        level : float
        method : {"profile", "wald"}, optional
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        **options
            Of `Model.conf_int`: ``exact``, ``covariance``.

        Returns
        -------
        dict of str to (float, float)
        """
        return self._each(index, lambda model: model.conf_int(level, method, **options))

    def standard_errors(self, *, index: Index = None, **options: Any) -> Any:
        """Standard errors of the constants of a formula, by name (see `conf_int` for the parameters)."""
        return self._each(index, lambda model: model.standard_errors(**options))

    def correlations(self, *, index: Index = None, **options: Any) -> Any:
        """Correlations of the constants of a formula, shape (n_constants, n_constants) (see `conf_int`)."""
        return self._each(index, lambda model: model.correlations(**options))

    def summary(self, level: float = 0.95, method: Method | None = None, *, index: Index = None, **options: Any) -> Any:
        """The constants of a formula with their standard errors and intervals, to print (see `conf_int`)."""
        return self._each(index, lambda model: model.summary(level, method, **options))

    def next_measurement(self, box: Mapping[str, Limits] | None = None, n: int = 1, cost: Cost | None = None) -> Any:
        """Points to measure next, to tell the remaining formulas apart (see `Front.next_measurement`)."""
        check_is_fitted(self)
        found = [front.next_measurement(box, n, cost) for front in self._fronts]
        return found if isinstance(self.front_, list) else found[0]

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        kind: Band = "prediction",
        *,
        index: Index = None,
        exact: Exact = (),
    ) -> Floats:
        """Intervals of the values of a formula (see `Model.predict_interval` for what they rest on).

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        level : float
            Share of such intervals that hold the truth.
        kind : {"prediction", "mean"}
            Of new readings of the target, with their noise; or of the value that the formula has with the true
            constants.
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        exact : float or collection of float
            Numbers of the formula that are known exactly.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        models = self._models(index)
        rows = self._rows_for(models, X)
        ends = [model.predict_interval(rows, level, kind, exact=exact) for model in models]
        return ends[0] if not isinstance(self.front_, list) else np.stack(ends, axis=1)
