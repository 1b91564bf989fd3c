"""Losses, each defined by the errors it adds up and by how it follows from their sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.lang.names import value_text
from shine.typing import Floats


@dataclass(frozen=True)
class ErrorKind:
    """The error of a row, as a function of its residual.

    Parameters
    ----------
    name : str
        Also the name of its code: in `shine.codegen.moments.ERRORS`, and in `REWEIGHTINGS` of
        `shine.codegen.gradient.normal_equations` if constants can be fitted by it.
    of_residuals : callable
        ``of_residuals(residuals, out=None)``: the errors, as a function of NumPy.
    follows_from_moments : bool
        Whether the sum of errors of the best line follows from the moments of predictions and target.
    log_likelihood : float
        Factor of the logarithm of the mean error in the negative log-likelihood of a row: 1/2 for the squared errors of
        normal noise, 1 for the absolute errors of Laplace noise.
    """

    name: str
    of_residuals: Callable[..., Any]
    follows_from_moments: bool
    log_likelihood: float


SQUARED = ErrorKind("squared", np.square, follows_from_moments=True, log_likelihood=0.5)
ABSOLUTE = ErrorKind("absolute", np.abs, follows_from_moments=False, log_likelihood=1.0)

ERROR_KINDS = {kind.name: kind for kind in (SQUARED, ABSOLUTE)}
"""The kinds of errors by name."""


@dataclass(frozen=True)
class Loss:
    """A loss that follows from one sum over the rows.

    Parameters
    ----------
    kind : ErrorKind
        The errors that are added up.
    of_sum : callable
        ``of_sum(total, weight, target_square)``: the loss from the weighted sum of errors, the sum of the weights, and
        the weighted sum of the target's squared deviations from its mean.
    sum_of : callable
        ``sum_of(loss, weight, target_square)``: its inverse.
    degree : int
        Power of the target's unit in the loss: 2 for squared errors, 0 for shares of the target's variance, which are
        undefined for a constant target.
    exponent : float
        The loss is proportional to the sum of errors to this power.
    """

    kind: ErrorKind
    of_sum: Callable[[Floats, float, float], Floats]
    sum_of: Callable[[float, float, float], float]
    degree: int
    exponent: float = 1.0

    @property
    def needs_variance(self) -> bool:
        """Whether the loss divides by the target's variance."""
        return self.degree == 0

    @property
    def log_likelihood(self) -> float:
        """Factor of the loss's logarithm in the negative log-likelihood of a row."""
        return self.kind.log_likelihood / self.exponent


def _mean_error(kind: ErrorKind, degree: int) -> Loss:
    return Loss(kind, lambda total, weight, square: total / weight, lambda loss, weight, square: loss * weight, degree)


def _share_of_variance(kind: ErrorKind) -> Loss:
    return Loss(kind, lambda total, weight, square: total / square, lambda loss, weight, square: loss * square, 0)


LOSSES: dict[str, Loss] = {
    "mse": _mean_error(SQUARED, 2),
    "rmse": Loss(
        SQUARED,
        lambda total, weight, square: np.sqrt(total / weight),
        lambda loss, weight, square: loss * loss * weight,
        degree=1,
        exponent=0.5,
    ),
    "mae": _mean_error(ABSOLUTE, 1),
    "nmse": _share_of_variance(SQUARED),
    "r2": _share_of_variance(SQUARED),
}
"""The losses by name. `nmse` is the squared error over the target's variance; `r2` names the same number, 1 - R^2,
because a loss is minimized."""


def error_kind(name: str) -> ErrorKind:
    """The kind of errors of a name.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if name not in ERROR_KINDS:
        raise ValueError(f"unknown kind of errors {value_text(name)}; use one of {', '.join(ERROR_KINDS)}")
    return ERROR_KINDS[name]


def loss_of(name: str) -> Loss:
    """The loss of a name.

    Raises
    ------
    ValueError
        If there is no such loss.
    """
    if name not in LOSSES:
        raise ValueError(f"unknown loss {value_text(name)}; use one of {', '.join(LOSSES)}")
    return LOSSES[name]
