"""From a population of vectors to their fitness, in one native call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from numbers import Real
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from shine.base.errors import UnsupportedSyntaxError, placed
from shine.base.typing import AnyArray, Floats
from shine.compiler.arrays import COMPILED
from shine.evaluate.kernels.arrays import PreparedCall, array_kernel
from shine.evaluate.kernels.individuals import Reader, reader_of, reading_words
from shine.faces.deap.arguments import failed_values, float_name, is_evaluation, weights_of, without_arguments
from shine.lang.arrays.formula import ArrayFormula
from shine.lang.arrays.interpret import evaluate_arrays
from shine.lang.arrays.outer import bound_arguments
from shine.lang.arrays.reading import array_formula
from shine.lang.forms.names import shown, value_text
from shine.lang.forms.synonyms import keywords_checked

Fitness = tuple[float, ...]

TIERS = ("native", "reference")
"""Compiled code, and the interpreter, which has the same bits in float64."""

_CHECKED = 3
"""Individuals of the first population whose fitness is compared with that of the replaced function."""

_NEAR = {"float64": 1e-9, "float32": 1e-3}
"""Largest difference between compiled and replaced function, relative to the fitness."""

_MOST_NUMBERS = 1 << 23
"""Most numbers of a matrix that is kept: 64 MiB."""


@dataclass(frozen=True)
class _Room:
    """A matrix whose first rows are filled with individuals, and how they are read and evaluated."""

    rows: int
    matrix: Floats
    call: PreparedCall
    reader: Reader
    words: AnyArray


class _Rooms(dict[tuple[type, int], _Room]):
    """By type and length. Other processes get no addresses, from a toolbox that has copied the attributes either."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Rooms, ()


