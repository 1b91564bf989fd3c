"""Displays of fitted estimators: as text, in notebooks, and as a table of their formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shine.base.errors import ExportError

if TYPE_CHECKING:
    from shine.search.models.front import Front


class Equations(Mapping[str, list[Any]]):
    """The columns of a front by name, if pandas is not installed.

    Parameters
    ----------
    front : Front
    """

    def __init__(self, front: Front) -> None:
        self._columns, self._text = front.columns(), repr(front)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return self._text


def equations(front: Front) -> Any:
    """A front as a DataFrame, or as `Equations` if pandas is not installed."""
    try:
        return front.to_frame()
    except ExportError:
        return Equations(front)


def fitted_text(name: str, fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The tables of an estimator's fronts, each under its title."""
    parts = [] if fronts else [f"{name}.equations_ = []"]
    for front, title in zip(fronts, titles, strict=True):
        heading = f"{name}.equations_{f' of {title}' if title else ''} = ["
        parts.append("\n".join((heading, repr(front), "]")))
    return "\n".join(parts)


def fitted_latex(fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The chosen formulas, one per line, for notebooks that typeset LaTeX."""
    from shine.search.models.notebook import latex_text

    if not fronts:
        return r"$$\text{no component}$$"
    lines = [
        (rf"\text{{{latex_text(title)}}} = " if title else "") + front.best.latex()
        for front, title in zip(fronts, titles, strict=True)
    ]
    if len(lines) == 1:
        return f"$${lines[0]}$$"
    return r"$$\begin{gathered}" + r" \\ ".join(lines) + r"\end{gathered}$$"


def fitted_html(name: str, fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The chosen formula of each front, typeset, above the table of the front."""
    from shine.formats.page.markup import element
    from shine.search.models.notebook import page_part

    parts = [page_part(element("h4", name))]
    for front, title in zip(fronts, titles, strict=True):
        heading = page_part(element("h5", title)) if title else ""
        parts += [heading, front.best._repr_html_(), front._repr_html_()]
    return f"<div>{''.join(parts)}</div>"
