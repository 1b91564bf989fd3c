"""The frame of a chart: axes, grid and labels as SVG; the page's style sheet sets the colours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shine.base.typing import Floats
from shine.formats.page.charts.scales import Scale
from shine.formats.page.markup import Content, Element, coordinate, element
from shine.formats.page.subject import superscript

WIDTH, HEIGHT = 440.0, 310.0
"""Size of a chart in its own units; letters are 12 units high, 14 on narrow screens."""

_TOP, _RIGHT, _BOTTOM = 26.0, 14.0, 44.0
_LETTER = 8.8
"""Width of a letter of a tick's label on narrow screens, where it is largest."""


@dataclass(frozen=True)
class Figure:
    """A drawing with its title, a caption that tells what it shows, and notes on what it leaves out."""

    title: str
    drawing: Element
    caption: Content
    notes: tuple[str, ...] = ()


class Chart:
    """A frame with two axes, and its content."""

    def __init__(
        self, x: Scale, y: Scale, x_label: str, y_label: str, width: float = WIDTH, height: float = HEIGHT
    ) -> None:
        self.width, self.height = width, height
        letters = max((len(tick.label) for tick in y.ticks), default=1)
        self.left = max(30.0, 12 + _LETTER * letters)
        self.right, self.top, self.bottom = width - _RIGHT, _TOP, height - (_BOTTOM if x_label else _BOTTOM - 20)
        self.x = x.along(self.left, self.right)
        self.y = y.along(self.bottom, self.top)
        self.x_label, self.y_label = _named(x_label, x), _named(y_label, y)
        self.content: list[Content] = []
        self.above: list[Content] = []

    def add(self, *content: Content) -> None:
        """Draw content that is cut off at the frame."""
        self.content += content

    def add_above(self, *content: Content) -> None:
        """Draw content on top, which may reach beyond the frame."""
        self.above += content

    def drawing(self, described: str, identity: str) -> Element:
        """The chart as SVG, described for screen readers; `identity` is unique on the page."""
        inside = {"width": self.right - self.left, "height": self.bottom - self.top}
        clip = element("clipPath", element("rect", x=self.left, y=self.top, **inside), id=f"clip-{identity}")
        return element(
            "svg",
            element("defs", clip),
            self._axes(),
            element("g", self.content, clip_path=f"url(#clip-{identity})"),
            self.above,
            viewBox=f"0 0 {coordinate(self.width)} {coordinate(self.height)}",
            role="img",
            aria_label=described,
        )

    def _axes(self) -> Element:
        parts: list[Content] = []
        for tick, place in _spaced(self.y, 16.0):
            parts.append(element("path", class_="grid", d=f"M{coordinate(self.left)},{coordinate(place)}H{self.right}"))
            parts.append(element("text", tick, x=self.left - 7, y=place + 4, text_anchor="end"))
        widest = max((len(tick.label) for tick in self.x.ticks), default=1)
        for tick, place in _spaced(self.x, _LETTER * widest + 8):
            parts.append(element("path", class_="tick", d=f"M{coordinate(place)},{self.bottom}v5"))
            # A label at the end of the axis stays inside the drawing.
            inward = self.width - 2 - place < _LETTER * len(tick) / 2
            at = self.width - 2 if inward else place
            parts.append(element("text", tick, x=at, y=self.bottom + 19, text_anchor="end" if inward else "middle"))
        parts.append(element("path", class_="axis", d=f"M{coordinate(self.left)},{self.bottom}H{self.right}"))
        parts += self._breaks()
        parts.append(element("text", self.y_label, class_="name", x=2.0, y=14.0))
        parts.append(element("text", self.x_label, class_="name", x=self.right, y=self.height - 7, text_anchor="end"))
        return element("g", parts, class_="axes", aria_hidden="true")

    def _breaks(self) -> list[Content]:
        """The break of a logarithmic axis that makes room for zero."""
        if self.y.zero is None:
            return []
        at = (self.y.start * 2 + self.y.zero) / 3
        return [
            element("path", class_="break", d=f"M{coordinate(self.left)},{coordinate(at)}H{self.right}"),
            element("path", class_="grid", d=f"M{coordinate(self.left)},{coordinate(self.y.zero)}H{self.right}"),
            element("text", "0", x=self.left - 7, y=self.y.zero + 4, text_anchor="end"),
        ]


def _named(label: str, scale: Scale) -> str:
    return f"{label} (×10{superscript(scale.factor)})" if scale.factor else label


def _spaced(scale: Scale, room: float) -> list[tuple[str, float]]:
    """Labels and places of the ticks; only every second, third, ... if they would touch."""
    places = [(tick.label, scale.place(tick.value)) for tick in scale.ticks]
    for every in range(1, len(places) + 1):
        kept = places[::every]
        if all(abs(b[1] - a[1]) >= room for a, b in pairwise(kept)):
            return kept
    return places[:1]


def spot(rows: float) -> tuple[float, float]:
    """Radius and opacity of the dots of so many rows: few are seen from afar, many do not hide each other."""
    decades = float(np.log10(max(rows, 1.0)))
    return max(5.0 - 0.8 * decades, 1.5), min(max(1.1 - 0.22 * decades, 0.3), 0.85)


def dots(x: Floats, y: Floats) -> Element:
    """Rows as one group of circles (see `spot`); those without a place are left out."""
    there = np.isfinite(x) & np.isfinite(y)
    radius, opacity = spot(there.sum())
    circles = [element("circle", cx=float(a), cy=float(b), r=radius) for a, b in zip(x[there], y[there], strict=True)]
    return element("g", circles, class_="dots", fill_opacity=opacity)


def line(x: Floats, y: Floats, **attributes: object) -> Element:
    """A line through points, interrupted at points without a place."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if a != a or b != b:
            pen = "M"
            continue
        parts.append(f"{pen}{coordinate(a)},{coordinate(b)}")
        pen = "L"
    return element("path", d="".join(parts), **attributes)


def steps(x: Floats, y: Floats, end: float, **attributes: object) -> Element:
    """A line that keeps each value up to the next point, and the last value up to `end`."""
    there = np.isfinite(x) & np.isfinite(y)
    along = np.append(np.repeat(x[there], 2), end)[1:] if there.any() else x[there]
    return line(along, np.repeat(y[there], 2), **attributes)


def rule(chart: Chart, value: float, class_: str) -> Element | None:
    """A horizontal line at a value of the y axis; None if the value has no place on the axis."""
    place = chart.y.place(value)
    if place != place:
        return None
    return element("path", class_=class_, d=f"M{coordinate(chart.left)},{coordinate(place)}H{chart.right}")
