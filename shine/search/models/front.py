"""The Pareto front of a search: its formulas, their tables and drawings, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import Floats
from shine.data.columns.numbers import columns_for
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.rounding import Precision
from shine.lang.wrapping import wrapped
from shine.search.models import front_table
from shine.search.models.front_table import screen_width
from shine.search.models.model import Model
from shine.search.models.uncertain import Method, share_passes

if TYPE_CHECKING:
    from shine.evaluate.inference.covariance import Kind as Covariance
    from shine.search.models.certainty import Stability
    from shine.search.models.measuring.box import Cost, Limits
    from shine.search.models.measuring.next_measurement import NextMeasurement


@dataclass(frozen=True, eq=False, repr=False)
class Front(Sequence[Model]):
    """The Pareto front of a search: rising complexity, falling loss.

    Parameters
    ----------
    models : tuple of Model
        They share the model of the noise by which losses are weighted.
    best_index : int
        Position of the recommended formula.
    reason : str
        Why it is recommended; empty if it is not known.
    beside : tuple of Model
        Formulas that were found, too, and describe the rows nearly as well as the best: the front has others of their
        complexity. One of them may be the law.
    """

    models: tuple[Model, ...]
    best_index: int
    reason: str = ""
    beside: tuple[Model, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Model: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Model, ...]: ...

    def __getitem__(self, index: int | slice) -> Model | tuple[Model, ...]:
        try:
            return self.models[index]
        except IndexError:
            raise IndexError(f"there is no formula {index}: the front has 0 to {len(self) - 1}") from None

    def __len__(self) -> int:
        return len(self.models)

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.models[self.best_index]

    @property
    def noise(self) -> str:
        """Model of the noise by which the rows are weighted in losses and R2."""
        return self.models[0].noise if self.models else "absolute"

    @property
    def scores(self) -> tuple[float, ...]:
        """Fall of the logarithm of the loss per unit of complexity, from each formula's predecessor.

        0 for the first formula; inf where the loss falls to 0. PySR uses the same score.
        """
        scores = [0.0]
        for before, after in zip(self.models, self.models[1:], strict=False):
            if before.loss > 0:
                fall = math.inf if after.loss <= 0 else math.log(before.loss) - math.log(after.loss)
                scores.append(fall / max(after.complexity - before.complexity, 1))
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
        MissingExtraError
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
        kind : {"front", "fit", "residuals", "order", "dependence", "band", "constants"}
            Loss over complexity; predicted over measured values; residuals over predictions, or over the order of the
            rows; the mean prediction along each feature; the prediction along each feature with its 95 % bands; the
            intervals of the constants. The second to the fifth need data.
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
        MissingExtraError
            If Matplotlib is not installed.
        """
        from shine.search.models.plotting import FIT, Subject, check_kind, plotted

        check_kind(kind, FIT, X, y)
        names, headings = self.models[0].tree.parameters, self.models[0].headings
        data = None
        if X is not None:
            rows = np.column_stack(columns_for(self.models[0].with_group_numbers(X), names, headings, names))
            data = Dataset.from_arrays(rows, np.zeros(len(rows)) if y is None else y, features=names)
        return plotted([Subject(self, self.best_index, "", data, index)], kind, FIT, features, ax)

    def conf_int(
        self, level: float = 0.95, method: Method | None = None, *, covariance: Covariance = "auto"
    ) -> list[dict[str, tuple[float, float]]]:
        """Intervals of the constants of each formula (see `Model.conf_int`); very many rows are read for all at once.

        Raises
        ------
        ValueError
            If an argument is invalid.
        DataError
            If the models do not know the rows that they were fitted to.
        """
        share_passes(self.models, covariance)
        return [model.conf_int(level, method, covariance=covariance) for model in self.models]

    def evidence(self) -> Floats:
        """Weights of the formulas by the evidence of the rows, which add up to 1, shape (n_formulas,).

        By the length of the description of the rows, with the Fisher information of the constants (see
        `shine.evaluate.inference.evidence`).

        Raises
        ------
        DataError
            If the models do not know the rows that they were fitted to.
        """
        from shine.search.models.certainty import evidence

        return evidence(self.models)

    def predict(self, X: ArrayLike, return_std: bool | Literal["mean", "prediction"] = False) -> Any:
        """Predictions averaged over the formulas, with their weights by `evidence`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        return_std : bool, or {"mean", "prediction"}
            Whether to return standard deviations, too (see `Model.predict`). They contain how far the formulas
            disagree.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            A pair of them with `return_std`.
        """
        from shine.evaluate.inference.evidence import averaged

        weights = self.evidence()
        counting = [(model, weight) for model, weight in zip(self.models, weights, strict=True) if weight > 0]
        kind: Any = "prediction" if return_std is True else return_std or "mean"
        pairs = [model.predict(X, return_std=kind) for model, _ in counting]
        values, deviations = (np.array(part) for part in zip(*pairs, strict=True))
        mean, deviation = averaged(values, deviations, np.array([weight for _, weight in counting]))
        return mean if return_std is False else (mean, deviation)

    def stability(
        self,
        resamples: int = 100,
        *,
        seed: int = 0,
        kind: Literal["bootstrap", "subsample"] = "bootstrap",
        threads: int | None = None,
    ) -> Stability:
        """Share of samples of the rows for which each formula is chosen.

        Parameters
        ----------
        resamples : int
        seed : int
            The same seed gives the same samples.
        kind : {"bootstrap", "subsample"}
            As many rows, drawn with replacement; or half of them.
        threads : int, optional
            All processors by default; their number does not change the result.

        Raises
        ------
        ValueError
            If an argument is invalid.
        DataError
            If the models do not know the rows that they were fitted to.
        """
        from shine.search.models.certainty import stability

        return stability(self.models, self.best_index, resamples, seed, kind, threads)

    def next_measurement(
        self, box: Mapping[str, Limits] | None = None, n: int = 1, cost: Cost | None = None
    ) -> NextMeasurement:
        """Points to measure next: there the formulas that the rows do not tell apart part most.

        Parameters
        ----------
        box : mapping of str to (float, float), float or str, optional
            The points that can be measured, by heading: limits of a feature, or what it is fixed at; of texts one or
            several. Features that it does not name have the range of the rows. Whole numbers stay whole, and texts
            texts.
        n : int
            Number of points; the same one may come several times.
        cost : callable, str or mapping, optional
            Price of a point, a positive number: a function of the columns by heading, a formula of the features, or
            for each feature the price of a unit, or of each of its values. Points then tell most for their price.

        Returns
        -------
        NextMeasurement
            The points, what each formula predicts there, the bits that readings tell, and the probability that they
            decide. Print it.

        Raises
        ------
        ValueError
            If an argument is invalid.
        DataError
            If the models do not know the rows that they were fitted to, or these do not tell the noise.

        Notes
        -----
        Points have the greatest expected information about the form (Lindley 1956; Box and Hill 1967), by the
        description lengths of the front's formulas and the uncertainty of their constants, to the first order. If the
        law is none of the formulas, the readings show it, and a new search has better rows. Of points that tell the
        same to 1 %, the nearest to the rows is taken.
        """
        from shine.search.models.measuring.next_measurement import next_measurement

        return next_measurement(self.models, box, n, cost, beside=self.beside)

    def _rows_for_people(self, precision: Precision = None) -> list[dict[str, Any]]:
        """The rows with their formulas as people read them."""
        pairs = zip(self.rows(), self.models, strict=True)
        return [{**row, "formula": model.formula(precision)} for row, model in pairs]

    def __repr__(self) -> str:
        """A table, the recommended formula marked, with the reason for it; wrapped on a terminal."""
        width = screen_width()
        table = front_table.text_table(self._rows_for_people(), front_table.SUMMARY, width, self.noise)
        return "\n".join([table, *(wrapped(f">>> {self.reason}", width, "    ") if self.reason else [])])

    def _repr_html_(self) -> str:
        """The table for notebooks, the formulas typeset, the recommended one marked, with the reason for it."""
        from shine.search.models.notebook import formula_element, front_element, page_part

        formulas = [[formula_element(tree, model.headings) for tree in model.shown] for model in self.models]
        return page_part(front_element(list(self.rows()), formulas, self.reason, self.noise))

    def _repr_latex_(self) -> str:
        """The table for notebooks that typeset LaTeX."""
        from shine.search.models.notebook import front_latex

        return front_latex(list(self.rows()), [model.latex() for model in self.models], self.noise)


def pareto_front(
    models: Iterable[Model], enough: float, criterion: Callable[[Model], float] = lambda model: model.loss
) -> tuple[Model, ...]:
    """The models that are better than all simpler ones, up to the first whose loss is at most `enough`.

    A feature alone may be as simple as the best constant. The constant stays before it: all others are measured by it.

    Parameters
    ----------
    models : iterable of Model
    enough : float
        Loss below which two formulas are equally right.
    criterion : callable
        Which of several models of one complexity is considered: the one for which it is least.
    """
    known = list(models)
    most = min((model.loss for model in known if model.is_constant), default=math.inf)
    known = [model for model in known if model.loss <= most]
    best: dict[tuple[int, bool], Model] = {}
    for model in sorted(known, key=lambda each: (each.complexity, not each.is_constant, criterion(each), each.loss)):
        best.setdefault((model.complexity, model.is_constant), model)
    front: list[Model] = []
    for model in best.values():
        if not front or enough < front[-1].loss > model.loss:
            front.append(model)
    return tuple(front)
