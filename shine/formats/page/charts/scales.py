"""Axes of a chart: places of values, and ticks."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import Floats
from shine.formats.page.subject import MINUS, superscript

_LARGEST = sys.float_info.max

_SMALLEST = 1e-290
"""Shortest axis: steps between subnormal numbers have no digits."""


@dataclass(frozen=True)
class Tick:
    """A value with its label."""

    value: float
    label: str


@dataclass(frozen=True)
class Scale:
    """One axis: values at its ends, the places of these, ticks, the power of ten that the labels omit, and on a
    logarithmic axis the place of zero behind a break, or None."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[Tick, ...]
    logarithmic: bool = False
    factor: int = 0
    zero: float | None = None

    def places(self, values: ArrayLike) -> Floats:
        """Places of values in the drawing, in the same shape; NaN for a value without a place."""
        array = np.asarray(values, dtype=np.float64)
        with np.errstate(all="ignore"):
            if self.logarithmic:
                lowest = math.log(self.low)
                share = (np.log(array) - lowest) / (math.log(self.high) - lowest)
            else:
                # Halves, because the difference of two large numbers may overflow.
                share = (array / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
            places = self.start + share * (self.end - self.start)
        if self.logarithmic:
            places = np.where(array == 0, np.nan if self.zero is None else self.zero, places)
        result: Floats = np.where(np.isfinite(array), places, np.nan)
        return result

    def place(self, value: float) -> float:
        """Place of one value."""
        return float(self.places(value))

    def along(self, start: float, end: float) -> Scale:
        """The same axis at other places of the drawing; room for zeros is at its start."""
        if self.zero is None:
            return replace(self, start=start, end=end)
        # Length reserved for zeros on a logarithmic axis, in the drawing's units.
        inward = math.copysign(26.0, end - start)
        return replace(self, start=start + inward, end=end, zero=start + inward / 4)


def linear(values: ArrayLike, ticks: int = 5, margin: float = 0.04) -> Scale:
    """An axis that shows all finite values, with about so many ticks and a share of the range free at either end."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    if high - low <= max(1e-12 * largest, _SMALLEST):
        around = max(0.5 * largest, _SMALLEST) if largest else 1.0
        low, high = low - around, high + around
    room = min((high / 2 - low / 2) * 2 * margin, 1e300)
    low, high = max(low - room, -_LARGEST), min(high + room, _LARGEST)
    return Scale(low, high, 0.0, 1.0, *_linear_ticks(low, high, ticks))


def integer_scale(values: ArrayLike, ticks: int = 6) -> Scale:
    """An axis of whole numbers with whole ticks."""
    array = np.asarray(values, dtype=np.float64)
    low, high = float(array.min()), float(array.max())
    room = max(0.05 * (high - low), 0.6)
    step = float(max(1, math.ceil((high - low) / ticks)))
    power = 10.0 ** math.floor(math.log10(step))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= step)
    at = step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)
    return Scale(low - room, high + room, 0.0, 1.0, tuple(Tick(value, f"{value:.0f}") for value in at.tolist()))


def counts(values: ArrayLike) -> Scale:
    """An axis of counts: it begins at zero and has whole ticks."""
    largest = float(np.max(values, initial=1))
    return replace(integer_scale([0.0, largest]), low=0.0, high=1.04 * largest)


def spans_decades(values: ArrayLike, ratio: float = 500.0) -> bool:
    """Whether all values are positive and so far apart that most would coincide on a linear axis."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not (array > 0).all():
        return False
    low, high = np.quantile(array, [0.05, 0.95])
    return bool(high > ratio * low)


def logarithmic(values: ArrayLike, ticks: int = 6) -> Scale:
    """A logarithmic axis that shows all positive values, and zero behind a break if it is among the values."""
    array = np.asarray(values, dtype=np.float64)
    positive = array[(array > 0) & np.isfinite(array)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    decades = math.log10(high) - math.log10(low)
    # At least a tenth of a decade: a range of rounding errors would have no ticks.
    room = max(0.05 * decades, (0.1 - decades) / 2)
    low = max(low / 10**room, 5e-324)
    high = max(min(high * 10**room, _LARGEST), math.nextafter(low, math.inf))
    zero = 0.0 if (array == 0).any() else None
    if not positive.size:
        return Scale(low, high, 0.0, 1.0, (), logarithmic=True, zero=zero)
    if decades + 2 * room < 0.9 and low > _SMALLEST:
        found, _, factor = _linear_ticks(low, high, ticks)
        return Scale(low, high, 0.0, 1.0, found, logarithmic=True, factor=factor, zero=zero)
    return Scale(low, high, 0.0, 1.0, _logarithmic_ticks(low, high, ticks), logarithmic=True, zero=zero)


def _linear_ticks(low: float, high: float, wanted: int) -> tuple[tuple[Tick, ...], bool, int]:
    spread = high / 2 - low / 2
    largest = max(abs(low), abs(high))
    power = math.floor(math.log10(largest))
    factor = power if not -4 < power < 5 else 0
    if spread <= 1e-10 * largest:
        return (), False, 0
    # In units of the factor, so that products and labels do not overflow.
    unit_low, unit_high = low / 10.0**factor, high / 10.0**factor
    raw = (unit_high - unit_low) / wanted
    power = math.floor(math.log10(raw))
    size = min((1.0, 2.0, 2.5, 5.0, 10.0), key=lambda size: abs(math.log(size * 10.0**power / raw)))
    digits = max(0, 1 - power) if size == 2.5 else max(0, -power) if size < 10 else max(0, -power - 1)
    step = size * 10.0**power
    first, last = math.ceil(unit_low / step - 1e-9), math.floor(unit_high / step + 1e-9)
    ticks = []
    for index in range(first, last + 1):
        ticks.append(Tick(index * step * 10.0**factor, _signed(f"{index * step:.{digits}f}")))
    return tuple(ticks), False, factor


def _logarithmic_ticks(low: float, high: float, wanted: int) -> tuple[Tick, ...]:
    lowest, highest = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high) - math.log10(low)
    if decades > 2.5:
        every = max(1, math.ceil(decades / wanted))
        powers = [power for power in range(lowest, highest + 1) if power % every == 0 and -308 < power <= 308]
        chosen = [(1, power) for power in powers]
    else:
        digits: Sequence[int] = (1, 2, 5) if decades > 1.2 else (1, 2, 3, 5, 7)
        chosen = [(digit, power) for power in range(lowest, highest + 1) for digit in digits if -308 < power <= 308]
    inside = [(digit, power) for digit, power in chosen if low <= digit * 10.0**power <= high]
    plain = all(-4 <= power < 5 for _, power in inside)
    return tuple(Tick(digit * 10.0**power, _log_label(digit, power, plain)) for digit, power in inside)


def _log_label(digit: int, power: int, plain: bool) -> str:
    if plain:
        return f"{digit * 10**power}" if power >= 0 else f"{digit * 10.0**power:.{-power}f}"
    return f"10{superscript(power)}" if digit == 1 else f"{digit}×10{superscript(power)}"


def _signed(text: str) -> str:
    return text.replace("-", MINUS) if float(text) else text.removeprefix("-")
