"""Losses, each defined by the errors it adds up and by how it follows from their sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.fitness.row_loss import ABSOLUTE, SQUARED, RowLoss
from shine.lang.forms.names import value_text


@dataclass(frozen=True)
class Loss:
    """A loss that follows from one sum over the rows: by default, the mean of the rows' errors.

    Parameters
    ----------
    name : str
    kind : RowLoss
        The errors that are added up.
    share : bool
        Whether the loss is the share of the errors in the target's variance, which is undefined for a constant target.
    root : bool
        Whether the loss is the root of the mean.
    """

    name: str
    kind: RowLoss
    share: bool = False
    root: bool = False

    def of_sum(self, total: Floats, weight: float, target_square: float) -> Floats:
        """The loss.

        Parameters
        ----------
        total : ndarray
            Weighted sums of errors.
        weight : float
            Sum of the weights.
        target_square : float
            Weighted sum of the target's squared deviations from its mean.
        """
        mean = total / (target_square if self.share else weight)
        return np.sqrt(mean) if self.root else mean

    def sum_of(self, loss: float, weight: float, target_square: float) -> float:
        """The sum of errors of a loss; the inverse of `of_sum`."""
        return (loss * loss if self.root else loss) * (target_square if self.share else weight)

    @property
    def needs_variance(self) -> bool:
        """Whether the loss divides by the target's variance."""
        return self.share

    @property
    def exponent(self) -> float:
        """The loss is proportional to the sum of errors to this power."""
        return 0.5 if self.root else 1.0

    @property
    def degree(self) -> int:
        """Power of the target's unit in the loss: 2 for squared errors, 0 for shares, and where there is none."""
        return 0 if self.share or self.kind.degree is None else int(self.kind.degree * self.exponent)

    @property
    def error_log_likelihood(self) -> float:
        """Factor of the logarithm of the mean error in the negative log-likelihood of a row, if the scale of the errors
        is estimated: 1/2 for the squared errors of normal noise, 1 for the absolute errors of Laplace noise."""
        return 1.0 / (self.kind.degree or 2.0)

    @property
    def log_likelihood(self) -> float:
        """Factor of the loss's logarithm in the negative log-likelihood of a row, if the scale is estimated."""
        return self.error_log_likelihood / self.exponent


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("mse", SQUARED),
        Loss("rmse", SQUARED, root=True),
        Loss("mae", ABSOLUTE),
        Loss("nmse", SQUARED, share=True),
        Loss("r2", SQUARED, share=True),
    )
}
"""The losses by name. `nmse` is the squared error over the target's variance; `r2` names the same number, 1 - R^2,
because a loss is minimized."""


def loss_of(loss: str | Loss) -> Loss:
    """The loss of a name; a loss itself is returned as it is.

    Raises
    ------
    ValueError
        If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {value_text(loss)}; use one of {', '.join(LOSSES)}")
    return LOSSES[loss]
