"""What the search found: its charts and the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.formats.page.charts.search import history_figure, pareto_figure
from shine.formats.page.markup import Content, Element, element
from shine.formats.page.sections.parts import copy_button, figure_card, formula, section
from shine.formats.page.subject import ModelLike, ResultLike
from shine.formats.page.wording import count, fraction, number
from shine.lang.forms.rounding import Precision


def search_charts(result: ResultLike, best: ModelLike, history: Sequence[Mapping[str, Any]]) -> Content:
    """The Pareto front as a chart, and the loss over time."""
    over_time = history_figure(history, best, refined=bool(result.stopped_by))
    unknown = element("h3", "Loss over time"), element("p", "No loss was recorded.", class_="summary")
    second = element("div", unknown, class_="card") if over_time is None else figure_card(over_time)
    return element("div", figure_card(pareto_figure(result.front, result.best_index)), second, class_="grid-two")


def front_table(result: ResultLike, precision: Precision) -> Content:
    """A table of the formulas on the Pareto front."""
    front, best = result.front, result.best_index
    rows = [_front_row(model, position, position == best, precision) for position, model in enumerate(front)]
    headings = [("#", "number"), ("Complexity", "number"), ("Loss", "number"), ("R²", "number"), ("Formula", None)]
    head = element("tr", [element("th", text, scope="col", class_=class_) for text, class_ in headings],
                   element("th", element("span", "Copy", class_="unseen"), scope="col", class_="action"))  # fmt: skip
    caption = "The best formula of each complexity that is better than all simpler ones; the chosen one is marked."
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", rows), class_="front"
    )
    card = element("div", element("div", table, class_="table-scroll"), class_="card plain")
    return section("The Pareto front", card)


def _front_row(model: ModelLike, position: int, chosen: bool, precision: Precision) -> Element:
    identity = f"code-{position}"
    code = element(
        "details", element("summary", "as code"), element("code", model.expression, id=identity), class_="code"
    )
    badge = element("span", "chosen", class_="badge") if chosen else None
    return element(
        "tr",
        element("td", str(position), class_="number", data_label="#"),
        element("td", count(model.complexity), class_="number", data_label="Complexity"),
        element("td", number(model.loss), class_="number", data_label="Loss"),
        element("td", fraction(model.r2), class_="number", data_label="R²"),
        element("td", badge, formula(model, precision), code, class_="formula-cell"),
        element("td", copy_button(identity, f"the formula of complexity {model.complexity}"), class_="action"),
        id=f"formula-{position}",
        class_="chosen" if chosen else None,
    )
