"""Prices of points to measure at."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.forms.names import listed, value_text
from shine.lang.parse import parse
from shine.search.models.measuring.box import Box

Cost = Callable[[Mapping[str, Any]], Any] | str | Mapping[str, Any]
"""The price of a point: a function of its columns by heading; a formula of the features; or for each feature the price
of a unit, or of each of its values."""


def price_of(cost: Cost | None, box: Box) -> Callable[[Floats], Floats]:
    """A function from points to their prices."""
    if cost is None:
        return lambda values: np.ones(values.shape[1])
    by_columns = _cost_of(cost, box)

    def price(values: Floats) -> Floats:
        columns = {
            axis.heading: np.array([axis.plain(each) for each in own.tolist()])
            for axis, own in zip(box.axes, values, strict=True)
        }
        prices = by_columns(columns)
        try:
            found = np.broadcast_to(np.asarray(prices, np.float64), (values.shape[1],))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"cost gives {value_text(prices)}; it gives a number, or one for each point") from None
        bad = ~(np.isfinite(found) & (found > 0))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            where = ", ".join(f"{name} = {point_text(each)}" for name, each in box.plain(values[:, at]).items())
            raise ValueError(f"cost is {found[at]:g} at {where}; prices are positive numbers")
        return found

    return price


def _cost_of(cost: Cost, box: Box) -> Callable[[Mapping[str, Any]], Any]:
    """The price as a function of the columns by heading."""
    headings = [axis.heading for axis in box.axes]
    if callable(cost):
        return cost
    if isinstance(cost, str):
        names = {axis.names[0]: axis.heading for axis in box.axes if not axis.labels}
        try:
            tree = parse(cost, list(names))
        except UnsupportedSyntaxError as error:
            raise ValueError(f"cost is {value_text(cost)}: {error}; it is a formula of {listed(names)}") from None
        kernel = Kernel(tree, opt_level="O0")
        return lambda columns: kernel(*(columns[heading].astype(np.float64) for heading in names.values()))
    if not isinstance(cost, Mapping) or not cost:
        raise ValueError(f"cost is {value_text(cost)}; it is a function of the columns, a formula, or a mapping")
    for name in cost:
        if name not in headings:
            raise ValueError(f"cost has {value_text(name)}, which is no feature; there are {listed(headings)}")

    def total(columns: Mapping[str, Any]) -> Any:
        parts = []
        for name, price in cost.items():
            if isinstance(price, Mapping):
                parts.append(np.array([float(price.get(each, math.nan)) for each in columns[name].tolist()]))
            else:
                parts.append(float(price) * columns[name])
        return sum(parts)

    return total


def point_text(value: Any) -> str:
    """A value of a point for people."""
    return value if isinstance(value, str) else f"{value:.6g}"
