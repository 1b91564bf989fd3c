"""`SymbolicTransformer`: formulas as features."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin

from shine.base.errors import ExtrapolationWarning
from shine.base.typing import Floats
from shine.data.columns.numbers import int_if_exact, numbers
from shine.data.datasets.dataset import Dataset
from shine.faces.estimators.base import SymbolicEstimator, complete
from shine.faces.estimators.checks import checked_weights, seen, validated
from shine.faces.estimators.parameters import Selection
from shine.lang.forms.names import value_text
from shine.search.problem import DEFAULT_PRIMITIVES

if TYPE_CHECKING:
    from shine.formats.read.guesses import Guess
    from shine.lang.vocabulary import PrimitiveSource

MOST_COMPONENTS = 10_000
"""Most components: each has a search of its own, so that nobody waits for more."""


class SymbolicTransformer(TransformerMixin, SymbolicEstimator):
    """A scikit-learn transformer whose features are formulas that relate to a target, and little to one another.

    The components are chosen by what they add, together, to a linear model: the first is a formula for the target, each
    further one a formula for the residual of the earlier ones. The searches do not see a quarter of the rows. These say
    how many components pay: beside the raw features, by more than their standard error.

    There is no `objective`: what a component adds to the linear model decides. Search for formulas with a score of your
    own by ``SymbolicRegressor(objective=...)``.

    Parameters
    ----------
    n_components : int
        Most components. There are fewer if more do not pay, or if every further formula correlates with an earlier one
        by more than `max_correlation`; and none if nothing adds to the raw features.
    raw_features : bool
        Whether the raw features stay, before the components. If not, the components replace them; the first is then a
        linear model of them if that predicts better than formulas.
    max_correlation : float
        Largest absolute correlation of two components.
    model_selection : {"best", "accuracy", "score"} or callable
        Which formula of each front becomes a component (see `SymbolicRegressor`). If it is constant, or correlates too
        much with an earlier component, the formula of least loss that does not is taken instead.
    max_time : float, optional
        Seconds for all components together.
    population_size, generations, primitives, max_size, max_depth, stop_loss, parsimony, guesses, constraints, units, \
settings, n_jobs, executor, dtype, random_state, warm_start, verbose, callbacks
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
        executor: Any = None,
        dtype: str = "float64",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = (),
    ) -> None:
        self._store(locals())

    @complete
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, live: bool = False, times: Any = None
    ) -> Self:
        """Search for components, one after the other; Ctrl-C ends the search, keeps those found, and warns.

        Warnings and errors are those of `SymbolicRegressor.fit`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Finite numbers.
        y : array-like of shape (n_rows,)
            Finite numbers.
        sample_weight, live, times
            See `SymbolicRegressor.fit`.

        Returns
        -------
        self
        """
        # Slow to import, and only a fit needs it.
        from shine.faces.estimators.component_search import ComponentSearch

        rows, given = validated(self, X, y, y_numeric=True, ensure_min_samples=2)
        count = _checked_components(self.n_components, self.max_correlation)
        targets, weights = numbers(given, "y", 1), checked_weights(sample_weight, rows)
        weights, rows, targets, places = seen(weights, rows, targets, shuffled=True, times=times)
        data = Dataset.from_arrays(rows, targets, sample_weight=weights, times=places).merged()
        searches = self._fit_searches(count, [f"component {number}" for number in range(count)])
        find = ComponentSearch(data, searches, self._earlier, self.model_selection, self.max_correlation)
        with searches.shown(live, type(self).__name__, y):
            fronts = find.found(count, bool(self.raw_features))
        self.n_components_ = len(fronts)
        return self._found(searches, fronts, single=False)

    def transform(self, X: ArrayLike) -> Floats:
        """The raw features, unless the components replace them, and the values of the components.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features + n_components), or (n_rows, n_components), float64
            Not finite where a formula is not finite.
        """
        models = self._models(None)
        rows: Floats = validated(self, X, reset=False)
        with warnings.catch_warnings():
            # Components are features; what is made of them may or may not extrapolate.
            warnings.simplefilter("ignore", ExtrapolationWarning)
            raw = rows if self.raw_features else rows[:, :0]
            return np.column_stack([raw, *(model.predict(rows) for model in models)])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns in data frames: of a component its formula, with every digit if that tells them apart.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the raw features; compared with `feature_names_in_`, as scikit-learn requires.

        Raises
        ------
        ValueError
            If they differ.
        """
        models = self._models(None)
        known = getattr(self, "feature_names_in_", None)
        raw = [f"x{place}" for place in range(self.n_features_in_)] if known is None else list(known)
        if input_features is not None:
            given = list(input_features)
            if known is not None and given != list(known):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), "
                    f"got {len(given)}"
                )
            raw = given
        texts = [model.formula() for model in models]
        if len(set(texts)) < len(texts):
            texts = [model.expression for model in models]
        return np.array([*(raw if self.raw_features else ()), *texts], dtype=object)

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
    count = int_if_exact(count)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= MOST_COMPONENTS:
        allowed = f"a whole number from 1 to {MOST_COMPONENTS}"
        raise ValueError(f"n_components must be {allowed}, is {value_text(count)}")
    number = isinstance(max_correlation, int | float | np.number) and not isinstance(max_correlation, bool)
    if not number or not 0 < max_correlation <= 1:
        raise ValueError(f"max_correlation must be a number above 0 and at most 1, is {value_text(max_correlation)}")
    return int(count)
