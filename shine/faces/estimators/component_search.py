"""The search for the components of `SymbolicTransformer`: which formulas, and when to stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import ExtrapolationWarning
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import Regression, dot, least_squares
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.data.datasets.serial import Serial
from shine.data.user_data import TrainingArrays
from shine.faces.estimators.fit_searches import FitSearches
from shine.faces.estimators.parameters import Selection, selected
from shine.formats.read.guesses import Guess
from shine.lang.parse import parse
from shine.search.constraints.constraints import Constraints
from shine.search.finishing.kept_rows import kept_back, least_error
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.problem.serial_noise import with_serial_noise
from shine.search.run import search

EXPLAINED = 1e-12
"""Standard deviation of the residual, as a share of the target's, below which nothing is left to explain."""

FEWEST, KEPT, PARTS, UNSEEN = 12, 0.25, 20, 1e-12
"""Rows from which some are kept back from the searches; their share; the parts of a log, of which whole ones are kept,
as errors are alike within them; and the weight of the rows, next to nothing, in the linear models that they judge."""


@dataclass(frozen=True)
class ComponentSearch:
    """Rows, and how to search them.

    Parameters
    ----------
    data : Dataset
    searches : FitSearches
    earlier : callable
        Formulas of the last fit for the search with a number.
    selection : str or callable
        The estimator's `model_selection`.
    max_correlation : float
        Largest correlation of two components.
    """

    data: Dataset
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
        known, working, judged = Components(self.data.row_weights), self._components(raw=False), self._components(raw)
        fronts: list[Front] = []
        while len(fronts) < count and not self.searches.stopped_by_user:
            left = judged.deviation(judged.residual(self.data.target))
            if fronts and left <= EXPLAINED * judged.deviation(self.data.target):
                break
            front = self._front(working.residual(self.data.target), len(fronts))
            places, most = _by_preference(front, int(self._seen.sum())), self.max_correlation
            position = next((at for at in places if known.is_new(self._values(front[at]), most)), None)
            if position is None and (fronts or raw):
                break
            fronts.append(front if position is None else replace(front, best_index=position, reason=""))
            for components in (known, working, judged):
                components.add(self._values(fronts[-1].best))
        if raw:
            return fronts[: self._best(self._left(fronts, raw), raw)]
        beside, known = list[Front](), Components(self.data.row_weights)
        for front in [*self._linear(fronts[0]), *fronts]:
            if len(beside) < count and known.is_new(self._values(front.best), self.max_correlation):
                beside.append(front)
                known.add(self._values(front.best))
        best = self._best([*self._left(fronts, raw)[1:], *self._left(beside, raw)[1:]], raw)
        return fronts[: best + 1] if best < len(fronts) else beside[: best + 1 - len(fronts)]

    def _values(self, model: Model) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)  # of rows that the searches did not see
            return model.predict(self._rows)

    @cached_property
    def _seen(self) -> Mask:
        """Whether the searches see a row: all, if there are few."""
        if len(np.unique(self._rows, axis=0)) < FEWEST:
            return np.ones(self.data.n_rows, np.bool_)
        rows = replace(self.data, groups=self._parts(PARTS))
        return ~kept_back(rows, None if rows.groups is not None else "random", KEPT, self.searches.settings.seed)

    @cached_property
    def _serial(self) -> Serial | None:
        return with_serial_noise(self.data).serial

    def _parts(self, count: float | None = None) -> Indices | None:
        """Part of each row of a log, of so many or as there are independent rows; None if rows do not follow others."""
        if self._serial is None:
            return None
        shares = np.argsort(self._serial.order) / self.data.n_rows
        return (shares * (count or self._serial.independent_rows)).astype(np.int64)

    def _components(self, raw: bool) -> Components:
        weights = np.where(self._seen, 1.0, UNSEEN) * self.data.row_weights
        return Components(weights, self.data.columns if raw else None)

    def _left(self, fronts: Sequence[Front], raw: bool) -> list[Floats]:
        """What the first components, of each number from 0, leave of the target."""
        components = self._components(raw)
        found = [components.residual(self.data.target)]
        for front in fronts:
            components.add(self._values(front.best))
            found.append(components.residual(self.data.target))
        return found

    def _best(self, left: Sequence[Floats], clearly: bool) -> int:
        """The best model, by what each leaves of the target; or the first that none is `clearly` better than."""
        unseen = self._seen if self._seen.all() else ~self._seen
        scale = float(np.abs(self.data.target).max()) or 1.0
        weights = self.data.row_weights[unseen] / self.data.row_weights[unseen].sum()
        errors = weights * (np.array(left)[:, unseen] / scale) ** 2
        enough = (EXPLAINED * self._components(raw=False).deviation(self.data.target) / scale) ** 2
        if clearly:
            parts = self._parts()
            groups = None if parts is None else parts[unseen]
            return least_error(errors, groups, np.arange(len(left), dtype=np.float64), enough) or 0
        return int(np.argmin(np.maximum(np.nan_to_num(stable_sum(errors), nan=np.inf), enough)))

    def _linear(self, front: Front) -> list[Front]:
        """The linear model of the raw features as a front; empty if it is too long, or no formula may be it."""
        settings = self.searches.settings
        if settings.constraints != Constraints() or not {"add", "mul"} <= {str(each) for each in settings.primitives}:
            return []
        roots, names = np.sqrt(self._components(raw=False).weights), front.best.tree.parameters
        columns = roots * np.vstack([np.ones(len(roots)), self.data.columns])
        with np.errstate(all="ignore"):
            first, *slopes = least_squares(columns, roots * self.data.target).tolist()
        if 4 * len(names) > self.data.n_rows or not np.isfinite([first, *slopes]).all():
            return []
        terms = [repr(first), *(f"{slope!r}*{name}" for slope, name in zip(slopes, names, strict=True) if slope)]
        tree = parse(" + ".join(terms), names)
        return [replace(front, models=(replace(front.best, tree=tree),), best_index=0, beside=(), reason="")]

    @cached_property
    def _rows(self) -> Floats:
        return np.ascontiguousarray(self.data.columns.T)

    def _front(self, residual: Floats, number: int) -> Front:
        seen = replace(self.data, target=residual).take(self._seen)
        arrays = TrainingArrays(seen.columns.T, seen.target, sample_weight=seen.weights, times=seen.times)
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
