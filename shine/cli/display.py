"""What the terminal shows: the progress bar's text, and the Pareto front as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shine.runs import ResultRecord

if TYPE_CHECKING:
    from shine.gp.evolution import Progress

LONGEST = 40
"""Characters of a formula in the progress bar."""


def shortened(text: str, length: int) -> str:
    """The beginning of a text, marked if it goes on."""
    return text if len(text) <= length else text[: max(length - 3, 1)] + "..."


def progress_text(progress: Progress) -> str:
    """Best loss, evaluations a second, and last, where a narrow terminal cuts, the formula before linear scaling."""
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    formula = str(progress.front.tree(len(progress.front) - 1)) if len(progress.front) else "-"
    return f"loss {progress.best_loss:.4g}, {rate:,.0f} evaluations/s, {shortened(formula, LONGEST)}"


def front_table(record: ResultRecord, width: int | None = None) -> str:
    """The front, one formula a line, the simplest first; the chosen one is marked.

    Parameters
    ----------
    record : ResultRecord
    width : int, optional
        Characters a line may have; formulas are shortened to fit. They are printed in full without it.
    """
    lines = [f"  {'index':>5}  {'complexity':>10}  {'loss':>11}  {'r2':>9}  formula"]
    for index, model in enumerate(record.front):
        mark = "*" if model == record.best else " "
        r2 = "" if model.r2 is None else f"{round(model.r2, 6) + 0.0:.6f}"  # + 0.0 turns -0.0 into 0.0
        head = f"{mark} {index:>5}  {model.complexity:>10}  {model.loss:>11.5g}  {r2:>9}  "
        formula = model.expression if width is None else shortened(model.expression, max(width - len(head), 20))
        lines.append(head + formula)
    return "\n".join(lines)
