"""The errors of a formula over its rows, as a function of its constants.

If the errors of a loss are in nats up to a factor, their sum times it is the negative log-likelihood. Otherwise the
errors have a scale that the rows must tell: the variance of squared errors, for example.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.constants import Form
from shine.evaluate.kernels.jit import GradientKernel
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.losses.form import SIGMA, WEIGHT, Loss, RowLoss, loss_of
from shine.lang.derivative import derivative, value_and_gradient

BLOCK_ROWS = 1 << 13
"""Rows at a time: their arrays stay in the second cache, and BLAS adds up so few in one thread."""

ONE_THREAD_PRODUCTS, FEWEST = 1 << 18, 32
"""Multiplications of a product of matrices that BLAS does in one thread, and the fewest rows of a product. Several
threads wait for one another on a busy machine, for a hundred times as long as they work."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows at some constants.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), int64
    arguments : list of ndarray
        Of the error: predictions, targets, further columns.
    partials : ndarray of shape (n_constants, n_rows)
        Derivatives of the predictions.
    counts : ndarray of shape (n_rows,)
        Sample weight of each row.
    precisions : ndarray of shape (n_rows,)
        Weight of each row's error beyond that: inverse variances up to a factor.
    """

    rows: Indices
    arguments: list[Floats]
    partials: Floats
    counts: Floats
    precisions: Floats

    @property
    def predictions(self) -> Floats:
        """Values of the formula."""
        return self.arguments[0]

    @property
    def weights(self) -> Floats:
        """Weight of each row's error in the sum."""
        return self.counts * self.precisions


@dataclass(frozen=True, eq=False)
class Local:
    """The sum of errors near some constants.

    Parameters
    ----------
    total : float
        inf if it is not defined.
    gradient : ndarray of shape (n_constants,)
    curvature : ndarray of shape (n_constants, n_constants)
        Positive semidefinite: without second derivatives of the formula (Gauss-Newton).
    """

    total: float
    gradient: Floats
    curvature: Floats


class Likelihood:
    """The errors of a formula over its rows.

    Parameters
    ----------
    form : Form
    rows : Dataset
        Rows of weight 0 do not count.
    error : RowLoss
    """

    def __init__(self, form: Form, rows: Dataset, error: RowLoss) -> None:
        self.form, self.rows, self.error = form, rows, error
        self._slopes = derivatives_of(error)
        self._counts = rows.sample_weights
        seen = np.flatnonzero(self._counts > 0)
        self._seen = None if len(seen) == rows.n_rows else seen
        self.count = len(seen)
        self._columns = dict(zip(rows.features, rows.columns, strict=True))

    @cached_property
    def kernel(self) -> GradientKernel:
        """The formula and its derivatives (see `Form.kernel`)."""
        # Least number of rows for which LLVM's passes save more time than they take.
        return self.form.kernel("O1" if self.count > 20_000 else "O0")

    def total(self, constants: Floats) -> float:
        """Weighted sum of the errors; inf if it is not defined."""
        total = 0.0
        with np.errstate(all="ignore"):
            for block in self.blocks(constants):
                total += self._sum(block, self._slopes.errors(block.arguments))
        return total if np.isfinite(total) else np.inf

    def local(self, constants: Floats) -> Local:
        """The sum of errors with its slope and curvature."""
        count = len(self.form.names)
        total, gradient, curvature = 0.0, np.zeros(count), np.zeros((count, count))
        with np.errstate(all="ignore"):
            for block in self.blocks(constants):
                slopes = self._slopes.slopes(block.arguments)
                total += self._sum(block, slopes.errors)
                gradient += np.einsum("ir,r->i", block.partials, block.weights * slopes.first)
                curvature += gram(block.partials, block.weights * self._convex(slopes))
        return Local(total if np.isfinite(total) else np.inf, gradient, curvature)

    def blocks(self, constants: Floats) -> Iterator[Block]:
        """All rows that count, some at a time."""
        rows, used = self.rows, self.form.tree.parameters[len(self.form.names) :]
        needed = {*self.form.tree.used_parameters}
        everyone = np.arange(rows.n_rows) if self._seen is None else self._seen
        for start in range(0, self.count, BLOCK_ROWS):
            at = everyone[start : start + BLOCK_ROWS]
            place = slice(start, start + len(at)) if self._seen is None else at
            nothing = np.zeros(len(at))
            columns = [self._columns[name][place] if name in needed else nothing for name in used]
            counts = self._counts[place]
            precisions = rows.row_weights[place] / counts
            if SIGMA in self.error.columns:
                precisions = np.ones(len(at))  # the function takes care of them itself
            if WEIGHT in self.error.columns:
                counts, precisions = np.ones(len(at)), np.ones(len(at))
            found = np.array(self.kernel(*constants.tolist(), *columns), np.float64)
            found = np.broadcast_to(found.reshape(len(found), -1), (len(found), len(at)))
            others = [self._loss_column(name)[place] for name in self.error.columns]
            yield Block(at, [found[0], rows.target[place], *others], found[1:], counts, precisions)

    def _loss_column(self, name: str) -> Floats:
        """A column beside the features, or else the sample weights or the standard deviations of the rows."""
        columns = {WEIGHT: self._counts, SIGMA: self.rows.deviations, **self.rows.loss_columns}
        found: Floats | None = columns.get(name)
        if found is None:
            raise DataError(f"the loss reads the column {name!r}, which the rows do not have beside the features")
        return found

    def _sum(self, block: Block, errors: Floats) -> float:
        least = self.error.least
        # Largest relative rounding of an error below its least value.
        if least is not None and (errors < least - 1e-9 * np.abs(block.arguments[1])).any():
            return np.inf  # the prediction is out of the loss's domain
        return float(block.weights @ errors)

    def _convex(self, slopes: Slopes) -> Floats:
        """Curvature of each row's error; where it is not positive, that of the square of its root."""
        above = slopes.errors - (self.error.least or 0.0)
        root = np.where(above > 0, slopes.first**2 / np.where(above > 0, 2 * above, 1.0), 0.0)
        curvature = np.where(slopes.second > 0, slopes.second, root)
        # Least curvature of the error of a row, as a share of the mean one: steps stay finite.
        return np.maximum(curvature, 1e-12 * float(np.mean(curvature)))


def gram(columns: Floats, weights: Floats) -> Floats:
    """Weighted sums of the products of all pairs of columns (their Gram matrix), shape (n_columns, n_columns).

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
    weights : ndarray of shape (n_rows,)
    """
    count = len(columns)
    found = np.zeros((count, count))
    step = max(ONE_THREAD_PRODUCTS // max(count, 1) ** 2, FEWEST)
    for start in range(0, len(weights), step):
        some = columns[:, start : start + step]
        found += (some * weights[start : start + step]) @ some.T
    return found


@dataclass(frozen=True, eq=False)
class Slopes:
    """Errors of some rows and their derivatives by the prediction, each of shape (n_rows,)."""

    errors: Floats
    first: Floats
    second: Floats


class Derivatives:
    """The error of a row with its derivatives, for arrays."""

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

    A `ValueError` if there is no loss of this name (see `shine.evaluate.losses.form.loss_of`).
    """
    return loss if isinstance(loss, RowLoss) else loss_of(loss).kind
