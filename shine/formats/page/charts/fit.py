"""Charts of the fit: predicted against measured values, and the residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.formats.page.charts.frame import Chart, Figure, dots, rule
from shine.formats.page.charts.scales import Scale, counts, linear, logarithmic, spans_decades
from shine.formats.page.markup import Content, coordinate, element
from shine.formats.page.subject import count, fraction, number

_CELL = 5.0
"""Half the height of a cell."""

LEVELS = 6
"""Number of shades of cells."""


@dataclass(frozen=True)
class Fit:
    """Measured and predicted values of the rows whose prediction is finite, and the number of the others."""

    measured: Floats
    predicted: Floats
    lost: int

    @classmethod
    def of(cls, measured: Floats, predicted: Floats) -> Fit:
        """The rows where both values are finite."""
        there = np.isfinite(predicted) & np.isfinite(measured)
        return cls(measured[there], predicted[there], int(len(measured) - there.sum()))

    @property
    def residuals(self) -> Floats:
        """Measured minus predicted values."""
        with np.errstate(over="ignore"):
            difference: Floats = self.measured - self.predicted
        return difference

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if rows are missing."""
        told = f"{count(self.lost, 'row')} whose prediction is not a finite number {_are(self.lost)} left out."
        return (told,) * bool(self.lost)


def fit_figures(fit: Fit, target: str) -> list[Figure]:
    """Predicted against measured values, residuals against predictions, histogram of residuals; empty without rows."""
    if not len(fit.measured):
        return []
    # If values differ by orders of magnitude, only the residuals of the large ones would be visible.
    relative = spans_decades(fit.measured) and (fit.predicted > 0).mean() > 0.9
    label, shown = f"Residual of {target}", fit
    if relative:
        there = fit.predicted > 0
        label = "Residual / predicted"
        shown = Fit(fit.measured[there], fit.predicted[there], fit.lost + int(len(there) - there.sum()))
    return [
        _predicted_figure(fit, target, relative),
        _residual_figure(shown, target, label, relative),
        _histogram_figure(shown, label, relative),
    ]


def _predicted_figure(fit: Fit, target: str, relative: bool) -> Figure:
    scale = _common_scale(fit, relative)
    chart = Chart(scale, scale, f"Measured {target}", f"Predicted {target}")
    diagonal = f"M{coordinate(chart.left)},{coordinate(chart.bottom)}L{chart.right},{coordinate(chart.top)}"
    angle = math.atan2(chart.top - chart.bottom, chart.right - chart.left)
    cells, caption, outside = _cloud(chart, fit.measured, fit.predicted, chart.bottom, angle)
    chart.add(element("path", class_="diagonal", d=diagonal), cells)
    described = f"{count(len(fit.measured), 'row')}: predicted against measured {target}."
    notes = _outside(outside) + fit.notes
    text = f"{caption} On the dashed line both are equal."
    return Figure("Predicted against measured", chart.drawing(described, "predicted"), text, notes)


def _common_scale(fit: Fit, relative: bool) -> Scale:
    """One axis for measured values and predictions, without outliers, and predictions far off the measured range."""
    measured, predicted = fit.measured if relative else _typical(fit.measured), fit.predicted
    low, high = float(measured.min()), float(measured.max())
    spread = high - low
    values = np.concatenate([[low, high], predicted])
    if spread > 0 and (predicted.min() < low - 2 * spread or predicted.max() > high + 2 * spread):
        values = values[(values >= low - spread) & (values <= high + spread)]
    return logarithmic(values[values > 0], 5) if relative else linear(values)


