"""How sure the chosen formula is: its constants with their intervals, and bands of its predictions."""

from __future__ import annotations

import math

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.certainty import band_along, band_figure, constants_figure
from shine.formats.page.charts.dependence import dependences
from shine.formats.page.markup import Content, Element, element
from shine.formats.page.sections.parts import grid
from shine.formats.page.subject import ModelLike, SummaryLike, UncertainLike

_BANDS = 3
"""Most features that bands are drawn along, those of the largest effect."""


def certainty(best: ModelLike, dataset: Dataset, target: str) -> Content:
    """The constants and the bands; nothing if the formula does not know the rows that it was fitted to."""
    if not isinstance(best, UncertainLike):
        return None
    try:
        summary = best.summary()
    except DataError:
        return None
    rows = list(summary.rows())
    bands: list[Content] = []
    if rows and any(math.isfinite(row["std_err"]) for row in rows):
        used = [name for name in best.tree.used_parameters if name not in best.categories]
        names = {best.headings.get(name, name): name for name in used}
        features = [found.feature for found in dependences(best, dataset) if found.feature in names][:_BANDS]
        found = [band_along(best, dataset, names[feature]) for feature in features]
        figures = [band_figure(band, target, f"band-{index}") for index, band in enumerate(found)]
        bands = [grid([constants_figure(rows), *figures])]
    return [_table(summary), *bands]


def _table(summary: SummaryLike) -> Element:
    """The table of the constants."""
    caption = element("caption", element("code", summary.formula), element("br"), f"{summary.heading}.")
    notes = [element("span", f"{note[0].upper()}{note[1:]}.", class_="note") for note in summary.notes]
    head = element("tr", [element("th", text, scope="col", class_="number") for text in summary.headings])
    lines = [
        element(
            "tr", element("th", cells[0], scope="row"), [element("td", text, class_="number") for text in cells[1:]]
        )
        for cells in summary.cells()
    ]
    table = element("table", caption, element("thead", head), element("tbody", lines), class_="constants")
    words = element("p", notes, class_="summary", style="margin: 0; padding: 8px 20px 12px") if notes else None
    return element("div", element("div", table, class_="table-scroll"), words, class_="card plain")
