"""The figures of formulas as people read them, and fronts as tables of text, as columns, as data frames."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shine.base.errors import MissingExtraError
from shine.lang import wrapping

_LEAST_DECIMALS, _MOST_DECIMALS = 4, 12
"""Decimals of a coefficient of determination: so many that two figures tell how far it is from 1."""


def loss_text(loss: float) -> str:
    """A loss with four significant digits."""
    return f"{loss:.4g}"


def r2_text(r2: float) -> str:
    """A coefficient of determination; close to 1 with as many nines as it has.

    Examples
    --------
    >>> r2_text(0.87251), r2_text(0.99999321), r2_text(1.0), r2_text(-0.25)
    ('0.8725', '0.9999932', '1', '-0.25')
    """
    if not math.isfinite(r2):
        return str(r2)
    lack = 1 - r2
    if lack <= 10.0**-_MOST_DECIMALS:
        return "1"
    decimals = min(max(1 - math.floor(math.log10(lack)), _LEAST_DECIMALS), _MOST_DECIMALS)
    # + 0.0 turns -0.0 into 0.0.
    return f"{round(r2, decimals) + 0.0:.10g}" if decimals == _LEAST_DECIMALS else f"{r2:.{decimals}f}".rstrip("0")


WEIGHTED = {
    "relative": "relative to the target",
    "log": "of the target's logarithm",
    "counts": "relative to the root of the target",
    "sigma": "relative to sigma",
}
"""Errors that losses and R2 count, under the models of the noise that weight the rows."""


def loss_name(noise: str) -> str:
    """Name of a loss under a model of the noise: it is no mean squared error if rows have weights."""
    return "weighted loss" if noise in WEIGHTED else "loss"


def noise_text(noise: str) -> str:
    """Note on a model of the noise; empty if it does not weight the rows."""
    return f"noise: {noise}; loss and r2 count errors {WEIGHTED[noise]}" if noise in WEIGHTED else ""


def figures_text(loss: float, r2: float, complexity: int, noise: str = "absolute") -> str:
    """Loss, R2 if it is known, and complexity, as a line.

    Examples
    --------
    >>> figures_text(0.00232, 0.99998, 11)
    'loss 0.00232, R2 0.99998, complexity 11'
    """
    known = [f"R2 {r2_text(r2)}"] if math.isfinite(r2) else []
    return ", ".join([f"{loss_name(noise)} {loss_text(loss)}", *known, f"complexity {complexity}"])


def screen_width() -> int | None:
    """Columns of the terminal that standard output is shown on; None for a file, a pipe or a notebook.

    Only a screen gets wrapped lines: programs search files, and notebooks wrap by themselves.
    """
    is_screen = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns or None if is_screen else None


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
    """A front as a pandas DataFrame of its `columns`; a `MissingExtraError` if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("a DataFrame", "pandas", "pandas") from None
    return pandas.DataFrame(columns(rows))
