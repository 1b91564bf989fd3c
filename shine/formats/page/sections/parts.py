"""Parts that the sections share: cards, tables, and typeset formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.formats.page.charts.frame import Figure
from shine.formats.page.markup import Content, Element, depth, element
from shine.formats.page.mathml import math as math_element
from shine.formats.page.mathml import typeset
from shine.formats.page.mathml.symbols import ROUNDED, name_element
from shine.formats.page.subject import ModelLike
from shine.formats.page.wording import shortened
from shine.lang.forms.rounding import ALL_DIGITS, Precision, significant_digits
from shine.lang.presentation import presented

_TYPESET, _NESTED = 300, 200
"""Most nodes, and most levels of elements, of a typeset formula: browsers limit the depth to some hundreds, and nobody
could read more."""


def section(title: str, content: Content) -> Content:
    """A section with a heading; nothing if it has no content."""
    return element("section", element("h2", title), content) if content else None


def figure_card(figure: Figure) -> Element:
    """A figure with its title, caption and notes."""
    notes = [element("span", note, class_="note") for note in figure.notes]
    words = element("figcaption", figure.caption, notes) if figure.caption or notes else None
    drawing: Content = figure.drawing
    if ("class", "tree") in figure.drawing.attributes:
        drawing = element("div", drawing, class_="scroll", tabindex="0")
    return element("figure", element("h3", figure.title), drawing, words, class_="card")


def grid(figures: Sequence[Figure | None], columns: str = "two") -> Content:
    """Figures side by side; nothing if there is none."""
    shown = [figure_card(figure) for figure in figures if figure is not None]
    return element("div", shown, class_=f"grid-{columns}") if shown else None


def formula(model: ModelLike, precision: Precision, left: Content = None) -> Element:
    """A typeset formula, or its code if it is too large to typeset."""
    tree, digits = presented(model.tree), significant_digits(precision, model.digits or ROUNDED) or ALL_DIGITS
    lines: list[Content] = []
    found = typeset(tree, model.headings, digits) if tree.size <= _TYPESET else ()
    if not found or max(depth(line.terms) for line in found) > _NESTED:
        return element("div", element("code", shortened(tree.readable, 200)), class_="formula large")
    for line in found:
        head = left if line.name is None else math_element(name_element(line.name), element("mo", "="))
        # The line may break before each term except the first.
        terms: Sequence[Content] = [part for term in (head, *line.terms) if term for part in (element("wbr"), term)][1:]
        lines.append(element("span", terms, class_="assigned") if tree.assignments else terms)
    return element("div", lines, class_="formula", role="math", aria_label=shortened(tree.readable, 1000))


def copy_button(identity: str, what: str) -> Element:
    """A button that copies the text of an element."""
    return element("button", "Copy", type="button", class_="copy", data_copy=identity, aria_label=f"Copy {what}")


def table(title: str, values: Mapping[str, Any]) -> Element:
    """A table of names and values."""
    rows = [
        element("tr", element("th", name, scope="row"), element("td", setting_text(value)))
        for name, value in values.items()
    ]
    table = element("table", element("caption", title), element("tbody", rows), class_="settings")
    return element("div", table, class_="card plain")


def setting_text(value: Any) -> str:
    """A setting as text; empty if it is not set."""
    if value is None or (isinstance(value, Sequence | Mapping) and not value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(setting_text(item) for item in value)
    return str(value)
