"""`SymbolicTransformer`: formulas as features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin

from shine.data.dataset import Dataset, numbers
from shine.data.of_r import whole
from shine.estimators.base import DEPRECATED, SymbolicEstimator, complete
from shine.estimators.checks import checked_weights, validated
from shine.estimators.components import Components
from shine.estimators.fit_searches import FitSearches
from shine.estimators.rows import merged
from shine.estimators.selection import Selection, selected
from shine.frontends.guesses import Guess
from shine.gp.description import NATS_A_NODE
from shine.lang.parse import PrimitiveSource
from shine.search.choice import CONVINCING, fitted_constants
from shine.search.front import Front
from shine.search.model import Model
from shine.search.run import search
from shine.search.settings import DEFAULT_PRIMITIVES
from shine.typing import Floats

EXPLAINED = 1e-12
"""Standard deviation of the residual, as a share of the target's, below which nothing is left to explain."""


class SymbolicTransformer(TransformerMixin, SymbolicEstimator):
    """A scikit-learn transformer whose features are formulas that relate to a target, and little to one another.

    The components are chosen by what they add to a linear model of the raw features and of one another: candidates come
    from a search for the target, then from searches for the residual, and one becomes a component if it shortens the
    description of the target by more than it takes to write it down. So the components beside the raw features, in a
    `FeatureUnion`, are rarely worse than these alone.

    Parameters
    ----------
    n_components : int
        Most components. There are fewer if no other formula adds anything, or if every further formula correlates with
        an earlier one by more than `max_correlation`. If nothing adds to the raw features, the only component is a
        formula that is linear in them, or a constant.
    raw_features : bool
        Whether the components will stand beside the raw features. If not, they replace them: the first component is a
        formula for the target, and each further one a formula for the residual of a linear model of the earlier ones.
    max_correlation : float
        Largest absolute correlation of two components.
    model_selection : {"best", "accuracy", "score"} or callable
        Which formula of each front becomes a component (see `SymbolicRegressor`). If it is constant, or correlates too
        much with an earlier component, the formula of least loss that does not is taken instead. Beside the raw
        features, the formulas up to the chosen one are candidates with "best", and else the chosen ones only.
    max_time : float, optional
        Seconds for all components together.
    population_size, generations, primitives, max_size, max_depth, stop_loss, parsimony, guesses, constraints, units, \
settings, n_jobs, dtype, random_state, warm_start, verbose, callbacks, seeds
        See `SymbolicRegressor`.

    Attributes
    ----------
    best_ : list of Model
        The components.
    n_components_ : int
        Number of components.
    front_ : list of Front
        The front that each component was chosen from.
    equations_, n_features_in_, feature_names_in_, formula_names_, generations_, evaluations_, seconds_, stopped_by_
        See `SymbolicRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from shine.estimators import SymbolicTransformer
    >>> X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    >>> y = X[:, 0] * X[:, 1] + np.sin(X[:, 0])
    >>> transformer = SymbolicTransformer(n_components=2, generations=5, random_state=0)
    >>> transformer.fit_transform(X, y).shape[0]
    200
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        raw_features: bool = True,
        max_correlation: float = 0.95,
        population_size: int = 1000,
        generations: int | None = None,
        primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
        max_size: int = 30,
        max_depth: int = 10,
        max_time: float | None = 60.0,
        stop_loss: float = 1e-20,
        parsimony: float = 0.02,
        model_selection: Selection = "best",
        guesses: Sequence[Guess] = (),
        constraints: Any = None,
        units: Any = None,
        settings: Mapping[str, Any] | None = None,
        n_jobs: int | None = -1,
        dtype: str = "float64",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = (),
        seeds: Any = DEPRECATED,
    ) -> None:
        self._store(locals())

    @complete
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Search for components, one after the other; Ctrl-C ends the search, keeps those found, and warns.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Finite numbers.
        y : array-like of shape (n_rows,)
            Finite numbers.
        sample_weight : array-like of shape (n_rows,), optional
            A whole weight counts like as many equal rows.

        Returns
        -------
        self

        Warns
        -----
        InterruptedFitWarning
            If Ctrl-C ended the search.

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is invalid; the message is scikit-learn's where it has one.
        UnsupportedSyntaxError, DataError
            If a guess or a function is not part of the language, or no formula has a finite loss.
        KeyboardInterrupt
            On Ctrl-C if the estimator is a clone, as in cross-validation, or runs in a process of its own; and on a
            second Ctrl-C. The estimator then stays as it was, as after every other error.
        """
        rows, given = validated(self, X, y, y_numeric=True, ensure_min_samples=2)
        count = _checked_components(self.n_components, self.max_correlation)
        targets = numbers(given, "y", 1).reshape(-1, 1)
        rows, targets, weights, _ = merged(rows, targets, checked_weights(sample_weight, rows))
        target = targets[:, 0]
        find = self._beside if self.raw_features else self._instead
        searches, fronts = find(count, rows, target, weights)
        self.n_components_ = len(fronts)
        return self._found(searches, fronts, single=False)

    def _beside(
        self, count: int, rows: Floats, target: Floats, weights: Floats | None
    ) -> tuple[FitSearches, list[Front]]:
        """Components for a linear model that has the raw features, too."""
        components = Components(np.ones(len(rows)) if weights is None else weights, rows.T)
        # The first search is for the target itself: its simplest laws need not be laws for the residual.
        searches = self._fit_searches(count + 1, ["target", *(f"residual {number}" for number in range(count))])
        effective = Dataset.from_arrays(rows, target, weights).effective_rows
        fronts: list[Front] = []
        candidates: list[tuple[Front, int, Floats, float]] = []
        first: Front | None = None
        while len(fronts) < count and not searches.stopped_by_user:
            residual = target if first is None else components.residual(target)
            if first is not None and components.deviation(residual) <= EXPLAINED * components.deviation(target):
                break
            front = searches.run(search, rows, residual, weights, self._guesses(len(searches.results))).front
            front = selected(front, self.model_selection)
            # Larger formulas than the recommended one fit the noise.
            chosen = range(front.best_index + 1) if self.model_selection == "best" else [front.best_index]
            chosen = [at for at in chosen if front[at].tree.size <= len(rows)]
            candidates += [(front, at, front[at].predict(rows), _price(front[at], effective)) for at in chosen]
            candidates = [each for each in candidates if components.is_new(each[2], self.max_correlation)]
            added = max(
                candidates,
                key=lambda each: components.nats_saved(each[2], target, effective) - each[3],
                default=None,
            )
            if added is not None and components.nats_saved(added[2], target, effective) > added[3]:
                components.add(added[2])
                fronts.append(Front(added[0].models, added[1]))
            elif first is not None:
                break
            first = first or front
        assert first is not None
        return searches, fronts or [_within(first, components, rows)]

    def _instead(
        self, count: int, rows: Floats, target: Floats, weights: Floats | None
    ) -> tuple[FitSearches, list[Front]]:
        """Components that replace the raw features."""
        components = Components(np.ones(len(rows)) if weights is None else weights)
        searches = self._fit_searches(count, [f"component {number}" for number in range(count)])
        fronts: list[Front] = []
        while len(fronts) < count and not searches.stopped_by_user:
            residual = components.residual(target)
            if fronts and components.deviation(residual) <= EXPLAINED * components.deviation(target):
                break
            front = searches.run(search, rows, residual, weights, self._guesses(len(fronts))).front
            front = selected(front, self.model_selection)
            position = components.first_new(
                ((position, front[position].predict(rows)) for position in _by_preference(front, len(rows))),
                self.max_correlation,
            )
            if position is not None:
                front = Front(front.models, position)
            elif fronts:
                break
            components.add(front.best.predict(rows))
            fronts.append(front)
        return searches, fronts

    def transform(self, X: ArrayLike) -> Floats:
        """Values of the components.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components), float64
            Not finite where a formula is not finite.
        """
        models = self._models(None)
        X = validated(self, X, reset=False)
        return np.column_stack([model.predict(X) for model in models])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The components as text: the names of their columns in data frames.

        Parameters
        ----------
        input_features : array-like of str, optional
            Only compared with `feature_names_in_`, as scikit-learn requires.

        Raises
        ------
        ValueError
            If they differ.
        """
        models = self._models(None)
        if input_features is not None:
            given, known = list(input_features), getattr(self, "feature_names_in_", None)
            if known is not None and given != list(known):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), "
                    f"got {len(given)}"
                )
        return np.array([model.expression for model in models], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"requires_y": True}  # before scikit-learn 1.6

    @property
    def _titles(self) -> list[str]:
        return [f"component {number}" for number in range(len(self.front_))]


def _checked_components(count: int, max_correlation: float) -> int:
    count = whole(count)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"n_components must be an integer of at least 1, is {count!r}")
    if not 0 < max_correlation <= 1:
        raise ValueError(f"max_correlation must be above 0 and at most 1, is {max_correlation!r}")
    return int(count)


def _price(model: Model, rows: float) -> float:
    """Nats that a component must save: those to write it down, and what convinces."""
    return NATS_A_NODE * model.tree.size + 0.5 * fitted_constants(model.tree) * math.log(max(rows, 1.0)) + CONVINCING


def _within(front: Front, components: Components, rows: Floats) -> Front:
    """The front with the formula of least loss that is linear in the raw features, or a constant: it adds nothing."""
    small = [at for at, model in enumerate(front) if model.tree.size <= len(rows)]
    return Front(front.models, max((at for at in small if components.depends(front[at].predict(rows))), default=0))


def _by_preference(front: Front, rows: int) -> list[int]:
    """Positions of a front: the chosen one, then by rising loss; formulas with more nodes than rows last, by size."""

    def place(position: int) -> tuple[bool, float]:
        size = front[position].tree.size
        return size > rows, float(size) if size > rows else front[position].loss

    others = sorted(range(len(front)), key=place)
    return list(dict.fromkeys([front.best_index, *others]))
