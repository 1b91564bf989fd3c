"""States and rates of clean readings: polynomials through the nearest readings, of an order that the data choose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import dot
from shine.search.dynamics.smoothing.curve import Curve

ORDERS = (4, 6, 8, 10, 12, 14)
"""Degrees of the polynomials. A higher one gains where the motion is smooth, and loses at the ends."""

NEIGHBOURS = 2
"""Points on either side that an error is the largest of: two orders may agree at a point by chance."""


def interpolated(times: Floats, readings: Floats, at: Floats) -> Curve:
    """A state and its rate by polynomials through readings.

    At each point, the order is taken whose rate differs least from those of the orders next to it. The error is the
    larger difference, or what a reading nearby differs from the polynomial through its neighbours, over a step.

    Parameters
    ----------
    times, readings : ndarray of shape (n_readings,)
        At least two; increasing times.
    at : ndarray of shape (n_times,)
        Increasing.
    """
    orders = [order for order in (1, 2, *ORDERS) if order < len(times)]
    if len(orders) > 3:
        orders = orders[2:]
    found = [through_nearest(times, readings, at, order) for order in orders]
    parts = [np.stack([each[part] for each in found]) for part in range(3)]
    if len(orders) == 1:
        unknown = np.abs(parts[1][0])
        long = at[-1] - at[0]
        values, rates, bends = (each[0] for each in parts)
        return Curve(values, rates, bends, unknown * long, unknown, np.full(len(at), np.inf), len(times))
    steps = [np.abs(each[1:] - each[:-1]) for each in parts]
    if len(orders) > 2:
        # Where no order is high enough, two may agree by chance, but hardly three.
        steps = [np.maximum(each[1:], each[:-1]) for each in steps]
        parts = [each[:-1] for each in parts]
    errors = [_spread(each) for each in steps]
    best = [errors[part].argmin(axis=0)[None] for part in (1, 1, 2)]
    curves = [np.take_along_axis(each[1:], own, 0)[0] for each, own in zip(parts, best, strict=True)]
    wrong = [np.take_along_axis(each, own, 0)[0] for each, own in zip(errors, best, strict=True)]
    left_out = left_out_errors(times, readings)
    if len(left_out):
        near = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
        missed = _spread(left_out.min(axis=0)[None])[0]
        missed, step = np.maximum(missed[near - 1], missed[near]), times[near] - times[near - 1]
        wrong = [wrong[0], np.maximum(wrong[1], missed / step), np.maximum(wrong[2], missed / step**2)]
    return Curve(curves[0], curves[1], curves[2], wrong[0], wrong[1], wrong[2], len(times))


def left_out_errors(times: Floats, readings: Floats) -> Floats:
    """Errors of the readings as polynomials through their neighbours foretell them, shape (n_orders, n_readings).

    There is none if the readings are too few.
    """
    found = []
    for order in ORDERS:
        if order + 2 > len(times):
            break
        places = _nearest(times, times, order + 2)
        places = places[times[places] != times[:, None]].reshape(len(times), order + 1)
        values = dot(_weights(times, times[places])[0], readings[places])
        found.append(np.abs(values - readings))
    return np.array(found)


def through_nearest(times: Floats, readings: Floats, at: Floats, order: int) -> list[Floats]:
    """Values, slopes and second derivatives of polynomials through the nearest `order` + 1 readings, (n_times,)."""
    places = _nearest(times, at, order + 1)
    return [dot(weights, readings[places]) for weights in _weights(at, times[places])]


def _nearest(times: Floats, at: Floats, count: int) -> Indices:
    """Positions of `count` neighbouring readings around each point, shape (n_times, count)."""
    middle = np.searchsorted(times, at)
    # Of the stretches around a point, the one whose farther end is nearer.
    starts = np.clip(middle[:, None] - count + np.arange(count + 1), 0, len(times) - count)
    reach = np.maximum(at[:, None] - times[starts], times[starts + count - 1] - at[:, None])
    start = np.take_along_axis(starts, reach.argmin(axis=1)[:, None], 1)
    return np.asarray(start + np.arange(count))


def _weights(at: Floats, nodes: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights of the values at nodes, shape (n_times, n_nodes), in the interpolated value and its first two derivatives
    (Fornberg 1988)."""
    count = nodes.shape[1]
    values, slopes, bends = (np.zeros_like(nodes) for _ in range(3))
    values[:, 0] = 1.0
    product, offset = np.ones(len(nodes)), nodes[:, 0] - at
    for i in range(1, count):
        earlier, product_before, product = offset, product, np.ones(len(nodes))
        offset = nodes[:, i] - at
        for j in range(i):
            distance = nodes[:, i] - nodes[:, j]
            product = product * distance
            if j == i - 1:
                ratio = product_before / product
                bends[:, i] = ratio * (2 * slopes[:, i - 1] - earlier * bends[:, i - 1])
                slopes[:, i] = ratio * (values[:, i - 1] - earlier * slopes[:, i - 1])
                values[:, i] = -ratio * earlier * values[:, i - 1]
            bends[:, j] = (offset * bends[:, j] - 2 * slopes[:, j]) / distance
            slopes[:, j] = (offset * slopes[:, j] - values[:, j]) / distance
            values[:, j] = offset * values[:, j] / distance
    return values, slopes, bends


def _spread(errors: Floats) -> Floats:
    """Each error as the largest within `NEIGHBOURS` points, shape (n_orders, n_times)."""
    parts: Sequence[Floats] = [
        errors[:, np.clip(np.arange(errors.shape[1]) + shift, 0, errors.shape[1] - 1)]
        for shift in range(-NEIGHBOURS, NEIGHBOURS + 1)
    ]
    return np.maximum.reduce(parts)
