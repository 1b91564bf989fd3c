"""Rules that choose a formula from a front, compared on the same fronts of real data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np

from quality.engines import Found
from quality.formulas import parse_formula
from quality.problems import Problem, Split
from quality.records import Outcome, Run
from quality.scoring import r2
from quality.summary import grouped, settings_of, table

LOWEST = -1.0
"""R2 that is not a number, or lower, counts as this much in a mean."""

MARGIN = 0.05
"""R2 by which a formula must be worse than the constant to count as worse."""


class Entry(NamedTuple):
    """A formula of a front: its text and nodes, mean squared error on the training rows, and R2 on the held-out rows.

    R2 is minus infinity if a prediction is not finite.
    """

    text: str
    size: int
    loss: float
    r2_test: float


@dataclass(frozen=True)
class ChoiceRecord(Outcome):
    """A front of a split of a table.

    Parameters
    ----------
    seconds : float
        Duration of the search.
    train_rows : int
        Rows that were learnt from.
    constant : float
        R2 on the held-out rows of the mean of the others.
    shipped : int
        Position of the formula that the engine chose.
    front : str
        The entries as JSON lists, simplest first.
    """

    seconds: float = float("nan")
    train_rows: int = 0
    constant: float = float("nan")
    shipped: int = 0
    front: str = "[]"

    @cached_property
    def entries(self) -> list[Entry]:
        """The front."""
        return [Entry(*values) for values in json.loads(self.front)]


def choice_scores(run: Run, problem: Problem, split: Split, found: Found, simplify: float) -> dict[str, Any]:
    """The fields of a `ChoiceRecord`."""
    texts = list(found.front)
    if found.chosen not in texts:
        texts.append(found.chosen)
    return {
        "seconds": found.seconds,
        "train_rows": len(split.y),
        "constant": r2(split.y_test, np.full(len(split.y_test), split.y.mean())),
        "shipped": texts.index(found.chosen),
        "front": json.dumps([_entry(text, problem, split) for text in texts]),
    }


def _entry(text: str, problem: Problem, split: Split) -> Entry:
    formula = parse_formula(text, problem.features)
    with np.errstate(all="ignore"):
        loss = float(np.mean(np.square(formula.predict(split.X) - split.y)))
    score = r2(split.y_test, formula.predict(split.X_test))
    return Entry(text, formula.size, loss if math.isfinite(loss) else math.inf, score)


def shortest_description(record: ChoiceRecord) -> int:
    """The rule before evidence: half the logarithm of the rows for each node, formulas with more nodes left out."""
    entries, rows = record.entries, record.train_rows
    considered = [i for i, entry in enumerate(entries) if i == 0 or entry.size <= rows]

    def length(i: int) -> float:
        loss = max(entries[i].loss, 1e-300)
        return 0.5 * rows * math.log(loss) + 0.5 * entries[i].size * math.log(rows) if loss < math.inf else math.inf

    return min(considered, key=length)


RULES: dict[str, Callable[[ChoiceRecord], int]] = {
    "shipped": lambda record: record.shipped,
    "former": shortest_description,
    "most accurate": lambda record: min(range(len(record.entries)), key=lambda i: record.entries[i].loss),
    "in hindsight": lambda record: max(range(len(record.entries)), key=lambda i: record.entries[i].r2_test),
    "simpler, in hindsight": lambda record: max(range(record.shipped + 1), key=lambda i: record.entries[i].r2_test),
}
"""Rules by name, each from a record to a position; nobody can choose in hindsight."""


def choice_table(records: Sequence[ChoiceRecord]) -> str:
    """For each set of settings: the rules by data set, and over all of them."""
    parts = []
    for name, members in grouped(records, settings_of).items():
        fine = [record for record in members if not record.error and record.entries]
        sets = grouped(fine, lambda record: record.problem)
        lines = [line for some in sets.values() for line in _lines(some)]
        parts.append(f"{name}: {len(fine)} splits, {len(members) - len(fine)} failed\n\n{table(HEADER, lines)}")
        if sets:
            parts.append(table(OVERALL, [_overall(rule, list(sets.values())) for rule in RULES]))
    return "\n\n".join(parts)


HEADER = ("data set", "rule", "splits", "median test R2", "mean", "worst", "below constant", "avoidable", "below -1",
          "not finite", "median size")  # fmt: skip
OVERALL = ("rule", "mean of medians", "mean of means", "against former, mean", "worst set against former",
           "splits 0.05 below constant", "avoidable", "below -1", "not finite", "median size")  # fmt: skip


def _picked(rule: str, records: Sequence[ChoiceRecord]) -> list[Entry]:
    return [record.entries[RULES[rule](record)] for record in records]


def _lines(records: Sequence[ChoiceRecord]) -> list[list[object]]:
    """The rules on one data set; the constant last."""
    lines: list[list[object]] = []
    for rule in RULES:
        picked = _picked(rule, records)
        scores = [entry.r2_test for entry in picked]
        lines.append([records[0].problem, rule, len(records), *_scores(scores), *_failures(rule, records),
                      f"{median(entry.size for entry in picked):g}"])  # fmt: skip
    constants = [record.constant for record in records]
    return [*lines, [records[0].problem, "constant", len(records), *_scores(constants), 0, 0, 0, 0, 1]]


def _scores(scores: Sequence[float]) -> list[str]:
    return [f"{median(scores):.3f}", f"{_mean(scores):.3f}", f"{min(scores):.3f}"]


def _mean(scores: Sequence[float]) -> float:
    return mean(max(score, LOWEST) for score in scores)


def _failures(rule: str, records: Sequence[ChoiceRecord]) -> list[int]:
    """Splits where the formula is worse than the constant; where a simpler one of the front is not; with an R2 below
    `LOWEST`; with values that are not finite."""
    below = avoidable = 0
    for record in records:
        position, least = RULES[rule](record), record.constant - MARGIN
        if record.entries[position].r2_test < least:
            below += 1
            avoidable += any(entry.r2_test >= least for entry in record.entries[:position])
    scores = [entry.r2_test for entry in _picked(rule, records)]
    return [below, avoidable, sum(score < LOWEST for score in scores), sum(score == -math.inf for score in scores)]


def _overall(rule: str, sets: Sequence[Sequence[ChoiceRecord]]) -> list[object]:
    """A rule over all data sets, and its difference to the former rule, set by set, in medians over the splits."""
    scores = [[entry.r2_test for entry in _picked(rule, some)] for some in sets]
    former = [median(entry.r2_test for entry in _picked("former", some)) for some in sets]
    gains = [max(median(own), LOWEST) - max(other, LOWEST) for own, other in zip(scores, former, strict=True)]
    sizes = [entry.size for some in sets for entry in _picked(rule, some)]
    failures = [sum(counts) for counts in zip(*(_failures(rule, some) for some in sets), strict=True)]
    return [rule, f"{_mean([median(own) for own in scores]):.4f}", f"{mean(map(_mean, scores)):.4f}",
            f"{mean(gains):+.4f}", f"{min(gains):+.4f}", *failures, f"{median(sizes):g}"]  # fmt: skip
