"""The box of points that can be measured: an axis for each feature that can be chosen by itself; and their prices."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.base.errors import DataError, UnsupportedSyntaxError, placed
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.preparation import Preparation
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.forms.names import listed, shown, similar, value_text
from shine.lang.parse import parse

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
        told = lambda error: f"{error}; it is a formula of {listed(names)}"  # noqa: E731
        with placed(f"cost is {value_text(cost)}", UnsupportedSyntaxError, kind=ValueError, told=told):
            tree = parse(cost, list(names))
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


Limits = float | str | Sequence[Any]
"""Entry of a box for a feature: its limits, a fixed value or label, or several labels."""

DECADES = 1000.0
"""Ratio of positive limits from which points are spread evenly over the logarithm."""

LEVELS, DIGITS = 50, 2
"""Fewest values between limits that points have, and their significant digits over decades: people set round ones."""

LARGEST, SMALLEST = sys.float_info.max, 1e-322
"""Largest number, and least step between points: powers of ten below it are 0."""


@dataclass(frozen=True)
class Axis:
    """A feature of points that can be measured.

    Parameters
    ----------
    heading : str
        As people call it.
    names : tuple of str
        Features of formulas that it sets: one, or those of a text's labels.
    low, high : float
    is_integer : bool
        Whether only whole numbers have a meaning.
    labels : tuple of str or float
        Its values if they are labels, with none between them.
    codes : tuple of tuple of float
        Values of the features for each label.
    known : tuple of float, optional
        Least and greatest value of the rows; None if they are not known.
    """

    heading: str
    names: tuple[str, ...]
    low: float = 0.0
    high: float = 0.0
    is_integer: bool = False
    labels: tuple[Any, ...] = ()
    codes: tuple[tuple[float, ...], ...] = ()
    known: tuple[float, float] | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether it has one value."""
        return len(self.labels) == 1 if self.labels else self.low == self.high

    @property
    def width(self) -> float:
        """Distance of its ends; 1 if it has one value."""
        return self.high - self.low if self.high > self.low else 1.0

    def values(self, shares: Floats) -> Floats:
        """Values at shares of the way from one end to the other; of labels, their numbers."""
        if self.labels:
            return np.minimum(np.floor(shares * len(self.labels)), len(self.labels) - 1)
        if self.is_integer and self.high - self.low < 2.0**53:
            return np.minimum(self.low + np.floor(shares * (self.high - self.low + 1)), self.high)
        if self.is_fixed:
            return np.full(len(shares), self.low)
        if self.low > 0 and self.high >= DECADES * self.low:
            with np.errstate(over="ignore"):
                spread = 10.0 ** (math.log10(self.low) * (1 - shares) + math.log10(self.high) * shares)
            found = np.clip(spread, self.low, self.high)
            level = np.maximum(10.0 ** (np.floor(np.log10(found)) - DIGITS + 1), SMALLEST)
        else:
            found = self.low * (1 - shares) + self.high * shares
            level = np.array(10.0 ** math.floor(math.log10(max(self.high / LEVELS - self.low / LEVELS, SMALLEST))))
        with np.errstate(over="ignore"):
            return np.clip(np.rint(found / level) * level, self.low, self.high)

    def columns(self, values: Floats) -> dict[str, Floats]:
        """Columns of the features for such values."""
        if not self.labels:
            return {self.names[0]: values}
        codes = np.array(self.codes)[values.astype(np.int64)]
        return dict(zip(self.names, codes.T, strict=True))

    def plain(self, value: float) -> Any:
        """A value for people: a number or a label."""
        if self.labels:
            return self.labels[int(value)]
        return int(value) if self.is_integer and abs(value) < 2.0**53 else float(value)

    def excess(self, values: Floats) -> Floats:
        """Distance of values beyond the rows, as a share of these; 0 within."""
        if self.known is None or self.labels:
            return np.zeros(len(values))
        low, high = self.known
        beyond = np.maximum(np.maximum(low - values, values - high), 0.0)
        return beyond / ((high - low) or abs(low) or 1.0)


