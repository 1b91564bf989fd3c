"""Texts for the terminal: the progress of a search, and the Pareto front as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shine.runs import ResultRecord
from shine.search.front_table import Layout, shortened, text_table

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.gp.settings import StopSettings

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


def progress_text(progress: Progress, stop: StopSettings | None) -> str:
    """Generation, best loss, evaluations per second, and the formula before linear scaling.

    The formula is last because terminals cut it.
    """
    most = "" if stop is None or stop.generations is None else f"/{stop.generations}"
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    formula = str(progress.front.tree(len(progress.front) - 1)) if len(progress.front) else "-"
    told = f"generation {progress.generation}{most}, loss {progress.best_loss:.4g}, {rate:,.0f} evaluations/s"
    return f"{told}, {shortened(formula, LONGEST)}"


def share_over(progress: Progress, stop: StopSettings | None) -> float:
    """Share of the search that is over for certain, by its generations or its seconds; 0 if neither is limited."""
    if stop is None:
        return 0.0
    spent = ((progress.generation, stop.generations), (progress.seconds, stop.seconds))
    return min(max((done / most for done, most in spent if most), default=0.0), 1.0)


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
