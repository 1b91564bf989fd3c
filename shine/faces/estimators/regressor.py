"""`SymbolicRegressor`: formulas for one or several numeric targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from shine.base.typing import Floats
from shine.data.columns.headings import LossColumns, split_loss_columns
from shine.data.columns.numbers import check_loss_columns, numbered_groups, numbers
from shine.faces.estimators.base import SymbolicEstimator, complete
from shine.faces.estimators.checks import check_in_memory, checked_sigma, checked_weights, seen, validated
from shine.faces.estimators.fitted import Index, UncertainEstimator
from shine.faces.estimators.parameters import Selection
from shine.search.problem import DEFAULT_PRIMITIVES

if TYPE_CHECKING:
    from shine.evaluate.inference.bands import Kind as Band
    from shine.evaluate.losses import LossSource
    from shine.faces.estimators.fit_searches import Search
    from shine.formats.read.guesses import Guess
    from shine.lang.vocabulary import PrimitiveSource
    from shine.search.models.front import Front


class SymbolicRegressor(RegressorMixin, UncertainEstimator, SymbolicEstimator):
    """A scikit-learn estimator that finds short formulas for a target.

    Parameters
    ----------
    population_size : int
        Number of formulas that survive a generation, and of offspring in it.
    generations : int, optional
        Most generations after the first population; no limit by default.
    primitives : sequence of str, function or Primitive
        Functions in formulas: names of Shine's primitives, Python functions in the restricted language, or functions
        of other languages, read by `shine.primitive_from_llvm`.
    max_size, max_depth : int
        Most nodes, and most levels, of a formula in the search.
    max_time : float, optional
        Most seconds of a fit; None for no limit. A fit ends earlier if the problem is solved, or if nothing has
        improved for long; ``settings={"stagnation": None}`` begins anew then. If the seconds end it, its result depends
        on the machine's speed.
    loss : str or function
        The loss to minimize: "mse", "rmse", "mae", "nmse", "r2"; one of `shine.losses`, such as "poisson" or
        "quantile(0.9)"; or a function of `prediction`, `target`, and columns beside the data.
    noise : {"auto", "absolute", "relative", "log", "counts"}
        Growth of the target's noise: none, with its values, with their logarithms, or with their roots;
        "auto" lets evidence decide if the target has one sign and is wide, or has whole numbers from 0.
    validation : {"random", "groups", "time"}, optional
        Rows to keep back from the search, to choose the formula by; its constants are then fitted to all rows. At
        random, whole groups of ``fit(..., groups=...)``, or the last rows. By default whole groups if there are
        groups, and otherwise none: the shortest description of all rows is best.
    validation_fraction : float
        Least share of the rows to keep back.
    linear_scaling : bool
        Whether each formula is judged with its best slope and intercept, which become part of it.
    stop_loss : float
        Share of the best constant's loss that is good enough to stop.
    parsimony : float
        Price of complexity in the selection of parents.
    model_selection : {"best", "accuracy", "score"} or callable
        Choice of the formula: the shortest description, the least loss, or the largest fall of the loss's logarithm per
        unit of complexity; or a function from a `shine.Front` to a position in it.
    guesses : sequence of formulas and graphs
        Formulas and graphs to start from, as of `shine.evolve`, in the names of `formula_names_`.
    template : Template, str, function or mapping, optional
        The known part of the law (see `shine.template`): a fit finds its unknown functions and its parameters.
        Its column of groups may hold texts; with several outputs, `y` has a column for each. `linear_scaling` is off,
        and the formulas, `shine.search.models.template_model.TemplateModel`, have `functions` and `constants`.
    objective : callable, optional
        A Python function that judges whole formulas instead of the loss: ``objective(predictions)`` gets the
        predictions of many formulas, shape (n_formulas, n_rows), and returns their losses (see
        `shine.search.kinds.objective_function.Objective`). The loss fits constants and lines.
    constraints : mapping or Constraints, optional
        Constraints on formulas: the fields of `shine.Constraints`, with features named by heading or as in formulas.
    units : (units of the features, unit of the target), optional
        Units of the features as a mapping by name, or as a sequence in the order of the columns:
        ``(["kg", "m/s"], "J")``.
    settings : mapping, optional
        Further settings of the evolution, by the fields of `shine.search.evolution.settings.EvolutionSettings`;
        `stagnation` of `shine.search.evolution.settings.StopSettings`; `outliers`, `evidence` and `tier` as of
        `shine.evolve`.
    n_jobs : int, optional
        Threads; -1 for all processors, None for one. Their number does not change the result.
    executor : Executor, dask.distributed.Client, str or int, optional
        Processes that share the islands (`settings={"islands": 8}`) and the seeding: their number, an executor of PEP
        3148, a Dask client, or the address of a Dask scheduler. The result stays the same. Each takes one thread,
        unless `n_jobs` is positive.
    dtype : {"float64", "float32"}
        Number type of the search.
    random_state : int, RandomState instance or None
        The same integer gives the same front, unless `max_time` ends the search. The n-th target, class or component is
        searched with n - 1 more.
    warm_start : bool
        Whether another `fit` starts from the formulas of the last one.
    verbose : int
        1 shows a bar of progress on a terminal or in a notebook; elsewhere, the logger "shine" gets a line whenever the
        loss falls. 2 logs a line in every generation. Without handlers of your own, lines go to standard error.
    callbacks : callable, or several
        Called with the `shine.search.evolution.observers.Progress` of each generation; one that returns True ends the
        search.

    Attributes
    ----------
    best_ : Model
        The chosen formula; with several targets a list, as are `front_` and `equations_`.
    front_ : Front
        The Pareto front of complexity and loss.
    equations_ : DataFrame
        Complexity, loss, score, exact expression, and equation for people; columns by name if pandas is not installed.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Headings of the columns, if X has them.
    loss_columns_ : list of str
        Headings of the columns that `fit` took out of X.
    formula_names_ : ndarray of str
        Names of the features in formulas.
    generations_, evaluations_ : int
        Sums over all searches, also before a warm start.
    seconds_ : float
        Duration of the searches of the last fit.
    stopped_by_ : str
        The limit that ended the last search: "loss", "generations", "seconds" or "stagnation" (nothing had improved for
        long); "interrupted" or "callback" if the user did.

    Examples
    --------
    >>> import numpy as np
    >>> from shine.estimators import SymbolicRegressor
    >>> X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    >>> model = SymbolicRegressor(primitives=["add", "mul", "sqrt"], random_state=0)
    >>> model.fit(X, np.hypot(X[:, 0], X[:, 1])).best_.expression
    'sqrt(x0*x0 + x1*x1)'
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
        loss: LossSource = "mse",
        noise: str = "auto",
        validation: str | None = None,
        validation_fraction: float = 0.25,
        linear_scaling: bool = True,
        stop_loss: float = 1e-20,
        parsimony: float = 0.02,
        model_selection: Selection = "best",
        guesses: Sequence[Guess] = (),
        template: Any = None,
        objective: Any = None,
        constraints: Any = None,
        units: tuple[Any, str] | None = None,
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
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sigma: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        loss_columns: LossColumns | None = None,
        live: bool = False,
        times: ArrayLike | None = None,
    ) -> Self:
        """Search for formulas; Ctrl-C ends the search, keeps what it found, and warns.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Finite numbers.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Each target has a search of its own.
        sample_weight : array-like of shape (n_rows,), optional
            A whole weight counts like as many equal rows.
        sigma : array-like of shape (n_rows,), optional
            Standard deviation of the target's noise in each row, if it is known; it replaces `noise`.
        groups : array-like of shape (n_rows,), optional
            Label of the group of each row, of rows that depend on one another; see `validation`.
        loss_columns : mapping of str to array-like of shape (n_rows,), or sequence of str, optional
            Columns that are no features, and that the loss reads: arrays by name, or headings of columns of the data
            frame. Predictions do not need them.
        live : bool
            Whether to show the running search on a page, to pause it, end it, and put formulas in: below the cell of a
            notebook, else at a printed address.
        times : array-like of shape (n_rows,), optional
            When each row was read, numbers or dates, if rows do not stand in their order or their steps differ: errors
            of rows that follow one another may correlate.

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
        # Slow to import, and only a fit needs them.
        from shine.data.user_data import TrainingArrays
        from shine.faces.estimators.checks import names_and_headings
        from shine.search.problem.template_data import texts_to_numbers
        from shine.search.run import search
        from shine.search.templates.reading import template as template_of
        from shine.search.templates.reading import with_names

        check_in_memory(X)
        X, columns = split_loss_columns(X, loss_columns)
        self.loss_columns_: list[str] = [] if isinstance(loss_columns, Mapping | None) else list(loss_columns)
        law = None
        if self.template is not None:
            law = template_of(with_names(self.template, dict(zip(*names_and_headings(X), strict=True))))
        find: Search = search
        if self.objective is not None:
            from shine.search.kinds.objective import ObjectiveProblem
            from shine.search.kinds.objective_function import Objective

            find = partial(search, kind=partial(ObjectiveProblem, Objective(self.objective)))
        X, texts = (X, {}) if law is None else texts_to_numbers(law, X, *names_and_headings(X))
        rows, given = validated(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        several = law is not None and len(law.outputs) > 1
        single = given.ndim == 1 or several
        targets = numbers(given, "y", given.ndim).reshape(len(given), -1)
        if self.objective is not None and targets.shape[1] > 1:
            raise ValueError(
                f"an objective judges formulas of one target, and y has {targets.shape[1]}; fit one by one"
            )
        deviations = None if sigma is None else checked_sigma(sigma, rows)
        weights = checked_weights(sample_weight, rows)
        others = check_loss_columns(columns, len(rows))
        labels = None if groups is None else numbered_groups(groups, len(rows))
        shuffled = labels is None and self.validation is None and not others and self.objective is None
        others = {name: seen(weights, column)[1] for name, column in others.items()}
        weights, rows, targets, deviations, labels, places = seen(
            weights, rows, targets, deviations, labels, shuffled=shuffled, times=times
        )
        count = 1 if several else targets.shape[1]
        titles = [""] if single else [f"output {number}" for number in range(count)]
        names = ("loss", "noise", "validation", "validation_fraction", "linear_scaling")
        fitness = {name: getattr(self, name) for name in names}
        searches = self._fit_searches(count, titles, texts, **fitness, template=law)
        guesses = [self._earlier(number, self.linear_scaling, law is not None) for number in range(count)]
        fronts: list[Front] = []
        arrays = TrainingArrays(
            rows, None, sample_weight=weights, sigma=deviations, groups=labels, times=places, loss_columns=others
        )
        with searches.shown(live, type(self).__name__, y):
            self._quantity = searches.target
            for target, own in zip([targets] if several else targets.T, guesses, strict=True):
                fronts.append(searches.run(find, replace(arrays, y=target), own).front)
        return self._found(searches, fronts, single)

    @overload
    def predict(self, X: ArrayLike, index: Index = None, return_std: Literal[False] = False) -> Floats: ...

    @overload
    def predict(self, X: ArrayLike, index: Index = None, return_std: bool | Band = False) -> Any: ...

    def predict(self, X: ArrayLike, index: Index = None, return_std: bool | Band = False) -> Any:
        """Values of a formula.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        index : int, or sequence of int, optional
            Position in the front; the chosen formula by default. With several targets, one for each or for all.
        return_std : bool, or {"mean", "prediction"}
            Whether to return standard deviations, too: of new readings, with their noise (True, or "prediction"), or
            only of the formula's value, whose constants are uncertain ("mean").

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
            In the unit of the target; not finite where the formula is not. A pair of them with `return_std`.

        Warns
        -----
        ExtrapolationWarning
            If a feature leaves the range of the rows of the fit, by more than a tenth of it, and the
            formula is not exact; once.
        """
        models = self._models(index)
        X = self._rows_for(models, X)
        found = [model.predict(X, return_std) for model in models]
        if not isinstance(self.front_, list):
            return found[0]
        if return_std is False:
            return np.column_stack(found)
        return tuple(np.column_stack(part) for part in zip(*found, strict=True))

    @np.errstate(all="ignore")
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the chosen formulas, the mean of those of the targets (see `sklearn.metrics.r2_score`).

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array-like of shape (n_rows,), optional
        """
        from sklearn.metrics import r2_score  # slow to import

        predicted = self.predict(X)
        targets, weights = np.asarray(y), checked_weights(sample_weight, predicted)
        if targets.dtype.kind in "iuf":
            # R² is the same in any unit; in this one, squares do not overflow.
            size = float(np.abs(targets).max(initial=0.0)) or 1.0
            targets, predicted = targets / size, predicted / size
        return float(r2_score(targets, predicted, sample_weight=weights))

    def predict_file(self, data: Any, out: Any, index: Index = None, **options: Any) -> int:
        """Write the values of a formula for each row of some data to a file, block by block.

        Parameters
        ----------
        data : path, or what `shine.data.open_dataset` streams
            Its columns have the headings of the fit.
        out : path
        index : int, optional
            Position in the front; the chosen formula by default.
        **options
            Those of `shine.Result.predict_file`: `interval`, `kind`, `where`.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        ValueError
            If there are several targets: predict with the best of one of `front_`.
        DataError
            If the data lack a column or cannot be read, or the file cannot be written.
        """
        from shine.search.models.file_predictions import predict_file  # slow to import

        models = self._models(index)
        if len(models) > 1:
            raise ValueError(f"there are {len(models)} targets, and a file of predictions has one; see front_")
        return predict_file(models[0], data, out, **options)

    def _drawings(self) -> dict[str, Any]:
        from shine.search.models.plotting import FIT

        return FIT

    def _plotted_targets(self, y: ArrayLike) -> list[Any]:
        targets = np.asarray(y)
        columns = targets.reshape(len(targets), -1).T if targets.ndim in (1, 2) else [targets]
        if len(columns) != len(self._fronts):
            has, fitted = (
                f"{count} {thing}{'s' * (count != 1)}"
                for count, thing in ((len(columns), "column"), (len(self._fronts), "target"))
            )
            raise ValueError(f"y has {has}; the estimator was fitted to {fitted}")
        return list(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"multioutput": True}  # before scikit-learn 1.6