class CompiledObjective:
    """Evaluates individuals that are vectors of numbers: an objective function of a DEAP script as native code.

    ``toolbox.register("evaluate", objective)`` and ``toolbox.register("map", objective.map)`` make DEAP's algorithms
    use it, a generation in one call.

    Parameters
    ----------
    source : str, callable or ArrayFormula
        The function of an individual: an expression such as ``"sum(v*v for v in x)"``, the text of a definition, or a
        Python function or object as DEAP takes it, which returns a tuple (see `shine.jit`).
    constants : mapping of str to number or array-like of shape (length,), optional
        Values of the other parameters, the same for all individuals.
    dtype : {"float64", "float32"}
    tier : {"native", "reference"}
        Compiled code, or the interpreter.
    evaluate : callable, optional
        The function that `map` replaces besides this objective; by default the one registered as "evaluate" in the
        toolbox.
    check : bool
        Whether `map` calls the function it replaces for up to three individuals of the first population, to check that
        it computes the same fitness.
    failed : float or sequence of float, optional
        The fitness of an individual of which a value is not finite, or each of its values. By default inf, or -inf for
        a value that the individual's fitness maximizes.

    Attributes
    ----------
    formula : ArrayFormula
    individual : str
        The parameter that is the individual.

    Raises
    ------
    UnsupportedSyntaxError
        If the function is not part of the language, or has no vector.
    ValueError
        If an option is unknown, or a parameter has no value.
    TypeError
        If an argument has another type.

    Notes
    -----
    An individual has the same fitness alone and in a population, to the last bit. Individuals of different lengths are
    evaluated in groups.

    Examples
    --------
    >>> sphere = CompiledObjective("sum(v*v for v in x)")
    >>> sphere([3.0, 4.0])
    (25.0,)
    >>> sphere.evaluate_all([[3.0, 4.0], [1.0]])
    [(25.0,), (1.0,)]
    >>> CompiledObjective("sum((v - c)**2 for v, c in zip(x, center))", constants={"center": [1, 2]})([1.0, 4.0])
    (4.0,)
    """

    @keywords_checked
    def __init__(
        self,
        source: str | Callable[..., Any] | ArrayFormula,
        *,
        constants: Mapping[str, ArrayLike] | None = None,
        dtype: DTypeLike = "float64",
        tier: str = "native",
        evaluate: Callable[..., Any] | None = None,
        check: bool = True,
        failed: float | Sequence[float] | None = None,
    ) -> None:
        if not isinstance(constants or {}, Mapping):
            raise TypeError(f"constants is a mapping of parameters to their values, not {value_text(constants)}")
        values: dict[str, Any] = dict(constants or {})
        if not isinstance(bound_arguments(source)[0], str | FunctionType | ArrayFormula | ast.AST):
            raise TypeError(f"an objective is a text or a Python function, not {value_text(source)}")
        formula = array_formula(source, vectors=values)
        if formula is None or not formula.vectors:
            raise UnsupportedSyntaxError(
                "the objective reads no vector: write elements and reductions of the individual, x[0] and "
                "sum(v*v for v in x)"
            )
        if tier not in TIERS:
            raise ValueError(f"tier must be one of {', '.join(TIERS)}, is {value_text(tier)}")
        self.formula, self._dtype, self._tier = formula, float_name(dtype), tier
        self._kernel = array_kernel(formula, self._dtype, 2)
        self._constants = self._checked_constants(values)
        self.individual = next(name for name in formula.vectors if name not in self._constants)
        self._failed, self._stands_for = failed_values(failed), evaluate
        if self._failed is not None and len(self._failed) not in (1, len(formula.results)):
            raise ValueError(f"failed has {len(self._failed)} values, but the fitness has {len(formula.results)}")
        self._unchecked = check
        self._rooms = _Rooms()

    def __repr__(self) -> str:
        return f"<CompiledObjective {self.formula.text!r} of {self.individual}>"

    def __call__(self, individual: Any) -> Fitness:
        """Fitness of one individual; for many, `map` and `evaluate_all` are much faster.

        Raises
        ------
        TypeError
            If it is no sequence of numbers.
        IndexError, ValueError
            If it is too short for the function.
        """
        items = [individual]
        return (self._read(items) or self._converted(items))[0]

    def evaluate_all(self, individuals: Iterable[Any]) -> list[Fitness]:
        """Fitness of each individual, for ``individual.fitness.values``.

        Parameters
        ----------
        individuals : iterable of sequence of float
            Lists, `array.array` or arrays of NumPy.

        Raises
        ------
        TypeError
            If an individual is no sequence of numbers.
        IndexError, ValueError
            If one is too short for the function.
        """
        items = list(individuals)
        return (self._read(items) or self._converted(items)) if items else []

    def map(self, function: Callable[..., Any], individuals: Iterable[Any], *more: Iterable[Any]) -> Iterable[Any]:
        """The builtin `map`, except that it evaluates individuals in one native call.

        Parameters
        ----------
        function : callable
            Not called if it is one of: this objective; the function that a toolbox has registered as "evaluate",
            undecorated; the function that the objective was made to replace.
        individuals, *more : iterables

        Returns
        -------
        iterable
            A list of fitnesses, or the result of the builtin `map`.

        Raises
        ------
        ValueError
            If the function computes another fitness than this objective, or the individuals' fitness has another number
            of weights.
        """
        items = list(individuals)
        is_own = without_arguments(function) is self
        if more or not items or not (is_own or is_evaluation(function, self._stands_for)):
            return map(function, items, *more)
        weights = weights_of(items)
        if weights is not None and len(weights) != len(self.formula.results):
            raise ValueError(
                f"the fitness has {len(weights)} weights, and the objective {len(self.formula.results)} values: create "
                "the class with a weight for each value"
            )
        fitnesses = self.evaluate_all(items)
        if self._unchecked and not is_own:
            self._check(function, items[:_CHECKED], fitnesses)
            self._unchecked = False
        return fitnesses

    def _read(self, individuals: list[Any]) -> list[Fitness] | None:
        """The fitness of individuals of one type and length that native code reads; None if they are others."""
        first, rows = individuals[0], len(individuals)
        try:
            key = type(first), len(first)
        except TypeError:
            return None
        # Another thread cannot take the room while this one uses it.
        room = self._rooms.pop(key, None)
        if room is None or room.rows < rows:
            reader = reader_of(first)
            if reader is None or self._tier != "native" or self._dtype != "float64":
                return None
            room = self._room(1 << (rows - 1).bit_length(), first, reader)
        fitnesses = room.reader(room.words, individuals)
        if fitnesses is None:
            return None
        if fitnesses is False:
            fitnesses = self._mended(room.call.values[:, :rows], individuals)
        # Most lengths of individuals for which a matrix is kept for the next generation
        if len(self._rooms) < 16 and room.matrix.size <= _MOST_NUMBERS:
            self._rooms[key] = room
        return fitnesses

    def _room(self, rows: int, individual: Any, reader: Reader) -> _Room:
        matrix = np.empty((rows, len(individual)))
        arguments = [self._constants.get(name, matrix) for name in self.formula.parameters]
        call = self._kernel.prepared(arguments, rows)
        return _Room(rows, matrix, call, reader, reading_words(individual, matrix, call.words))

    def _converted(self, individuals: list[Any]) -> list[Fitness]:
        """The fitness of individuals of several lengths, or whose numbers Python converts."""
        lengths = lengths_of(individuals)
        if len(set(lengths)) == 1:
            return self._mended(self._values(individuals, lengths[0]), individuals)
        found: dict[int, Fitness] = {}
        for length in set(lengths):
            chosen = [place for place, each in enumerate(lengths) if each == length]
            found.update(zip(chosen, self.evaluate_all([individuals[place] for place in chosen]), strict=True))
        return [found[place] for place in range(len(lengths))]

    def _values(self, individuals: list[Any], length: int) -> AnyArray:
        """The values of individuals of one length, shape (n_values, n_individuals)."""
        matrix = matrix_of(individuals, length)
        if matrix.dtype != self._dtype:
            with np.errstate(over="ignore"):
                matrix = matrix.astype(self._dtype)
        arguments = [self._constants.get(name, matrix) for name in self.formula.parameters]
        if self._tier == "native":
            return self._kernel.run(arguments, len(individuals))
        return np.array(self._interpreted(arguments, len(individuals)))

    def _interpreted(self, arguments: Sequence[AnyArray], rows: int) -> tuple[AnyArray, ...]:
        axes = [1 + (name in self.formula.vectors) for name in self.formula.parameters]
        batch = [
            array if array.ndim == axis else np.broadcast_to(array, (rows, *array.shape))
            for array, axis in zip(arguments, axes, strict=True)
        ]
        functions = COMPILED if self._dtype == "float64" else None
        return evaluate_arrays(self.formula, batch, self._dtype, functions)

    def _mended(self, values: AnyArray, individuals: list[Any]) -> list[Fitness]:
        """The values as fitness, with those of failed individuals replaced."""
        lost = ~np.isfinite(values).all(axis=0)
        weights = weights_of(individuals) or [-1.0] * len(values)
        worst: Iterable[float] = (-np.inf if weight > 0 else np.inf for weight in weights)
        if self._failed is not None:
            worst = self._failed if len(self._failed) > 1 else repeat(self._failed[0], len(values))
        for row, value in zip(values, worst, strict=True):
            row[lost] = value
        return list(zip(*values.tolist(), strict=True))

    def _check(self, function: Callable[..., Any], individuals: list[Any], fitnesses: list[Fitness]) -> None:
        for individual, own in zip(individuals, fitnesses, strict=False):
            try:
                given = function(individual)
            except ArithmeticError:
                continue
            except ValueError as error:
                if "math domain" in str(error) or "math range" in str(error):
                    continue
                raise
            values = np.ravel(np.asarray(given, dtype=np.float64))
            near = _NEAR[self._dtype]
            is_same = len(values) == len(own) and np.allclose(values, own, rtol=near, atol=near, equal_nan=True)
            if not is_same and np.isfinite(values).all():
                raise ValueError(
                    f"the function that is registered as 'evaluate' computes {value_text(given)} for an individual, "
                    f"and the objective {value_text(own)}; give the objective the same function, or evaluate=function "
                    "for the one that it replaces, or check=False"
                )

    def _checked_constants(self, constants: Mapping[str, ArrayLike]) -> dict[str, AnyArray]:
        formula = self.formula
        unknown = next((name for name in constants if name not in formula.parameters), None)
        if unknown is not None:
            raise ValueError(f"constants: {shown(unknown)} is no parameter; these are {', '.join(formula.parameters)}")
        free = [name for name in formula.vectors if name not in constants]
        missing = [name for name in formula.scalars if name not in constants]
        if len(free) != 1 or missing:
            names = ", ".join(missing or free) or "none"
            problem = f"give constants={{...}} for {names}" if missing else f"one vector is the individual, not {names}"
            problem += "" if missing else "; give constants={...} for others" if free else "; write x[0] or sum(x)"
            raise ValueError(f"the objective takes ({', '.join(formula.parameters)}): {problem}")
        checked = {}
        for name, value in constants.items():
            is_vector = name in formula.vectors
            with suppress(ValueError), np.errstate(over="ignore"):
                array = np.asarray(value)
                if array.dtype.kind in "biuf" and array.ndim == is_vector:
                    checked[name] = array.astype(self._dtype)
            if name not in checked or not np.isfinite(checked[name]).all():
                wanted = f"a {'sequence of finite numbers' if is_vector else 'finite number'} in {self._dtype}"
                raise TypeError(f"constants: {name} is {wanted}, not {value_text(value)}")
        return checked


