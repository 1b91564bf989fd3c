"""The sections of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.certainty import (
    band_along,
    band_figure,
    constants_figure,
    dependence_figures,
    dependences,
)
from shine.formats.page.charts.fit import Fit, fit_figures, fit_numbers
from shine.formats.page.charts.frame import Figure
from shine.formats.page.charts.search import history_figure, pareto_figure
from shine.formats.page.charts.tree import LARGEST, tree_figure
from shine.formats.page.markup import Content, Element, breakable, element
from shine.formats.page.mathml import NARROW, WIDE, formula_lines
from shine.formats.page.mathml import math as math_element
from shine.formats.page.mathml.operators import ROUNDED, name_element
from shine.formats.page.subject import (
    ModelLike,
    ResultLike,
    UncertainLike,
    count,
    duration,
    elided,
    fraction,
    number,
    printed,
    shortened,
)
from shine.lang.forms.rounding import ALL_DIGITS, Precision, significant_digits
from shine.lang.presentation import presented


def section(title: str, content: Content) -> Content:
    """A section with a heading; nothing if it has no content."""
    return element("section", element("h2", title), content) if content else None


def figure_card(figure: Figure) -> Element:
    """A figure with its title, caption and notes."""
    notes = [element("span", note, class_="note") for note in figure.notes]
    words = element("figcaption", figure.caption, notes) if figure.caption or notes else None
    tree = ("class", "tree") in figure.drawing.attributes
    drawing = element("div", figure.drawing, class_="scroll", tabindex="0") if tree else figure.drawing
    return element("figure", element("h3", figure.title), drawing, words, class_="card")


def grid(figures: Sequence[Figure | None], columns: str = "two") -> Content:
    """Figures side by side; nothing if there is none."""
    shown = [figure_card(figure) for figure in figures if figure is not None]
    return element("div", shown, class_=f"grid-{columns}") if shown else None


def formula(model: ModelLike, precision: Precision, left: Content = None) -> Element:
    """A formula for wide and for narrow places, typeset; as code if it is too large."""
    tree, digits = presented(model.tree), significant_digits(precision, model.digits or ROUNDED) or ALL_DIGITS
    wide, narrow = (formula_lines(tree, model.headings, digits, left, room) for room in (WIDE, NARROW))
    if not wide:
        return element("div", element("code", breakable(tree.readable)), class_="formula large")
    both = wide if wide == narrow else [element("div", wide, class_="wide"), element("div", narrow, class_="narrow")]
    return element("div", both, class_="formula", role="math", aria_label=shortened(tree.readable, 1000))


def copy_button(identity: str, what: str) -> Element:
    """A button that copies the text of an element."""
    return element("button", "Copy", type="button", class_="copy", data_copy=identity, aria_label=f"Copy {what}")


def table(title: str, values: Mapping[str, Any]) -> Element:
    """A table of names and values."""
    rows = [
        element("tr", element("th", breakable(name), scope="row"), element("td", breakable(setting_text(value))))
        for name, value in values.items()
    ]
    table = element("table", element("caption", title), element("tbody", rows), class_="settings")
    return element("div", table, class_="card plain")


def data_table(
    headings: Sequence[tuple[Content, str | None]],
    rows: Sequence[Sequence[Content]],
    caption: Content = None,
    marks: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
) -> Element:
    """A table whose rows become blocks on narrow screens; `marks` are attributes of rows.

    Headings have the class of their cells: "number", "formula-cell", "action", or "row" for what a row is about.
    """
    lines = []
    for place, row in enumerate(rows):
        cells = []
        for (heading, of), cell in zip(headings, row, strict=True):
            name, told = ("th", {"scope": "row"}) if of == "row" else ("td", {"class_": of})
            label = {"data_label": heading} if of in ("number", None) else {}
            cells.append(element(name, cell, **told, **label))
        lines.append(element("tr", cells, **marks.get(place, {})))
    head = element("tr", [element("th", heading, scope="col", class_=of) for heading, of in headings])
    parts = caption and element("caption", caption), element("thead", head), element("tbody", lines)
    scroll = element("div", element("table", parts, class_="data"), class_="table-scroll")
    return element("div", scroll, class_="card plain")


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


_ENDINGS = {
    "loss": ("loss reached", "The target loss was reached"),
    "generations": ("generations", "All generations were bred"),
    "seconds": ("time limit", "The time was up"),
    "stagnation": ("no progress", "Nothing had improved for long"),
    "interrupted": ("the user", "It was interrupted"),
    "callback": ("the user", "The user, or a function of theirs, ended it"),
}
"""Short and long words for the end of a search; a running one has none."""


def _ending(result: ResultLike) -> tuple[str, str]:
    return _ENDINGS.get(result.stopped_by, (result.stopped_by or "nothing yet", result.stopped_by))


def header(
    result: ResultLike, best: ModelLike, dataset: Dataset, title: str, target: str, precision: Precision
) -> Content:
    """The title, a sentence about the result, and the chosen formula."""
    bare = target.partition(" [")[0]
    name = name_element(bare)
    # Only a letter gets a hat; over a word it would sit on one of the letters.
    hatted = element("mover", name, element("mo", "^")) if len(bare) == 1 else name
    head = math_element(hatted, element("mo", "="))
    badge = "The chosen formula" if result.stopped_by else "The best formula so far"
    code = element("code", breakable(best.expression), id="chosen"), copy_button("chosen", "the chosen formula")
    hero = [
        element("h2", badge, class_="badge"),
        formula(best, precision, head),
        element("div", code, class_="bar"),
        _renamed(best),
        element("p", f"Why: {result.reason}.", class_="summary") if result.reason else None,
    ]
    summary = element("p", _summary(result, best, dataset), class_="summary")
    return [element("h1", breakable(title)), summary, element("section", hero, class_="card hero")]


def _renamed(best: ModelLike) -> Element | None:
    """The headings of columns that have other names in code."""
    headings = {name: best.headings.get(name, name) for name in best.tree.used_parameters}
    pairs = [(name, heading) for name, heading in headings.items() if name != heading]
    words: list[Content] = []
    for position, (name, heading) in enumerate(pairs):
        words += [", " * (position > 0), element("code", breakable(name)), f" is “{heading}”"]
    return element("p", "In code, ", words, ".", class_="summary") if pairs else None


def _summary(result: ResultLike, best: ModelLike, dataset: Dataset) -> str:
    many = len(result.front)
    place = "The only formula" if many == 1 else f"Chosen among {count(many, 'formula')}"
    if best.r2 is None or not best.r2 > 0:
        return f"{place} on the Pareto front."
    percent = "more than 99.9" if best.r2 >= 0.9995 else f"{100 * best.r2:.1f}"
    share = "all" if best.r2 == 1 else f"{percent}\N{NO-BREAK SPACE}%"
    size = f"{count(best.tree.size, 'node')} and {len(best.tree.used_parameters)} of"
    features, left = count(len(dataset.features), "feature"), (1 - best.r2) * float(dataset.target.var())
    # Other losses than squared errors leave a deviance.
    what = "variance" if best.r2 == 1 or math.isclose(best.loss, left, rel_tol=1e-3) else "deviance"
    return f"It explains {share} of the target's {what} with {size} {features}. {place} on the Pareto front."


def key_figures(result: ResultLike, best: ModelLike, dataset: Dataset) -> Element:
    """Loss, size, rows and time at a glance."""
    used = best.tree.used_parameters
    rate = f"{count(result.evaluations / result.seconds)} a second" if result.seconds > 0 else None
    rows, detail = dataset.n_rows, "weighted" if dataset.weights is not None else None
    if dataset.all_rows is not None:
        rows, detail = dataset.all_rows.n_rows, f"{count(rows)} of them drawn"
    figures: list[tuple[str, str, str | None]] = [
        ("Loss", number(best.loss), None if best.noise == "absolute" else f"weighted: noise {best.noise}"),
        ("R²", fraction(best.r2), None),
        ("Complexity", count(best.complexity), f"{count(best.tree.size, 'node')}, {count(len(used), 'feature')}"),
        ("Rows", count(rows), detail),
        ("Features", count(len(dataset.features)), None),
        ("Evaluations", count(result.evaluations), rate),
        ("Time", duration(result.seconds), count(result.generations, "generation")),
        ("Ended by", _ending(result)[0], f"seed {result.seed}"),
    ]
    items = [
        element("div", element("dt", name), element("dd", value, element("small", detail) if detail else None))
        for name, value, detail in figures
    ]
    return element("dl", items, class_="card figures-key")


_DEPENDENCES, _MOST_DEPENDENCES = 9, 30
"""Charts of partial dependence shown unfolded, and the most that are drawn."""


def fit_charts(fit: Fit, target: str) -> Content:
    """Charts of predictions and residuals."""
    figures = fit_figures(fit, elided(target))
    if figures:
        numbers = table("Errors, every row counted once", fit_numbers(fit))
        return element("div", [figure_card(figure) for figure in figures], numbers, class_="grid-two")
    return element("p", "No prediction is a finite number, so there is nothing to compare.", class_="card")


def _with_unit(found: Any, best: ModelLike, units: Mapping[str, str]) -> Any:
    """What is drawn along a feature, whose name has its unit."""
    named = {best.headings.get(name, name): unit for name, unit in units.items()}
    unit = named.get(found.feature, "1")
    return found if unit == "1" else replace(found, feature=f"{found.feature} [{unit}]")


def dependence_charts(best: ModelLike, dataset: Dataset, target: str, units: Mapping[str, str]) -> Content:
    """Charts of predictions over each feature."""
    found = [_with_unit(each, best, units) for each in dependences(best, dataset)]
    if not found:
        return element("p", "The chosen formula is a constant: it uses no feature.", class_="card")
    figures = dependence_figures(found[:_MOST_DEPENDENCES], target)
    # All charts have one width, however few they are.
    shown = grid(figures[:_DEPENDENCES], "three")
    more, left = figures[_DEPENDENCES:], len(found) - len(figures)
    words = (
        "Blue: the mean prediction when the feature takes each value in turn and the others keep theirs (partial "
        "dependence). Grey: single rows; where they are not parallel, features interact. Marks on the axis: deciles."
    )
    words += f" The {count(left, 'feature')} of the smallest effect are not drawn." * bool(left)
    summary = element("summary", f"{count(len(more), 'feature')} of smaller effect")
    folded = element("details", summary, grid(more, "three"), class_="more") if more else None
    return [element("p", words, class_="summary", style="margin: -6px 0 14px; font-size: 0.84rem"), shown, folded]


def tree_chart(best: ModelLike) -> Content:
    """The tree of the formula."""
    figure = tree_figure(best.tree, best.headings)
    if figure is not None:
        return figure_card(figure)
    told = f"The formula has {count(best.tree.size, 'node')}; trees of more than {LARGEST} are not drawn."
    return element("p", told, class_="card")


def certainty(
    best: ModelLike, dataset: Dataset, target: str, told: Sequence[str] = (), units: Mapping[str, str] | None = None
) -> Content:
    """Sentences about what the rows do not tell, the constants, and the bands; nothing if the formula does not know the
    rows that it was fitted to."""
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
        # Most features that bands are drawn along, those of the largest effect.
        features = [found.feature for found in dependences(best, dataset) if found.feature in names][:3]
        found = [_with_unit(band_along(best, dataset, names[feature]), best, units or {}) for feature in features]
        figures = [band_figure(band, target, f"band-{index}") for index, band in enumerate(found)]
        bands = [grid([constants_figure(rows), *figures])]
    words = [element("p", f"{text[0].upper()}{text[1:]}.", class_="summary") for text in told if text]
    return [*words, _table(summary), *bands]


def _table(summary: Any) -> Content:
    """The table of the constants."""
    caption = element("code", breakable(summary.formula)), element("br"), printed(f"{summary.heading}.")
    headings = [(text, "number" if place else "row") for place, text in enumerate(summary.headings)]
    notes = [element("span", printed(f"{note[0].upper()}{note[1:]}."), class_="note") for note in summary.notes]
    words = element("p", notes, class_="summary told") if notes else None
    return [data_table(headings, [[name, *map(printed, row)] for name, *row in summary.cells()], caption), words]


def search_charts(result: ResultLike, best: ModelLike, history: Sequence[Mapping[str, Any]]) -> Content:
    """The Pareto front as a chart, and the loss over time."""
    over_time = history_figure(history, best, refined=bool(result.stopped_by))
    unknown = element("h3", "Loss over time"), element("p", "No loss was recorded.", class_="summary")
    second = element("div", unknown, class_="card") if over_time is None else figure_card(over_time)
    return element("div", figure_card(pareto_figure(result.front, result.best_index)), second, class_="grid-two")


def front_table(result: ResultLike, precision: Precision) -> Content:
    """A table of the formulas on the Pareto front."""
    front, best = result.front, result.best_index
    headings: list[tuple[Content, str | None]] = [(text, "number") for text in ("#", "Complexity", "Loss", "R²")]
    rows, marks = [], {}
    for position, model in enumerate(front):
        marks[position] = {"id": f"formula-{position}"} | ({"class_": "chosen"} if position == best else {})
        code = element("code", breakable(model.expression), id=f"code-{position}")
        badge = element("span", "chosen", class_="badge") if position == best else None
        rows.append((
            str(position), count(model.complexity), number(model.loss), fraction(model.r2),
            [badge, formula(model, precision), element("details", element("summary", "as code"), code, class_="code")],
            copy_button(f"code-{position}", f"the formula of complexity {model.complexity}"),
        ))  # fmt: skip
    caption = "The best formula of each complexity that is better than all simpler ones; the chosen one is marked."
    headings += [("Formula", "formula-cell"), (element("span", "Copy", class_="unseen"), "action")]
    return section("The Pareto front", data_table(headings, rows, caption, marks))


def settings_tables(
    result: ResultLike, settings: Mapping[str, Any] | None, history: Sequence[Mapping[str, Any]] = ()
) -> Content:
    """Tables of the timing and of the settings; the history says which formulas a person put in."""
    timing: dict[str, Any] = {
        "Stopped because": _ending(result)[1],
        "Time": duration(result.seconds),
        "Generations": count(result.generations),
        "Evaluations": count(result.evaluations),
        "Evaluations a second": count(result.evaluations / result.seconds) if result.seconds > 0 else None,
        "Seed": result.seed,
    }
    put_in = {
        f"After generation {line.get('generation')}": ", ".join(map(str, line["put_in"]))
        for line in history
        if isinstance(line.get("put_in"), list)
    }
    tables = [table("The run", timing), *[table("Formulas put in by a person", put_in)] * bool(put_in)]
    return element("div", tables, groups_of_settings(settings or {}), class_="columns")


def groups_of_settings(settings: Mapping[str, Any]) -> list[Element]:
    """A table of each group; nested groups get dotted names, and unset settings are left out."""
    groups = {"General": {str(key): value for key, value in settings.items() if not isinstance(value, Mapping)}}
    groups |= {str(key).capitalize(): dict(_dotted(it)) for key, it in settings.items() if isinstance(it, Mapping)}
    told = {name: {key: value for key, value in group.items() if setting_text(value)} for name, group in groups.items()}
    return [table(name, group) for name, group in told.items() if group]


def _dotted(group: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in group.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
