"""What the likelihood needs to know of a loss: the error of a row, and its derivatives by the prediction.

A loss adds up errors ``e(prediction, target)``. If they are deviances, their sum times a known factor is the negative
log-likelihood. Otherwise the errors have a scale that the rows must tell: the variance of squared errors, for example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shine.fitness.losses import loss_of
from shine.kernels.gradient import GradientKernel
from shine.kernels.kernel import Kernel
from shine.lang.derivative import derivative, value_and_gradient
from shine.lang.parse import parse
from shine.lang.tree import Tree
from shine.typing import Floats

WEIGHT = "weight"
"""The sample weights, as an argument of a function that weighs its errors itself."""

SIGMA = "sigma"
"""The standard deviations of the rows' noise, as an argument of a function that takes care of them itself."""


@dataclass(frozen=True)
class RowError:
    """The error of a row.

    Parameters
    ----------
    name : str
    definition : Tree
        In the language: ``(prediction, target, *columns) -> error``, smaller is better.
    least : float, optional
        Error of a perfect prediction; None if it is not known.
    log_likelihood : float, optional
        Factor of the sum of errors in the negative log-likelihood, 0.5 for deviances; None if the scale of the errors
        is estimated from the rows.
    columns : tuple of str
        What the arguments after the prediction and the target are: `WEIGHT`, or columns beside the features.
    degree : float, optional
        Power of the target's unit in the error: 2 for squared errors.
    """

    name: str
    definition: Tree
    least: float | None = 0.0
    log_likelihood: float | None = None
    columns: tuple[str, ...] = ()
    degree: float | None = None

    @property
    def is_squared(self) -> bool:
        """Whether the least sum of errors is that of least squares, for which there are exact intervals."""
        return self.name == "squared"


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
    error : RowError
    """

    def __init__(self, error: RowError) -> None:
        prediction = error.definition.parameters[0]
        self.error = error
        self._value = Kernel(error.definition, "float64", "O1")
        slope = derivative(error.definition, prediction)
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


def _defined(name: str, text: str, log_likelihood: float | None = None, degree: float | None = None) -> RowError:
    return RowError(name, parse(text, ["prediction", "target"]), 0.0, log_likelihood, degree=degree)


SQUARED = _defined("squared", "(target - prediction)*(target - prediction)", degree=2.0)
ABSOLUTE = _defined("absolute", "abs(target - prediction)", degree=1.0)
POISSON = _defined(
    "poisson",
    "2*(prediction - target + (target*log(target/prediction) if target > 0 else 0.0))",
    log_likelihood=0.5,
)
"""The deviance of counts (McCullagh and Nelder 1989)."""


def student_t(freedom: float, scale: float) -> RowError:
    """Twice the negative log-likelihood of errors with Student's t distribution and a known scale, from its minimum.

    Parameters
    ----------
    freedom : float
        Degrees of freedom.
    scale : float
        In the unit of the target.
    """
    text = f"{freedom + 1!r}*log(1 + ((target - prediction)/{scale!r})**2/{freedom!r})"
    return _defined(f"student_t({freedom:g}, {scale:g})", text, log_likelihood=0.5)


BUILT_IN = {error.name: error for error in (SQUARED, ABSOLUTE, POISSON)}


@lru_cache(maxsize=32)
def derivatives_of(error: RowError) -> Derivatives:
    """The error of a row with its derivatives."""
    return Derivatives(error)


def row_error(loss: object) -> RowError:
    """The error of a row that a loss adds up.

    Parameters
    ----------
    loss : str, Loss or RowError
        A name of `shine.fitness.losses.LOSSES`, or "poisson"; a loss whose kind of errors has a definition.

    Raises
    ------
    ValueError
        If there is no such loss.
    """
    if isinstance(loss, RowError):
        return loss
    if isinstance(loss, str) and loss in BUILT_IN:
        return BUILT_IN[loss]
    kind: Any = loss_of(loss).kind  # type: ignore[arg-type]
    function = getattr(kind, "function", None)
    if function is None or kind.name in BUILT_IN:
        return BUILT_IN[kind.name]
    return RowError(kind.name, function.definition, kind.least, kind.log_likelihood, kind.columns, kind.degree)
