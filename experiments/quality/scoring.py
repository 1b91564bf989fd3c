"""Scores the two formulas of an engine: errors, sizes, and whether they are the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quality.engines import Found
from quality.formulas import Formula, parse_formula
from quality.problems import Problem, Split
from quality.recovery import judge

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """The scores of one formula.

    Parameters
    ----------
    recovered : str
        "factor" or "difference" (see `quality.recovery.Verdict`) if it is the true formula, otherwise "no" or
        "undecided"; empty where no truth is known.
    r2_train, r2_test : float
        Coefficients of determination; minus infinity if a prediction is not finite.
    loss : float
        Mean squared error on the training rows.
    size : int
        Number of nodes.
    expression : str
    """

    recovered: str
    r2_train: float
    r2_test: float
    loss: float
    size: int
    expression: str


def r2(target: Array, prediction: Array) -> float:
    """Coefficient of determination; minus infinity if a prediction is not finite."""
    if not np.isfinite(prediction).all():
        return -np.inf
    with np.errstate(over="ignore"):
        errors, total = np.sum(np.square(target - prediction)), np.sum(np.square(target - target.mean()))
    return float(1 - errors / total) if total > 0 else float(errors == 0)


def score(text: str, problem: Problem, split: Split) -> Score:
    """Score one formula; raises ValueError if the text is not a formula."""
    formula = parse_formula(text, problem.features)
    fitted = formula.predict(split.X)
    with np.errstate(all="ignore"):
        loss = float(np.mean(np.square(fitted - split.y)))
    return Score(
        recovered=_recovered(formula, problem),
        r2_train=r2(split.y, fitted),
        r2_test=r2(split.y_test, formula.predict(split.X_test)),
        loss=loss if np.isfinite(loss) else np.inf,
        size=formula.size,
        expression=text,
    )


def _recovered(formula: Formula, problem: Problem) -> str:
    truth = problem.truth
    return "" if truth is None else judge(formula, truth, problem.bounds).reason


def score_both(found: Found, problem: Problem, split: Split) -> tuple[Score, Score]:
    """Scores of the recommended formula and of the most accurate one, which are often the same."""
    chosen = score(found.chosen, problem, split)
    return chosen, chosen if found.accurate == found.chosen else score(found.accurate, problem, split)
