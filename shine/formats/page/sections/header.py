"""The top of the page: the chosen formula and the key figures."""

from __future__ import annotations

from shine.data.datasets.dataset import Dataset
from shine.formats.page.markup import Content, Element, element
from shine.formats.page.mathml import math as math_element
from shine.formats.page.mathml.symbols import name_element
from shine.formats.page.sections.parts import copy_button, formula
from shine.formats.page.subject import ModelLike, ResultLike
from shine.formats.page.wording import count, duration, fraction, number, shortened
from shine.lang.forms.rounding import Precision

_LONGEST = 80
"""Most characters shown of a heading."""

_ENDED = {
    "loss": "loss reached",
    "generations": "generations",
    "seconds": "time limit",
    "stagnation": "no progress",
    "interrupted": "the user",
    "callback": "the user",
}
"""Why a search ended; one that still runs has no reason yet."""


def header(
    result: ResultLike, best: ModelLike, dataset: Dataset, title: str, target: str, precision: Precision
) -> Content:
    """The title, a sentence about the result, and the chosen formula."""
    name = name_element(shortened(target, 20))
    # Only a letter gets a hat; over a word it would sit on one of the letters.
    hatted = element("mover", name, element("mo", "^")) if len(target) == 1 else name
    head = math_element(hatted, element("mo", "="))
    badge = "The chosen formula" if result.stopped_by else "The best formula so far"
    return [
        element("h1", title),
        element("p", _summary(result, best, dataset), class_="summary"),
        element(
            "section",
            element("h2", badge, class_="badge", style="margin: 0"),
            formula(best, precision, head),
            element("div", element("code", best.expression, id="chosen"), copy_button("chosen", "the chosen formula"),
                    class_="bar"),
            _renamed(best),
            element("p", f"Why: {result.reason}.", class_="summary") if result.reason else None,
            class_="card hero",
        ),
    ]  # fmt: skip


def _renamed(best: ModelLike) -> Element | None:
    """The headings of columns that have other names in code."""
    headings = {name: best.headings.get(name, name) for name in best.tree.used_parameters}
    pairs = [(name, heading) for name, heading in headings.items() if name != heading]
    words: list[Content] = []
    for position, (name, heading) in enumerate(pairs):
        words += [", " * (position > 0), element("code", name), f" is “{shortened(heading, _LONGEST)}”"]
    return element("p", "In code, ", words, ".", class_="summary") if pairs else None


def _summary(result: ResultLike, best: ModelLike, dataset: Dataset) -> str:
    alone = len(result.front) == 1
    place = "The only formula" if alone else f"Chosen among {count(len(result.front), 'formula')}"
    if best.r2 is None or not best.r2 > 0:
        return f"{place} on the Pareto front."
    share = "all" if best.r2 == 1 else "more than 99.9 %" if best.r2 >= 0.9995 else f"{100 * best.r2:.1f} %"
    size = f"{count(best.tree.size, 'node')} and {len(best.tree.used_parameters)} of"
    features = count(len(dataset.features), "feature")
    return f"It explains {share} of the target's variance with {size} {features}. {place} on the Pareto front."


def key_figures(result: ResultLike, best: ModelLike, dataset: Dataset) -> Element:
    """Loss, size, rows and time at a glance."""
    used = best.tree.used_parameters
    rate = f"{count(result.evaluations / result.seconds)} a second" if result.seconds > 0 else None
    rows, detail = dataset.n_rows, "weighted" if dataset.weights is not None else None
    if dataset.whole is not None:
        rows, detail = dataset.whole.n_rows, f"{count(rows)} of them drawn"
    figures: list[tuple[str, str, str | None]] = [
        ("Loss", number(best.loss), None if best.noise == "absolute" else f"weighted: noise {best.noise}"),
        ("R²", fraction(best.r2), None),
        ("Complexity", count(best.complexity), f"{count(best.tree.size, 'node')}, {count(len(used), 'feature')}"),
        ("Rows", count(rows), detail),
        ("Features", count(len(dataset.features)), None),
        ("Evaluations", count(result.evaluations), rate),
        ("Time", duration(result.seconds), count(result.generations, "generation")),
        ("Ended by", _ENDED.get(result.stopped_by, result.stopped_by or "nothing yet"), f"seed {result.seed}"),
    ]
    items = [
        element("div", element("dt", name), element("dd", value, element("small", detail) if detail else None))
        for name, value, detail in figures
    ]
    return element("dl", items, class_="card figures-key")
