"""Plots with Matplotlib, for notebooks and papers; the HTML page does not use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.base.errors import needing
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.certainty import band_along, dependence_on
from shine.formats.page.charts.frame import spot
from shine.formats.page.subject import ModelLike, UncertainLike, columns_of
from shine.lang.forms.names import value_text

_BLUE, _ORANGE, _GREY = "#0b62a8", "#b04a00", "#56606b"

_CERTAIN = 700.0
"""Log-odds beyond which a class is certain; the exponential of more would overflow."""


def pareto(front: Sequence[ModelLike], ax: Any = None, *, best_index: int | None = None) -> Any:
    """Loss against complexity, the chosen formula marked.

    The axis of the losses is logarithmic down to the smallest positive loss; if a loss is zero, the axis is linear
    from there to zero. By default, the front knows the chosen formula. See `predictions`.
    """
    ax = _axes(ax)
    chosen = getattr(front, "best_index", None) if best_index is None else best_index
    losses = np.array([model.loss for model in front], dtype=np.float64)
    complexities = np.array([model.complexity for model in front])
    ax.step(complexities, losses, where="post", color=_BLUE, alpha=0.45, zorder=1)
    ax.plot(complexities, losses, "o", color=_BLUE, markersize=5, zorder=2)
    if chosen is not None:
        model = front[chosen]
        ax.plot([model.complexity], [model.loss], "o", color=_ORANGE, markersize=8, zorder=3, label="chosen")
        ax.legend(frameon=False)
    positive = losses[(losses > 0) & np.isfinite(losses)]
    if (losses >= 0).all() and positive.size:
        near_zero = {"linthresh": float(positive.min())} if positive.size < losses.size else {}
        ax.set_yscale("symlog" if near_zero else "log", **near_zero)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return named(ax, "complexity", "loss")


def predictions(model: ModelLike, dataset: Dataset, ax: Any = None, quantity: str = "") -> Any:
    """Predicted against measured values; they are equal on the dashed line. Returns the axes.

    `quantity` is what the formula computes, for the axes. A `DataError` if the data set lacks a feature of the formula,
    a `MissingExtraError` without Matplotlib.
    """
    ax = _axes(ax)
    _cloud(ax, dataset.target, model.predict(columns_of(model.tree, dataset)))
    ax.axline((float(dataset.target[0]),) * 2, slope=1, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    return named(ax, f"measured {quantity}", f"predicted {quantity}")


def residuals(model: ModelLike, dataset: Dataset, ax: Any = None, quantity: str = "") -> Any:
    """Residuals (measured minus predicted values) against the predicted values.

    The arguments, the result and the errors are those of `predictions`.
    """
    predicted = model.predict(columns_of(model.tree, dataset))
    return _around_zero(ax, predicted, dataset.target - predicted, f"predicted {quantity}", quantity)


def order(model: ModelLike, dataset: Dataset, ax: Any = None, quantity: str = "") -> Any:
    """Residuals over the numbers of the rows, from 1: those of a log lie along a curve.

    The arguments, the result and the errors are those of `predictions`.
    """
    left = dataset.target - model.predict(columns_of(model.tree, dataset))
    return _around_zero(ax, np.arange(1.0, dataset.n_rows + 1), left, "row", quantity)


def _around_zero(ax: Any, x: Floats, left: Floats, name: str, quantity: str) -> Any:
    ax = _axes(ax)
    _cloud(ax, x, left)
    ax.axhline(0.0, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    return named(ax, name, f"residual of {quantity}" if quantity else "residual")


def calibration(model: ModelLike, dataset: Dataset, ax: Any = None, quantity: str = "") -> Any:
    """Share of a class against its predicted probability, in ten groups of rows; they are equal on the dashed line.

    The formula is for the logarithm of the odds of the class, and the target is 1 for rows of the class and 0 for
    others. The arguments, the result and the errors are those of `predictions`.
    """
    ax = _axes(ax)
    odds = model.predict(columns_of(model.tree, dataset))
    there = ~np.isnan(odds)
    probabilities = 1 / (1 + np.exp(-np.clip(odds[there], -_CERTAIN, _CERTAIN)))
    order = np.argsort(probabilities, kind="stable")
    groups = [group for group in np.array_split(order, 10) if len(group)]  # groups of rows of similar probability
    predicted = [float(probabilities[group].mean()) for group in groups]
    found = [float(dataset.target[there][group].mean()) for group in groups]
    ax.plot(predicted, found, "o-", color=_BLUE, markersize=5)
    ax.axline((0.0, 0.0), slope=1, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    _tell_missing(ax, int((~there).sum()))
    return named(ax, "predicted probability", "share of the class")


def dependence(model: ModelLike, dataset: Dataset, feature: str, ax: Any = None, quantity: str = "") -> Any:
    """Mean prediction along one feature while the others keep their values (partial dependence, Friedman 2001).

    Faint lines are single rows: if they are not parallel, the feature interacts with others. See `predictions`.
    """
    ax = _axes(ax)
    found = dependence_on(model, dataset, feature)
    ax.plot(found.grid, found.mean, color=_ORANGE, linewidth=2, zorder=3)
    for row in found.rows:
        ax.plot(found.grid, row, color=_BLUE, alpha=0.15, linewidth=0.8, zorder=1)
    return named(ax, found.feature, quantity or "prediction")


def band(model: UncertainLike, dataset: Dataset, feature: str, ax: Any = None, quantity: str = "") -> Any:
    """A formula along one feature, the others at their medians, with its 95 % bands.

    The dark band holds the formula's value, the light one new readings. Dots are rows, with their residuals. The model
    must know the rows that it was fitted to.
    """
    ax = _axes(ax)
    found = band_along(model, dataset, feature)
    there = np.isfinite(found.places) & np.isfinite(found.readings)
    _spots(ax, found.places[there], found.readings[there], _GREY)
    for ends, alpha, name in ((found.prediction, 0.15, "new readings"), (found.mean, 0.4, "value")):
        ax.fill_between(found.grid, ends[:, 0], ends[:, 1], color=_BLUE, alpha=alpha, linewidth=0, label=name)
    ax.plot(found.grid, found.values, color=_BLUE, linewidth=2, zorder=3)
    ax.legend(frameon=False)
    return named(ax, found.feature, quantity or "prediction")


def constants(model: UncertainLike, ax: Any = None) -> Any:
    """The 95 % intervals of a formula's constants, as shares of the constants; the model must know its rows.

    Those without end go to the edge of the drawing, with an arrow.
    """
    ax = _axes(ax)
    rows = [row for row in model.summary().rows() if row["coef"]]
    shares = np.sort([[row[end] / row["coef"] * 100 - 100 for end in ("low", "high")] for row in rows], axis=1)
    edge = 1.1 * float(np.abs(shares[np.isfinite(shares)]).max(initial=0.0)) or 100.0
    ax.set_xlim(-edge, edge)
    for place, ends in enumerate(shares):
        ax.plot(np.clip(ends, -edge, edge), [place, place], color=_BLUE, linewidth=2)
        for end in ends[np.isinf(ends)]:
            ax.plot([np.clip(end, -edge, edge)], [place], ">" if end > 0 else "<", color=_BLUE, clip_on=False)
        ax.plot([0], [place], "o", color=_BLUE, markersize=5)
    ax.axvline(0.0, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    ax.set_yticks(range(len(rows)), [plain(f"{row['name']} = {row['coef']:.4g}") for row in rows])
    ax.invert_yaxis()
    return named(ax, "95 % interval, % of the constant", "")


def grid(count: int) -> list[Any]:
    """Axes for several drawings in a new figure, at most three in a row."""
    if count == 1:
        return [_axes(None)]
    columns = min(count, 3)  # most drawings side by side
    rows = -(-count // columns)
    size = (4.2 * columns, 3.4 * rows)
    figure, axes = _pyplot().subplots(rows, columns, layout="constrained", figsize=size, squeeze=False)
    for unused in axes.flat[count:]:
        figure.delaxes(unused)
    return list(axes.flat[:count])


def plain(text: str) -> str:
    """A text that Matplotlib shows as it is: between two dollar signs, it would look for mathematics."""
    return text.replace("$", r"\$")


def check_axes(ax: Any) -> None:
    """Raise a `TypeError` unless an argument is Matplotlib's axes."""
    if not hasattr(ax, "plot"):
        raise TypeError(f"ax must be Matplotlib's axes, is {value_text(ax)}")


