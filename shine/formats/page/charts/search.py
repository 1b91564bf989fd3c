"""Charts of the search: the Pareto front, and the loss over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shine.formats.page.charts.frame import Chart, Figure, rule, steps
from shine.formats.page.charts.scales import Scale, integer_scale, linear, logarithmic
from shine.formats.page.markup import Content, Element, element
from shine.formats.page.subject import ModelLike, count, duration, is_number, number, shortened

_MOST_POINTS = 1000
"""Most points of the line of losses."""


def pareto_figure(front: Sequence[ModelLike], best_index: int, identity: str = "pareto") -> Figure:
    """Loss against complexity, the chosen formula marked; each point links to its row of the table."""
    losses = np.array([model.loss for model in front], dtype=np.float64)
    complexities = np.array([model.complexity for model in front], dtype=np.float64)
    y, label = _loss_axis(losses)
    chart = Chart(integer_scale(complexities), y, "Complexity", label)
    x_places, y_places = chart.x.places(complexities), chart.y.places(losses)
    chart.add(steps(x_places, y_places, chart.right, class_="front"))
    points: list[Content] = []
    for position, (model, a, b) in enumerate(zip(front, x_places.tolist(), y_places.tolist(), strict=True)):
        if b == b:
            points.append(_point(model, position, a, b, position == best_index))
    chart.add_above(points, _chosen_label(chart, float(x_places[best_index]), float(y_places[best_index])))
    lost = int(len(front) - np.isfinite(y_places).sum())
    notes = (f"{count(lost, 'formula')} without a finite loss {'is' if lost == 1 else 'are'} not shown.",) * bool(lost)
    best = front[best_index]
    described = (
        f"Pareto front of {count(len(front), 'formula')}: loss {number(losses[0])} at complexity {front[0].complexity} "
        f"to loss {number(losses[-1])} at complexity {front[-1].complexity}. "
        f"Chosen: complexity {best.complexity}, loss {number(best.loss)}."
    )
    caption = "Each point is the best formula of its complexity; down and to the left is better."
    return Figure("Loss against complexity", chart.drawing(described, identity), caption, notes)


def _point(model: ModelLike, position: int, x: float, y: float, chosen: bool) -> Element:
    told = f"Complexity {model.complexity}, loss {number(model.loss)}: {shortened(model.expression, 200)}"
    return element(
        "a",
        element("title", told),
        element("circle", cx=x, cy=y, r=11.0, class_="target"),
        element("circle", cx=x, cy=y, r=8.5, class_="ring") if chosen else None,
        element("circle", cx=x, cy=y, r=4.5),
        href=f"#formula-{position}",
        class_="point chosen" if chosen else "point",
        data_row=f"formula-{position}",
        aria_label=told,
    )


def _chosen_label(chart: Chart, x: float, y: float) -> Element | None:
    if y != y:
        return None
    # The front has no other point up and to the right of a point.
    if x > chart.right - 64:
        return element("text", "chosen", class_="label chosen", x=x + 4, y=max(y - 13, 12), text_anchor="end")
    above = y - 7 if y > chart.top + 18 else y + 18  # the name of the axis is at the top
    return element("text", "chosen", class_="label chosen", x=x + 12, y=above)


def _loss_axis(losses: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Scale, str]:
    finite = losses[np.isfinite(losses)]
    if (losses < 0).any():
        return linear(losses), "Loss"
    if len(finite) and finite.max() <= 3 * finite.min():  # a logarithmic axis would magnify small differences
        return replace(linear(np.append(finite, 0.0)), low=0.0), "Loss"
    return logarithmic(losses), "Loss (logarithmic)"


def history_figure(
    history: Sequence[Mapping[str, Any]], best: ModelLike, identity: str = "history", *, refined: bool = True
) -> Figure | None:
    """The best loss over time, from lines of ``log.jsonl``; None if no generation was recorded.

    A horizontal line shows the loss of the chosen formula; at the end of a search, its constants are `refined`.
    """
    lines = [entry for entry in history if is_number(entry.get("seconds")) and is_number(entry.get("loss"))]
    if not lines:
        return None
    times = np.array([entry["seconds"] for entry in lines], dtype=np.float64)
    losses = np.array([entry["loss"] for entry in lines], dtype=np.float64)
    kept = _changes(losses)
    level = [best.loss] if math.isfinite(best.loss) else []
    y, label = _loss_axis(np.concatenate([losses, level]))
    unit, name = next((unit, name) for unit, name in _UNITS if times[-1] >= 2 * unit or unit == 1)
    x = linear([0.0, times.max() / unit], margin=0.03)
    chart = Chart(x, y, f"Time, {name}", label)
    chart.add(rule(chart, best.loss, "chosen"))
    x_places, y_places = chart.x.places(times[kept] / unit), chart.y.places(losses[kept])
    if len(kept) == 1:
        chart.add_above(element("circle", cx=float(x_places[0]), cy=float(y_places[0]), r=4.0, class_="spot"))
    chart.add(steps(x_places, y_places, chart.x.place(times[-1] / unit), class_="series"))
    chart.add_above(_level_label(chart, best.loss))
    if x_places[0] - chart.left > 130:  # units that the words need
        label_at = chart.y.place([*level, losses[0]][0])
        far = chart.top if label_at > (chart.top + chart.bottom) / 2 else chart.bottom
        middle = {"x": (chart.left + float(x_places[0])) / 2, "y": (label_at + far) / 2}
        chart.add_above(element("text", "no generation yet", **middle, text_anchor="middle"))
    within = f"{number(losses[0])} to {number(losses[-1])} within {duration(float(times[-1]))}"
    bred = lines[-1].get("generation")
    after = f" after {count(bred, 'generation')}" if is_number(bred) and bred else ""
    ending = ", its constants refined" if refined else ""
    caption = f"Loss of the best formula so far{after}. The dashed line is the chosen formula{ending}."
    return Figure("Loss over time", chart.drawing(f"The best loss fell from {within}.", identity), caption)


_UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def _level_label(chart: Chart, loss: float) -> Content:
    place = chart.y.place(loss)
    if place != place:
        return None
    # The line of losses comes from above and ends near the level, so the space on the left below the level is free.
    below = place + 16 < chart.bottom
    return element("text", "chosen", class_="label chosen", x=chart.left + 6, y=place + 15 if below else place - 6)


def _changes(losses: np.ndarray[Any, np.dtype[np.float64]]) -> list[int]:
    """Position 0 and those where the loss changes, thinned evenly if they are many."""
    positions = np.flatnonzero(np.concatenate([[True], losses[1:] != losses[:-1]]))
    if len(positions) > _MOST_POINTS:
        positions = positions[np.unique(np.linspace(0, len(positions) - 1, _MOST_POINTS).astype(int))]
    chosen: list[int] = positions.tolist()
    return chosen