def _residual_figure(fit: Fit, target: str, label: str, relative: bool) -> Figure:
    residuals = fit.residuals / fit.predicted if relative else fit.residuals
    x = logarithmic(fit.predicted, 5) if relative else linear(_typical(fit.predicted))
    chart = Chart(x, linear(_with_zero(_typical(residuals), fit, relative)), f"Predicted {target}", label)
    cells, caption, outside = _cloud(chart, fit.predicted, residuals, chart.y.place(0.0))
    chart.add(cells, rule(chart, 0.0, "diagonal"))
    described = f"Residuals of {count(len(residuals), 'row')} against the predicted {target}."
    text = f"{caption} A residual is measured minus predicted; a pattern here shows that the formula misses something."
    return Figure("Residuals", chart.drawing(described, "residuals"), text, _outside(outside) + fit.notes)


def _with_zero(residuals: Floats, fit: Fit, relative: bool) -> Floats:
    """Residuals, and zero as wide as rounding makes it, so that no axis magnifies it."""
    rounding = 1e-12 * (1.0 if relative else float(np.abs(fit.measured).max()))
    return np.append(residuals, [-rounding, rounding])


def _typical(values: Floats) -> Floats:
    """The values without outliers, which would squeeze the rest into a line."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, [0.05, 0.95]) if len(finite) else (0.0, 0.0)
    reach = min(20 * (float(high) / 2 - float(low) / 2), 1e308)
    kept = finite[(finite >= float(low) - reach) & (finite <= float(high) + reach)]
    return kept if len(finite) > 20 and reach > 0 else finite


def _histogram_figure(fit: Fit, label: str, relative: bool) -> Figure:
    residuals = fit.residuals / fit.predicted if relative else fit.residuals
    residuals = residuals[np.isfinite(residuals)]
    typical = _typical(residuals)
    scale = linear(_with_zero(typical, fit, relative), margin=0.02)
    # Rice's rule, made odd, so that a single value is in the middle of a bar.
    wanted = int(min(51, max(7, math.ceil(2 * len(typical) ** (1 / 3))))) | 1
    edges = np.linspace(scale.low / 2, scale.high / 2, wanted + 1) * 2
    rows_in, _ = np.histogram(typical, edges)
    chart = Chart(scale, counts(rows_in), label, "Rows")
    places = chart.x.places(edges)
    bars: list[Content] = []
    for start, end, rows in zip(places[:-1].tolist(), places[1:].tolist(), rows_in.tolist(), strict=True):
        if rows:
            top, wide = chart.y.place(rows), max(end - start - 1, 0.5)
            bars.append(element("rect", x=start + 0.5, y=top, width=wide, height=chart.bottom - top))
    chart.add(element("g", bars, class_="bars"))
    zero = chart.x.place(0.0)
    if chart.left <= zero <= chart.right:
        chart.add(element("path", class_="diagonal", d=f"M{coordinate(zero)},{chart.bottom}V{chart.top}"))
    described = f"Histogram of the residuals of {count(len(residuals), 'row')}."
    caption = "If the formula misses only noise, the residuals lie around zero, most of them small."
    outside = len(residuals) - len(typical)
    return Figure("Distribution of the residuals", chart.drawing(described, "histogram"), caption, _outside(outside))


def fit_numbers(fit: Fit) -> dict[str, str]:
    """Measures of the fit by name; empty without rows."""
    if not len(fit.measured):
        return {}
    with np.errstate(all="ignore"):
        residuals = fit.residuals
        size = np.abs(residuals)
        mean, spread, absolute = float(residuals.mean()), float(residuals.std()), float(size.mean())
        root = math.sqrt(float((residuals * residuals).mean()))
        both = [values - values.mean() for values in (fit.measured, fit.predicted)]
        correlation = float((both[0] * both[1]).mean() / (both[0].std() * both[1].std()))
    half, most, largest = (float(value) for value in (*np.quantile(size, [0.5, 0.95]), size.max()))
    return {
        "Root mean squared error": number(root),
        "Mean absolute error": number(absolute),
        # A mean this small is only rounding error.
        "Mean residual": number(0.0 if abs(mean) < 1e-9 * spread else mean),
        "Half of the rows are within": f"±{number(half)}",
        "95 % of the rows are within": f"±{number(most)}",
        "Largest residual": f"±{number(largest)}",
        "Correlation of predicted and measured": fraction(correlation),
    }


def _cloud(chart: Chart, x: Floats, y: Floats, level: float, angle: float = 0.0) -> tuple[Content, str, int]:
    """Rows as dots, or as shaded cells if they are many; a caption; and the number of rows off the chart.

    Cells lie along the line that begins at a level on the left, and rises by an angle downwards.
    """
    across, down = chart.x.places(x), chart.y.places(y)
    edge = 0.01
    with np.errstate(invalid="ignore"):
        inside = (across >= chart.left - edge) & (across <= chart.right + edge)
        inside &= (down >= chart.top - edge) & (down <= chart.bottom + edge)
    across, down, outside = across[inside], down[inside], int(len(x) - inside.sum())
    if len(across) <= 1500:  # most rows drawn as dots; more rows are counted in cells
        return dots(across, down), "One dot a row." if len(across) != 1 else "One row.", outside
    across, down = across - chart.left, down - level
    cosine, sine = math.cos(angle), math.sin(angle)
    cells, largest = hexagons(across * cosine + down * sine, down * cosine - across * sine)
    text = f"{count(len(across), 'row')} counted in cells; stronger ones have more, up to {count(largest)}."
    place = f"translate({coordinate(chart.left)} {coordinate(level)}) rotate({coordinate(math.degrees(angle))})"
    return element("g", cells, transform=place), text, outside


def hexagons(x: Floats, y: Floats) -> tuple[Content, int]:
    """Points counted in hexagonal cells (Carr et al. 1987): a path for each shade, by the logarithm of the counts, and
    the number of points in the fullest cell."""
    wide, high = _CELL * math.sqrt(3), _CELL * 3
    # The centres form two rectangular grids, one shifted by half a cell; a point belongs to the nearer centre.
    even_x, even_y = np.rint(x / wide), np.rint(y / high)
    odd_x, odd_y = np.floor(x / wide), np.floor(y / high)
    to_even = (x - even_x * wide) ** 2 + (y - even_y * high) ** 2
    to_odd = (x - (odd_x + 0.5) * wide) ** 2 + (y - (odd_y + 0.5) * high) ** 2
    even = to_even <= to_odd
    columns = np.where(even, 2 * even_x, 2 * odd_x + 1).astype(np.int64)
    rows = np.where(even, 2 * even_y, 2 * odd_y + 1).astype(np.int64)
    left, top = columns.min(), rows.min()
    wide_by = int(columns.max() - left) + 1
    keys, counts = np.unique((rows - top) * wide_by + columns - left, return_counts=True)
    cells = np.stack([keys % wide_by + left, keys // wide_by + top])
    largest = int(counts.max())
    shades = np.minimum((np.log(counts) / math.log(largest + 1) * LEVELS).astype(int), LEVELS - 1)
    half, rise = coordinate(wide / 2), coordinate(_CELL / 2)
    outline = f"l{half},{rise}v{coordinate(_CELL)}l-{half},{rise}l-{half},-{rise}v-{coordinate(_CELL)}z"
    paths: list[Content] = []
    for shade in range(LEVELS):
        at = cells[:, shades == shade]
        tops = zip((at[0] * wide / 2).tolist(), (at[1] * high / 2 - _CELL).tolist(), strict=True)
        drawn = "".join(f"M{coordinate(a)},{coordinate(b)}{outline}" for a, b in tops)
        if drawn:
            paths.append(element("path", d=drawn, class_="cell", fill_opacity=(shade + 1) / LEVELS))
    return paths, largest


def _outside(rows: int) -> tuple[str, ...]:
    return (f"{count(rows, 'row')} {_are(rows)} far outside the chart.",) if rows else ()


def _are(rows: int) -> str:
    return "is" if rows == 1 else "are"
