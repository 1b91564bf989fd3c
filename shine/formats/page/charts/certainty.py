"""Charts of a formula's values: intervals of constants, bands of predictions, and the dependence on one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.frame import Chart, Figure, dots, line
from shine.formats.page.charts.scales import Scale, Tick, linear, logarithmic, spans_decades
from shine.formats.page.markup import Content, Element, coordinate, element
from shine.formats.page.subject import ModelLike, UncertainLike, columns_of, elided, number

_POINTS = 81
"""Points of the curve."""

_LEVEL = 0.95


@dataclass(frozen=True)
class Band:
    """A formula along one feature, the others at their medians: its values on a grid, the ends of the bands of its
    value and of new readings, shape (n_points, 2), and the feature in some rows, with their targets, moved by what the
    formula says of the other features."""

    feature: str
    grid: Floats
    values: Floats
    mean: Floats
    prediction: Floats
    places: Floats
    readings: Floats


def band_along(model: UncertainLike, dataset: Dataset, feature: str) -> Band:
    """The bands of a formula along one of its features."""
    columns = columns_of(model.tree, dataset)
    position = model.tree.parameters.index(feature)
    # Most rows that are drawn.
    every = np.unique(np.linspace(0, dataset.n_rows - 1, min(1000, dataset.n_rows)).astype(np.int64))
    rows = np.ascontiguousarray(columns[every])
    grid = np.linspace(float(columns[:, position].min()), float(columns[:, position].max()), _POINTS)
    typical = np.median(columns, axis=0)
    for category in map(model.tree.parameters.index, model.categories):
        labels = np.sort(columns[:, category])
        typical[category] = labels[len(labels) // 2]
        grid = np.unique(labels) if category == position else grid
    along = np.tile(typical, (len(grid), 1))
    along[:, position] = grid
    moved = np.tile(typical, (len(rows), 1))
    moved[:, position] = rows[:, position]
    residuals = dataset.target[every] - model.predict(rows)
    return Band(
        model.headings.get(feature, feature),
        grid,
        model.predict(along),
        model.predict_interval(along, _LEVEL, "mean"),
        _of_readings(model, along),
        rows[:, position],
        model.predict(moved) + residuals,
    )


def _of_readings(model: UncertainLike, along: Floats) -> Floats:
    """Bands of new readings; NaN if the loss does not say how they scatter."""
    try:
        return model.predict_interval(along, _LEVEL, "prediction")
    except DataError:
        return np.full((len(along), 2), np.nan)


def band_figure(found: Band, target: str, identity: str) -> Figure | None:
    """The chart of a band; None if it has no finite end."""
    ends = np.concatenate([found.prediction.ravel(), found.readings])
    if not np.isfinite(found.prediction).any():
        return None
    finite = ends[np.isfinite(ends)]
    low, high = np.quantile(finite, [0.005, 0.995])
    kept = finite[(finite >= low - (high - low)) & (finite <= high + (high - low))]
    name = elided(found.feature)
    chart = Chart(linear(found.grid, margin=0.03), linear(kept), name, f"Predicted {elided(target)}")
    across = chart.x.places(found.grid)
    chart.add(
        _area(across, chart.y.places(found.prediction), "band outer"),
        dots(chart.x.places(found.places), chart.y.places(found.readings)),
        _area(across, chart.y.places(found.mean), "band inner"),
        line(across, chart.y.places(found.values), class_="series"),
    )
    caption = (
        "Line: the formula, other features at their medians. Dark band: where the formula's value lies with "
        "95 % confidence. Light band: where 95 % of new readings lie. Dots: rows, with their residuals."
    ).replace(" %", "\N{NO-BREAK SPACE}%")
    return Figure(f"Along {name}", chart.drawing(f"Bands of the prediction along {name}.", identity), caption)


def _area(x: Floats, ends: Floats, class_: str) -> Element:
    """The area between lower and upper ends."""
    there = np.isfinite(ends).all(axis=1)
    low, high = zip(x[there], ends[there, 0], strict=True), zip(x[there], ends[there, 1], strict=True)
    points = [f"{coordinate(float(a))},{coordinate(float(b))}" for a, b in [*low, *reversed(list(high))]]
    return element("path", class_=class_, d=f"M{'L'.join(points)}Z" if points else "")


def constants_figure(rows: Sequence[dict[str, float | str]]) -> Figure | None:
    """The intervals of the constants of a `Summary`, as shares of their values; None if none is known."""
    known = [row for row in rows if row["coef"]]
    if not known:
        return None
    shares = np.array([[(float(row[end]) / float(row["coef"]) - 1) * 100 for end in ("low", "high")] for row in known])
    shares.sort(axis=1)
    # Intervals are drawn to 100 % of their constant on either side.
    wide = float(np.clip(np.abs(shares[np.isfinite(shares)]).max(initial=0.0), 1e-9, 100.0))
    height = 70.0 + 26.0 * len(known)  # height of a constant's line
    names = [str(row["name"]) for row in known]
    ticks = tuple(Tick(float(at), name) for at, name in enumerate(reversed(names), 1))
    lines = Scale(0.5, len(known) + 0.5, 0.0, 1.0, ticks)
    chart = Chart(linear([-wide, wide]), lines, "% of the constant", "", height=height)
    middle = chart.x.place(0.0)
    chart.add(element("path", class_="diagonal", d=f"M{coordinate(middle)},{chart.bottom}V{chart.top}"))
    for index, (low, high) in enumerate(shares.tolist()):
        at = chart.top + (index + 0.5) * (chart.bottom - chart.top) / len(known)
        start, end = (float(chart.x.place(float(np.clip(value, -wide, wide)))) for value in (low, high))
        chart.add(
            element("path", class_="series", d=f"M{coordinate(start)},{coordinate(at)}H{coordinate(end)}"),
            element("circle", class_="spot", cx=middle, cy=at, r=4.0),
        )
    described = "; ".join(
        f"{row['name']}: {number(float(row['low']))} to {number(float(row['high']))}" for row in known
    )
    caption = "Intervals of 95 %, as shares of the constant: short lines are constants that the rows determine well."
    if np.isinf(shares).any():
        caption += " Lines to the edge have no end."
    return Figure("How well each constant is known", chart.drawing(described, "constants"), caption)


_PLACES, _ROWS = 41, 200
"""Points of the grid, and rows of the average."""

_FEW = 8
"""A feature with at most this many distinct values is drawn as points."""


@dataclass(frozen=True)
class Dependence:
    """Partial dependence of a formula on one feature: on a grid of its quantiles the mean value over the rows, NaN if
    none is finite, and the values of single rows, shape (n_lines, n_points)."""

    feature: str
    grid: Floats
    mean: Floats
    rows: Floats

    @property
    def effect(self) -> float:
        """Range of the mean value."""
        finite = self.mean[np.isfinite(self.mean)]
        return float(finite.max() - finite.min()) if len(finite) else 0.0


def dependences(model: ModelLike, dataset: Dataset) -> list[Dependence]:
    """Partial dependence (Friedman 2001) of a formula on each feature it uses, the largest effect first.

    The feature takes each value of a grid of its quantiles, from the 1st to the 99th percentile, while the other
    features keep the values of the row; the mean over the rows is the dependence. It uses at most 200 rows, evenly
    spaced through the data set. The lines of single rows are the individual conditional expectations of Goldstein et
    al. (2015): if they are not parallel, the feature interacts with others.
    """
    found = [dependence_on(model, dataset, feature) for feature in model.tree.used_parameters]
    return sorted(found, key=lambda dependence: -dependence.effect)


def _grid(column: Floats) -> Floats:
    values = np.unique(column) if len(column) <= 100_000 else np.unique(column[:: len(column) // 100_000])
    if len(values) <= _FEW:
        return values
    quantiles: Floats = np.unique(np.quantile(column, np.linspace(0.01, 0.99, _PLACES)))
    return quantiles


def dependence_on(model: ModelLike, dataset: Dataset, feature: str) -> Dependence:
    """Partial dependence of a formula on one of its parameters (see `dependences`)."""
    columns = columns_of(model.tree, dataset)
    every = np.unique(np.linspace(0, dataset.n_rows - 1, min(_ROWS, dataset.n_rows)).astype(np.int64))
    background = np.ascontiguousarray(columns[every])
    position = model.tree.parameters.index(feature)
    grid, weights = _grid(columns[:, position]), dataset.row_weights[every]
    repeated = np.tile(background, (len(grid), 1))
    repeated[:, position] = np.repeat(grid, len(background))
    values = model.predict(repeated).reshape(len(grid), len(background))
    there = np.isfinite(values) & (weights > 0)
    total = np.where(there, weights, 0.0).sum(axis=1)
    with np.errstate(all="ignore"):
        mean = (np.where(there, values, 0.0) * weights).sum(axis=1) / total
    # Rows that are drawn.
    shown = np.unique(np.linspace(0, len(background) - 1, min(25, len(background))).astype(np.int64))
    heading = model.headings.get(feature, feature)
    return Dependence(heading, grid, mean, np.where(np.isfinite(values), values, np.nan)[:, shown].T)


def dependence_figures(found: Sequence[Dependence], target: str) -> list[Figure]:
    """A small chart of each dependence; all have the same vertical axis, so that effects can be compared."""
    means = np.concatenate([dependence.mean for dependence in found]) if found else np.empty(0)
    rows = np.concatenate([dependence.rows.ravel() for dependence in found]) if found else np.empty(0)
    rows = rows[np.isfinite(rows)]
    extent = np.concatenate([means, np.quantile(rows, [0.02, 0.98])]) if len(rows) else means
    common = logarithmic(extent, 4) if spans_decades(extent) and spans_decades(rows) else linear(extent, ticks=4)
    figures = []
    for index, dependence in enumerate(found):
        name = elided(dependence.feature)
        wide = spans_decades(dependence.grid)
        x = logarithmic(dependence.grid, 4) if wide else linear(dependence.grid, ticks=4, margin=0.03)
        chart = Chart(x, common, "", f"Predicted {elided(target)}", width=300.0, height=200.0)
        grid = chart.x.places(dependence.grid)
        separate = len(dependence.grid) <= _FEW
        lines: list[Content] = [line(grid, chart.y.places(row)) for row in dependence.rows]
        mean = chart.y.places(dependence.mean)
        chart.add(element("g", lines, class_="single"), line(grid, mean, class_="series"))
        if separate:
            chart.add(dots(grid, mean))
        else:
            deciles = np.linspace(0, len(grid) - 1, 11).astype(int)
            marks = "".join(f"M{coordinate(float(at))},{chart.bottom}v-6" for at in grid[deciles])
            chart.add(element("path", d=marks, class_="rug"))
        ends = [number(float(values[end])) for end in (0, -1) for values in (dependence.mean, dependence.grid)]
        described = "Mean prediction along {}: {} at {}, {} at {}".format(name, *ends)
        figures.append(Figure(name, chart.drawing(described, f"dependence-{index}"), None))
    return figures
