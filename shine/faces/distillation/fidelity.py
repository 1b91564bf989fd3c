"""Fidelity of a formula to a network, or of either to data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats


@dataclass(frozen=True)
class Fidelity:
    """Nearness of predictions to their targets.

    Parameters
    ----------
    r2 : float
        Share of the variance that they explain; -inf if there is no variance, and they are not exact.
    rms_error, max_error : float
        Root of the mean squared error, and the largest error, in units of the output. NaN if a prediction is not
        finite.
    rows : int
        Rows that were compared.
    """

    r2: float
    rms_error: float
    max_error: float
    rows: int

    @classmethod
    def of(cls, predictions: Floats, truth: Floats) -> Fidelity:
        """The fidelity of predictions to numbers, both of shape (n_rows,)."""
        with np.errstate(all="ignore"):
            errors = predictions - truth
            square, total = float(np.mean(errors**2)), float(np.var(truth))
            r2 = 1 - square / total if total > 0 else 1.0 if square == 0 else -np.inf
            return cls(float(r2), float(np.sqrt(square)), float(np.max(np.abs(errors))), len(truth))

    def __str__(self) -> str:
        return (
            f"R2 {self.r2:.6g}, rms error {self.rms_error:.3g}, largest error {self.max_error:.3g} ({self.rows} rows)"
        )
