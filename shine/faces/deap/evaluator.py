"""From a population of DEAP's individuals to their fitness, in one native call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from shine.base.errors import DataError
from shine.base.typing import AnyArray, Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.validation import EvaluatorOptions
from shine.faces.deap.arguments import (
    check_individual,
    columns_of,
    failed_values,
    float_name,
    is_evaluation,
    population_checked,
    weights_of,
    without_arguments,
)
from shine.faces.deap.check import ALL_CHECKS, NO_CHECKS, Check
from shine.faces.deap.conversion import MOST_WRITTEN, Expansion, population_of
from shine.faces.deap.measurement import Measurement
from shine.faces.deap.objectives import Batch, ObjectiveSource, check_weights, objectives_of, values_of
from shine.faces.deap.vocabulary import gp, vocabulary_of
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.synonyms import keywords_checked
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.lang.python.expressions import described

Fitness = tuple[float, ...]

_MOST_CELLS = 1 << 23
"""Most nodes of individuals evaluated together, if each counts as many as the longest."""


_LAST_BITS, _STEADY = 2.0**-50, 1e-7
"""A relative change of the data, and the largest one of predictions that are computed well."""

_MOST_PREDICTIONS = 1 << 22
"""Most predictions held at a time: 32 MiB, and enough work for threads to share."""


class CompiledEvaluator:
    """Evaluates the individuals of a DEAP script: losses and other objectives over a data set, from compiled code.

    ``toolbox.register("map", evaluator.map)`` makes DEAP's algorithms use it; ``evaluator(population)`` returns the
    list of fitnesses.

    Parameters
    ----------
    pset : deap.gp.PrimitiveSet, or sequence of them
        The primitives of the individuals; with automatically defined functions, all sets in the order of
        `gp.compileADF`. It is translated at once: primitives added later are not known.
    X : array-like of shape (n_rows, n_arguments)
        Columns in the order of the set's arguments; a data frame whose columns have the arguments' names may have them
        in any order. A set of one argument may have X of shape (n_rows,).
    y : array-like of shape (n_rows,)
    loss : {"mse", "rmse", "mae", "nmse", "r2"}
        "mse" if neither `loss` nor `objectives` is given.
    objectives : str, callable, or sequence of them, optional
        The values of a fitness, in the order of its weights, instead of one loss:

        * a loss by name;
        * ``"errors"``: the absolute error of each row, as many values as rows, for lexicase selection. The error of a
          row whose prediction is not finite is 1e100;
        * ``"accuracy"``: the share of the rows whose prediction is positive exactly where `y` is;
        * a function of an individual, such as `len`;
        * a function of an individual and its predictions, an ndarray of shape (n_rows,) in `dtype`: any with two
          arguments, or with the second named "predictions". It is called for individuals only whose predictions are
          all finite. Functions return a number, or an array if they compute several values of the fitness.
    dtype : {"float64", "float32"}
        Number type of the predictions, as a name or NumPy's; sums are always float64.
    tier : {"machine", "native", "reference"}
        See `shine.Evaluator`.
    threads : int, optional
        Threads that share the individuals; all processors if None.
    sample_weight : array-like of shape (n_rows,), optional
    linear_scaling : bool
        Whether each individual is measured with its best slope and intercept; `predictions` are those of that line.
    exact_sums : bool
        Whether sums of errors are rounded once, as by `math.fsum`, so that a run makes the same decisions as with a
        function that uses `math.fsum`; evaluation takes up to four times as long. Not with weights or linear scaling.
    evaluate : callable, optional
        The function that `map` replaces; by default the one registered as "evaluate" in the toolbox.
    check : bool
        Whether `map` calls the function it replaces for a few individuals of the first population, to check that it
        computes the same fitness: small ones that together have each function and argument, and one without a finite
        value. Never with linear scaling.
    failed : float or sequence of float, optional
        The fitness of an individual that is not finite in every row, or each of its values; inf by default (see Notes).
    sources : mapping of str to str, optional
        Texts of the definitions of own functions, by name: ``{"cube": "def cube(x): return x*x*x"}``. Needed only for
        functions without a file, such as those of ``exec`` or of an interactive Python before 3.13.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive and terminal that cannot be compiled, each with the reason.
    DataError
        If the data cannot be used.
    ValueError
        If an option is unknown, or both `loss` and `objectives` are given.
    TypeError
        If an argument has another type, such as a function for `loss`.

    Notes
    -----
    Without `failed`, an individual that is not finite in every row has the worst of all values but "errors": inf, or
    -inf for an objective that the individual's fitness maximizes. With DEAP it would raise an exception
    (``math.log(0)``, ``math.exp(1000)``), or have the fitness inf or NaN.

    Examples
    --------
    >>> import operator
    >>> from deap import gp
    >>> pset = gp.PrimitiveSet("MAIN", 1)
    >>> pset.addPrimitive(operator.mul, 2)
    >>> evaluator = CompiledEvaluator(pset, [1.0, 2.0], [1.0, 4.0])
    >>> evaluator([gp.PrimitiveTree.from_string("mul(ARG0, ARG0)", pset)])
    [(0.0,)]
    >>> CompiledEvaluator(pset, [1.0, 2.0], [1.0, 4.0], objectives=("mae", len)).evaluate(
    ...     gp.PrimitiveTree.from_string("ARG0", pset)
    ... )
    (1.0, 1.0)
    """

    @keywords_checked
    def __init__(
        self,
        pset: Any,
        X: ArrayLike,
        y: ArrayLike,
        loss: str | None = None,
        *,
        objectives: ObjectiveSource | Sequence[ObjectiveSource] | None = None,
        dtype: DTypeLike = "float64",
        tier: str = "machine",
        threads: int | None = 1,
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
        exact_sums: bool = False,
        evaluate: Callable[..., Any] | None = None,
        check: bool = True,
        failed: float | Sequence[float] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        if loss is not None and not isinstance(loss, str):
            raise TypeError(
                f"loss is the name of a loss, not {described(loss)}; functions are objectives: "
                "objectives=lambda individual, predictions: ..."
            )
        if loss is not None and objectives is not None:
            raise ValueError(f"loss={loss!r} and objectives are given; name the loss among the objectives")
        self._objectives = objectives_of(objectives if objectives is not None else loss or "mse")
        self._vocabulary = vocabulary_of(pset, sources)
        self._dtype, self._tier, self._failed = float_name(dtype), tier, failed_values(failed)
        options = EvaluatorOptions.checked(linear_scaling=linear_scaling, dtype=self._dtype, tier=tier, threads=threads)
        if exact_sums and (sample_weight is not None or linear_scaling):
            raise ValueError("exact_sums goes with neither sample_weight nor linear_scaling; leave it out")
        self._measurement = Measurement(
            self._dataset_of(X, y, sample_weight),
            [each.known for each in self._objectives if each.is_loss],
            linear_scaling=options.linear_scaling,
            dtype=self._dtype,
            tier=tier,
            threads=options.threads,
            exact_sums=exact_sums,
        )
        self._stands_for = evaluate
        self._unchecked = ALL_CHECKS if check and not linear_scaling else NO_CHECKS

    def _dataset_of(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Dataset:
        arguments = self._vocabulary.primitives.features
        dataset = Dataset.from_arrays(columns_of(X, arguments), y, sample_weight=sample_weight)
        if len(dataset.features) != len(arguments):
            names = ", ".join(arguments)
            raise DataError(f"X has {len(dataset.features)} columns, but the primitive set takes ({names})")
        return dataset

    def __call__(self, individuals: Iterable[Any], *further: Any) -> list[Fitness]:
        """Fitness of each individual, as DEAP takes it.

        Parameters
        ----------
        individuals : iterable of deap.gp.PrimitiveTree, or of sequences of them
            Trees; or lists of trees, one a primitive set, if there are several.

        Returns
        -------
        list of tuple of float
            The objectives of each individual, for ``individual.fitness.values``.

        Raises
        ------
        ValueError
            If an individual is not complete, or has a node that the primitive set lacks.
        TypeError
            If it is called with one individual, or with anything else that is no population, or as `map` is.
        """
        if further:
            raise TypeError("evaluator(population) takes one argument; register evaluator.map as the map")
        items = population_checked(individuals, self._vocabulary.evolves_functions, "evaluator(population)")
        return list(map(tuple, self._values(items)[0].tolist()))

    def evaluate(self, individual: Any) -> Fitness:
        """Fitness of one individual; for many, `map` and calling the evaluator are much faster."""
        check_individual(individual, self._vocabulary.evolves_functions)
        return self([individual])[0]

    def map(self, function: Callable[..., Any], individuals: Iterable[Any], *more: Iterable[Any]) -> Iterable[Any]:
        """The builtin `map`, except that it evaluates trees in one native call.

        Parameters
        ----------
        function : callable
            Not called if all individuals are trees and it is one of: the function that a toolbox has registered as
            "evaluate", undecorated; this evaluator or its `evaluate`; the function that the evaluator was made to
            replace.
        individuals, *more : iterables

        Returns
        -------
        iterable
            A list of fitnesses, or the result of the builtin `map`.

        Raises
        ------
        ValueError
            If the function computes another fitness than this evaluator; if the weights of the individuals' fitness are
            not as many as its values, or positive for a loss.
        """
        items = list(individuals)
        if more or not items or not self._replaces(function) or not all(map(self._is_individual, items)):
            return map(function, items, *more)
        values, failed = self._values(items)
        fitnesses: list[Fitness] = list(map(tuple, values.tolist()))
        weights = weights_of(items)
        if weights is not None:
            check_weights(self._objectives, fitnesses[0], weights)
        if self._unchecked and not self._is_own(function):
            scale = float(np.mean(self._measurement.dataset.target**2))
            check = Check(function, self._objectives, self._dtype, scale, self._is_steady)
            self._unchecked = check.remaining(self._unchecked, items, fitnesses, failed)
        return fitnesses

    def predictions(self, individuals: Iterable[Any]) -> AnyArray:
        """Predictions of each individual for each row, shape (n_individuals, n_rows), in `dtype`.

        NaN or infinite where an individual has no value. With linear scaling, predictions are those of its best line.
        """
        items = population_checked(individuals, self._vocabulary.evolves_functions, "evaluator.predictions(population)")
        predictions = np.empty((len(items), len(self._measurement.dataset.target)), self._dtype)
        forms = self._forms(items)
        for chosen in self._together(forms, len(items)):
            measurement, population = self._measured([forms[i] for i in chosen])
            predictions[chosen] = measurement.predictions(population)
        return predictions

    def _values(self, individuals: list[Any]) -> tuple[Floats, Mask]:
        """All values of the fitness of each individual, shape (n_individuals, n_values), and whether it has none."""
        if not individuals:
            return np.empty((0, 0)), np.empty(0, dtype=bool)
        predicts = any(objective.needs_predictions for objective in self._objectives)
        most = len(individuals)
        if predicts or self._measurement.from_predictions:
            most = max(_MOST_PREDICTIONS // len(self._measurement.dataset.target), 1)
        parts, order = list[tuple[Floats, Mask]](), list[int]()
        forms = self._forms(individuals)
        for chosen in self._together(forms, most):
            measurement, population = self._measured([forms[i] for i in chosen])
            predictions = measurement.predictions(population) if predicts else None
            losses = measurement.losses(population, predictions)
            batch = Batch([individuals[i] for i in chosen], losses, predictions, self._measurement.dataset)
            parts.append(values_of(self._objectives, batch, weights_of(individuals), self._failed))
            order += chosen
        back = np.argsort(order)
        return np.concatenate([values for values, _ in parts])[back], np.concatenate([mask for _, mask in parts])[back]

    def _is_steady(self, individual: Any) -> bool:
        """Whether other last bits of the data hardly change the predictions of an individual."""
        (form,) = self._forms([individual])
        if len(form) > MOST_WRITTEN:
            return False
        formula = population_of([form], self._vocabulary).tree(0)
        columns = self._measurement.dataset.columns
        moved = [column if np.isin(column, (0, 1)).all() else column * (1 + _LAST_BITS) for column in columns]
        with np.errstate(all="ignore"):
            before, after = evaluate(formula, list(columns)), evaluate(formula, moved)
            largest = np.abs(before[np.isfinite(before)]).max(initial=0.0)
            near = np.isclose(before, after, rtol=_STEADY, atol=_STEADY * largest, equal_nan=True)
        return bool(near.all())

    def _forms(self, individuals: list[Any]) -> list[Any]:
        """The individuals, of which those with functions are one expression each."""
        if not self._vocabulary.evolves_functions:
            return individuals
        return [Expansion(each, self._vocabulary) for each in individuals]

    def _measured(self, forms: list[Any]) -> tuple[Measurement, Population]:
        """What measures individuals, and they: the data have the predictions of a long one as their only column."""
        if not isinstance(forms[0], Expansion) or len(forms[0]) <= MOST_WRITTEN:
            return self._measurement, population_of(forms, self._vocabulary)
        predictions = forms[0].predictions(self._measurement.dataset.columns, self._dtype, self._tier)
        feature = np.ones((1, 1), np.int16)
        population = Population(feature, np.zeros((1, 1)), np.ones(1, np.int64), PrimitiveSet((), ("prediction",)))
        return self._measurement.of_column(predictions), population

    def _together(self, individuals: Sequence[Any], most: int) -> Iterator[Sequence[int]]:
        """Positions of all individuals, in groups of at most some number, and of about one size if arrays would be too
        large."""
        sizes = [len(each) for each in individuals]
        order: Sequence[int] = range(len(sizes))
        if self._vocabulary.evolves_functions:
            yield from ([i] for i in order if sizes[i] > MOST_WRITTEN)
            order = [i for i in order if sizes[i] <= MOST_WRITTEN]
        cells = max((sizes[i] for i in order), default=0) * min(most, len(order)) > _MOST_CELLS
        if cells:
            order = sorted(order, key=sizes.__getitem__, reverse=True)
        while order:
            count = min(most, max(_MOST_CELLS // max(sizes[order[0]], 1), 1)) if cells else most
            yield order[:count]
            order = order[count:]

    def _is_individual(self, item: Any) -> bool:
        if not self._vocabulary.evolves_functions:
            return isinstance(item, gp.PrimitiveTree)
        sets = len(self._vocabulary.names)
        return isinstance(item, list) and len(item) == sets and all(isinstance(each, gp.PrimitiveTree) for each in item)

    def _is_own(self, function: Any) -> bool:
        inner = without_arguments(function)
        return inner is self or inner == self.evaluate

    def _replaces(self, function: Any) -> bool:
        return self._is_own(function) or is_evaluation(function, self._stands_for)
