"""The weak form: both sides of an equation, averaged over patches of the field.

Values of a formula on little smoothed fields are noisy, but their averages are not: a right side is judged by the
averages of its values over patches, beside those of the rates. Its constants are fitted to them (Gauss and Newton).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import Regression, dot, solved
from shine.data.fields import Field
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.tree import Tree
from shine.search.description import DescriptionLength
from shine.search.dynamics.fields.mollifying import along, mollified, wrapped

STEPS, HALVINGS, SETTLED = 12, 6, 1e-8
"""Most steps of a fit, most halvings of a step, and the relative fall of the error below which it ends."""

ACCURACY = 1e-5
"""Share of rates and of constants to which derivatives on a grid are known, however little noise there is."""


@dataclass(frozen=True, eq=False)
class WeakForm:
    """Patches of a field.

    Parameters
    ----------
    columns : ndarray of shape (n_features, *inner)
        Little smoothed fields and derivatives.
    rates : ndarray of shape (n_fields, n_patches)
        Averages over the patches.
    first : ndarray of shape (n_patches,), bool
        Whether a patch is not kept back.
    """

    columns: Floats
    rates: Floats
    first: Mask
    _weights: tuple[Floats, ...]
    _strides: tuple[int, ...]
    _periodic: bool

    @classmethod
    def of(cls, field: Field, widths: Sequence[float], order: int) -> WeakForm:
        """The patches of a field, given the widths of the search."""
        # Width of the kernel as a share of that of the search; half the length of a patch, and the distance of
        # patches that count as independent, both in these widths
        finer = [max(0.5 * width, 1.0) for width in widths]
        smooth = mollified(field, finer, order)
        each = [finer[0], *(finer[1] for _ in field.axes)]
        shape = smooth.rates.shape[1:]
        # At least a few patches along the time, some of which are kept back.
        halves = [min(math.ceil(8.0 * own), max((count - 1) // 4, 1)) for own, count in zip(each, shape, strict=True)]
        weights = tuple(_bump(half) for half in halves)
        strides = tuple(max(math.ceil(4.0 * own), 1) for own in each)
        own = cls(smooth.columns, smooth.rates, np.zeros(0, np.bool_), weights, strides, field.periodic)
        rates = np.stack([own.averages(rate) for rate in smooth.rates])
        times = len(range(0, shape[0] - 2 * halves[0], strides[0]))
        number = np.repeat(np.arange(times), rates.shape[1] // times)
        # Share of the patches, the first in time, that constants are fitted to when the rest is kept back.
        return replace(own, rates=rates, first=number < max(int(0.75 * times), 1))

    def averages(self, values: Floats) -> Floats:
        """Averages over the patches, shape (n_patches,)."""
        for axis, (weights, stride) in enumerate(zip(self._weights, self._strides, strict=True)):
            if axis and self._periodic:
                values = wrapped(values, len(weights) // 2, axis)
            values = along(values, weights, axis, stride)
        return values.reshape(-1)

    def least_loss(self, number: int) -> float:
        """Loss of the rates of a field below which formulas are equally good."""
        return ACCURACY**2 * self.variance(number)

    def description(self, number: int) -> DescriptionLength:
        """The description length of the rates of a field."""
        return DescriptionLength.with_unknown_noise(float(len(self.rates[number])), 0.5, self.variance(number))

    def variance(self, number: int) -> float:
        """Variance of the rates of a field."""
        rates = self.rates[number]
        rest = rates - np.add.reduce(rates) / len(rates)
        return float(dot(rest, rest)) / len(rates)


@dataclass(frozen=True, eq=False)
class WeakFit:
    """A right side whose constants were fitted.

    Parameters
    ----------
    tree : Tree
    constants : ndarray of shape (n_constants,)
    loss : float
        Mean squared error of the averages; inf where the formula has no value.
    covariance : ndarray of shape (n_constants, n_constants)
    """

    tree: Tree
    constants: Floats
    loss: float
    covariance: Floats


def weak_fit(tree: Tree, form: WeakForm, number: int, rows: Mask | None = None) -> WeakFit:
    """Fit the constants of the right side for a field to the averages over some patches, by default all.

    Parameters
    ----------
    tree : Tree
    form : WeakForm
    number : int
        Of the field.
    rows : ndarray of shape (n_patches,), bool, optional
    """
    named, constants = with_named_constants(tree)
    kernel, inner = Kernel(named, opt_level="O1"), form.columns.shape[1:]
    columns = list(form.columns.reshape(len(form.columns), -1))
    rates = form.rates[number]
    used = np.ones(len(rates), np.bool_) if rows is None else rows

    def averages(values: Floats) -> Floats:
        parts = [np.full(columns[0].size, value) for value in values.tolist()]
        return form.averages(np.broadcast_to(kernel(*columns, *parts), columns[0].size).reshape(inner))[used]

    def loss_of(rest: Floats) -> float:
        return float(dot(rest, rest)) / len(rest) if np.isfinite(rest).all() else math.inf

    rest = rates[used] - averages(constants)
    loss, count = loss_of(rest), len(constants)
    slopes = np.zeros((count, len(rest)))
    for _ in range(STEPS if count and math.isfinite(loss) else 0):
        for place, value in enumerate(constants.tolist()):
            shift = 1e-6 * (abs(value) or 1.0)  # relative change of a constant that tells the slope by it
            moved = [np.where(np.arange(count) == place, value + sign * shift, constants) for sign in (1.0, -1.0)]
            slopes[place] = (averages(moved[0]) - averages(moved[1])) / (2 * shift)
        step, before = Regression.of(slopes).coefficients(rest), loss
        for halving in range(HALVINGS):
            tried = constants + step / (1 << halving)
            found = rates[used] - averages(tried)
            if loss_of(found) < loss:
                constants, rest, loss = tried, found, loss_of(found)
                break
        if not loss < (1 - SETTLED) * before:
            break
    return WeakFit(with_numbers(tree, constants), constants, loss, _covariance(slopes, loss))


def kept_back_loss(tree: Tree, form: WeakForm, number: int) -> float:
    """Mean squared error of the averages over the patches kept back, with constants fitted to the others."""
    if form.first.all():
        return math.inf
    fit = weak_fit(tree, form, number, form.first)
    values = np.broadcast_to(Kernel(fit.tree)(*form.columns.reshape(len(form.columns), -1)), form.columns[0].size)
    rest = (form.rates[number] - form.averages(values.reshape(form.columns.shape[1:])))[~form.first]
    return float(dot(rest, rest)) / len(rest) if np.isfinite(rest).all() else math.inf


def _covariance(slopes: Floats, loss: float) -> Floats:
    """Covariance of the constants, from the slopes of the averages by them and the mean squared error."""
    count, rows = slopes.shape
    if not count:
        return np.zeros((0, 0))
    sizes = np.sqrt(dot(slopes, slopes))
    if not (np.isfinite(sizes).all() and (sizes > 0).all() and rows > count):
        return np.full((count, count), np.inf)
    units = slopes / sizes[:, None]
    inverse = solved(dot(units[:, None], units), np.eye(count), 1e-12)
    return inverse * (loss * rows / (rows - count)) / (sizes[:, None] * sizes)


def _bump(half: int) -> Floats:
    """Weights of a smooth average over some steps to each side."""
    at = np.arange(-half, half + 1) / (half + 1)
    square = (1 - at * at) ** 2
    weights: Floats = square / np.add.reduce(square)
    return weights
