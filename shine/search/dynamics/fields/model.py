"""A system of partial differential equations, with its measures and its integration by the method of lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any, ClassVar

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.data.fields import AXES, Field
from shine.evaluate.rollouts.rates import with_named_constants
from shine.lang.forms.names import listed
from shine.search.dynamics.fields.mollifying import derivatives_of, feature_names, mollified
from shine.search.dynamics.fields.weak import WeakForm
from shine.search.dynamics.system import Controls, SystemModel


@dataclass(frozen=True, eq=False, repr=False)
class FieldModel(SystemModel):
    """One system of a front: the rate of each field by the fields and their derivatives in space.

    Its losses and variances are those of the weak form (see `shine.search.dynamics.fields.weak`).

    Parameters
    ----------
    steps : tuple of float
        Of the time and of the axes.
    derivatives : int
        Highest derivative.
    periodic : bool
    widths : tuple of float
        Of the kernel, along the time and the axes.
    """

    steps: tuple[float, ...] = ()
    derivatives: int = 1
    periodic: bool = False
    widths: tuple[float, float] = (1.0, 1.0)

    is_field: ClassVar[bool] = True

    @property
    def lefts(self) -> list[str]:
        """Left sides: derivatives by the time."""
        return [f"{state}_t" for state in self.states]

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates in formulas."""
        return AXES[: len(self.steps) - 1]

    @property
    def counts(self) -> list[tuple[int, ...]]:
        """How often each derivative among the features is taken along each axis."""
        return [counts for _, counts in derivatives_of(self.axes, self.derivatives)]

    @property
    def features(self) -> list[str]:
        """Names of the fields and their derivatives, the parameters of the formulas."""
        return feature_names(self.states, self.axes, self.derivatives)

    @cached_property
    def _numbers(self) -> list[Floats]:
        return [with_named_constants(tree)[1] for tree in self.trees]

    @property
    def constants(self) -> Floats:
        """The numbers in the formulas, equation after equation, shape (n_constants,)."""
        return np.concatenate(self._numbers)

    @property
    def constant_names(self) -> tuple[str, ...]:
        """Names of the constants: left side and place in its equation."""
        pairs = zip(self.lefts, self._numbers, strict=True)
        return tuple(f"{left}[{place}]" for left, values in pairs for place in range(len(values)))

    def rates(self, x: Any, u: Controls = None, t: Any = None) -> Any:
        """Rates of smoothed fields.

        Parameters
        ----------
        x : array-like of shape (n_times, n_points[, n_points2]), or mapping of them by name

        Returns
        -------
        ndarray of the shape of `x`, or dict of them by name
            NaN near the edges, where the kernel does not fit in.
        """
        field = Field(self._fields(x, "x", len(self.steps)), self.states, self.steps, self.periodic)
        smooth = mollified(field, self.widths, self.derivatives)
        inner = smooth.rates.shape[1:]
        pairs = zip(field.values.shape[1:], inner, strict=True)
        place = [slice((whole - left) // 2, (whole + left) // 2) for whole, left in pairs]
        found = np.full(field.values.shape, np.nan)
        found[(slice(None), *place)] = self._right_sides(smooth.columns)
        return self._given(found)

    def simulate(self, x0: Any, t: Any, u: Controls = None, *, return_std: bool = False) -> Any:
        """Integrate from initial fields by the method of lines.

        Parameters
        ----------
        x0 : array-like of shape (n_points[, n_points2]), or mapping of them by name
            On a grid with the steps of the fit.
        t : array-like of shape (n_times,)
            Increasing.
        return_std : bool
            Must be False.

        Returns
        -------
        ndarray of shape (n_times, n_points[, n_points2]), or dict of them by name
            NaN from the time on at which a field explodes. Without `periodic`, the three points at each edge keep their
            values.
        """
        if return_std:
            raise DataError("simulations of fields have no standard deviations; leave return_std out")
        times, start = numbers(np.asarray(t), "t", 1), self._fields(x0, "x0", len(self.steps) - 1)
        if len(times) < 1 or not (times[1:] > times[:-1]).all():
            raise DataError("t must be a list of increasing times")
        found = integrated(self._right_sides, start, times, self.steps[1:], self.counts, self.periodic)
        return self._given(found.swapaxes(0, 1))

    @np.errstate(all="ignore")
    def score(self, field: Field) -> float:
        """R2 of the weak form on other fields, mean of the fields; -inf where a formula has no value."""
        form = WeakForm.of(field, self.widths, self.derivatives)
        values = np.stack([form.averages(own) for own in self._right_sides(form.columns)])
        wrong = np.add.reduce((form.rates - values) ** 2, axis=1)
        mean = np.add.reduce(form.rates, axis=1) / form.rates.shape[1]
        share = wrong / np.add.reduce((form.rates - mean[:, None]) ** 2, axis=1)
        return float(1 - np.add.reduce(share) / len(share)) if np.isfinite(share).all() else -np.inf

    def _right_sides(self, columns: Floats) -> Floats:
        """Values of all equations, shape (n_fields, *points), from all features."""
        flat, shape = columns.reshape(len(columns), -1), columns.shape[1:]
        return np.stack([np.broadcast_to(model.kernel(*flat), flat[0].size).reshape(shape) for model in self.equations])

    def _fields(self, given: Any, name: str, dimensions: int) -> Floats:
        """All fields, from an array of the only one or a mapping."""
        if not isinstance(given, Mapping):
            given = {self.states[0]: given}
        if set(given) != set(self.states):
            raise DataError(
                f"{name} has {listed(map(str, given))}; give a mapping with the fields {listed(self.states)}"
            )
        arrays = [np.asarray(given[state], np.float64) for state in self.states]
        for array in arrays:
            if array.ndim != dimensions or array.shape != arrays[0].shape or min(array.shape) < 8:
                raise DataError(
                    f"{name} has a field of shape {array.shape}; {dimensions} axes of at least 8 are needed"
                )
            if not np.isfinite(array).all():
                raise DataError(f"{name} has values that are not finite")
        return np.stack(arrays)

    def _given(self, fields: Floats) -> Any:
        """Fields in the form in which a user gives them."""
        return fields[0] if len(fields) == 1 else dict(zip(self.states, fields, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_numbers"}


STENCIL = 3
"""Points to each side of a difference: its error is of the sixth order, and of the fourth for derivatives above the
second."""

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

    method = "LSODA" if start.size <= 600 else "RK45"  # most values of a state that an implicit method may solve for
    found = np.full((len(times), start.size), np.nan)
    found[0] = start.reshape(-1)
    if len(times) > 1:
        size = float(np.abs(start).max()) or 1.0

        def room(_: float, flat: Floats) -> float:
            # Factor of the largest value at the start beyond which a field explodes: near a pole, steps become ever
            # smaller.
            return float(1e4 * size - np.abs(flat).max())

        room.terminal = True  # type: ignore[attr-defined]
        options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8 * size, "events": room}
        with np.errstate(all="ignore"):
            solution = solve_ivp(change, (times[0], times[-1]), found[0], method, times, **options).y.T
        found[: len(solution)] = solution
    found[~np.isfinite(found).all(axis=1).cumprod().astype(np.bool_)] = np.nan
    return found.reshape(len(times), *start.shape)


def difference(values: Floats, step: float, order: int, axis: int) -> Floats:
    """A derivative along an axis whose ends meet."""
    total = np.zeros_like(values)
    for node, weight in _weights(order):
        total += weight / step**order * np.roll(values, -node, axis)
    return total


@cache
def _weights(order: int) -> list[tuple[int, float]]:
    """Points around 0 with the weights whose sum is a derivative at 0 (Lagrange's polynomials)."""
    nodes = range(-STENCIL, STENCIL + 1)
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
        found.append((own, factorial(order) * coefficients[order]))
    return found
