"""Integration of fields by the method of lines: differences in space, SciPy's integrators in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from shine.base.typing import Floats

STENCIL = 3
"""Points to each side of a difference: its error is of the sixth order, and of the fourth for derivatives above the
second."""

STIFF_POINTS = 600
"""Most values of a state that an implicit method may solve for."""

EXPLODED = 1e4
"""Factor of the largest value at the start beyond which a field explodes: near a pole, steps become ever smaller."""

Rates = Callable[[Floats], Floats]
"""Fields and derivatives, shape (n_features, *points) -> rates, shape (n_fields, *points)."""


def integrated(
    rates: Rates,
    start: Floats,
    times: Floats,
    steps: Sequence[float],
    derivatives: Sequence[Sequence[int]],
    periodic: bool,
) -> Floats:
    """States of the fields at some times, shape (n_times, n_fields, *points); NaN from an explosion on.

    Parameters
    ----------
    rates : callable
    start : ndarray of shape (n_fields, *points)
    times : ndarray of shape (n_times,)
    steps : sequence of float
        Of the axes.
    derivatives : sequence of sequence of int
        How often each derivative among the features is taken along each axis.
    periodic : bool
        Otherwise the outermost points keep their values.
    """
    from scipy.integrate import solve_ivp  # slow to import

    inside = np.zeros(start.shape, np.bool_)
    inside[(slice(None), *(slice(None) if periodic else slice(STENCIL, -STENCIL) for _ in steps))] = True

    def change(_: float, flat: Floats) -> Floats:
        state = flat.reshape(start.shape)
        columns = []
        for counts in derivatives:
            values = state
            for axis, (count, step) in enumerate(zip(counts, steps, strict=True), 1):
                values = difference(values, step, count, axis) if count else values
            columns.append(values)
        return np.where(inside, rates(np.concatenate(columns)), 0.0).reshape(-1)

    method = "LSODA" if start.size <= STIFF_POINTS else "RK45"
    found = np.full((len(times), start.size), np.nan)
    found[0] = start.reshape(-1)
    if len(times) > 1:
        size = float(np.abs(start).max()) or 1.0

        def room(_: float, flat: Floats) -> float:
            return float(EXPLODED * size - np.abs(flat).max())

        room.terminal = True  # type: ignore[attr-defined]
        options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8 * size, "events": room}
        with np.errstate(all="ignore"):
            solution = solve_ivp(change, (times[0], times[-1]), found[0], method, times, **options).y.T
        found[: len(solution)] = solution
    found[~np.isfinite(found).all(axis=1).cumprod().astype(np.bool_)] = np.nan
    return found.reshape(len(times), *start.shape)


def difference(values: Floats, step: float, order: int, axis: int) -> Floats:
    """A derivative along an axis whose ends meet."""
    reach = STENCIL
    total = np.zeros_like(values)
    scale = float(np.prod([step] * order))
    for shift, weight in zip(range(-reach, reach + 1), _weights(reach, order), strict=True):
        total += weight / scale * np.roll(values, -shift, axis)
    return total


def _weights(reach: int, order: int) -> list[float]:
    """Weights of the points around 0 whose sum is a derivative at 0 (Lagrange's polynomials)."""
    nodes = [float(node) for node in range(-reach, reach + 1)]
    found = []
    for own in nodes:
        coefficients = [1.0]  # of the polynomial that is 1 at this node and 0 at the others, lowest power first
        for other in nodes:
            if other != own:
                shifted = [0.0, *coefficients]
                coefficients = [
                    (high - other * low) / (own - other)
                    for high, low in zip(shifted, [*coefficients, 0.0], strict=True)
                ]
        found.append(factorial(order) * coefficients[order])
    return found