def _axes(ax: Any) -> Any:
    if ax is not None:
        check_axes(ax)
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax


def _pyplot() -> Any:
    with needing("a plot", "Matplotlib", "plot"):
        from matplotlib import pyplot
    return pyplot


def _cloud(ax: Any, x: Floats, y: Floats) -> None:
    there = np.isfinite(x) & np.isfinite(y)
    if there.sum() > 20_000:
        ax.hexbin(x[there], y[there], gridsize=60, bins="log", mincnt=1, cmap="Blues")
    else:
        _spots(ax, x[there], y[there], _BLUE)
    _tell_missing(ax, int((~there).sum()))


def _spots(ax: Any, x: Floats, y: Floats, color: str) -> None:
    radius, opacity = spot(len(x))
    ax.plot(x, y, "o", color=color, alpha=opacity, markersize=1.2 * radius, markeredgewidth=0)


def _tell_missing(ax: Any, count: int) -> None:
    if count:
        told = f"{count} row{'s' * (count != 1)} without a finite prediction"
        ax.text(0.02, 0.98, told, transform=ax.transAxes, va="top", color=_GREY, fontsize="small")


def named(ax: Any, x: str, y: str) -> Any:
    """Axes with names."""
    ax.set_xlabel(plain(x.strip()))
    ax.set_ylabel(plain(y.strip()))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
