"""Views of a fitted estimator: formulas in every form, tables and drawings, intervals of constants and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shine.base.errors import MissingExtraError
from shine.base.typing import Floats
from shine.data.columns.headings import without_columns
from shine.data.datasets.dataset import Dataset
from shine.faces.estimators.checks import check_in_memory, validated
from shine.faces.estimators.parameters import FREE, check_known, checked_index
from shine.lang.forms.synonyms import keywords_checked

if TYPE_CHECKING:
    from shine.evaluate.inference.bands import Kind as Band
    from shine.lang.forms.rounding import Precision
    from shine.search.models.front import Front
    from shine.search.models.measuring.box import Cost, Limits
    from shine.search.models.model import Model
    from shine.search.models.uncertain import Exact, Method

Index = int | Sequence[int] | None
"""Positions in the fronts: None for the chosen formulas, an integer for all fronts, or a sequence, one for each."""


class Estimator(BaseEstimator):
    """Parameters and displays of everything that is fitted; `front_` is what a fit finds."""

    front_: Any
    executor: Any
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
        kept = self.executor if isinstance(self.executor, int | str) else None  # others live in this process only
        return {**super().__getstate__(), "executor": kept}

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy, marked as a clone (see `_fitted_by_a_program`)."""
        # Executors cannot be copied; the copy uses the same one.
        bare = object.__new__(type(self))
        bare.__dict__.update(self.__dict__, executor=None)
        copy: Self = super(Estimator, bare).__sklearn_clone__()
        copy.executor, copy._is_clone = self.executor, True
        return copy

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "front_")

    def _fitted_text(self) -> str:
        """The table of what was found."""
        raise NotImplementedError

    def _fitted_html(self) -> str:
        """What was found, for notebooks."""
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters before `fit`, and the table of what was found after it."""
        return self._fitted_text() if self.__sklearn_is_fitted__() else str(super().__repr__(N_CHAR_MAX))

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # A property, as in scikit-learn, whose configuration decides whether the attribute exists.
        return self._fitted_html if self.__sklearn_is_fitted__() else super()._repr_html_

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return dict(super()._repr_mimebundle_(**kwargs))
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class FittedEstimator(Estimator):
    """Fitted attributes and displays of the estimators of formulas."""

    def _names(self) -> tuple[str, ...]:
        """Names of the validated features in formulas."""
        from shine.faces.estimators.checks import formula_names  # slow to import

        return formula_names(getattr(self, "feature_names_in_", None), self.n_features_in_)

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

        Axes and errors are those of `shine.Front.plot`.

        Parameters
        ----------
        kind : {"front", "fit", "residuals", "order", "dependence", "band", "constants"}
            Loss over complexity; predictions beside the target; residuals over predictions, or over the order of the
            rows; the mean value of the formula along each feature; the formula along each feature with its 95 % bands;
            the intervals of its constants. The second to the fifth need data, and so do bands of an estimator from a
            pickle. The fit of a classifier is the share of a class over its predicted probability; it has no residuals.
            A transformer has neither fit nor residuals.
        X : array-like or data frame of shape (n_rows, n_features), optional
        y : array-like, optional
            As in `fit`.
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        features : sequence of str or int, optional
            Features to draw the dependence on, by heading, name or position; by default all that the formula uses.
        ax : matplotlib.axes.Axes, or several, optional
            The axes to draw in, one for each drawing; those of a new figure by default.
        """
        from shine.search.models.plotting import Subject, check_kind, plotted

        models = self._models(index)
        if not models:
            raise ValueError("there is no formula to draw: no component adds to the raw features")
        check_kind(kind, self._drawings(), X, y)
        data: list[Dataset | None] = [None] * len(models)
        if X is not None:
            rows = self._rows_for(models, X)
            targets = [np.zeros(len(rows))] * len(models) if y is None else self._plotted_targets(y)
            data = [Dataset.from_arrays(rows, target, features=self._names()) for target in targets]
        units = {} if getattr(self, "units", None) is None else self._constraints(self._names()).units
        subjects = [
            Subject(front, front.best_index, title, own, front.index(model), self._quantity, units)
            for front, title, own, model in zip(self._fronts, self._titles, data, models, strict=True)
        ]
        return plotted(subjects, kind, self._drawings(), features, ax)

    def _rows_for(self, models: Sequence[Model], X: ArrayLike) -> Any:
        """Rows for formulas: without columns that only the loss reads, and with numbers for groups."""
        check_in_memory(X)
        given = models[0].with_group_numbers(without_columns(X, getattr(self, "loss_columns_", [])))
        return validated(self, given, reset=False)

    _quantity = ""
    """What the formulas compute, with its unit; empty if it has no name."""

    def _drawings(self) -> dict[str, Any]:
        """Drawings of a formula beside the target, by kind."""
        return {}

    def _plotted_targets(self, y: ArrayLike) -> list[Any]:
        """The target of each front."""
        return [y]

    def _fitted_text(self) -> str:
        return fitted_text(type(self).__name__, self._fronts, self._titles)

    def _fitted_html(self) -> str:
        return fitted_html(type(self).__name__, self._fronts, self._titles)

    def _repr_latex_(self) -> str | None:
        return fitted_latex(self._fronts, self._titles) if self.__sklearn_is_fitted__() else None

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        typeset = {"text/latex": str(self._repr_latex_())} if self.__sklearn_is_fitted__() else {}
        return super()._repr_mimebundle_(**kwargs) | typeset


