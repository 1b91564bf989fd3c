"""Partial dependence: how a formula's value depends on one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.frame import Chart, Figure, dots, line
from shine.formats.page.charts.scales import linear, logarithmic, spans_decades
from shine.formats.page.markup import Content, coordinate, element
from shine.formats.page.subject import ModelLike, columns_of, number, shortened

_POINTS = 41
_ROWS = 200
_LINES = 25
"""Points of the grid, rows of the average, and rows drawn."""

_FEW = 8
"""A feature with at most this many distinct values is drawn as points."""


@dataclass(frozen=True)
class Dependence:
    """Partial dependence of a formula on one feature.

    Parameters
    ----------
    feature : str
    grid : ndarray of shape (n_points,)
        Quantiles of the feature in rising order.
    mean : ndarray of shape (n_points,)
        Mean value over the rows; NaN if no row has a finite value.
    rows : ndarray of shape (n_lines, n_points)
        Values of single rows.
    """

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

    Returns
    -------
    list of Dependence
    """
    found = [dependence_on(model, dataset, feature) for feature in model.tree.used_parameters]
    return sorted(found, key=lambda dependence: -dependence.effect)


def dependence_on(model: ModelLike, dataset: Dataset, feature: str) -> Dependence:
    """Partial dependence of a formula on one of its parameters (see `dependences`)."""
    columns = columns_of(model.tree, dataset)
    every = np.unique(np.linspace(0, dataset.n_rows - 1, min(_ROWS, dataset.n_rows)).astype(np.int64))
    background = np.ascontiguousarray(columns[every])
    position = model.tree.parameters.index(feature)
    grid, weights = _grid(columns[:, position]), dataset.row_weights[every]
    return _dependence(model, background, weights, position, model.headings.get(feature, feature), grid)


def _grid(column: Floats) -> Floats:
    values = np.unique(column) if len(column) <= 100_000 else np.unique(column[:: len(column) // 100_000])
    if len(values) <= _FEW:
        return values
    quantiles: Floats = np.unique(np.quantile(column, np.linspace(0.01, 0.99, _POINTS)))
    return quantiles


def _dependence(
    model: ModelLike, background: Floats, weights: Floats, position: int, feature: str, grid: Floats
) -> Dependence:
    repeated = np.tile(background, (len(grid), 1))
    repeated[:, position] = np.repeat(grid, len(background))
    values = model.predict(repeated).reshape(len(grid), len(background))
    there = np.isfinite(values) & (weights > 0)
    total = np.where(there, weights, 0.0).sum(axis=1)
    with np.errstate(all="ignore"):
        mean = (np.where(there, values, 0.0) * weights).sum(axis=1) / total
    shown = np.unique(np.linspace(0, len(background) - 1, min(_LINES, len(background))).astype(np.int64))
    return Dependence(feature, grid, mean, np.where(np.isfinite(values), values, np.nan)[:, shown].T)


def dependence_figures(found: Sequence[Dependence], target: str) -> list[Figure]:
    """A small chart of each dependence; all have the same vertical axis, so that effects can be compared."""
    means = np.concatenate([dependence.mean for dependence in found]) if found else np.empty(0)
    rows = np.concatenate([dependence.rows.ravel() for dependence in found]) if found else np.empty(0)
    rows = rows[np.isfinite(rows)]
    extent = np.concatenate([means, np.quantile(rows, [0.02, 0.98])]) if len(rows) else means
    common = logarithmic(extent, 4) if spans_decades(extent) and spans_decades(rows) else linear(extent, ticks=4)
    figures = []
    for index, dependence in enumerate(found):
        name = shortened(dependence.feature, 30)
        wide = spans_decades(dependence.grid)
        x = logarithmic(dependence.grid, 4) if wide else linear(dependence.grid, ticks=4, margin=0.03)
        chart = Chart(x, common, "", f"Predicted {shortened(target, 24)}", width=300.0, height=200.0)
        grid = chart.x.places(dependence.grid)
        separate = len(dependence.grid) <= _FEW
        lines: list[Content] = [line(grid, chart.y.places(row)) for row in dependence.rows]
        mean = chart.y.places(dependence.mean)
        chart.add(element("g", lines, class_="single"), line(grid, mean, class_="series"))
        if separate:
            chart.add(dots(grid, mean, 3.5, class_="spots"))
        else:
            deciles = np.linspace(0, len(grid) - 1, 11).astype(int)
            marks = "".join(f"M{coordinate(float(at))},{chart.bottom}v-6" for at in grid[deciles])
            chart.add(element("path", d=marks, class_="rug"))
        first, last = number(float(dependence.mean[0])), number(float(dependence.mean[-1]))
        described = (
            f"Mean prediction along {name}: {first} at {number(float(dependence.grid[0]))}, {last} at "
            + number(float(dependence.grid[-1]))
        )
        figures.append(Figure(name, chart.drawing(described, f"dependence-{index}"), None))
    return figures
