"""The report: one HTML page that needs only a browser."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shine.data.datasets.dataset import Dataset
from shine.formats.page import sections
from shine.formats.page.charts.fit import Fit
from shine.formats.page.markup import Content, Element, element, render, verbatim
from shine.formats.page.sections import section
from shine.formats.page.subject import ResultLike, columns_of
from shine.lang.forms.rounding import Precision

_HERE = Path(__file__).parent

History = Sequence[Mapping[str, Any]]


def report_html(
    result: ResultLike,
    dataset: Dataset,
    *,
    history: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any] | None = None,
    title: str = "Symbolic regression",
    target: str = "y",
    precision: Precision = None,
) -> str:
    """The result of a search as a page to show to others.

    Parameters
    ----------
    result : Result
    dataset : Dataset
        The rows that predictions are compared with: the rows of the search, or others.
    history : sequence of mappings
        Lines of ``log.jsonl``, for the chart of the loss over time.
    settings : mapping, optional
        Settings of the search by name; nested mappings are groups.
    title : str
        Heading of the page.
    target : str
        Name of the target.
    precision : int, "exact" or None
        Significant digits of constants in typeset formulas, or all; by default those that the data support.

    Returns
    -------
    str
        HTML with its styles, script and drawings; it loads nothing from the network. The same arguments give the same
        text.

    Raises
    ------
    DataError
        If the data set lacks a feature of the chosen formula.
    """
    parts = report_parts(
        result, dataset, history=history, settings=settings, target=target, precision=precision, title=title
    )
    return html_page(title, element("main", *parts.values()), own_text("script.js"))


def report_parts(
    result: ResultLike,
    dataset: Dataset,
    *,
    history: History = (),
    settings: Mapping[str, Any] | None = None,
    title: str,
    target: str,
    precision: Precision = None,
) -> dict[str, Content]:
    """The parts of the page by name, from top to bottom (see `report_html`)."""
    best = result.front[result.best_index]
    told = [getattr(result, name, "") for name in ("ties_text", "untested_text")]
    units = ((settings or {}).get("constraints") or {}).get("units") or {}
    predicted = best.predict(columns_of(best.tree, dataset))
    return {
        **running_parts(result, dataset, history=history, title=title, target=target, precision=precision),
        "fit": section("How well it fits", sections.fit_charts(Fit.of(dataset.target, predicted), target)),
        "certainty": section("How sure it is", sections.certainty(best, dataset, target, told, units)),
        "features": section("What each feature does", sections.dependence_charts(best, dataset, target, units)),
        "structure": section("Its structure", sections.tree_chart(best)),
        "settings": section("Settings and timing", sections.settings_tables(result, settings, history)),
        "footer": element("footer", "Made with Shine. Constants in typeset formulas are rounded; to see all digits of "
                                    "a constant, point at it or copy the formula."),
    }  # fmt: skip


def running_parts(
    result: ResultLike, dataset: Dataset, *, history: History, title: str, target: str, precision: Precision = None
) -> dict[str, Content]:
    """The first parts of the page, which need no predictions; the search may still run (see `report_html`)."""
    best = result.front[result.best_index]
    return {
        "top": sections.header(result, best, dataset, title, target, precision),
        "figures": sections.key_figures(result, best, dataset),
        "charts": section("The search", sections.search_charts(result, best, history)),
        "front": sections.front_table(result, precision),
    }


def html_page(title: str, main: Content, script: str, *, sources: str = "") -> str:
    """A whole page that loads nothing and runs only one script; `sources` are further rules of its content security
    policy, such as ``connect-src 'self';``."""
    tip = element("div", id="tip", hidden="hidden", role="tooltip")
    body = element("body", main, tip, verbatim("script", script))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    policy = f"default-src 'none'; {allowed}; {sources}base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Element("meta", (("http-equiv", "Content-Security-Policy"), ("content", policy)), ()),
        element("meta", name_="viewport", content_="width=device-width, initial-scale=1"),
        element("title", title),
        # Browsers would ask a server for an icon.
        element("link", rel="icon", href="data:,") if sources else None,
        verbatim("style", own_text("style.css")),
    )
    return "<!DOCTYPE html>\n" + render(element("html", head, body, lang="en")) + "\n"


def own_text(name: str) -> str:
    """The text of a style sheet or a script of the page."""
    return (_HERE / name).read_text(encoding="utf-8")
