"""A whole objective of the user's: a Python function of the predictions of many formulas, the slow, general tier.

Where a loss is a sum over the rows, compiled code adds it up (see `shine.losses`). An objective may be anything: a
share of correct ranks, a simulation, a property of the formula itself. So Python is called, with many formulas at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.lang.forms.names import shown, value_text
from shine.lang.forms.synonyms import LOSS_ARGUMENTS
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.problem.scaling import with_line

Function = Callable[..., Any]
"""``objective(predictions)`` or ``objective(predictions, formulas)``; see `Objective`."""

AT_ONCE = 1 << 23
"""Most numbers of a call: 64 MiB of predictions."""


@dataclass(frozen=True)
class Objective:
    """A user's function, with checks of what it returns.

    Parameters
    ----------
    function : callable
        Of the predictions, shape (n_formulas, n_rows), float64, the rows in their order; and, if it takes a second
        argument, of the formulas, a list of `shine.lang.forms.tree.Tree`, whose ``str`` is the formula. It returns the
        losses, shape (n_formulas,), at least 0 and smaller for better formulas; or shape (n_formulas, n_objectives):
        the search minimizes the first, and the front also keeps what is good in the others.
    """

    function: Function
    takes_formulas: bool = field(init=False)
    _widths: list[int] = field(init=False, default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"objective must be a function of the predictions; it is {value_text(self.function)}")
        names = _arguments(self.function)
        if wrong := [name for name in names[1:] if name in {*LOSS_ARGUMENTS, *LOSS_ARGUMENTS.values(), "y"}]:
            raise TypeError(
                f"objective takes (predictions) or (predictions, formulas) of many formulas, and no {shown(wrong[0])}; "
                "read y where it is defined, or give a function of one row as loss"
            )
        object.__setattr__(self, "takes_formulas", len(names) > 1)

    def __call__(self, predictions: Floats, formulas: Callable[[int], Tree]) -> Floats:
        """Losses of formulas, shape (n_formulas, n_objectives); inf where a prediction or a loss is not finite.

        Parameters
        ----------
        predictions : ndarray of shape (n_formulas, n_rows)
        formulas : callable
            Makes the tree of a formula, given its position.

        Raises
        ------
        ValueError
            If the function returns something else, or another number of objectives than before.
        """
        count = len(predictions)
        found: Floats | None = None
        finite = np.flatnonzero(np.isfinite(predictions).all(axis=1))
        step = max(AT_ONCE // max(predictions.shape[1], 1), 1)
        for start in range(0, len(finite), step):
            some = finite[start : start + step]
            more = ([formulas(int(index)) for index in some],) if self.takes_formulas else ()
            own = self._checked(self.function(predictions[some], *more), len(some))
            found = np.full((count, own.shape[1]), np.inf) if found is None else found
            found[some] = own
        return np.full((count, *(self._widths or [1])), np.inf) if found is None else found

    def _checked(self, returned: Any, count: int) -> Floats:
        if np.iscomplexobj(returned):
            raise ValueError("objective returned complex numbers; losses are real: return their abs() or .real")
        try:
            losses = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"objective must return losses, it returned {value_text(returned)}") from None
        if losses.shape[:1] != (count,) or losses.ndim > 2 or not losses.size:
            raise ValueError(
                f"objective returned an array of shape {losses.shape} for {count} formulas; ({count},) is needed, or "
                f"({count}, n_objectives)"
            )
        losses = losses.reshape(count, -1)
        if not self._widths:
            self._widths.append(losses.shape[1])
        if losses.shape[1] != self._widths[0]:
            raise ValueError(
                f"objective returned {losses.shape[1]} losses for each formula, but {self._widths[0]} in its first "
                "call; their number must not change"
            )
        losses = np.where(np.isfinite(losses), losses, np.inf)
        if (losses[:, 0] < 0).any():
            raise ValueError(
                f"objective returned {losses[:, 0].min():g}; losses must be at least 0, and 0 is the best possible"
            )
        return losses


def _arguments(function: Function) -> list[str]:
    """Arguments that the function has to be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]


class ObjectiveEvaluator:
    """Formulas with their lines of least loss, judged by an objective (see `shine.evaluate.protocols`).

    Attributes
    ----------
    kept : dict of (int, int) to (float, Tree)
        For each further objective and each size, the formula that is best in it of all that the search met.
    """

    def __init__(self, evaluator: PopulationEvaluator, objective: Objective) -> None:
        self._evaluator, self._objective = evaluator, objective
        self.kept: dict[tuple[int, int], tuple[float, Tree]] = {}

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """The first objective and the line of each individual."""
        lines = self._evaluator.score(population)
        with np.errstate(all="ignore"):
            predictions = lines.slopes[:, None] * self.predict(population) + lines.intercepts[:, None]

        def formula(index: int) -> Tree:
            return with_line(population.tree(index), float(lines.slopes[index]), float(lines.intercepts[index]))

        losses = self._objective(np.where(np.isfinite(lines.losses)[:, None], predictions, np.inf), formula)
        self._keep(losses, formula)
        return replace(lines, losses=losses[:, 0], simpler=None).within(threshold)

    def predict(self, population: Population) -> AnyArray:
        """Predictions without lines."""
        return self._evaluator.predict(population)

    def _keep(self, losses: Floats, formula: Callable[[int], Tree]) -> None:
        for number in range(1, losses.shape[1]):
            # Individuals of a call that are looked at for each further objective, the best in it.
            for index in np.argsort(losses[:, number], kind="stable")[:20].tolist():
                value = float(losses[index, number])
                if not np.isfinite(value) or not np.isfinite(losses[index, 0]):
                    break
                tree = formula(index)
                best = self.kept.get((number, tree.size))
                if best is None or value < best[0]:
                    self.kept[number, tree.size] = value, tree
