"""The uncertainty of a formula's constants: small enough to travel with it, without the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shine.base.typing import Floats, Mask
from shine.evaluate.inference.quantiles import two_sided

FAR = 5.0
"""Least distance in standard errors of constants that are not just rounded, all together, also if the likelihood tells
it: standard errors know only its curvature. A description leaves out no coefficient whose absence costs more."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The uncertainty of a formula's constants, and the scatter of its predictions.

    Parameters
    ----------
    names : tuple of str
        Names of the constants (see `shine.evaluate.inference.constants`).
    values, best : ndarray of shape (n_constants,)
        Their values in the formula, and the most likely ones.
    covariance : ndarray of shape (n_constants, n_constants)
        inf if there are as many constants as rows.
    undetermined : ndarray of shape (n_constants,), bool
        Constants that the rows do not determine.
    directions : ndarray of shape (n_directions, n_constants)
        Changes of the constants that do not change the predictions on the rows.
    kind : {"model", "robust", "dependent"}
        Whether the covariance trusts the weights of the rows, and that they are independent.
    error : str
        Name of the error of a row: squared, absolute, ...
    rows, freedom : float
        Effective number of rows, and without one for each constant; the latter is inf if the scale of the errors is
        known.
    freedoms : ndarray of shape (n_constants,)
        Degrees of freedom of each standard error.
    total : float
        Sum of errors at the best constants.
    likelihood : float, optional
        Factor of that sum in the negative log-likelihood; None if the scale of the errors is not known.
    power : float
        Factor of its logarithm in the negative log-likelihood of a row in that case.
    information : ndarray of shape (n_constants,)
        Second derivatives of the negative log-likelihood by each constant.
    noise : str
        Growth of the noise: `absolute`, `relative`, `log`, `counts`, `sigma`, `overdispersed ALPHA`, or
        `unknown`: then only bands of the formula's value are known.
    scale : float
        Standard deviation of the noise, in units of the quantity that it grows with.
    residuals : ndarray
        Quantiles of the residuals at `shine.evaluate.inference.bands.SHARES`, in units of what the noise
        grows with; empty if the distribution of the errors is known.
    ranges : mapping of str to (float, float)
        Least and largest value of each feature that the formula uses.
    exact : bool
        Whether the errors are rounding.
    redundant : tuple of int
        Places of simple numbers that are no constants (see `shine.evaluate.inference.determined`).
    away : float
        Distance of the formula's constants from the best ones in standard errors, by the likelihood; inf if it is not
        known.
    notes : tuple of str
        Notes for the user.
    profiles : mapping of float to ndarray of shape (n_constants, 2)
        Profile-likelihood intervals that were computed, by their level.
    """

    names: tuple[str, ...]
    values: Floats
    best: Floats
    covariance: Floats
    undetermined: Mask
    directions: Floats
    kind: str
    error: str
    rows: float
    freedom: float
    freedoms: Floats
    total: float
    likelihood: float | None
    power: float
    information: Floats
    noise: str
    scale: float
    residuals: Floats
    ranges: Mapping[str, tuple[float, float]]
    exact: bool = False
    redundant: tuple[int, ...] = ()
    away: float = math.inf
    notes: tuple[str, ...] = ()
    profiles: dict[float, Floats] = field(default_factory=dict)

    @property
    def errors(self) -> Floats:
        """Standard error of each constant; inf where the rows do not determine it."""
        with np.errstate(invalid="ignore"):
            found = np.sqrt(np.diagonal(self.covariance))
        return np.where(self.undetermined, np.inf, found)

    @property
    def correlations(self) -> Floats:
        """Correlations of the constants, shape (n_constants, n_constants); NaN where one is not determined."""
        errors = np.where(self.undetermined | ~(self.errors > 0), np.nan, self.errors)
        with np.errstate(invalid="ignore"):
            found = np.clip(self.covariance / errors / errors[:, None], -1.0, 1.0)
        known = np.isfinite(errors)
        found[known, known] = 1.0
        return found

    def wald(self, level: float) -> Floats:
        """Intervals by the standard errors, symmetric up to `holding`, shape (n_constants, 2)."""
        half = self.widths(level) * self.errors if self.freedom > 0 else np.full(len(self.names), np.inf)
        return self.holding(np.column_stack([self.best - half, self.best + half]))

    def holding(self, ends: Floats) -> Floats:
        """Intervals with the constants of the formula, if these are just rounded: the shorter description is likelier.

        Constants are correlated, so one that is rounded, or not written, moves the best values of all others.
        """
        by_errors = distance(self.values, self.best, self.covariance, self.undetermined) <= FAR or self.exact
        if not ((by_errors and not self.undetermined.any()) or self.away <= FAR):
            return ends
        return np.column_stack([np.fmin(ends[:, 0], self.values), np.fmax(ends[:, 1], self.values)])

    def widths(self, level: float) -> Floats:
        """Standard errors on each side of the intervals, shape (n_constants,)."""
        return np.array([two_sided(level, each) for each in self.freedoms.tolist()], np.float64)

    def plain(self) -> dict[str, Any]:
        """The same as lists and numbers, for JSON and pickles; None stands for numbers that are not finite."""
        found: dict[str, Any] = {}
        for name, value in vars(self).items():
            found[name] = _plain(value)
        found["profiles"] = [[level, _plain(ends)] for level, ends in sorted(self.profiles.items())]
        return found

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Uncertainty:
        """Read it back from `plain`."""
        count = len(plain["names"])
        shapes = {"covariance": (count, count), "directions": (-1, count) if count else (0, 0)}
        arrays = ("values", "best", "covariance", "directions", "information", "residuals", "freedoms")
        tuples = {name: tuple(plain[name]) for name in ("names", "notes", "redundant")}
        found: dict[str, Any] = {**plain, **tuples}
        for name in arrays:
            filled = np.array([_number(each) for each in _flat(plain[name])], np.float64)
            found[name] = filled.reshape(shapes.get(name, (-1,)))
        found["undetermined"] = np.array(plain["undetermined"], np.bool_)
        found["freedom"], found["total"] = _number(plain["freedom"]), _number(plain["total"])
        found["scale"], found["away"] = _number(plain["scale"]), _number(plain.get("away"))
        found["ranges"] = {
            name: (_number(low, -math.inf), _number(high)) for name, (low, high) in plain["ranges"].items()
        }
        found["profiles"] = {
            float(level): np.array([[_number(low, -math.inf), _number(high)] for low, high in ends]).reshape(-1, 2)
            for level, ends in plain["profiles"]
        }
        return cls(**found)


def distance(values: Floats, best: Floats, covariance: Floats, lost: Mask) -> float:
    """Distance of constants from the most likely ones, all together, in standard errors; NaN if these are not known.

    See `Uncertainty` for the parameters.
    """
    with np.errstate(all="ignore"):
        errors = np.sqrt(np.diagonal(covariance))[~lost]
        away = (values - best)[~lost] / errors
        correlations = covariance[np.ix_(~lost, ~lost)] / errors / errors[:, None]
        if not (np.isfinite(correlations).all() and np.isfinite(away).all()):
            return math.nan
    # Share of the largest eigenvalue of the correlations below which a direction is not determined.
    return math.sqrt(max(float(away @ np.linalg.pinv(correlations, 1e-11, hermitian=True) @ away), 0.0))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _flat(values: Any) -> list[Any]:
    return [each for row in values for each in (row if isinstance(row, list) else [row])]


def _number(value: float | None, otherwise: float = math.inf) -> float:
    return otherwise if value is None else float(value)
