"""Texts for the terminal: the progress of a search, and the Pareto front as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shine.lang.names import shortened
from shine.lang.presentation import for_people
from shine.lang.rounding import Precision
from shine.lang.wrapping import wrapped
from shine.search.figures import loss_text
from shine.search.front_table import Layout, text_table

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.gp.settings import StopSettings
    from shine.search.front import Result

LONGEST, DIGITS = 40, 4
"""Most characters of a formula in the progress bar, and significant digits of its constants."""

LAYOUT = Layout(
    line="{mark:1} {index:>5}  {complexity:>10}  {loss:>11}  {r2:>9}  ",
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


def progress_text(progress: Progress, stop: StopSettings | None) -> str:
    """Generation, best loss, evaluations per second, and the formula before linear scaling.

    The formula is last because terminals cut it.
    """
    most = "" if stop is None or stop.generations is None else f"/{stop.generations}"
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    best = len(progress.front) - 1
    formula = for_people(progress.front.tree(best), DIGITS).readable if best >= 0 else "-"
    told = f"generation {progress.generation}{most}, loss {loss_text(progress.best_loss)}, {rate:,.0f} evaluations/s"
    return f"{told}, {shortened(formula, LONGEST)}"


def share_over(progress: Progress, stop: StopSettings | None) -> float:
    """Share of the search that is over for certain, by its generations or its seconds; 0 if neither is limited."""
    if stop is None:
        return 0.0
    spent = ((progress.generation, stop.generations), (progress.seconds, stop.seconds))
    return min(max((done / most for done, most in spent if most), default=0.0), 1.0)


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
    table = text_table(rows, LAYOUT, width)
    return "\n".join([table, *(wrapped(f"chosen: {result.reason}", width, "    ") if result.reason else [])])
