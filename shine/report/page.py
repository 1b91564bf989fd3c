"""The report: one HTML page that needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shine.data.dataset import Dataset
from shine.lang.tree import Tree
from shine.report.chart import Figure
from shine.report.dependence import dependence_figures, dependences
from shine.report.drawing import LARGEST, tree_figure
from shine.report.fit import Fit, fit_figures, fit_numbers
from shine.report.markup import Content, Element, depth, element, render, verbatim
from shine.report.mathml import math as math_element
from shine.report.mathml import typeset
from shine.report.progress import history_figure, pareto_figure
from shine.report.subject import ModelLike, ResultLike, columns_of, used_features
from shine.report.symbols import name_element
from shine.report.wording import count, duration, fraction, number, shortened

_HERE = Path(__file__).parent

_STOPPED = {
    "loss": "The loss that was aimed at was reached",
    "generations": "All generations were bred",
    "seconds": "The time was up",
    "interrupted": "It was interrupted",
}
"""Why a search ended, in words."""

_ENDED = {"loss": "loss reached", "generations": "generations", "seconds": "time limit", "interrupted": "the user"}

_TYPESET, _NESTED = 300, 200
"""Nodes of a formula that is typeset, and how deep its elements nest: browsers keep to a depth of some hundreds, and
more could not be read."""

_DEPENDENCES, _MOST_DEPENDENCES = 9, 30
"""Charts of partial dependence that are shown at once, and that there are; those between are folded away."""


def report_html(
    result: ResultLike,
    dataset: Dataset,
    *,
    history: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any] | None = None,
    title: str = "Symbolic regression",
    target: str = "y",
) -> str:
    """What a search found, as a page to show to others.

    Parameters
    ----------
    result : Result
    dataset : Dataset
        The rows that predictions are compared with: those of the search, or others.
    history : sequence of mappings
        Lines of ``log.jsonl``, for the loss over time; without them there is no such chart.
    settings : mapping, optional
        What the search was told, by name; mappings within are groups.
    title : str
        Heading of the page.
    target : str
        What the target is called.

    Returns
    -------
    str
        HTML. Styles, script and drawings are part of it; it asks the network for nothing. The same arguments give
        the same text.

    Raises
    ------
    DataError
        If the data set lacks a feature of the chosen formula.
    """
    best = result.front[result.best_index]
    predicted = best.predict(columns_of(best.tree, dataset))
    fit = Fit.of(dataset.target, predicted)
    script, style = _own("script.js"), _own("style.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Nothing may be loaded, and no script but this very one may run.
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Element("meta", (("http-equiv", "Content-Security-Policy"), ("content", policy)), ()),
        element("meta", name_="viewport", content_="width=device-width, initial-scale=1"),
        element("title", title),
        verbatim("style", style),
    )
    main = element(
        "main",
        _header(result, best, dataset, title, target),
        _key_figures(result, best, dataset),
        _section("The search", _search(result, best, history)),
        _front_table(result),
        _section("How well it fits", _fit(fit, target)),
        _section("What each feature does", _dependence(best, dataset, target)),
        _section("Its structure", _tree(best)),
        _section("Settings and timing", _settings(result, settings)),
        element("footer", "Made with Shine. Constants in typeset formulas are rounded to six digits; point at one, or "
                          "copy the formula, for all of them."),
    )  # fmt: skip
    tip = element("div", id="tip", hidden="hidden", role="tooltip")
    body = element("body", main, tip, verbatim("script", script))
    return "<!DOCTYPE html>\n" + render(element("html", head, body, lang="en")) + "\n"


def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _section(title: str, content: Content) -> Content:
    return element("section", element("h2", title), content) if content else None


def _figure(figure: Figure) -> Element:
    notes = [element("span", note, class_="note") for note in figure.notes]
    words = element("figcaption", figure.caption, notes) if figure.caption or notes else None
    drawing: Content = figure.drawing
    if ("class", "tree") in figure.drawing.attributes:
        drawing = element("div", drawing, class_="scroll", tabindex="0")
    return element("figure", element("h3", figure.title), drawing, words, class_="card")


def _grid(figures: Sequence[Figure | None], columns: str = "two") -> Content:
    shown = [_figure(figure) for figure in figures if figure is not None]
    return element("div", shown, class_=f"grid-{columns}") if shown else None


def formula(tree: Tree, left: Content = None) -> Element:
    """A formula typeset, or as code where it is too large for that."""
    lines: list[Content] = []
    found = typeset(tree) if tree.size <= _TYPESET else ()
    if not found or max(depth(line.terms) for line in found) > _NESTED:
        return element("div", element("code", shortened(str(tree), 200)), class_="formula large")
    for line in found:
        head = left if line.name is None else math_element(name_element(line.name), element("mo", "="))
        # The line may break before each term, but not before the first thing on it.
        terms: Sequence[Content] = [part for term in (head, *line.terms) if term for part in (element("wbr"), term)][1:]
        lines.append(element("span", terms, class_="assigned") if tree.assignments else terms)
    return element("div", lines, class_="formula", role="math", aria_label=shortened(str(tree), 1000))


def _copy(identity: str, what: str) -> Element:
    return element("button", "Copy", type="button", class_="copy", data_copy=identity, aria_label=f"Copy {what}")


def _header(result: ResultLike, best: ModelLike, dataset: Dataset, title: str, target: str) -> Content:
    name = name_element(shortened(target, 20))
    # A hat is for a letter; over a word it would sit on one of its letters.
    hatted = element("mover", name, element("mo", "^")) if len(target) == 1 else name
    head = math_element(hatted, element("mo", "="))
    return [
        element("h1", title),
        element("p", _summary(result, best, dataset), class_="summary"),
        element(
            "section",
            element("h2", "The chosen formula", class_="badge", style="margin: 0"),
            formula(best.tree, head),
            element("div", element("code", best.expression, id="chosen"), _copy("chosen", "the chosen formula"),
                    class_="bar"),
            class_="card hero",
        ),
    ]  # fmt: skip


def _summary(result: ResultLike, best: ModelLike, dataset: Dataset) -> str:
    alone = len(result.front) == 1
    place = "The only formula" if alone else f"Chosen among {count(len(result.front), 'formula')}"
    if best.r2 is None or not best.r2 > 0:
        return f"{place} on the Pareto front."
    share = "all" if best.r2 == 1 else "more than 99.9 %" if best.r2 >= 0.9995 else f"{100 * best.r2:.1f} %"
    size = f"{count(best.tree.size, 'node')} and {len(used_features(best.tree))} of"
    features = count(len(dataset.features), "feature")
    return f"It explains {share} of the target's variance with {size} {features}. {place} on the Pareto front."


def _key_figures(result: ResultLike, best: ModelLike, dataset: Dataset) -> Element:
    used = used_features(best.tree)
    rate = f"{count(result.evaluations / result.seconds)} a second" if result.seconds > 0 else None
    weighted = "weighted" if dataset.weights is not None else None
    figures: list[tuple[str, str, str | None]] = [
        ("Loss", number(best.loss), None),
        ("R²", fraction(best.r2), None),
        ("Complexity", count(best.complexity), f"{count(best.tree.size, 'node')}, {count(len(used), 'feature')}"),
        ("Rows", count(dataset.n_rows), weighted),
        ("Features", count(len(dataset.features)), None),
        ("Evaluations", count(result.evaluations), rate),
        ("Time", duration(result.seconds), count(result.generations, "generation")),
        ("Ended by", _ENDED.get(result.stopped_by, result.stopped_by), f"seed {result.seed}"),
    ]
    items = [
        element("div", element("dt", name), element("dd", value, element("small", detail) if detail else None))
        for name, value, detail in figures
    ]
    return element("dl", items, class_="card figures-key")


def _search(result: ResultLike, best: ModelLike, history: Sequence[Mapping[str, Any]]) -> Content:
    over_time = history_figure(history, best)
    unknown = element("h3", "Loss over time"), element("p", "No loss was recorded.", class_="summary")
    second = element("div", unknown, class_="card") if over_time is None else _figure(over_time)
    return element("div", _figure(pareto_figure(result.front, result.best_index)), second, class_="grid-two")


def _front_table(result: ResultLike) -> Content:
    rows = [_front_row(model, position, position == result.best_index) for position, model in enumerate(result.front)]
    headings = [("Complexity", "number"), ("Loss", "number"), ("R²", "number"), ("Formula", None)]
    head = element("tr", [element("th", text, scope="col", class_=class_) for text, class_ in headings],
                   element("th", element("span", "Copy", class_="unseen"), scope="col", class_="action"))  # fmt: skip
    caption = "The best formula of each complexity that is better than all simpler ones; the chosen one is marked."
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", rows), class_="front"
    )
    card = element("div", element("div", table, class_="table-scroll"), class_="card plain")
    return _section("The Pareto front", card)


def _front_row(model: ModelLike, position: int, chosen: bool) -> Element:
    identity = f"code-{position}"
    code = element(
        "details", element("summary", "as code"), element("code", model.expression, id=identity), class_="code"
    )
    badge = element("span", "chosen", class_="badge") if chosen else None
    return element(
        "tr",
        element("td", count(model.complexity), class_="number", data_label="Complexity"),
        element("td", number(model.loss), class_="number", data_label="Loss"),
        element("td", fraction(model.r2), class_="number", data_label="R²"),
        element("td", badge, formula(model.tree), code, class_="formula-cell"),
        element("td", _copy(identity, f"the formula of complexity {model.complexity}"), class_="action"),
        id=f"formula-{position}",
        class_="chosen" if chosen else None,
    )


def _fit(fit: Fit, target: str) -> Content:
    figures = fit_figures(fit, shortened(target, 30))
    if figures:
        numbers = _table("Errors, every row counted once", fit_numbers(fit))
        return element("div", [_figure(figure) for figure in figures], numbers, class_="grid-two")
    return element("p", "No prediction is a finite number, so there is nothing to compare.", class_="card")


def _dependence(best: ModelLike, dataset: Dataset, target: str) -> Content:
    found = dependences(best, dataset)
    if not found:
        return element("p", "The chosen formula is a constant: it uses no feature.", class_="card")
    figures = dependence_figures(found[:_MOST_DEPENDENCES], target)
    # All of one width, however few there are.
    shown = _grid(figures[:_DEPENDENCES], "three")
    more, left = figures[_DEPENDENCES:], len(found) - len(figures)
    words = (
        "Blue: the mean prediction when the feature takes each value in turn and the others keep theirs (partial "
        "dependence). Grey: single rows; where they are not parallel, features interact. Marks on the axis: deciles."
    )
    words += f" The {count(left, 'feature')} of the smallest effect are not drawn." * bool(left)
    folded = None
    if more:
        summary = element("summary", f"{count(len(more), 'feature')} of smaller effect")
        folded = element("details", summary, _grid(more, "three"), class_="more")
    return [element("p", words, class_="summary", style="margin: -6px 0 14px; font-size: 0.84rem"), shown, folded]


def _tree(best: ModelLike) -> Content:
    figure = tree_figure(best.tree)
    if figure is not None:
        return _figure(figure)
    told = f"The formula has {count(best.tree.size, 'node')}; trees of more than {LARGEST} are not drawn."
    return element("p", told, class_="card")


def _settings(result: ResultLike, settings: Mapping[str, Any] | None) -> Content:
    timing: dict[str, Any] = {
        "Stopped because": _STOPPED.get(result.stopped_by, result.stopped_by),
        "Time": duration(result.seconds),
        "Generations": count(result.generations),
        "Evaluations": count(result.evaluations),
        "Evaluations a second": count(result.evaluations / result.seconds) if result.seconds > 0 else None,
        "Seed": result.seed,
    }
    tables = [_table("The run", timing)]
    tables += [_table(name, values) for name, values in _groups(settings or {}).items()]
    return element("div", tables, class_="columns")


def _groups(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings by group, groups within it by dotted names; what is not set is left out."""
    groups: dict[str, dict[str, Any]] = {"General": {}}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            groups[str(name).capitalize()] = dict(_dotted(value))
        else:
            groups["General"][str(name)] = value
    told = {name: {key: value for key, value in group.items() if _shown(value)} for name, group in groups.items()}
    return {name: group for name, group in told.items() if group}


def _table(title: str, values: Mapping[str, Any]) -> Element:
    rows = [
        element("tr", element("th", name, scope="row"), element("td", _shown(value))) for name, value in values.items()
    ]
    table = element("table", element("caption", title), element("tbody", rows), class_="settings")
    return element("div", table, class_="card plain")


def _dotted(group: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    stack = [("", group.items().__iter__())]
    while stack:
        prefix, items = stack[-1]
        for name, value in items:
            if isinstance(value, Mapping) and value:
                stack.append((f"{prefix}{name}.", value.items().__iter__()))
                break
            yield f"{prefix}{name}", value
        else:
            stack.pop()


def _shown(value: Any) -> str:
    """A setting as text, empty if it is not set."""
    if value is None or (isinstance(value, Sequence | Mapping) and not value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(_shown(item) for item in value)
    return str(value)
