"""Fields and their derivatives, smoothed by one kernel.

Left and right sides of an equation are derivatives of the same smoothed field, so linear terms stay exact whatever the
kernel is. Local polynomials with Gaussian weights smooth it (Fan and Gijbels 1996). Their kernel keeps polynomials of
the fifth degree, so products of smoothed fields miss the smoothed product little. Of the widths that distort the fields
little, it has those with which sums of products of the fields and derivatives explain the rates best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, dot, exp, solved
from shine.data.fields import Field

MOMENTS, REACH = 6, 5.0
"""Degree of the polynomials whose values a kernel keeps, plus 1, and widths up to its ends."""

WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Widths that are tried, in steps."""

DIFFERENCES = 4
"""Order of the differences, along the time and an axis, that show the noise alone."""

ROWS = 2000
"""Points that tell the widths, and rows of a search."""


@dataclass(frozen=True, eq=False)
class Mollified:
    """Smoothed fields where the kernel fits in.

    Parameters
    ----------
    rates : ndarray of shape (n_fields, *inner)
    columns : ndarray of shape (n_features, *inner)
        The fields and their derivatives.
    """

    rates: Floats
    columns: Floats

    def rows(self, most: int = ROWS) -> tuple[Floats, Floats]:
        """Rates and features at some points, shapes (n_fields, n_rows) and (n_features, n_rows)."""
        size = self.rates[0].size
        chosen = np.arange(size)
        if size > most:
            chosen = np.sort(np.random.default_rng(0).choice(size, most, replace=False))
        rates, columns = (each.reshape(len(each), -1)[:, chosen] for each in (self.rates, self.columns))
        return rates, columns


def derivatives_of(axes: Sequence[str], order: int) -> list[tuple[str, tuple[int, ...]]]:
    """Names of the derivatives up to an order, such as ``xy``, and how often each is taken along each axis."""
    found = [each for total in range(order + 1) for each in combinations_with_replacement(axes, total)]
    return [("".join(each), tuple(each.count(axis) for axis in axes)) for each in found]


def features_of(field: Field, order: int) -> list[str]:
    """Names of the fields and of their derivatives: ``u``, ``u_x``, ``u_xx``."""
    return feature_names(field.states, field.axes, order)


def feature_names(states: Sequence[str], axes: Sequence[str], order: int) -> list[str]:
    """As `features_of`, without a field."""
    names = [name for name, _ in derivatives_of(axes, order)]
    return [f"{state}_{name}" if name else state for name in names for state in states]


def mollified(field: Field, widths: Sequence[float], order: int) -> Mollified:
    """The smoothed rates, fields and derivatives.

    Parameters
    ----------
    field : Field
    widths : sequence of float
        Of the kernel along the time and along the axes, in steps.
    order : int
        Highest derivative.
    """
    plain = _smoothed(field, field.values, widths[0], 0, 0)
    rates = _smoothed(field, field.values, widths[0], 0, 1)
    for axis in range(1, len(field.steps)):
        rates = _smoothed(field, rates, widths[1], axis, 0)
    columns = []
    for _, times in derivatives_of(field.axes, order):
        values = plain
        for axis, count in enumerate(times, 1):
            values = _smoothed(field, values, widths[1], axis, count)
        columns.append(values)
    return Mollified(rates, np.concatenate(columns))


