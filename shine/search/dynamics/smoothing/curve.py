"""A state along a run: values and rates with their errors."""

from __future__ import annotations

from dataclasses import dataclass

from shine.base.typing import Floats


@dataclass(frozen=True, eq=False)
class Curve:
    """A state and its rate at some times.

    Parameters
    ----------
    values, rates : ndarray of shape (n_times,)
    value_errors, rate_errors : ndarray of shape (n_times,)
        Standard errors.
    independent : float
        Number of independent rates among them: fewer than the readings if these are smoothed.
    """

    values: Floats
    rates: Floats
    value_errors: Floats
    rate_errors: Floats
    independent: float
