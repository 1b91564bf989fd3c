"""The chosen formula: how well it fits, what each feature does, its tree."""

from __future__ import annotations

from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.dependence import dependence_figures, dependences
from shine.formats.page.charts.fit import Fit, fit_figures, fit_numbers
from shine.formats.page.charts.tree import LARGEST, tree_figure
from shine.formats.page.markup import Content, element
from shine.formats.page.sections.parts import figure_card, grid, table
from shine.formats.page.subject import ModelLike
from shine.formats.page.wording import count, shortened

_DEPENDENCES, _MOST_DEPENDENCES = 9, 30
"""Charts of partial dependence shown unfolded, and the most that are drawn."""


def fit_charts(fit: Fit, target: str) -> Content:
    """How well the formula fits the rows."""
    figures = fit_figures(fit, shortened(target, 30))
    if figures:
        numbers = table("Errors, every row counted once", fit_numbers(fit))
        return element("div", [figure_card(figure) for figure in figures], numbers, class_="grid-two")
    return element("p", "No prediction is a finite number, so there is nothing to compare.", class_="card")


def dependence_charts(best: ModelLike, dataset: Dataset, target: str) -> Content:
    """How the formula depends on each feature."""
    found = dependences(best, dataset)
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
    folded = None
    if more:
        summary = element("summary", f"{count(len(more), 'feature')} of smaller effect")
        folded = element("details", summary, grid(more, "three"), class_="more")
    return [element("p", words, class_="summary", style="margin: -6px 0 14px; font-size: 0.84rem"), shown, folded]


def tree_chart(best: ModelLike) -> Content:
    """The tree of the formula."""
    figure = tree_figure(best.tree, best.headings)
    if figure is not None:
        return figure_card(figure)
    told = f"The formula has {count(best.tree.size, 'node')}; trees of more than {LARGEST} are not drawn."
    return element("p", told, class_="card")
