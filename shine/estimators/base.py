"""The base of all estimators: their parameters, the searches of a fit, and the fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from multiprocessing import current_process, parent_process
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shine.data.dataset import Dataset
from shine.errors import InterruptedFitWarning
from shine.estimators.checks import validated
from shine.estimators.display import equations, fitted_html, fitted_latex, fitted_text
from shine.estimators.parameters import (
    DEPRECATED,
    FREE,
    check_known,
    check_parameters,
    checked_index,
    checked_seed,
    checked_settings,
    checked_threads,
    checked_units,
    words_of,
)
from shine.estimators.reports import reporter
from shine.estimators.selection import Selection, selected
from shine.words import keywords_checked, unexpected

if TYPE_CHECKING:
    from shine.estimators.fit_searches import FitSearches
    from shine.frontends.guesses import Guess
    from shine.gp.constraints.constraints import Constraints
    from shine.lang.rounding import Precision
    from shine.lang.vocabulary import PrimitiveSource
    from shine.search.front import Front
    from shine.search.model import Model

Fit = TypeVar("Fit", bound=Callable[..., Any])
Index = int | Sequence[int] | None
"""Positions in the fronts: None for the chosen formulas, an integer for all fronts, or a sequence, one for each."""


def complete(fit: Fit) -> Fit:
    """Decorate a method `fit`: if it raises, the estimator stays as it was before; unknown keywords are answered."""
    allowed = [name for name in signature(fit).parameters if name != "self"]

    @wraps(fit)
    def whole(self: SymbolicEstimator, *arguments: Any, **options: Any) -> Any:
        for word in options:
            if word not in allowed:
                raise unexpected(f"{type(self).__name__}.fit", word, allowed)
        self._check_former_names()
        before = dict(vars(self))
        try:
            return fit(self, *arguments, **options)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return cast(Fit, whole)


class SymbolicEstimator(BaseEstimator):
    """Parameters, fitted attributes and displays of all estimators.

    See `SymbolicRegressor` for the parameters.
    """

    population_size: int
    generations: int | None
    primitives: Sequence[PrimitiveSource]
    max_size: int
    max_depth: int
    max_time: float | None
    stop_loss: float
    parsimony: float
    model_selection: Selection
    guesses: Sequence[Guess]
    constraints: Any
    units: tuple[Any, str] | None
    settings: Mapping[str, Any] | None
    n_jobs: int | None
    dtype: str
    random_state: Any
    warm_start: bool
    verbose: int
    callbacks: Any
    seeds: Any

    _is_clone = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = keywords_checked(vars(cls)["__init__"], FREE)  # type: ignore[method-assign]

    def _store(self, variables: Mapping[str, Any]) -> None:
        """Store the parameters of `__init__`, which passes its `locals()`.

        scikit-learn reads the signature of each estimator, so each needs its own; it is the only list of parameters.
        """
        self.__dict__.update({name: value for name, value in variables.items() if name not in ("self", "__class__")})

    def set_params(self, **params: Any) -> Self:
        """Set parameters (see `sklearn.base.BaseEstimator.set_params`); a `ValueError` names an unknown one."""
        check_known(type(self).__name__, params, self._get_param_names())
        super().set_params(**params)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle. Functions of a notebook or a script are kept as what was read from their source."""
        from shine.estimators.portable import portable_parameters  # slow to import

        return {
            **super().__getstate__(),
            **portable_parameters(self.primitives, self.guesses, getattr(self, "loss", None)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle, also of a former version, which has `seeds` in place of `guesses`."""
        if "guesses" not in state and "seeds" in state:
            state = {**state, "guesses": state["seeds"], "seeds": DEPRECATED}
        super().__setstate__(state)

    @property
    def _seeds_are_given(self) -> bool:
        """Whether the guesses are given by their former name."""
        return not (isinstance(self.seeds, str) and self.seeds == DEPRECATED)

    @property
    def _given_guesses(self) -> Sequence[Guess]:
        given: Sequence[Guess] | None = self.seeds if self._seeds_are_given else self.guesses
        return () if given is None else given

    def _check_former_names(self) -> None:
        """Warn, where `fit` is called, of parameters with former names."""
        if self._seeds_are_given:
            if self.guesses is not None and list(self.guesses):
                raise ValueError("seeds is the former name of guesses; pass only guesses")
            message = f"{type(self).__name__} calls the parameter 'seeds' 'guesses' now"
            warnings.warn(message, FutureWarning, stacklevel=3)

    def _fit_searches(
        self,
        count: int,
        titles: Sequence[str] = ("",),
        labels: Mapping[str, tuple[str, ...]] | None = None,
        **fitness: Any,
    ) -> FitSearches:
        """The searches of a fit over the validated features; the parameters are checked here."""
        # Slow to import, and only a fit needs them.
        from shine.estimators.fit_searches import FitSearches
        from shine.search.keywords import settings_from

        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        names = self._names()
        others = checked_settings(self.settings, parameters)
        prefixes = [f"{title}: " if title else "" for title in titles]
        settings = settings_from(
            primitives=self.primitives,
            generations=self.generations,
            seconds=self.max_time,
            stop_loss=self.stop_loss,
            dtype=self.dtype,
            threads=checked_threads(self.n_jobs),
            seed=checked_seed(self.random_state) + (self.generations_ if self._goes_on() else 0),
            constraints=self._constraints(names),
            words=words_of(others),
            **others,
            **fitness,
        )
        return FitSearches(
            count,
            names,
            self._headings(),
            settings,
            lambda number, stop: reporter(self.callbacks, self.verbose, prefixes[number % len(prefixes)], stop),
            keep=not self._fitted_by_a_program,
            labels=labels or {},
        )

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy, marked as a clone (see `_fitted_by_a_program`)."""
        copy: Self = super().__sklearn_clone__()
        copy._is_clone = True
        return copy

    @property
    def _fitted_by_a_program(self) -> bool:
        """Whether a program calls `fit`, not a user who sees its warnings.

        Programs such as cross-validation fit clones, as scikit-learn requires, or run in processes of their own. They
        would take an interrupted fit for a complete one.
        """
        return self._is_clone or parent_process() is not None or current_process().name != "MainProcess"

    def _names(self) -> tuple[str, ...]:
        """Names of the validated features in formulas."""
        from shine.estimators.names import formula_names  # slow to import

        return formula_names(getattr(self, "feature_names_in_", None), self.n_features_in_)

    def _headings(self) -> list[str]:
        """Headings of the validated features; their names in formulas if there are none."""
        return [str(heading) for heading in getattr(self, "feature_names_in_", self._names())]

    def _constraints(self, names: Sequence[str]) -> Constraints:
        from shine.search.keywords import constraints_from  # slow to import

        constraints = constraints_from(self.constraints)
        if self.units is None:
            return constraints
        features, target = checked_units(self.units, self._headings(), names)
        return replace(constraints, units=features, target_unit=target)

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and self.__sklearn_is_fitted__()

    def _guesses(self, number: int, linear_scaling: bool = True, with_template: bool = False) -> list[Any]:
        """Guesses of the search with the given number."""
        guesses: list[Any] = list(self._given_guesses)
        if self._goes_on() and number < len(self._fronts):
            if with_template:
                return [*guesses, *self._fronts[number]]
            models = [model.tree for model in self._fronts[number]]
            limits = (self._names(), self.primitives, self.max_size, self.max_depth)
            from shine.estimators.guesses import guesses_within  # slow to import

            guesses += guesses_within(models, *limits, linear_scaling)
        return guesses

    def _found(self, searches: FitSearches, fronts: Sequence[Front], single: bool) -> Self:
        """Set the fitted attributes from the searches of a fit."""
        chosen = [selected(front, self.model_selection) for front in fronts]
        before = vars(self) if self._goes_on() else {"generations_": 0, "evaluations_": 0}
        self.generations_: int = before["generations_"] + sum(result.generations for result in searches.results)
        self.evaluations_: int = before["evaluations_"] + sum(result.evaluations for result in searches.results)
        self.seconds_ = sum(result.seconds for result in searches.results)
        self.stopped_by_ = searches.stopped_by
        self.formula_names_ = np.array(searches.features, dtype=object)
        self.best_ = chosen[0].best if single else [front.best for front in chosen]
        self.front_ = chosen[0] if single else chosen
        if self.stopped_by_ == "interrupted":
            generations = sum(result.generations for result in searches.results)
            message = (
                f"the fit was interrupted after {generations} generation{'s' * (generations != 1)}, and has kept the "
                "best formulas so far; to go on from them, set warm_start=True and fit again"
            )
            warnings.warn(message, InterruptedFitWarning, stacklevel=4)  # where fit was called
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "front_")

    @property
    def _fronts(self) -> list[Front]:
        """The fronts as a list, even if there is only one."""
        return [self.front_] if not isinstance(self.front_, list) else self.front_

    @property
    def _titles(self) -> list[str]:
        """Title of each front; empty if there is only one."""
        fronts = self._fronts
        return [""] if len(fronts) == 1 else [f"output {number}" for number in range(len(fronts))]

    def _models(self, index: Index) -> list[Model]:
        """The formula of each front at an index."""
        check_is_fitted(self)
        if index is None:
            return [front.best for front in self._fronts]
        several = isinstance(index, list | tuple | np.ndarray) and np.ndim(index)
        indices: list[Any] = [*index] if several else [index] * len(self._fronts)  # type: ignore[misc]
        if len(indices) != len(self._fronts):
            raise ValueError(f"index has {len(indices)} positions; there are {len(self._fronts)} fronts")
        return [front[checked_index(place, front)] for front, place in zip(self._fronts, indices, strict=True)]

    def _each(self, index: Index, form: Callable[[Model], Any]) -> Any:
        """The formula at an index in a form; a list if there are several fronts."""
        forms = [form(model) for model in self._models(index)]
        return forms[0] if not isinstance(self.front_, list) else forms

    @property
    def equations_(self) -> Any:
        """The front as a pandas DataFrame, or as columns by name if pandas is not installed.

        Complexity, loss, score, exact expression, and equation for people of each formula; a list of such tables if
        there are several fronts.
        """
        check_is_fitted(self)
        tables = [equations(front) for front in self._fronts]
        return tables[0] if not isinstance(self.front_, list) else tables

    def get_best(self) -> Any:
        """The chosen `shine.Model`, or a list of one for each front."""
        return self._each(None, lambda model: model)

    def sympy(self, index: Index = None, *, precision: Precision = None) -> Any:
        """A formula as a SymPy expression.

        Parameters
        ----------
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default. With several fronts, the result is a list, and `index`
            may have a position for each front.
        precision : int, "exact" or None
            Significant digits of constants, or all; by default those that the data support.
        """
        return self._each(index, lambda model: model.sympy(precision))

    def latex(self, index: Index = None, *, precision: Precision = None) -> Any:
        """A formula in LaTeX, with the headings of the columns (see `sympy` for the parameters)."""
        return self._each(index, lambda model: model.latex(precision))

    def python(self, index: Index = None, *, precision: Precision = None) -> Any:
        """A formula as the source of a Python function, by default with all digits (see `sympy` for the parameters)."""
        return self._each(index, lambda model: model.python(precision=precision))

    def plot(
        self,
        kind: str = "front",
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        index: Index = None,
        features: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the front or a formula with Matplotlib; there is a drawing for each front if there are several.

        Parameters
        ----------
        kind : {"front", "fit", "residuals", "dependence"}
            Loss over complexity; predictions beside the target; residuals over predictions; the mean value of the
            formula along each feature. All but the first need data, which the estimator does not keep. The fit of a
            classifier is the share of a class over its predicted probability; it has no residuals. A transformer has
            neither fit nor residuals.
        X : array-like or data frame of shape (n_rows, n_features), optional
        y : array-like, optional
            As in `fit`.
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        features : sequence of str or int, optional
            Features to draw the dependence on, by heading, name or position; by default all that the formula uses.
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
        from shine.search.plotting import Subject, check_kind, plotted

        models = self._models(index)
        check_kind(kind, self._drawings(), X, y)
        data: list[Dataset | None] = [None] * len(models)
        if X is not None:
            rows = validated(self, X, reset=False)
            targets = [np.zeros(len(rows))] * len(models) if y is None else self._plotted_targets(y)
            data = [Dataset.from_arrays(rows, target, None, self._names()) for target in targets]
        subjects = [
            Subject(front, front.best_index, title, own, front.index(model), self._quantity)
            for front, title, own, model in zip(self._fronts, self._titles, data, models, strict=True)
        ]
        return plotted(subjects, kind, self._drawings(), features, ax)

    _quantity = "prediction"
    """What formulas compute, at the axis of a drawing."""

    def _drawings(self) -> dict[str, Any]:
        """Drawings of a formula beside the target, by kind."""
        return {}

    def _plotted_targets(self, y: ArrayLike) -> list[Any]:
        """The target of each front."""
        return [y]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters before `fit`, and the table of formulas after it."""
        if not self.__sklearn_is_fitted__():
            return str(super().__repr__(N_CHAR_MAX))
        return fitted_text(type(self).__name__, self._fronts, self._titles)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # A property, as in scikit-learn, whose configuration decides whether the attribute exists.
        if not self.__sklearn_is_fitted__():
            return super()._repr_html_
        return lambda: fitted_html(type(self).__name__, self._fronts, self._titles)

    def _repr_latex_(self) -> str | None:
        return fitted_latex(self._fronts, self._titles) if self.__sklearn_is_fitted__() else None

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return dict(super()._repr_mimebundle_(**kwargs))
        return {"text/plain": repr(self), "text/html": self._repr_html_(), "text/latex": str(self._repr_latex_())}
