"""A Pareto front as a table: as text, as HTML, as columns, as a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from shine.errors import ExportError

Row = Mapping[str, Any]
"""One formula: complexity, loss, score, r2, expression, best (see `shine.search.front.Front.rows`)."""

LONGEST = 100
"""Most characters of a formula in a table that Python or a notebook shows; longer formulas are cut."""

SHORTEST = 20
"""Least room for a formula in a line, even if the line becomes too wide."""


@dataclass(frozen=True)
class Layout:
    """The layout of a text table.

    Parameters
    ----------
    line : str
        Template of a line up to the formula, with the fields ``mark``, ``index`` and the keys of `cells`.
    mark : str
        Stands before the recommended formula.
    index, formula : str
        Headings of the position and of the formula.
    cells : mapping of str to callable
        Makes the text of a value, by the value's key in the row; the key is also the heading.
    """

    line: str
    mark: str
    index: str
    formula: str
    cells: Mapping[str, Callable[[Any], str]]


SUMMARY = Layout(
    line="{mark:3} {index:>3} {complexity:>10}  {loss:<10}  {score:<9}  ",
    mark=">>>",
    index="",
    formula="equation",
    cells={"complexity": str, "loss": "{:.4g}".format, "score": "{:.3g}".format},
)
"""Layout of a front in Python."""


def text_table(rows: Iterable[Row], layout: Layout, longest: int | None = None, width: int | None = None) -> str:
    """A front as text, one formula a line, the recommended formula marked.

    Parameters
    ----------
    rows : iterable of mapping
    layout : Layout
    longest : int, optional
        Most characters of a formula.
    width : int, optional
        Most characters of a line.
    """
    headings = {name: name for name in layout.cells}
    lines = [layout.line.format(mark="", index=layout.index, **headings) + layout.formula]
    for index, row in enumerate(rows):
        cells = {name: text(row[name]) for name, text in layout.cells.items()}
        begin = layout.line.format(mark=layout.mark if row["best"] else "", index=index, **cells)
        room = longest if width is None else max(width - len(begin), SHORTEST)
        lines.append(begin + shortened(row["expression"], room))
    return "\n".join(lines)


def shortened(text: str, length: int | None) -> str:
    """A text, cut to a length and marked with dots if it is longer; None for no limit."""
    return text if length is None or len(text) <= length else text[: max(length - 3, 1)] + "..."


def html_table(rows: Iterable[Row]) -> str:
    """A front as a table for notebooks, the recommended formula marked."""
    header = "".join(f"<th>{name}</th>" for name in ("", "complexity", "loss", "score", "equation"))
    body = []
    for index, row in enumerate(rows):
        style = ' style="font-weight: bold; background: rgba(90, 140, 255, 0.15)"' if row["best"] else ""
        cells = (
            f"<td>{'&#9654; ' if row['best'] else ''}{index}</td>",
            f"<td>{row['complexity']}</td><td>{row['loss']:.4g}</td><td>{row['score']:.3g}</td>",
            f'<td style="text-align: left"><code>{escape(shortened(row["expression"], LONGEST))}</code></td>',
        )
        body.append(f"<tr{style}>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """A front by columns: complexity, loss, score, equation."""
    keys = {"complexity": "complexity", "loss": "loss", "score": "score", "equation": "expression"}
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
