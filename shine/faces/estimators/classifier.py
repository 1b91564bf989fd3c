"""`SymbolicClassifier`: formulas for the odds of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from shine.base.typing import AnyArray, Floats
from shine.faces.estimators.base import SymbolicEstimator, complete
from shine.faces.estimators.checks import checked_weights, seen, validated
from shine.faces.estimators.fitted import Index, UncertainEstimator
from shine.faces.estimators.parameters import Selection
from shine.lang.forms.names import value_text
from shine.search.problem import DEFAULT_PRIMITIVES

if TYPE_CHECKING:
    from shine.evaluate.inference.bands import Kind as Band
    from shine.formats.read.guesses import Guess
    from shine.lang.vocabulary import PrimitiveSource
    from shine.search.models.uncertain import Exact


class SymbolicClassifier(ClassifierMixin, UncertainEstimator, SymbolicEstimator):
    """A scikit-learn estimator that finds short formulas for the odds of classes.

    With two classes, one formula gives the logarithm of the odds of the second class, ``log(p / (1 - p))``; its
    log-loss is minimized. With more classes, each class has such a formula for it against all others, and the
    probabilities are divided by their sum.

    Parameters
    ----------
    stop_loss : float
        A search ends when the log-loss of its best formula is below this share of the best constant's.
    population_size, generations, primitives, max_size, max_depth, max_time, parsimony, model_selection, guesses, \
