"""The result of a search: its Pareto front and the formula that it recommends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from shine.data.dataset import Dataset
from shine.data.matching import columns_for
from shine.lang.rounding import Precision
from shine.lang.wrapping import wrapped
from shine.search import front_table
from shine.search.figures import screen_width
from shine.search.model import Model
from shine.search.noise_estimate import NoiseEstimate
from shine.typing import Floats

STOPS = {"interrupted": "the user", "callback": "a callback", "stagnation": "a lack of progress"}
"""What ended a search that reached no limit, by `Result.stopped_by`."""


@dataclass(frozen=True, eq=False, repr=False)
class Front(Sequence[Model]):
    """The Pareto front of a search: rising complexity, falling loss.

    Parameters
    ----------
    models : tuple of Model
    best_index : int
        Position of the recommended formula.
    reason : str
        Why it is recommended; empty if it is not known.
    """

    models: tuple[Model, ...]
    best_index: int
    reason: str = ""

    @overload
    def __getitem__(self, index: int) -> Model: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Model, ...]: ...

    def __getitem__(self, index: int | slice) -> Model | tuple[Model, ...]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.models[self.best_index]

    @property
    def scores(self) -> tuple[float, ...]:
        """Fall of the logarithm of the loss per unit of complexity, from each formula's predecessor.

        0 for the first formula; inf where the loss falls to 0. PySR uses the same score.
        """
        scores = [0.0]
        for before, after in zip(self.models, self.models[1:], strict=False):
            if before.loss > 0:
                fall = math.inf if after.loss <= 0 else math.log(before.loss) - math.log(after.loss)
                scores.append(fall / (after.complexity - before.complexity))
            else:
                scores.append(0.0)
        return tuple(scores[: len(self.models)])

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, score, r2, expression, best."""
        for position, (model, score) in enumerate(zip(self.models, self.scores, strict=True)):
            yield {
                "complexity": model.complexity,
                "loss": model.loss,
                "score": score,
                "r2": model.r2,
                "expression": model.expression,
                "best": position == self.best_index,
            }

    def to_frame(self, precision: Precision = None) -> Any:
        """A pandas DataFrame with the columns of `columns`; the index is that of the front.

        Parameters
        ----------
        precision : int, "exact" or None
            Significant digits of constants in `equation` (see `Model.rounded`).

        Raises
        ------
        ExportError
            If pandas is not installed.
        """
        return front_table.data_frame(self._rows_for_people(precision))

    def columns(self, precision: Precision = None) -> dict[str, list[Any]]:
        """The front by columns: complexity, loss, score, expression, which is exact, and equation, for people."""
        return front_table.columns(self._rows_for_people(precision))

    def plot(
        self,
        kind: str = "front",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        index: int | None = None,
        features: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the front or one of its formulas with Matplotlib.

        Parameters
        ----------
        kind : {"front", "fit", "residuals", "dependence"}
            Loss over complexity; predicted over measured values; residuals over predictions; the mean prediction along
            each feature. All but the first need data.
        X : array-like or data frame of shape (n_rows, n_features), optional
            A data frame has the columns of the search, in any order.
        y : array-like of shape (n_rows,), optional
        index : int, optional
            Position of the formula; the recommended one by default.
        features : sequence of str or int, optional
            Features to draw the dependence on; by default all that the formula uses.
        ax : matplotlib.axes.Axes, or several, optional
            The axes to draw in, one for each drawing; those of a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes, or ndarray of them
            An array if there are several drawings.

        Raises
        ------
        ValueError
            If there is no such drawing, or it needs data, other axes or other features.
        ExportError
            If Matplotlib is not installed.
        """
        from shine.search.plotting import FIT, Subject, check_kind, plotted

        check_kind(kind, FIT, X, y)
        names, headings = self.models[0].tree.parameters, self.models[0].headings
        data = None
        if X is not None:
            rows = np.column_stack(columns_for(self.models[0].known(X), names, headings, names))
            data = Dataset.from_arrays(rows, np.zeros(len(rows)) if y is None else y, None, names)
        return plotted([Subject(self, self.best_index, "", data, index)], kind, FIT, features, ax)

    def _rows_for_people(self, precision: Precision = None) -> list[dict[str, Any]]:
        """The rows with their formulas as people read them."""
        pairs = zip(self.rows(), self.models, strict=True)
        return [{**row, "formula": model.formula(precision)} for row, model in pairs]

    def __repr__(self) -> str:
        """A table, the recommended formula marked, with the reason for it; wrapped on a terminal."""
        width = screen_width()
        table = front_table.text_table(self._rows_for_people(), front_table.SUMMARY, width)
        return "\n".join([table, *(wrapped(f">>> {self.reason}", width, "    ") if self.reason else [])])

    def _repr_html_(self) -> str:
        """The table for notebooks, the formulas typeset, the recommended one marked, with the reason for it."""
        from shine.search.notebook import formula_element, front_element, page_part

        formulas = [formula_element(model.rounded(), model.headings) for model in self.models]
        return page_part(front_element(list(self.rows()), formulas, self.reason))

    def _repr_latex_(self) -> str:
        """The table for notebooks that typeset LaTeX."""
        from shine.search.notebook import front_latex

        return front_latex(list(self.rows()), [model.latex() for model in self.models])


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a search.

    Parameters
    ----------
    front : Front, or sequence of Model
        Pareto front: rising complexity, falling loss. Any sequence becomes a `Front`.
    best_index : int
        Position of the recommended formula in the front (see `shine.search.choice.choose`).
    generations, evaluations : int
        Number of generations after the first population, and of individuals evaluated.
    seconds : float
        Duration of the search.
    seed : int
    stopped_by : {"loss", "generations", "seconds", "stagnation", "interrupted", "callback"}
    noise : NoiseEstimate, optional
        The loss that noise alone leaves, by replicates or neighbouring rows; None if the rows do not tell.
    """

    front: Front
    best_index: int
    generations: int
    evaluations: int
    seconds: float
    seed: int
    stopped_by: str
    noise: NoiseEstimate | None = None

    def __post_init__(self) -> None:
        # Any sequence of models becomes a front, which has the tables.
        if not isinstance(self.front, Front):
            object.__setattr__(self, "front", Front(tuple(self.front), self.best_index))

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.front[self.best_index]

    @property
    def reason(self) -> str:
        """Why it is recommended; empty if it is not known."""
        return self.front.reason

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the recommended formula (see `Model.predict`)."""
        return self.best.predict(X)

    @property
    def ending(self) -> str:
        """How long the search took, and what ended it, as a sentence."""
        return (
            f"{self.evaluations} evaluations in {self.generations} generations and {self.seconds:.1f} s; "
            f"stopped by {STOPS.get(self.stopped_by, f'the limit of {self.stopped_by}')}"
        )

    def __repr__(self) -> str:
        """The table of the front and the end of the search; wrapped on a terminal."""
        return "\n".join([repr(self.front), *wrapped(self.ending, screen_width())])

    def _repr_html_(self) -> str:
        """The recommended formula above the table of the front, for notebooks."""
        return f"{self.best._repr_html_()}{self.front._repr_html_()}"

    def _repr_latex_(self) -> str:
        """The recommended formula for notebooks that typeset LaTeX."""
        return self.best._repr_latex_()

    def plot(self, kind: str = "front", X: ArrayLike | None = None, y: ArrayLike | None = None, **options: Any) -> Any:
        """Draw the front or the recommended formula with Matplotlib (see `Front.plot`)."""
        return self.front.plot(kind, X, y, **options)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, r2, expression, best."""
        for row in self.front.rows():
            yield {name: value for name, value in row.items() if name != "score"}


def pareto_front(
    models: Iterable[Model], enough: float, criterion: Callable[[Model], float] = lambda model: model.loss
) -> tuple[Model, ...]:
    """The models that are better than all simpler ones, up to the first whose loss is at most `enough`.

    Parameters
    ----------
    models : iterable of Model
    enough : float
        Loss below which two formulas are equally right.
    criterion : callable
        Which of several models of one complexity is considered: the one for which it is least.
    """
    best: dict[int, Model] = {}
    for model in sorted(models, key=lambda model: (model.complexity, criterion(model), model.loss)):
        best.setdefault(model.complexity, model)
    front: list[Model] = []
    for model in best.values():
        if not front or enough < front[-1].loss > model.loss:
            front.append(model)
    return tuple(front)
