"""Derivatives of the error of a row by the prediction, which the likelihood needs.

If the errors of a loss are in nats up to a factor, their sum times it is the negative log-likelihood. Otherwise the
errors have a scale that the rows must tell: the variance of squared errors, for example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shine.base.typing import Floats
from shine.evaluate.kernels.gradient import GradientKernel
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.losses.form import Loss, RowLoss, loss_of
from shine.lang.derivative import derivative, value_and_gradient


@dataclass(frozen=True, eq=False)
class Slopes:
    """Errors of some rows and their derivatives by the prediction, each of shape (n_rows,)."""

    errors: Floats
    first: Floats
    second: Floats


class Derivatives:
    """The error of a row with its derivatives, for arrays.

    Parameters
    ----------
    error : RowLoss
    """

    def __init__(self, error: RowLoss) -> None:
        definition = error.function.definition
        assert definition is not None
        prediction = definition.parameters[0]
        self.error = error
        self._value = Kernel(definition, "float64", "O1")
        slope = derivative(definition, prediction)
        self._slopes = GradientKernel(value_and_gradient(slope, [prediction]), "float64", "O1")

    def errors(self, columns: Sequence[Floats]) -> Floats:
        """Errors of predictions, targets and further columns."""
        found: Floats = self._value(*columns)
        return found

    def slopes(self, columns: Sequence[Floats]) -> Slopes:
        """Errors and derivatives of predictions, targets and further columns."""
        return Slopes(self._value(*columns), *self._slopes(*columns))

    def first(self, columns: Sequence[Floats]) -> Floats:
        """First derivatives."""
        found: Floats = self._slopes(*columns)[0]
        return found


@lru_cache(maxsize=32)
def derivatives_of(error: RowLoss) -> Derivatives:
    """The error of a row with its derivatives."""
    return Derivatives(error)


def row_error(loss: str | Loss | RowLoss) -> RowLoss:
    """The error of a row that a loss adds up.

    Raises
    ------
    ValueError
        If there is no loss of this name (see `shine.evaluate.losses.form.loss_of`).
    """
    return loss if isinstance(loss, RowLoss) else loss_of(loss).kind
