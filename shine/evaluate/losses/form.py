"""The form of a loss: the error of a row, as a function in the language, and the loss of the sum of errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import AnyArray, Floats
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import value_text
from shine.lang.forms.tree import Primitive
from shine.lang.interpret import evaluate

WEIGHT = "weight"
"""Name of the column of sample weights. A function that reads it weighs the errors itself."""

SIGMA = "sigma"
"""Name of the column of standard deviations of the rows' noise."""


@dataclass(frozen=True)
class RowLoss:
    """The error of a row; the sum of errors over the rows is minimized.

    Parameters
    ----------
    name : str
    function : Primitive
        With a definition in the language: ``(prediction, target, *columns) -> error``, smaller is better.
    columns : tuple of str
        Further arguments of the function, in order: `WEIGHT`, `SIGMA`, or names of columns beside the features
        (`shine.data.datasets.dataset.Dataset.loss_columns`). Rows are weighted by their sample weights, unless the
        function reads `WEIGHT`: then it weighs.
    least : float, optional
        Greatest lower bound of the error of any row. Without it, no evaluation ends early.
    log_likelihood : float, optional
        Factor of the sum of errors in the negative log-likelihood, if the errors are in nats up to a factor: 0.5 for
        deviances. None if the scale of the errors is estimated from the data.
    degree : int, optional
        Power of the target's unit in the error, if it is a power of the residual: 2 for squared errors.
    """

    name: str
    function: Primitive
    columns: tuple[str, ...] = ()
    least: float | None = None
    log_likelihood: float | None = None
    degree: int | None = None

    def __post_init__(self) -> None:
        if self.function.definition is None or self.function.arity != 2 + len(self.columns):
            arguments = ", ".join(("prediction", "target", *self.columns))
            raise ValueError(f"the error of a row needs a definition with the arguments ({arguments})")

    @property
    def follows_from_moments(self) -> bool:
        """Whether the sum of errors of the best line follows from the moments of predictions and target."""
        return self == SQUARED

    def least_sum(self, weight: float) -> float:
        """The least sum of errors of rows with this sum of weights; compiled code adds up the rest."""
        return weight * (self.least or 0.0)

    def limit(self, total: float | Floats, weight: float) -> float | Floats:
        """The part of a sum of errors that lies above the least one, with room for rounding: a partial sum beyond it
        proves that the whole sum is larger. inf if no least error is known.

        Parameters
        ----------
        total : float or ndarray
            Sum of errors over all rows.
        weight : float
            Sum of the weights.
        """
        if self.least is None:
            return math.inf
        return np.maximum((total - self.least_sum(weight)) * (1 + 1e-12), np.finfo(np.float64).tiny)

    def errors(
        self,
        predictions: ArrayLike,
        target: ArrayLike,
        columns: Sequence[ArrayLike] = (),
        functions: Mapping[str, Callable[..., AnyArray]] | None = None,
    ) -> Floats:
        """The errors in NumPy, float64; NaN where the prediction is not finite.

        Parameters
        ----------
        predictions : array-like of shape (..., n_rows)
        target : array-like of shape (n_rows,)
        columns : sequence of array-like of shape (n_rows,)
            Values of `columns`.
        functions : mapping of str to callable, optional
            The basic primitives; NumPy's by default, whose bits depend on the processor.
        """
        definition = self.function.definition
        assert definition is not None
        arrays = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (predictions, target, *columns)))
        flat = [array.ravel() for array in arrays]
        errors = np.where(np.isfinite(flat[0]), evaluate(definition, flat, functions=functions), np.nan)
        return errors.reshape(arrays[0].shape)


_FUNCTIONS = with_definitions(
    STANDARD,
    """
def squared(prediction, target):
    left = target - prediction
    return left * left

def absolute(prediction, target):
    return abs(target - prediction)
""",
)

SQUARED = RowLoss("squared", _FUNCTIONS["squared"], least=0.0, degree=2)
ABSOLUTE = RowLoss("absolute", _FUNCTIONS["absolute"], least=0.0, degree=1)


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

    def sum_of(self, loss: float | Floats, weight: float, target_square: float) -> float | Floats:
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
    """The loss of a name; a loss itself is returned as it is. Raises a `ValueError` if there is no such loss."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {value_text(loss)}; use one of {', '.join(LOSSES)}")
    return LOSSES[loss]
