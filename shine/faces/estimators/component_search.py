"""The search for the components of `SymbolicTransformer`: which formulas, and when to stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import ExtrapolationWarning
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.compiler.arrays import Regression, dot, least_squares
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.user_data import TrainingArrays
from shine.faces.estimators.fit_searches import FitSearches
from shine.faces.estimators.parameters import Selection, selected
from shine.formats.read.guesses import Guess
from shine.lang.parse import parse
from shine.search.constraints.constraints import Constraints
from shine.search.finishing.kept_rows import kept_back, least_error
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.run import search

EXPLAINED = 1e-12
"""Standard deviation of the residual, as a share of the target's, below which nothing is left to explain."""

FEWEST, KEPT, UNSEEN = 12, 0.25, 1e-12
"""Rows from which some are kept back from the searches; their share; and their weight, which is next to nothing, in the
linear models that they judge."""


@dataclass(frozen=True)
class ComponentSearch:
    """Rows, and how to search them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    target : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,), optional
    searches : FitSearches
    earlier : callable
        Formulas of the last fit for the search with a number.
    selection : str or callable
        The estimator's `model_selection`.
    max_correlation : float
        Largest correlation of two components.
    """

    rows: Floats
    target: Floats
    weights: Floats | None
    searches: FitSearches
    earlier: Callable[[int], list[Guess]]
    selection: Selection
    max_correlation: float

    def found(self, count: int, raw: bool) -> list[Front]:
        """At most `count` components for a linear model, which has the `raw` features, too.

        The first search is for the target, each further one for the residual of the components before it. They do not
        see some of the rows, which then say how many components pay. In place of the raw features, a linear model of
        these is the first component if it is better than the formulas.
        """
        known, working, judged = Components(self._all_weights), self._components(raw=False), self._components(raw)
        fronts: list[Front] = []
        while len(fronts) < count and not self.searches.stopped_by_user:
            if fronts and self._is_explained(judged.residual(self.target), judged):
                break
            front = self._front(working.residual(self.target), len(fronts))
            position = known.first_new(
                ((at, self._values(front[at])) for at in _by_preference(front, int(self._seen.sum()))),
                self.max_correlation,
            )
            if position is None and (fronts or raw):
                break
            fronts.append(front if position is None else replace(front, best_index=position, reason=""))
            for components in (known, working, judged):
                components.add(self._values(fronts[-1].best))
        if raw:
            return fronts[: self._best(self._left(fronts, raw), raw)]
        beside, known = list[Front](), Components(self._all_weights)
        for front in [*self._linear(fronts[0]), *fronts]:
            if len(beside) < count and known.is_new(self._values(front.best), self.max_correlation):
                beside.append(front)
                known.add(self._values(front.best))
        best = self._best([*self._left(fronts, raw)[1:], *self._left(beside, raw)[1:]], raw)
        return fronts[: best + 1] if best < len(fronts) else beside[: best + 1 - len(fronts)]

    def _values(self, model: Model) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)  # of rows that the searches did not see
            return model.predict(self.rows)

    @cached_property
    def _seen(self) -> Mask:
        """Whether the searches see a row: all, if there are few."""
        rows = Dataset.from_arrays(self.rows, self.target, sample_weight=self.weights)
        if rows.n_rows < FEWEST or len(np.unique(self.rows[self._all_weights > 0], axis=0)) < FEWEST:
            return np.ones(rows.n_rows, np.bool_)
        return ~kept_back(rows, "random", KEPT, self.searches.settings.seed)

    def _components(self, raw: bool) -> Components:
        weights = np.where(self._seen, 1.0, UNSEEN) * self._all_weights
        return Components(weights, self.rows.T if raw else None)

    def _left(self, fronts: Sequence[Front], raw: bool) -> list[Floats]:
        """What the first components, of each number from 0, leave of the target."""
        components = self._components(raw)
        found = [components.residual(self.target)]
        for front in fronts:
            components.add(self._values(front.best))
            found.append(components.residual(self.target))
        return found

    def _best(self, left: Sequence[Floats], clearly: bool) -> int:
        """The best model, by what each leaves of the target; or the first that none is `clearly` better than."""
        unseen = self._seen if self._seen.all() else ~self._seen
        scale = float(np.abs(self.target).max()) or 1.0
        weights = self._all_weights[unseen] / self._all_weights[unseen].sum()
        errors = weights * (np.array(left)[:, unseen] / scale) ** 2
        enough = (EXPLAINED * self._components(raw=False).deviation(self.target) / scale) ** 2
        if clearly:
            return least_error(errors, None, np.arange(len(left), dtype=np.float64), enough) or 0
        return int(np.argmin(np.maximum(np.nan_to_num(stable_sum(errors), nan=np.inf), enough)))

    def _linear(self, front: Front) -> list[Front]:
        """The linear model of the raw features as a front; empty if it is too long, or no formula may be it."""
        settings = self.searches.settings
        if settings.constraints != Constraints() or not {"add", "mul"} <= {str(each) for each in settings.primitives}:
            return []
        roots, names = np.sqrt(self._components(raw=False).weights), front.best.tree.parameters
        columns = roots * np.vstack([np.ones(len(roots)), self.rows.T])
        with np.errstate(all="ignore"):
            first, *slopes = least_squares(columns, roots * self.target).tolist()
        if 4 * len(names) > len(self.rows) or not np.isfinite([first, *slopes]).all():
            return []
        terms = [repr(first), *(f"{slope!r}*{name}" for slope, name in zip(slopes, names, strict=True) if slope)]
        tree = parse(" + ".join(terms), names)
        return [replace(front, models=(replace(front.best, tree=tree),), best_index=0, beside=(), reason="")]

    @property
    def _all_weights(self) -> Floats:
        return np.ones(len(self.rows)) if self.weights is None else self.weights

    def _is_explained(self, residual: Floats, components: Components) -> bool:
        return components.deviation(residual) <= EXPLAINED * components.deviation(self.target)

    def _front(self, residual: Floats, number: int) -> Front:
        weights = None if self.weights is None else self.weights[self._seen]
        arrays = TrainingArrays(self.rows[self._seen], residual[self._seen], sample_weight=weights)
        found = self.searches.run(search, arrays, self.earlier(number)).front
        return selected(found, self.selection)