def likeliest_widths(field: Field, order: int) -> tuple[float, float]:
    """Widths along the time and the axes with which sums of products explain the rates best."""
    # Least share of each axis that a kernel leaves.
    allowed = [
        [width for place, width in enumerate(WIDTHS) if not place or _left(count, width, wraps) >= 0.4]
        for count, wraps in ((field.values.shape[1], False), (min(field.values.shape[2:]), field.periodic))
    ]
    shares: dict[tuple[int, int], float] = {}
    noise = _noise(field)

    def share(place: tuple[int, int]) -> float:
        if any(not 0 <= own < len(each) for own, each in zip(place, allowed, strict=True)):
            return math.inf
        if place not in shares:
            widths = [each[own] for own, each in zip(place, allowed, strict=True)]
            smooth = mollified(field, widths, order)
            # Most squared error by smoothing, in units of the squared noise that it leaves, where the fields change:
            # derivatives have more noise than their fields.
            clear = place == (0, 0) or _bias(field, smooth, widths, noise) < 32.0
            shares[place] = _unexplained(smooth, field) if clear else math.inf
        return shares[place]

    best = min(((at, at) for at in range(0, len(WIDTHS), 2)), key=share)
    while True:
        around = [(best[0] + a, best[1] + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        following = min(around, key=share)
        if not share(following) < share(best):
            return allowed[0][best[0]], allowed[1][best[1]]
        best = following


def kernel_of(width: float, order: int) -> Floats:
    """Weights of the values around a point that give a derivative, in units of the step: exact for polynomials of
    degree ``order + MOMENTS - 1``."""
    reach, degree = math.ceil(REACH * width), order + MOMENTS
    at = np.arange(-reach, reach + 1) / width
    hermite, at_0 = [np.ones_like(at), at], [1.0, 0.0]
    for last in range(1, degree):
        hermite.append(at * hermite[last] - last * hermite[last - 1])
        at_0.append(-last * at_0[last - 1])
    # The derivative of He_n is n * He_(n-1).
    slopes = [math.perm(number, order) * at_0[number - order] if number >= order else 0.0 for number in range(degree)]
    scale = np.sqrt(np.array([float(math.factorial(number)) for number in range(degree)]))
    terms = np.stack(hermite[:degree]) / scale[:, None]
    weights = exp(-0.5 * at * at)
    shares = solved(dot(terms[:, None] * weights, terms), (np.array(slopes) / scale)[None], 0.0)[0]
    return weights * np.add.reduce(shares[:, None] * terms) / math.prod([width] * order)


def along(values: Floats, weights: Floats, axis: int, stride: int = 1) -> Floats:
    """Weighted sums of neighbours along an axis, where all of them are there."""
    count = values.shape[axis] - len(weights) + 1
    total = np.zeros_like(np.take(values, range(0, count, stride), axis))
    place: list[slice] = [slice(None)] * values.ndim
    for first, weight in enumerate(weights.tolist()):
        place[axis] = slice(first, first + count, stride)
        total += weight * values[tuple(place)]
    return total


def wrapped(values: Floats, reach: int, axis: int) -> Floats:
    """A periodic field with its other end beside each end."""
    count = values.shape[axis]
    return np.take(values, np.arange(-reach, count + reach) % count, axis)


def _smoothed(field: Field, values: Floats, width: float, axis: int, order: int) -> Floats:
    """The fields, smoothed along the time (0) or an axis, or a derivative of that."""
    weights = kernel_of(width, order) / math.prod([field.steps[axis]] * order)
    if axis and field.periodic:
        values = wrapped(values, len(weights) // 2, axis + 1)
    return along(values, weights, axis + 1)


def _left(count: int, width: float, wraps: bool) -> float:
    """Share of an axis that a kernel leaves."""
    return (2 * REACH * width < count) * 1.0 if wraps else 1 - 2 * math.ceil(REACH * width) / count


def _noise(field: Field) -> Floats:
    """Variance of the noise of each field."""
    values = field.values
    for axis in (1, 2):
        for _ in range(DIFFERENCES):
            values = np.diff(values, axis=axis)
    flat = values.reshape(len(values), -1)
    return dot(flat, flat) / flat.shape[1] / math.comb(2 * DIFFERENCES, DIFFERENCES) ** 2


def _bias(field: Field, smooth: Mollified, widths: Sequence[float], noise: Floats) -> float:
    """Squared error that smoothing makes, where the rates are large, in units of the squared noise that it leaves."""
    kernels = [kernel_of(widths[min(axis, 1)], 0) for axis in range(len(field.steps))]
    centre = math.prod(float(kernel[len(kernel) // 2]) for kernel in kernels)
    left = math.prod(float(dot(kernel, kernel)) for kernel in kernels)
    place = [slice(None)]
    for axis, kernel in enumerate(kernels):
        reach = len(kernel) // 2
        place.append(slice(None) if axis and field.periodic else slice(reach, -reach))
    count = len(field.states)
    rest = (field.values[tuple(place)] - smooth.columns[:count]).reshape(count, -1)
    speeds = smooth.rates.reshape(count, -1) ** 2
    squares = dot(speeds, rest * rest) / np.add.reduce(speeds, axis=1)
    with np.errstate(all="ignore"):
        return float(((squares - noise * (1 - 2 * centre + left)) / (noise * left)).max())


def _unexplained(smooth: Mollified, field: Field) -> float:
    """Share of the rates that no sum of products of the fields' powers and derivatives explains, mean of the fields."""
    rates, columns = smooth.rows()
    count = len(field.states)
    states, slopes = columns[:count], columns[count:]
    powers = [np.ones_like(states[0]), *states, *(states[a] * states[b] for a in range(count) for b in range(a + 1))]
    powers += [each * each * each for each in states]
    squares = [each * each for each in slopes[: count * len(field.axes)]]
    terms = np.stack([one * other for one in powers for other in (np.ones_like(states[0]), *slopes, *squares)])
    regression = Regression.of(terms)
    total = 0.0
    for rate in rates:
        rest = rate - np.add.reduce(regression.coefficients(rate)[:, None] * terms)
        mean = float(np.add.reduce(rate)) / len(rate)
        total += float(dot(rest, rest)) / float(dot(rate - mean, rate - mean))
    return total / count
