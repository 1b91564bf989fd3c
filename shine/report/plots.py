"""Plots with Matplotlib, for notebooks and papers; the HTML page does not use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.data.dataset import Dataset
from shine.errors import ExportError
from shine.report.subject import ModelLike, columns_of
from shine.typing import Floats

_BLUE, _ORANGE, _GREY = "#0b62a8", "#b04a00", "#56606b"


def pareto(front: Sequence[ModelLike], ax: Any = None, *, best_index: int | None = None) -> Any:
    """Loss against complexity, the chosen formula marked.

    The axis of the losses is logarithmic down to the smallest positive loss; if a loss is zero, the axis is linear
    from there to zero.

    Parameters
    ----------
    front : sequence of Model
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; those of a new figure by default.
    best_index : int, optional
        Position of the chosen formula; by default `best_index` of the front, if it has one.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ExportError
        If Matplotlib is not installed.
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
        if positive.size < losses.size:
            ax.set_yscale("symlog", linthresh=float(positive.min()))
        else:
            ax.set_yscale("log")
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _named(ax, "complexity", "loss")


def predictions(model: ModelLike, dataset: Dataset, ax: Any = None) -> Any:
    """Predicted against measured values; they are equal on the dashed line.

    Parameters
    ----------
    model : Model
    dataset : Dataset
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the data set lacks a feature of the formula.
    ExportError
        If Matplotlib is not installed.
    """
    ax = _axes(ax)
    _cloud(ax, dataset.target, model.predict(columns_of(model.tree, dataset)))
    ax.axline((float(dataset.target[0]),) * 2, slope=1, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    return _named(ax, "measured", "predicted")


def residuals(model: ModelLike, dataset: Dataset, ax: Any = None) -> Any:
    """Residuals (measured minus predicted values) against the predicted values.

    Parameters
    ----------
    model : Model
    dataset : Dataset
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    DataError
        If the data set lacks a feature of the formula.
    ExportError
        If Matplotlib is not installed.
    """
    ax = _axes(ax)
    predicted = model.predict(columns_of(model.tree, dataset))
    _cloud(ax, predicted, dataset.target - predicted)
    ax.axhline(0.0, color=_GREY, linestyle="--", linewidth=1, zorder=0)
    return _named(ax, "predicted", "residual")


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ExportError("plots need Matplotlib: pip install 'shine[plot]'") from None
    return pyplot.subplots(layout="constrained")[1]


def _cloud(ax: Any, x: Floats, y: Floats) -> None:
    there = np.isfinite(x) & np.isfinite(y)
    if there.sum() > 20_000:
        ax.hexbin(x[there], y[there], gridsize=60, bins="log", mincnt=1, cmap="Blues")
    else:
        ax.plot(x[there], y[there], "o", color=_BLUE, alpha=0.4, markersize=3, markeredgewidth=0)


def _named(ax: Any, x: str, y: str) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