def _by_preference(front: Front, rows: int) -> list[int]:
    """Positions of a front: the chosen one, then by rising loss; formulas with more nodes than rows last, by size."""

    def place(position: int) -> tuple[bool, float]:
        size = front[position].tree.size
        return size > rows, float(size) if size > rows else front[position].loss

    others = sorted(range(len(front)), key=place)
    return list(dict.fromkeys([front.best_index, *others]))


class Components:
    """Values of some formulas on weighted rows, and the residual of a target that they leave.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative; at least one is positive.
    raw : ndarray of shape (n, n_rows), optional
        Columns that stand beside the formulas: the linear model of the residual has them too.
    """

    def __init__(self, weights: Floats, raw: Floats | None = None) -> None:
        self.weights = weights / weights.sum()
        self._roots = np.sqrt(self.weights)
        self._columns: list[Floats] = []
        self._raw = [] if raw is None else [self._standardized(values) for values in raw]

    def add(self, values: Floats) -> None:
        """Add the values of another formula, shape (n_rows,)."""
        self._columns.append(self._standardized(values))

    def residual(self, target: Floats) -> Floats:
        """Residual of a linear model of all columns for a target; the target itself without columns.

        The residual of a target near float64's largest number is smaller by a power of two: it may be larger than that.
        """
        if not self._raw and not self._columns:
            return target
        # An exact power of two keeps sums of large numbers finite, and changes nothing.
        exponent = int(np.frexp(np.abs(target).max())[1])
        model = Regression.of(np.stack([self._roots, *self._raw, *self._columns]))
        rest = model.rest(np.ldexp(target, -exponent) * self._roots)
        own = np.divide(rest, self._roots, out=np.zeros_like(target), where=self._roots > 0)
        # Largest exponent of two of residuals: of a few rows they may be much larger than the target.
        return np.ldexp(own, min(exponent, 1000))

    def deviation(self, values: Floats) -> float:
        """Weighted standard deviation."""
        size = float(np.abs(values).max(initial=0.0)) or 1.0
        with np.errstate(all="ignore"):
            return size * _length(self._centred(values / size))

    def is_new(self, values: Floats, most: float) -> bool:
        """Whether values vary and correlate with each formula by at most `most`."""
        column = self._standardized(values)
        return bool(column.any()) and all(abs(dot(column, other)) <= most for other in self._columns)

    def first_new(self, candidates: Iterable[tuple[int, Floats]], most: float) -> int | None:
        """The first position whose values vary and correlate with each formula by at most `most`; None if none does."""
        return next((position for position, values in candidates if self.is_new(values, most)), None)

    def _centred(self, values: Floats) -> Floats:
        mean = float(dot(self._roots**2, values))
        return (values - mean) * self._roots

    def _standardized(self, values: Floats) -> Floats:
        """Values with mean 0 and norm 1, times the roots of the weights; zeros if they do not vary."""
        with np.errstate(all="ignore"):
            centred = self._centred(values)
            norm = _length(centred)
        largest = float(np.abs(values).max(initial=0.0))
        return centred / norm if np.isfinite(norm) and norm > 1e-12 * largest else np.zeros_like(values)


def _length(vector: Floats) -> float:
    """Root of the sum of squares; the sum itself may overflow or underflow."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(dot(vector / largest, vector / largest)))