@dataclass(frozen=True, eq=False)
class Box:
    """The points that can be measured.

    Parameters
    ----------
    axes : tuple of Axis
    """

    axes: tuple[Axis, ...]

    def values(self, shares: Floats) -> Floats:
        """Values of the axes, shape (n_axes, n_points), at points of the unit cube, of the same shape."""
        return np.array([axis.values(own) for axis, own in zip(self.axes, shares, strict=True)])

    def columns(self, values: Floats) -> dict[str, Floats]:
        """The column of each feature."""
        found: dict[str, Floats] = {}
        for axis, own in zip(self.axes, values, strict=True):
            found |= axis.columns(own)
        return found

    def excess(self, values: Floats) -> Floats:
        """Distance of points beyond the rows, as a share of the range of a feature, shape (n_points,)."""
        return np.max([axis.excess(own) for axis, own in zip(self.axes, values, strict=True)], axis=0)

    def plain(self, point: Floats) -> dict[str, Any]:
        """A point for people, by heading."""
        return {axis.heading: axis.plain(float(own)) for axis, own in zip(self.axes, point, strict=True)}

    def beyond_the_rows(self) -> Box:
        """The box, with twice the width of the rows more on either side; signs, labels and fixed features stay."""
        return replace(self, axes=tuple(_wider(axis) for axis in self.axes))


def _wider(axis: Axis) -> Axis:
    if axis.labels or axis.is_fixed or axis.known is None:
        return axis
    low, high = axis.known
    width = 2 * (high - low)
    # A positive quantity comes to a half of its least value, or to 0 if the rows have that.
    least = max(low - width, low / 2 if low >= 0 else -LARGEST)
    most = min(high + width, high / 2 if high <= 0 else LARGEST)
    if axis.is_integer:
        least, most = float(math.ceil(least)), float(math.floor(most))
    return replace(axis, low=min(axis.low, least), high=max(axis.high, most))


def box_of(
    given: Mapping[str, Limits] | None,
    features: Sequence[str],
    headings: Mapping[str, str],
    ranges: Mapping[str, tuple[float, float]],
    rows: Dataset | None = None,
    preparation: Preparation | None = None,
    groups: Mapping[str, Mapping[Any, float]] | None = None,
    needed: Collection[str] = (),
) -> Box:
    """The box that a user gives, completed by the ranges of the rows.

    Parameters
    ----------
    given : mapping of str to limits, optional
        By heading or feature.
    features : sequence of str
        Of the formulas.
    headings : mapping of str to str
        Heading of each feature, if it is not its name.
    ranges : mapping of str to (float, float)
        Least and greatest value of features in the rows.
    rows : Dataset, optional
        They tell which features have only whole numbers.
    preparation : Preparation, optional
        How texts became features.
    groups : mapping of str to mapping of label to float, optional
        Values of features that are labels.
    needed : collection of str
        Features that matter; the box goes without others whose limits nobody tells.

    Raises
    ------
    ValueError
        If it names no feature, or limits are no limits.
    DataError
        If neither box nor rows tell the limits of a feature.
    """
    axes = list(_axes(features, headings, ranges, rows, preparation, groups or {}))
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"box is {value_text(given)}; it is a mapping of features to limits, such as {{'x': (0, 10)}}")
    if given is not None and not given:
        raise ValueError("box is empty: name features with limits, such as {'x': (0, 10)}, or leave it out")
    found = dict.fromkeys(range(len(axes)))
    for word, limits in (given or {}).items():
        place = _place(word, axes)
        if found[place] is not None:
            raise ValueError(f"box names {shown(axes[place].heading)} twice")
        found[place] = _limited(axes[place], limits)
    chosen = tuple(found[place] or axis for place, axis in enumerate(axes))
    open_ones = [axis for axis in chosen if not (math.isfinite(axis.low) and math.isfinite(axis.high))]
    for axis in open_ones:
        if axis.names[0] in needed:
            raise DataError(f"the range of {shown(axis.heading)} is not known; give it in the box")
    return Box(tuple(axis for axis in chosen if axis not in open_ones))