constraints, units, settings, n_jobs, executor, dtype, random_state, warm_start, verbose, callbacks
        See `SymbolicRegressor`. Constraints hold for the logarithm of the odds, whose unit is 1. There is no
        `objective`: formulas are compared by their log-loss, which makes their values odds. Search for a score of your
        own with ``SymbolicRegressor(objective=...)`` and 0 and 1 as the target.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted shares of the classes, predicted where a formula is not a number.
    best_ : Model
        The chosen formula. With more than two classes, a list with one for each; `front_` and `equations_` are, too.
    front_ : Front
        The Pareto front; the losses are mean log-losses, in nats.
    equations_, n_features_in_, feature_names_in_, formula_names_, generations_, evaluations_, seconds_, stopped_by_
        See `SymbolicRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from shine.estimators import SymbolicClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    >>> inside = np.hypot(X[:, 0], X[:, 1]) < 1.5
    >>> model = SymbolicClassifier(primitives=["add", "sub", "mul"], generations=10, random_state=0)
    >>> bool(model.fit(X, inside).score(X, inside) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        population_size: int = 1000,
        generations: int | None = None,
        primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
        max_size: int = 30,
        max_depth: int = 10,
        max_time: float | None = 60.0,
        stop_loss: float = 1e-3,
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
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, live: bool = False) -> Self:
        """Search for formulas; Ctrl-C ends the search, keeps what it found, and warns.

        Warnings and errors are those of `SymbolicRegressor.fit`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Finite numbers. The order of the rows does not matter: classes have no errors that follow one another.
        y : array-like of shape (n_rows,)
            Classes: numbers, strings or truth values; at least two of positive weight.
        sample_weight, live
            See `SymbolicRegressor.fit`.

        Returns
        -------
        self
        """
        rows, labels = validated(self, X, y, ensure_min_samples=2)
        _check_kinds(labels)
        with np.errstate(invalid="ignore"):  # scikit-learn compares numbers beyond int64 with whole ones
            check_classification_targets(labels)
        weights = checked_weights(sample_weight, rows)
        # Without the rows of weight 0: a class that occurs only in them does not count.
        weights, rows, labels, _ = seen(weights, rows, labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the data contains only "
                f"one class: {classes.tolist()[0]!r}"
            )
        prior = np.bincount(codes, weights)
        weights, rows, codes, _ = seen(weights, rows, codes, shuffled=True)
        self.classes_, self.class_prior_ = classes, prior / prior.sum()
        # Slow to import, and only a fit needs them.
        from shine.data.user_data import TrainingArrays
        from shine.search.kinds.classes import ClassesProblem
        from shine.search.run import search

        searched = [1] if len(classes) == 2 else list(range(len(classes)))
        titles = [""] if len(searched) == 1 else [f"class {classes[code]}" for code in searched]
        searches, find = self._fit_searches(len(searched), titles), partial(search, kind=ClassesProblem)
        arrays = TrainingArrays(rows, None, sample_weight=weights)
        with searches.shown(live, type(self).__name__, y):
            fronts = [
                searches.run(find, replace(arrays, y=(codes == code).astype(np.float64)), self._earlier(number)).front
                for number, code in enumerate(searched)
            ]
        return self._found(searches, fronts, single=len(searched) == 1)

    def decision_function(self, X: ArrayLike, index: Index = None) -> Floats:
        """Logarithm of the odds of the second class; with more than two classes, of each class against all others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default. With several fronts, one position for each or for all.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes), float64
            In nats; where the formula is not a number, the log-odds of the class's share.
        """
        scores = self._scores(X, index)
        return scores[:, 0] if not isinstance(self.front_, list) else scores

    def predict_proba(self, X: ArrayLike, index: Index = None) -> Floats:
        """Probabilities of the classes, in the order of `classes_` (see `decision_function` for the arguments).

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            Each row sums to 1.
        """
        scores = self._scores(X, index)
        if scores.shape[1] == 1:
            scores = np.column_stack([-scores[:, 0], scores[:, 0]])
        # Divide by the largest first: with many classes, all may be so unlikely that their probabilities underflow.
        logarithms = -np.logaddexp(0.0, -scores)
        likelihoods = np.exp(logarithms - np.maximum(logarithms.max(axis=1, keepdims=True), -1e300))
        shares: Floats = likelihoods / likelihoods.sum(axis=1, keepdims=True)
        return shares

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        kind: Band = "mean",
        *,
        index: Index = None,
        exact: Exact = (),
    ) -> Floats:
        """Intervals of the probabilities of two classes, by the binomial likelihood.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        level : float
            Share of such intervals that hold the probability that the formula has with the true constants.
        kind : {"mean"}
            Of the probability; a new reading is one class or the other.
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `decision_function`).
        exact : float or collection of float
            Numbers of the formula that are known exactly (see `shine.Model.conf_int`).

        Returns
        -------
        ndarray of shape (n_rows, 2, 2)
            Lower and upper ends for each class, in the order of `classes_`; NaN where the formula is not a number.

        Raises
        ------
        ValueError
            If the kind is another one, or there are more than two classes. Each class then has a formula of its own,
            with intervals of its constants (`conf_int`); how their errors go together is not known.
        """
        models = self._models(index)
        if len(models) > 1:
            raise ValueError(
                f"probabilities of {len(models)} classes have no intervals: each has a formula of its own, and how "
                "their errors go together is not known; use conf_int() for the constants, or fit two classes at a time"
            )
        if kind != "mean":
            raise ValueError(f"kind is {kind!r}; probabilities have intervals of kind 'mean': a new reading is a class")
        ends = models[0].predict_interval(self._rows_for(models, X), level, "mean", exact=exact)
        with np.errstate(over="ignore"):
            second = 1 / (1 + np.exp(-ends))
        return np.stack([1 - second[:, ::-1], second], axis=1)

    def predict(self, X: ArrayLike, index: Index = None) -> AnyArray:
        """The likeliest class of each row (see `decision_function` for the arguments).

        Returns
        -------
        ndarray of shape (n_rows,)
            Elements of `classes_`.
        """
        scores = self._scores(X, index)
        codes = scores.argmax(axis=1) if scores.shape[1] > 1 else np.int64(scores[:, 0] > 0)
        predicted: AnyArray = self.classes_[codes]
        return predicted

    def _scores(self, X: ArrayLike, index: Index) -> Floats:
        """The logarithms of odds, shape (n_rows, n_fronts)."""
        models = self._models(index)
        X = validated(self, X, reset=False)
        scores = np.column_stack([model.predict(X) for model in models])
        shares = self.class_prior_[-len(models) :]
        return np.where(np.isnan(scores), np.log(shares / (1 - shares)), scores)

    _quantity = "log-odds"

    def _drawings(self) -> dict[str, Any]:
        from shine.search.models.plotting import ODDS

        return ODDS

    def _plotted_targets(self, y: ArrayLike) -> list[Any]:
        classes = self.classes_[-len(self._fronts) :]
        return [np.float64(np.asarray(y) == name) for name in classes]

    @property
    def _titles(self) -> list[str]:
        return [""] if not isinstance(self.front_, list) else [f"class {name}" for name in self.classes_]


def _check_kinds(labels: AnyArray) -> None:
    """Raise a `ValueError` if a class is missing, or some are texts and others numbers: they have no order."""
    if labels.dtype != object:
        return
    missing = [row for row, label in enumerate(labels.tolist()) if label is None]
    if missing:
        raise ValueError(f"y has no class in {len(missing)} rows, the first in row {missing[0]}; leave these rows out")
    first = isinstance(labels[0], str)
    for row, label in enumerate(labels.tolist()):
        if isinstance(label, str) != first:
            raise ValueError(
                f"y has {value_text(labels[0])} in row 0 and {value_text(label)} in row {row}; classes are all texts, "
                "or all numbers"
            )
