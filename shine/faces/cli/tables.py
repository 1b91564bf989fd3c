"""Tables of text with a last column of any width, and the texts of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDEST = 40
"""Most columns of a cell of a table that is cut, except the first, which names the row, and the last."""

LEAST_ROOM = 20
"""Least columns for the last cell: on a narrower terminal, lines are longer than it."""


def table(rows: Sequence[tuple[str, ...]], cut: bool = False) -> list[str]:
    """The lines of a table; on a terminal, cells that are too long can be cut."""
    from shine.search.models.figures import screen_width

    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    widths = [min(width, WIDEST) if cut and place else width for place, width in enumerate(widths)]
    screen = screen_width() if cut else None
    room = None if screen is None else max(screen - sum(widths) - 2 * len(widths), LEAST_ROOM)
    lines = []
    for row in rows:
        cells = [f"{_short(cell, width):<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, _short(row[-1], room)]).rstrip())
    return lines


def number(value: float | None) -> str:
    """A loss; empty if it is not known."""
    return "" if value is None or math.isnan(value) else f"{value:.5g}"


def share(value: float | None) -> str:
    """An R2; empty if it is not known."""
    return "" if value is None or math.isnan(value) else f"{round(value, 6) + 0.0:.6f}"


def count_text(value: int | None) -> str:
    """A count; empty if it is not known."""
    return "" if value is None else str(value)


def seconds(value: float | None) -> str:
    """A duration; empty if it is not known."""
    return "" if value is None else f"{value:.1f}"


def _short(text: str, width: int | None) -> str:
    text = " ".join(text.split("\n"))
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."