def _axes(
    features: Sequence[str],
    headings: Mapping[str, str],
    ranges: Mapping[str, tuple[float, float]],
    rows: Dataset | None,
    preparation: Preparation | None,
    groups: Mapping[str, Mapping[Any, float]],
) -> Iterable[Axis]:
    """An axis for each column that can be set by itself, as wide as the rows."""
    prepared = {} if preparation is None else {name: each for each in preparation.columns for name in each.names}
    done: set[str] = set()
    for name in features:
        column = prepared.get(name)
        if name in done:
            continue
        if name in groups:
            labels = groups[name]
            yield Axis(headings.get(name, name), (name,), labels=tuple(labels),
                       codes=tuple((value,) for value in labels.values()))  # fmt: skip
        elif column is not None and column.kind == "one-hot":
            first = len(column.categories) - len(column.names)
            codes = tuple(tuple(float(own + first == at) for own in range(len(column.names)))
                          for at in range(len(column.categories)))  # fmt: skip
            done |= {*column.names}
            yield Axis(column.heading, column.names, labels=column.categories, codes=codes)
        elif column is not None and column.kind == "ordinal":
            pairs = [(text, (float(at),)) for at, text in enumerate(column.categories) if text]
            yield Axis(column.heading, (name,), labels=tuple(text for text, _ in pairs),
                       codes=tuple(code for _, code in pairs))  # fmt: skip
        else:
            low, high = ranges.get(name, (-math.inf, math.inf))
            known = (low, high) if math.isfinite(low) and math.isfinite(high) else None
            is_integer = column is not None and column.kind == "truth"
            if rows is not None and name in rows.features:
                own = rows.columns[rows.features.index(name)]
                is_integer = is_integer or bool((own == np.floor(own)).all())
            yield Axis(headings.get(name, name), (name,), low, high, is_integer, known=known)


def _place(word: object, axes: Sequence[Axis]) -> int:
    for place, axis in enumerate(axes):
        if word == axis.heading or (len(axis.names) == 1 and word == axis.names[0]):
            return place
    own = [axis.heading for axis in axes]
    near = similar(word, own) if isinstance(word, str) else None
    hint = f"did you mean {shown(near)}? " if near else ""
    raise ValueError(f"box has {value_text(word)}, which is no feature; {hint}there are {listed(own)}")


def _limited(axis: Axis, limits: object) -> Axis:
    """The axis with a user's limits."""
    if axis.labels:
        wanted = [limits] if isinstance(limits, str) or not isinstance(limits, Sequence) else list(limits)
        texts = [_label(label) for label in axis.labels]
        missing = [each for each in wanted if _label(each) not in texts]
        if missing or not wanted:
            told = value_text(missing[0] if missing else limits)
            raise ValueError(f"box: {shown(axis.heading)} has no label {told}; it has {listed(texts)}")
        kept = [at for at, text in enumerate(texts) if text in {_label(each) for each in wanted}]
        return replace(axis, labels=tuple(axis.labels[at] for at in kept), codes=tuple(axis.codes[at] for at in kept))
    told = f"box: {shown(axis.heading)} is {value_text(limits)}"
    ends = [limits] * 2 if _is_number(limits) else limits
    if not isinstance(ends, Sequence | np.ndarray) or len(ends) != 2 or not all(_is_number(each) for each in ends):
        raise ValueError(f"{told}; it is a number, or a pair of limits: the lowest and the highest")
    low, high = (float(each) for each in ends)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{told}; its limits are finite numbers")
    if low > high:
        raise ValueError(f"{told}; the lower limit comes first: ({high:g}, {low:g})")
    if axis.is_integer:
        low, high = math.ceil(low), math.floor(high)
        if low > high:
            raise ValueError(f"{told}; the feature has whole numbers, and there is none between these limits")
    return replace(axis, low=float(low), high=float(high))


def _label(value: object) -> str:
    """A label as text: groups may be numbers."""
    return f"{value:g}" if isinstance(value, int | float | np.integer | np.floating) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
