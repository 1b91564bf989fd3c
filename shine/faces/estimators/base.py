"""The base of all estimators: their parameters, and the searches of a fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from inspect import signature
from multiprocessing import current_process, parent_process
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from shine.base.errors import InterruptedFitWarning, ShineError
from shine.compiler.tapes import depths
from shine.faces.estimators.fitted import FittedEstimator
from shine.faces.estimators.parameters import (
    Selection,
    check_parameters,
    checked_seed,
    checked_settings,
    checked_units,
    selected,
    threads_beside,
    words_of,
)
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.synonyms import unexpected
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.vocabulary import PrimitiveSource, is_of_session, portable, primitive_table

if TYPE_CHECKING:
    from shine.faces.estimators.fit_searches import FitSearches
    from shine.formats.read.guesses import Guess
    from shine.search.constraints.constraints import Constraints
    from shine.search.models.front import Front

Fit = TypeVar("Fit", bound=Callable[..., Any])


def complete(fit: Fit) -> Fit:
    """Decorate a method `fit`: wrong parameters and unknown keywords are told; if it raises, the estimator stays."""
    allowed = [name for name in signature(fit).parameters if name != "self"]

    @wraps(fit)
    def timed_fit(self: SymbolicEstimator, *arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        for word in options:
            if word not in allowed:
                raise unexpected(f"{type(self).__name__}.fit", word, allowed)
        check_parameters(self.get_params(deep=False))
        before = dict(vars(self))
        self._began = began
        try:
            return fit(self, *arguments, **options)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        finally:
            self.__dict__.pop("_began", None)

    return cast(Fit, timed_fit)


class SymbolicEstimator(FittedEstimator):
    """Parameters and fitting of all estimators.

    See `SymbolicRegressor` for the parameters.
    """

    _began: float
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

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle. Functions of a notebook or a script are kept as what was read from their source."""
        own = portable_parameters(self.primitives, self.guesses, getattr(self, "loss", None))
        return {**super().__getstate__(), **own}

    def _fit_searches(
        self,
        count: int,
        titles: Sequence[str] = ("",),
        labels: Mapping[str, tuple[str, ...]] | None = None,
        **fitness: Any,
    ) -> FitSearches:
        """The searches of a fit over the validated features; the parameters are checked here."""
        # Slow to import, and only a fit needs them.
        from shine.faces.estimators.fit_searches import FitSearches, reporter
        from shine.faces.keywords import settings_from

        parameters = self.get_params(deep=False)
        names = self._names()
        others = checked_settings(self.settings, parameters)
        prefixes = [f"{title}: " if title else "" for title in titles]
        settings = settings_from(
            primitives=self.primitives,
            generations=self.generations,
            seconds=self.max_time,
            stop_loss=self.stop_loss,
            dtype=self.dtype,
            threads=threads_beside(self.executor, self.n_jobs),
            seed=checked_seed(self.random_state) + (self.generations_ if self._goes_on() else 0),
            constraints=self._constraints(names),
            guesses=() if self.guesses is None else self.guesses,
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
            titles=titles,
            executor=self.executor,
            began=self._began,
        )

    @property
    def _fitted_by_a_program(self) -> bool:
        """Whether a program calls `fit`, not a user who sees its warnings.

        Programs such as cross-validation fit clones, as scikit-learn requires, or run in processes of their own. They
        would take an interrupted fit for a complete one.
        """
        return self._is_clone or parent_process() is not None or current_process().name != "MainProcess"

    def _headings(self) -> list[str]:
        """Headings of the validated features; their names in formulas if there are none."""
        return [str(heading) for heading in getattr(self, "feature_names_in_", self._names())]

    def _constraints(self, names: Sequence[str]) -> Constraints:
        from shine.faces.keywords import constraints_from  # slow to import

        constraints = constraints_from(self.constraints)
        if self.units is None:
            return constraints
        features, target = checked_units(self.units, self._headings(), names)
        return replace(constraints, units=features, target_unit=target)

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and self.__sklearn_is_fitted__()

    def _earlier(self, number: int, linear_scaling: bool = True, with_template: bool = False) -> list[Any]:
        """Formulas of the last fit that the search with the given number starts from."""
        if not self._goes_on() or number >= len(self._fronts):
            return []
        if with_template:
            return [model for model in self._fronts[number] if hasattr(model, "law")]
        models = [model.tree for model in self._fronts[number]]
        limits = (self._names(), self.primitives, self.max_size, self.max_depth)
        return list(guesses_within(models, *limits, linear_scaling))

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


def portable_parameters(primitives: Iterable[Any], guesses: Iterable[Any], loss: Any = None) -> dict[str, Any]:
    """Parameters with functions of a notebook or a script, and the source of these.

    Parameters
    ----------
    primitives, guesses : iterable
    loss : object
        Anything: `fit` checks them.
    """
    changed: dict[str, Any] = {}
    with suppress(ShineError, TypeError, ValueError):
        if is_of_session(loss):
            from shine.evaluate.losses import loss_text  # it imports LLVM

            changed["loss"] = loss_text(loss)
    with suppress(ShineError, TypeError, ValueError):
        if any(map(is_of_session, primitives)):
            changed["primitives"] = portable(primitives)
        if any(map(is_of_session, guesses)):
            table = primitive_table(primitives)[0]
            changed["guesses"] = [parse(each, primitives=table) if is_of_session(each) else each for each in guesses]
    return changed


def guesses_within(
    trees: Iterable[Tree],
    features: Sequence[str],
    primitives: Sequence[PrimitiveSource],
    max_size: int,
    max_depth: int,
    linear_scaling: bool,
) -> Iterator[Tree]:
    """The formulas that a search can start from: they use its features and primitives, and keep its limits.

    Parameters
    ----------
    trees : iterable of Tree
    features : sequence of str
    primitives : sequence of str, function or Primitive
    max_size, max_depth : int
    linear_scaling : bool
        Whether the search adds a slope and an intercept to formulas; then those of the trees are removed.
    """
    from shine.search.problem.scaling import without_line  # it imports LLVM

    table, names = primitive_table(primitives)
    primitive_set = PrimitiveSet(select(table, names), tuple(features))
    for tree in trees:
        bare = without_line(tree) if linear_scaling else tree
        if bare.parameters == primitive_set.features and functions_of(bare) <= set(names):
            population = Population.from_trees([bare], primitive_set)
            if population.sizes[0] <= max_size and depths(population)[0] <= max_depth:
                yield bare
