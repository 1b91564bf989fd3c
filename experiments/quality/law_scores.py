"""Which formulas of a front are the law: records of `laws.py` and `random_formulas.py`, and their scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quality.engines import Found
from quality.families import judge_law
from quality.formulas import Formula, parse_formula
from quality.problems import Problem, Split
from quality.records import Outcome, Run
from quality.scoring import r2
from quality.simplification import rounded, simplified

NOWHERE = -1
"""The position of a formula that is not on the front."""


@dataclass(frozen=True)
class LawRecord(Outcome):
    """A run that looked for a law.

    Parameters
    ----------
    seconds : float
        Duration of the search alone.
    verdict : str
        On the chosen formula: one of `quality.families.VERDICTS`.
    by_sympy : str
        SymPy's answer for the chosen formula, if it was asked: see `quality.simplification.simplified`.
    position : int
        Of the chosen formula on the front, from 0.
    identical, constants, offset, sympy : int
        Positions of the first formulas on the front that are identical to the law, that are so up to constants at
        least, or have a wrong offset only, and that SymPy recognizes; -1 if there are none.
    found : str
        The first formula at the position `identical`, or else `constants`.
    r2_test : float
        Of the chosen formula on noiseless rows.
    size : int
        Nodes of the chosen formula.
    expression : str
        The chosen formula.
    front : str
        All formulas, as a JSON list.
    """

    seconds: float = float("nan")
    verdict: str = ""
    by_sympy: str = ""
    position: int = NOWHERE
    identical: int = NOWHERE
    constants: int = NOWHERE
    offset: int = NOWHERE
    sympy: int = NOWHERE
    found: str = ""
    r2_test: float = float("-inf")
    size: int = 0
    expression: str = ""
    front: str = ""

    @property
    def headline(self) -> str:
        """The outcome in a few words."""
        if self.error:
            return f"{self.problem}: failed"
        return f"{self.problem}: chosen {self.verdict}, on front {'yes' if self.constants != NOWHERE else 'no'}"


def law_scores(run: Run, problem: Any, split: Split, found: Found, simplify: float) -> dict[str, Any]:
    """The fields of a `LawRecord` for a measured law (`quality.measurements.Law`)."""
    sigma = problem.sigma(split.X)
    return front_scores(problem, split, found, simplify, lambda f: judge_law(f, problem.truth, split.X, sigma))


def front_scores(
    problem: Problem, split: Split, found: Found, simplify: float, judge: Callable[[Formula], str]
) -> dict[str, Any]:
    """The fields of a `LawRecord`, given what gives the verdict on a formula."""
    formula = parse_formula(found.chosen, problem.features)
    front = found.front or (found.chosen,)
    verdicts = [_verdict(text, problem, judge) for text in front]
    at = front.index(found.chosen) if found.chosen in front else NOWHERE
    verdict = verdicts[at] if at != NOWHERE else judge(formula)
    identical = _first(verdicts, ("identical",))
    constants = _first(verdicts, ("identical", "constants"))
    by_sympy, sympy = _asked(found.chosen, front, problem, split, simplify) if simplify else ("", NOWHERE)
    where = identical if identical != NOWHERE else constants
    return {
        "seconds": found.seconds,
        "verdict": verdict,
        "by_sympy": by_sympy,
        "position": at,
        "identical": identical,
        "constants": constants,
        "offset": _first(verdicts, ("identical", "constants", "offset")),
        "sympy": sympy,
        "found": front[where] if where != NOWHERE else "",
        "r2_test": r2(split.y_test, formula.predict(split.X_test)),
        "size": formula.size,
        "expression": found.chosen,
        "front": json.dumps(list(front)),
    }


def _verdict(text: str, problem: Problem, judge: Callable[[Formula], str]) -> str:
    try:
        return judge(parse_formula(text, problem.features))
    except ValueError:  # a formula that the reader does not know costs its own place only
        return "no"


def _first(verdicts: Sequence[str], wanted: Sequence[str]) -> int:
    return next((i for i, verdict in enumerate(verdicts) if verdict in wanted), NOWHERE)


def _asked(chosen: str, front: Sequence[str], problem: Problem, split: Split, seconds: float) -> tuple[str, int]:
    """SymPy's answer for the chosen formula, and the position of the first formula that it recognizes."""
    answers: dict[str, str] = {}
    for text in (chosen, *front):
        if text not in answers:
            possible = _proportional(text, problem, split)
            answers[text] = (
                simplified(text, problem.text, problem.features, problem.bounds, seconds) if possible else "no"
            )
        if text != chosen and answers[text] == "yes":
            break
    return answers[chosen], _first([answers.get(text, "no") for text in front], ("yes",))


def _proportional(text: str, problem: Problem, split: Split) -> bool:
    """Whether, constants rounded, the values are linear in those of the law: SymPy can say yes only then."""
    try:
        candidate = parse_formula(text, problem.features)
    except ValueError:
        return False
    law = parse_formula(problem.text, problem.features)
    first, second = (f.predict(split.X_test, np.array(rounded(f), dtype=float)) for f in (candidate, law))
    with np.errstate(all="ignore"):
        correlation = np.corrcoef(first / np.abs(first).max(), second / np.abs(second).max())[0, 1]
    return bool(abs(correlation) > 1 - 1e-9)
