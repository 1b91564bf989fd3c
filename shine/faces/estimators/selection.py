"""The choice of the formula of a front that an estimator predicts with."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shine.lang.forms.names import value_text

if TYPE_CHECKING:
    from shine.search.models.front import Front

Selection: TypeAlias = "str | Callable[[Front], int]"


def _most_accurate(front: Front) -> int:
    return int(np.argmin([model.loss for model in front]))


def _largest_score(front: Front) -> int:
    scores = [-math.inf if math.isnan(score) else score for score in front.scores]
    return int(np.argmax(scores))


SELECTIONS: dict[str, Callable[[Front], int]] = {
    "best": lambda front: front.best_index,
    "accuracy": _most_accurate,
    "score": _largest_score,
}
"""The criteria by name: the shortest description (see `shine.search.models.choice.choose`), the least loss, and the
largest fall of the loss's logarithm per unit of complexity."""


def check_selection(selection: str) -> None:
    """Raise a `ValueError` if no criterion has this name."""
    if selection not in SELECTIONS:
        known = ", ".join(map(repr, SELECTIONS))
        raise ValueError(
            f"unknown model_selection {value_text(selection)}; use one of {known}, or a function of the front"
        )


def selected(front: Front, selection: Selection) -> Front:
    """The front, with the formula that a criterion chooses as its best.

    Raises
    ------
    ValueError
        If there is no such criterion, or it returns no position in the front.
    """
    if isinstance(selection, str):
        check_selection(selection)
        selection = SELECTIONS[selection]
    given = selection(front)
    choice = operator.index(given) if hasattr(given, "__index__") else len(front)
    if not -len(front) <= choice < len(front):
        raise ValueError(
            f"model_selection chose formula {value_text(given)} of a front that has {len(front)}; return a position, "
            f"0 to {len(front) - 1}"
        )
    if choice % len(front) == front.best_index:
        return front
    return replace(front, best_index=choice % len(front), reason="")
