"""The Pareto front as a table for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shine.lang.forms.rounding import Precision
from shine.lang.wrapping import wrapped
from shine.search.models.front_table import Layout, text_table

if TYPE_CHECKING:
    from shine.search.models.result import Result

LAYOUT = Layout(
    line="{mark:1} {index:>5}  {complexity:>10}  {loss:>{loss_width}}  {r2:>9}  ",
    loss_width=11,
    mark="*",
    index="index",
    formula="formula",
    cells={
        "complexity": str,
        "loss": "{:.5g}".format,
        "r2": lambda r2: f"{round(r2, 6) + 0.0:.6f}" if math.isfinite(r2) else "",  # + 0.0 turns -0.0 into 0.0
    },
)
"""Layout of a front in the terminal."""


def front_table(result: Result, width: int | None = None, precision: Precision = None) -> str:
    """The front, one formula per line, the simplest first; the chosen one is marked, with the reason.

    Parameters
    ----------
    result : Result
    width : int, optional
        Most columns of a line; longer formulas go on in further lines. By default each is one line.
    precision : int, "exact" or None
        Significant digits of constants, or all; by default those that the data support.
    """
    rows = (
        {**row, "formula": model.formula(precision)} for row, model in zip(result.rows(), result.front, strict=True)
    )
    table = text_table(rows, LAYOUT, width, result.front.noise)
    return "\n".join([table, *(wrapped(f"chosen: {result.reason}", width, "    ") if result.reason else [])])
