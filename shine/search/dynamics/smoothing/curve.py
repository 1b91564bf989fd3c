"""A state along a run: values, rates and the rates of these, with their errors."""

from __future__ import annotations

from dataclasses import dataclass

from shine.base.typing import Floats


@dataclass(frozen=True, eq=False)
class Curve:
    """A state, its rate and the rate of that at some times.

    Parameters
    ----------
    values, rates, bends : ndarray of shape (n_times,)
    value_errors, rate_errors, bend_errors : ndarray of shape (n_times,)
        Standard errors.
    independent : float
        Number of independent rates among them: fewer than the readings if these are smoothed.
    """

    values: Floats
    rates: Floats
    bends: Floats
    value_errors: Floats
    rate_errors: Floats
    bend_errors: Floats
    independent: float
