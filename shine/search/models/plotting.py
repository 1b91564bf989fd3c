"""Drawings of a front and of its formulas, by name: what `plot` of fronts, results and estimators draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.formats.page import plots
from shine.lang.forms.names import listed, value_text
from shine.search.models.model import Model

Draw = Callable[..., Any]
"""Draws a model and a data set on axes, given the name of what it computes."""

FIT: dict[str, Draw] = {"fit": plots.predictions, "residuals": plots.residuals, "order": plots.order}
"""Drawings of a formula for a target beside the target, by kind."""

ODDS: dict[str, Draw] = {"fit": plots.calibration}
"""Drawings of a formula for the odds of a class beside the class."""

FRONT, DEPENDENCE, BAND, CONSTANTS = "front", "dependence", "band", "constants"


@dataclass(frozen=True)
class Subject:
    """A front to draw, with the data to draw it with: by default, its recommended formula, of a quantity without a
    name, below no title."""

    front: Sequence[Model]
    best_index: int
    title: str = ""
    data: Dataset | None = None
    index: int | None = None
    quantity: str = ""
    units: Mapping[str, str] = field(default_factory=dict)


def check_kind(kind: object, fits: dict[str, Draw], X: Any, y: Any) -> None:
    """Raise a `ValueError` if there is no such drawing, or if it lacks data."""
    kinds = (FRONT, *fits, DEPENDENCE, *((BAND, CONSTANTS) if fits is FIT else ()))
    if kind not in kinds:
        raise ValueError(f"kind is {value_text(kind)}; it must be one of {', '.join(map(repr, kinds))}")
    if kind in fits and (X is None or y is None):
        raise ValueError(f"plot({kind!r}) compares predictions with data: plot({kind!r}, X, y)")
    if kind == BAND and X is not None and y is None:
        raise ValueError(f"plot({kind!r}) shows the readings of rows, too: plot({kind!r}, X, y), or plot({kind!r})")
    if kind == DEPENDENCE and X is None:
        raise ValueError(f"plot({kind!r}) needs rows to predict: plot({kind!r}, X)")


def plotted(
    subjects: Sequence[Subject], kind: str, fits: dict[str, Draw], features: Sequence[Any] | None, ax: Any
) -> Any:
    """Draw the subjects; return the axes of Matplotlib, an array if there are several drawings."""
    if kind in (DEPENDENCE, BAND):
        drawings = [drawing for subject in subjects for drawing in _along_features(subject, kind, features)]
    elif kind == FRONT:
        drawings = [partial(_front, subject) for subject in subjects]
    else:
        draw = (fits | {CONSTANTS: lambda model, data, ax, quantity: plots.constants(model, ax)})[kind]
        drawings = [partial(_fit, draw, subject, _model(subject)) for subject in subjects]
    axes = plots.grid(len(drawings)) if ax is None else _given(ax, len(drawings))
    for drawn, place in zip(drawings, axes, strict=True):
        drawn(place)
    if len(axes) == 1:
        return axes[0]
    found = np.empty(len(axes), dtype=object)
    found[:] = axes
    return found


def _given(ax: Any, count: int) -> list[Any]:
    axes = list(ax.flat if isinstance(ax, np.ndarray) else ax if isinstance(ax, Sequence) else [ax])
    if len(axes) != count:
        drawings = "there is 1 drawing" if count == 1 else f"there are {count} drawings"
        raise ValueError(f"ax has {len(axes)} axes, and {drawings}; give {count}, or none for a new figure")
    return axes


def _front(subject: Subject, ax: Any) -> None:
    plots.pareto(subject.front, ax, best_index=subject.best_index)
    _entitle(ax, subject.title)


def _fit(drawing: Draw, subject: Subject, model: Model, ax: Any) -> None:
    drawing(model, subject.data, ax, subject.quantity)
    _entitle(ax, subject.title)


def _along_features(subject: Subject, kind: str, features: Sequence[Any] | None) -> Iterator[Callable[[Any], None]]:
    model = _model(subject)
    data = subject.data
    if data is None and model.basis is not None:
        data = model.basis.rows
    if data is None:
        raise ValueError(
            f"plot({kind!r}) needs rows; a model from the folder of a run, or from a pickle, has none: "
            f"plot({kind!r}, X, y)"
        )
    used = [name for name in model.tree.used_parameters if name not in model.categories]
    wanted = used if features is None else [_feature(given, model) for given in features]
    if not wanted:
        raise ValueError(
            f"the formula {model.formula()} uses no feature, so there is no {kind}; name some with features="
        )

    def draw(ax: Any, name: str) -> None:
        if kind == BAND:
            plots.band(model, data, name, ax, subject.quantity)
        else:
            plots.dependence(model, data, name, ax, subject.quantity)
        if subject.units.get(name, "1") != "1":
            ax.set_xlabel(f"{ax.get_xlabel()} [{plots.plain(subject.units[name])}]")
        _entitle(ax, subject.title)

    for name in wanted:
        yield partial(draw, name=name)


def _model(subject: Subject) -> Model:
    front, index = subject.front, subject.index
    if index is None:
        index = subject.best_index
    if isinstance(index, bool) or not isinstance(index, int | np.integer) or not -len(front) <= index < len(front):
        raise ValueError(f"index is {value_text(index)}; the front has the formulas 0 to {len(front) - 1}")
    return front[int(index)]


def _feature(given: object, model: Model) -> str:
    """The parameter that a name, a heading or a position means."""
    names = model.tree.parameters
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and -len(names) <= given < len(names):
        return str(names[given])
    by_heading = {model.headings.get(name, name): name for name in names}
    name = by_heading.get(str(given), given)
    if name not in names:
        raise ValueError(f"features has {value_text(given)}; the formula's features are {listed(names)}")
    return str(name)


def _entitle(ax: Any, title: str) -> None:
    if title:
        ax.set_title(plots.plain(title))
