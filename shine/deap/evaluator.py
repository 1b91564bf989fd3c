"""From a population of DEAP's individuals to their fitness, in one native call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.data.dataset import Dataset
from shine.deap.conversion import population_of
from shine.deap.library import gp
from shine.deap.sums import sums_of_errors
from shine.deap.vocabulary import vocabulary_of
from shine.errors import DataError
from shine.evaluators.evaluator import evaluator_of
from shine.evaluators.rows import target_of
from shine.fitness.losses import loss_of
from shine.lang.population import Population
from shine.typing import AnyArray, Floats

Fitness = tuple[float]

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
"""Largest relative difference from the fitness of the user's own function."""

_MOST_CELLS = 1 << 23
"""Most nodes of individuals evaluated together, if each counts as many as the longest."""


_MOST_PREDICTIONS = 1 << 22
"""Most predictions held before their errors are summed: 32 MiB, and enough work for threads to share."""


class CompiledEvaluator:
    """Evaluates the individuals of a DEAP script: a loss over a data set, from compiled code.

    ``toolbox.register("map", evaluator.map)`` makes DEAP's algorithms use it; ``evaluator(population)`` returns the
    list of fitnesses.

    Parameters
    ----------
    pset : deap.gp.PrimitiveSet, or sequence of them
        The primitives of the individuals; with automatically defined functions, all sets in the order of
        `gp.compileADF`. It is translated at once: primitives added later are not known.
    X : array-like of shape (n_rows, n_arguments)
        Columns in the order of the set's arguments. A set of one argument may have X of shape (n_rows,).
    y : array-like of shape (n_rows,)
    loss : {"mse", "rmse", "mae", "nmse", "r2"}
    dtype : {"float64", "float32"}
        Number type of the predictions; sums are always float64.
    tier : {"auto", "machine", "native", "reference"}
        See `shine.Evaluator`.
    threads : int, optional
        Threads that share the individuals; all processors if None.
    sample_weight : array-like of shape (n_rows,), optional
    linear_scaling : bool
        Whether each individual is measured with its best slope and intercept.
    exact_sums : bool
        Whether sums of errors are rounded once, as by `math.fsum`, so that a run makes the same decisions as with a
        function that uses `math.fsum`; evaluation takes up to four times as long. Not with weights or linear scaling.
    evaluate : callable, optional
        The function that `map` replaces; by default the one registered as "evaluate" in the toolbox.
    check : bool
        Whether `map` calls the function it replaces once, for one individual, to check that it computes the same
        fitness. Never with linear scaling.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive and terminal that cannot be compiled, each with the reason.
    DataError
        If the data cannot be used.
    ValueError
        If an option is unknown.

    Notes
    -----
    An individual that is not finite in every row has the fitness inf; with DEAP it would raise an exception
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
    """

    def __init__(
        self,
        pset: Any,
        X: ArrayLike,
        y: ArrayLike,
        loss: str = "mse",
        *,
        dtype: str = "float64",
        tier: str = "auto",
        threads: int | None = 1,
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
        exact_sums: bool = False,
        evaluate: Callable[..., Any] | None = None,
        check: bool = True,
    ) -> None:
        self._vocabulary = vocabulary_of(pset)
        arguments = self._vocabulary.primitives.features
        columns = np.asarray(X)
        if columns.ndim == 1 and len(arguments) == 1:
            columns = columns[:, None]
        self._dataset = Dataset.from_arrays(columns, y, sample_weight)
        if len(self._dataset.features) != len(arguments):
            names = ", ".join(arguments)
            raise DataError(f"X has {len(self._dataset.features)} columns, but the primitive set takes ({names})")
        self._exact_sums = exact_sums and sample_weight is None and not linear_scaling
        if self._exact_sums and tier == "auto":
            tier = "machine"  # the only one whose predictions of many individuals are fast
        self._options = loss, linear_scaling, dtype, tier, threads
        self._evaluator = evaluator_of(self._dataset, *self._options)
        self._target = target_of(self._dataset, dtype)
        self._loss, self._tolerance, self._stands_for = loss, _TOLERANCE[dtype], evaluate
        self._unchecked = check and not linear_scaling

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code and addresses of data mean nothing to another process, nor to a copy.
        return {name: value for name, value in self.__dict__.items() if name != "_evaluator"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._evaluator = evaluator_of(self._dataset, *self._options)

    def __call__(self, individuals: Iterable[Any]) -> list[Fitness]:
        """Fitness of each individual, as DEAP takes it.

        Parameters
        ----------
        individuals : iterable of deap.gp.PrimitiveTree, or of sequences of them
            Trees; or lists of trees, one a primitive set, if there are several.

        Returns
        -------
        list of tuple of float
            Losses, each in a tuple; inf where a prediction is not finite.

        Raises
        ------
        ValueError
            If an individual is not complete, or has a node that the primitive set lacks.
        """
        return [(loss,) for loss in self._losses(list(individuals)).tolist()]

    def evaluate(self, individual: Any) -> Fitness:
        """Fitness of one individual; for many, `map` and calling the evaluator are much faster."""
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
            If the function computes another fitness than this evaluator.
        """
        items = list(individuals)
        if more or not items or not self._replaces(function) or not all(map(self._is_individual, items)):
            return map(function, items, *more)
        fitnesses = self(items)
        if self._unchecked and not self._is_own(function):
            self._check(function, items, fitnesses)
        return fitnesses

    def predict(self, individuals: Iterable[Any]) -> AnyArray:
        """Predictions of each individual for each row, shape (n_individuals, n_rows), in `dtype`."""
        return self._evaluator.predict(population_of(list(individuals), self._vocabulary))

    def _losses(self, individuals: list[Any]) -> Floats:
        losses = np.empty(len(individuals))
        for chosen in self._together(individuals):
            population = population_of([individuals[i] for i in chosen], self._vocabulary)
            score = self._exact if self._exact_sums else self._score
            losses[chosen] = score(population)
        return losses

    def _score(self, population: Population) -> Floats:
        return self._evaluator.score(population).losses

    def _exact(self, population: Population) -> Floats:
        loss, target = loss_of(self._loss), self._dataset.target
        count = max(_MOST_PREDICTIONS // len(target), 1)
        totals = np.empty(len(population))
        for first in range(0, len(population), count):
            chosen = np.arange(first, min(first + count, len(population)))
            predictions = self._evaluator.predict(population.take(chosen))
            totals[chosen] = sums_of_errors(predictions, target, loss.kind)
        losses = loss.of_sum(totals, self._target.weight, self._target.square)
        return np.where(np.isfinite(losses), losses, np.inf)

    def _together(self, individuals: Sequence[Any]) -> Iterator[Sequence[int]]:
        """Positions of all individuals, or groups of about one size if arrays of all would be too large."""
        sizes = [len(each) for each in individuals]
        if max(sizes, default=0) * len(sizes) <= _MOST_CELLS or self._vocabulary.evolves_functions:
            yield range(len(individuals))
            return
        order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
        while order:
            count = max(_MOST_CELLS // max(sizes[order[0]], 1), 1)
            yield order[:count]
            order = order[count:]

    def _is_individual(self, item: Any) -> bool:
        if not self._vocabulary.evolves_functions:
            return isinstance(item, gp.PrimitiveTree)
        sets = len(self._vocabulary.names)
        return isinstance(item, list) and len(item) == sets and all(isinstance(each, gp.PrimitiveTree) for each in item)

    def _is_own(self, function: Any) -> bool:
        inner = function.func if isinstance(function, functools.partial) else function
        return inner is self or inner == self.evaluate

    def _replaces(self, function: Any) -> bool:
        if self._is_own(function):
            return True
        inner = function.func if isinstance(function, functools.partial) else function
        if self._stands_for is not None:
            return function is self._stands_for or inner is self._stands_for
        # A toolbox names a function by the alias it registers it under; a decorator changes what it computes.
        return (
            isinstance(function, functools.partial)
            and getattr(function, "__name__", "") == "evaluate"
            and not hasattr(inner, "__wrapped__")
        )

    def _check(self, function: Callable[[Any], Any], individuals: Sequence[Any], fitnesses: Sequence[Fitness]) -> None:
        """Compare the fitness of the smallest individual; only once, as the replaced function is slow."""
        finite = [i for i, (fitness,) in enumerate(fitnesses) if np.isfinite(fitness)]
        if not finite:
            return
        self._unchecked = False
        index = min(finite, key=lambda i: len(individuals[i]))
        (own,), other = fitnesses[index], function(individuals[index])
        values = np.atleast_1d(np.asarray(other, dtype=np.float64))
        close = self._tolerance * max(abs(own), 1e-6 * float(np.mean(self._dataset.target**2)))
        if values.shape != (1,) or not abs(values[0] - own) <= close:
            raise ValueError(
                f"toolbox.evaluate returns {other!r} for {individuals[index]}, but the compiled {self._loss} is "
                f"{own!r}: give the evaluator the loss, X and y of that function, or check=False if the difference "
                "is meant"
            )