class Equations(Mapping[str, list[Any]]):
    """The columns of a front by name, if pandas is not installed."""

    def __init__(self, front: Front) -> None:
        self._columns, self._text = front.columns(), repr(front)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return self._text


def equations(front: Front) -> Any:
    """A front as a DataFrame, or as `Equations` if pandas is not installed."""
    try:
        return front.to_frame()
    except MissingExtraError:
        return Equations(front)


def fitted_text(name: str, fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The tables of an estimator's fronts, each under its title."""
    parts = [] if fronts else [f"{name}.equations_ = []"]
    for front, title in zip(fronts, titles, strict=True):
        heading = f"{name}.equations_{f' of {title}' if title else ''} = ["
        parts.append("\n".join((heading, repr(front), "]")))
    return "\n".join(parts)


def fitted_latex(fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The chosen formulas, one per line, for notebooks that typeset LaTeX."""
    from shine.search.models.notebook import latex_text

    if not fronts:
        return r"$$\text{no component}$$"
    lines = [
        (rf"\text{{{latex_text(title)}}} = " if title else "") + front.best.latex()
        for front, title in zip(fronts, titles, strict=True)
    ]
    if len(lines) == 1:
        return f"$${lines[0]}$$"
    return r"$$\begin{gathered}" + r" \\ ".join(lines) + r"\end{gathered}$$"


def fitted_html(name: str, fronts: Sequence[Front], titles: Sequence[str]) -> str:
    """The chosen formula of each front, typeset, above the table of the front."""
    from shine.formats.page.markup import element
    from shine.search.models.notebook import page_part

    parts = [page_part(element("h4", name))]
    for front, title in zip(fronts, titles, strict=True):
        heading = page_part(element("h5", title)) if title else ""
        parts += [heading, front.best._repr_html_(), front._repr_html_()]
    return f"<div>{''.join(parts)}</div>"


class UncertainEstimator(FittedEstimator):
    """The part of an estimator that tells how sure it is; with several fronts, results are lists of one for each.

    A copy from a pickle does not have the rows of the fit: see `shine.search.models.uncertain.UncertainModel`.
    """

    def conf_int(
        self, level: float = 0.95, method: Method | None = None, *, index: Index = None, **options: Any
    ) -> Any:
        """Intervals of the constants of a formula, by their names in `summary`.

        Parameters
        ----------
        level : float
        method : {"profile", "wald"}, optional
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        **options
            Of `Model.conf_int`: ``exact``, ``covariance``.
        """
        return self._each(index, lambda model: model.conf_int(level, method, **options))

    def standard_errors(self, *, index: Index = None, **options: Any) -> Any:
        """Standard errors of the constants of a formula, by name (see `conf_int` for the parameters)."""
        return self._each(index, lambda model: model.standard_errors(**options))

    def correlations(self, *, index: Index = None, **options: Any) -> Any:
        """Correlations of the constants of a formula, shape (n_constants, n_constants) (see `conf_int`)."""
        return self._each(index, lambda model: model.correlations(**options))

    def summary(self, level: float = 0.95, method: Method | None = None, *, index: Index = None, **options: Any) -> Any:
        """The constants of a formula with their standard errors and intervals, to print (see `conf_int`)."""
        return self._each(index, lambda model: model.summary(level, method, **options))

    def next_measurement(self, box: Mapping[str, Limits] | None = None, n: int = 1, cost: Cost | None = None) -> Any:
        """Points to measure next, to tell the remaining formulas apart (see `Front.next_measurement`)."""
        check_is_fitted(self)
        found = [front.next_measurement(box, n, cost) for front in self._fronts]
        return found if isinstance(self.front_, list) else found[0]

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        kind: Band = "prediction",
        *,
        index: Index = None,
        exact: Exact = (),
    ) -> Floats:
        """Intervals of the values of a formula (see `Model.predict_interval` for what they rest on).

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        level : float
            Share of such intervals that hold the truth.
        kind : {"prediction", "mean"}
            Of new readings of the target, with their noise; or of the value that the formula has with the true
            constants.
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default (see `sympy`).
        exact : float or collection of float
            Numbers of the formula that are known exactly.

        Returns
        -------
        ndarray of shape (n_rows, 2) or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        models = self._models(index)
        rows = self._rows_for(models, X)
        ends = [model.predict_interval(rows, level, kind, exact=exact) for model in models]
        return ends[0] if not isinstance(self.front_, list) else np.stack(ends, axis=1)