def matrix_of(individuals: list[Any], length: int) -> AnyArray:
    """A matrix with a row for each individual, shape (len(individuals), length).

    Parameters
    ----------
    individuals : list of sequence of float
        Lists, `array.array`, arrays of NumPy with one axis, or other sequences, all of one length.
    length : int

    Raises
    ------
    TypeError
        If an individual is no sequence of real numbers.
    """
    matrix = np.empty((len(individuals), length))
    reader = reader_of(individuals[0])
    if reader is not None and reader(reading_words(individuals[0], matrix), individuals) is not None:
        return matrix
    for kind in set(map(type, chain.from_iterable(individuals))):
        if not issubclass(kind, Real):
            place, position, value = next(
                (place, position, value)
                for position, individual in enumerate(individuals)
                for place, value in enumerate(individual)
                if type(value) is kind
            )
            raise TypeError(
                f"element {place} of individual {position} is {value_text(value)}; individuals are sequences of numbers"
            )
    with placed("an individual has a number that is no float64", OverflowError, ValueError, TypeError, kind=TypeError):
        numbers = np.fromiter(chain.from_iterable(individuals), np.float64, len(individuals) * length)
    return numbers.reshape(len(individuals), length)


def lengths_of(individuals: Sequence[Any]) -> list[int]:
    """Length of each individual; a `TypeError` if one is no sequence of numbers."""
    for kind in set(map(type, individuals)):
        is_sequence = all(hasattr(kind, each) for each in ("__len__", "__iter__", "__getitem__"))
        if not is_sequence or issubclass(kind, str | bytes | Mapping):
            position = next(place for place, each in enumerate(individuals) if type(each) is kind)
            raise TypeError(
                f"individual {position} is {value_text(individuals[position])}; individuals are sequences of numbers"
            )
    return list(map(len, individuals))
