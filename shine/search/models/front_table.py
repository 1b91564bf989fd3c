"""A Pareto front as a table of text, as columns, as a data frame (see `shine.search.models.notebook` for notebooks)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shine.base.errors import ExportError
from shine.lang import wrapping
from shine.search.models.figures import loss_name, loss_text, noise_text

Row = Mapping[str, Any]
"""One formula: complexity, loss, score, r2, expression, best (see `shine.search.models.front.Front.rows`), and
`formula`, its text for people."""

LEAST_ROOM = 24
"""Least columns for a formula beside its figures; in a narrower window it stands below them."""

INDENT = "    "
"""Begins the lines of a formula below its figures."""


@dataclass(frozen=True)
class Layout:
    """The layout of a text table.

    Parameters
    ----------
    line : str
        Template of a line up to the formula, with the fields ``mark``, ``index`` and the keys of `cells`.
    loss_width : int
        Columns of the loss, if its heading needs no more: ``loss_width`` in the template.
    mark : str
        Stands before the recommended formula.
    index, formula : str
        Headings of the position and of the formula.
    cells : mapping of str to callable
        Makes the text of a value, by the value's key in the row; the key is also the heading.
    """

    line: str
    loss_width: int
    mark: str
    index: str
    formula: str
    cells: Mapping[str, Callable[[Any], str]]


SUMMARY = Layout(
    line="{mark:3} {index:>3} {complexity:>10}  {loss:<{loss_width}}  {score:<9}  ",
    loss_width=10,
    mark=">>>",
    index="",
    formula="equation",
    cells={"complexity": str, "loss": loss_text, "score": "{:.3g}".format},
)
"""Layout of a front in Python."""


def text_table(rows: Iterable[Row], layout: Layout, width: int | None = None, noise: str = "absolute") -> str:
    """A front as text, one formula a line, the recommended formula marked.

    Parameters
    ----------
    rows : iterable of mapping
    layout : Layout
    width : int, optional
        Most columns of a line: longer formulas go on in further lines. By default each formula is one line.
    noise : str
        Model of the noise, which a line below the table tells if it weights the losses.
    """
    headings = {name: name for name in layout.cells} | {"loss": loss_name(noise)}
    loss_width = max(layout.loss_width, len(headings["loss"]))
    header = layout.line.format(mark="", index=layout.index, loss_width=loss_width, **headings)
    fits_beside = width is None or width - len(header) >= LEAST_ROOM
    lines = [header + layout.formula] if fits_beside else []
    for index, row in enumerate(rows):
        cells = {name: text(row[name]) for name, text in layout.cells.items()}
        mark = layout.mark if row["best"] else ""
        if fits_beside:
            begin = layout.line.format(mark=mark, index=index, loss_width=loss_width, **cells)
            lines += _aligned(begin, row["formula"], width)
        else:
            figures = ", ".join(f"{headings[name]} {text}" for name, text in cells.items() if text)
            lines += wrapping.wrapped(f"{mark} {index}: {figures}".lstrip(), width, INDENT)
            lines += wrapping.wrapped(INDENT + row["formula"], width, INDENT)
    if told := noise_text(noise):
        lines += wrapping.wrapped(told, width, INDENT)
    return "\n".join(lines)


def _aligned(begin: str, formula: str, width: int | None) -> list[str]:
    """The lines of a formula beside its figures; its further lines stand below the first."""
    room = None if width is None else max(width - len(begin), LEAST_ROOM)
    first, *further = wrapping.wrapped(formula, room)
    return [begin + first, *(" " * len(begin) + line for line in further)]


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """A front by columns: complexity, loss, score, expression, which is exact, and equation, for people."""
    keys = {
        "complexity": "complexity", "loss": "loss", "score": "score", "expression": "expression", "equation": "formula",
    }  # fmt: skip
    return {heading: [row[key] for row in rows] for heading, key in keys.items()}


def data_frame(rows: Sequence[Row]) -> Any:
    """A front as a pandas DataFrame of its `columns`.

    Raises
    ------
    ExportError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise ExportError("a DataFrame needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns(rows))
