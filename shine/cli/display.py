"""Texts for the terminal: the progress of a search, and the Pareto front as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shine.runs import ResultRecord
from shine.search.front_table import Layout, shortened, text_table

if TYPE_CHECKING:
    from shine.gp.evolution import Progress

LONGEST = 40
"""Characters of a formula in the progress bar."""

LAYOUT = Layout(
    line="{mark:1} {index:>5}  {complexity:>10}  {loss:>11}  {r2:>9}  ",
    mark="*",
    index="index",
    formula="formula",
    cells={
        "complexity": str,
        "loss": "{:.5g}".format,
        "r2": lambda r2: "" if r2 is None else f"{round(r2, 6) + 0.0:.6f}",  # + 0.0 turns -0.0 into 0.0
    },
)
"""Layout of a front in the terminal."""


def progress_text(progress: Progress) -> str:
    """Best loss, evaluations per second, and the formula before linear scaling; it is last because terminals cut it."""
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    formula = str(progress.front.tree(len(progress.front) - 1)) if len(progress.front) else "-"
    return f"loss {progress.best_loss:.4g}, {rate:,.0f} evaluations/s, {shortened(formula, LONGEST)}"


def front_table(record: ResultRecord, width: int | None = None) -> str:
    """The front, one formula per line, the simplest first; the chosen one is marked, with the reason.

    Parameters
    ----------
    record : ResultRecord
    width : int, optional
        Most characters of a line; formulas are shortened to fit. By default they are printed in full.
    """
    rows = ({**model.model_dump(), "best": model == record.best} for model in record.front)
    table = text_table(rows, LAYOUT, width=width)
    return f"{table}\nchosen: {record.reason}" if record.reason else table
