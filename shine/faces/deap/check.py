"""Whether a script's own function computes the fitness that compiled code computes instead of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.typing import Mask
from shine.faces.deap.objectives import Objective, described
from shine.faces.deap.vocabulary import gp

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}
"""Largest relative difference between values of the fitness."""

ALL_CHECKS = frozenset({"values", "failed"})
"""Individuals to check: some with a value, and one without."""

NO_CHECKS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Check:
    """Compares the fitness of a few individuals.

    Parameters
    ----------
    function : callable
        The script's own.
    objectives : sequence of Objective
    dtype : {"float64", "float32"}
    scale : float
        Mean square of the target.
    is_steady : callable
        Whether an individual's values do not hang on the last bits of the data. Others are not compared.
    """

    function: Callable[[Any], Any]
    objectives: Sequence[Objective]
    dtype: str
    scale: float
    is_steady: Callable[[Any], bool]

    def remaining(
        self, checks: frozenset[str], individuals: Sequence[Any], fitnesses: Sequence[tuple[float, ...]], failed: Mask
    ) -> frozenset[str]:
        """The checks that this population did not allow; a `ValueError` if the fitness differs.

        Parameters
        ----------
        checks : frozenset of str
            The checks to do.
        individuals, fitnesses : sequence
            With the values of compiled code.
        failed : ndarray of shape (n_individuals,), bool
            Whether each individual has no finite value in some row.
        """
        pairs = list(zip(individuals, fitnesses, failed.tolist(), strict=True))
        valid = [(individual, own) for individual, own, without in pairs if not without]
        others = [(individual, own) for individual, own, without in pairs if without]
        if "values" in checks and valid and self._compares(valid):
            checks = checks - {"values"}
        if "failed" in checks and others:
            self._check_failed(*min(others, key=lambda pair: _size(pair[0])))
            checks = checks - {"failed"}
        return checks

    def _compares(self, pairs: Sequence[tuple[Any, tuple[float, ...]]]) -> bool:
        """Compare small individuals that together have all functions, arguments and named constants of the population.

        Returns
        -------
        bool
            Whether one could be compared. Where the script's function raises, or catches what it raises and returns
            inf or NaN, compiled code may have a value: a function that has no influence on it.
        """
        compared = False
        for position in _covering([individual for individual, _ in pairs]):
            individual, own = pairs[position]
            try:
                other = self.function(individual)
            except (ArithmeticError, ValueError):
                continue
            values = _numbers(other)
            if values is not None and len(values) == len(own) and not np.isfinite(values).all():
                continue
            compared = True
            if not self._alike(own, other) and self.is_steady(individual):
                raise ValueError(
                    f"{self._difference(individual, own, other)}: give the evaluator the loss or objectives, X and y "
                    "of that function, or check=False if the difference is meant"
                )
        return compared

    def _check_failed(self, individual: Any, own: tuple[float, ...]) -> None:
        """A script that returns a finite fitness for an individual without a value must have told the evaluator."""
        if self.dtype != "float64":
            return  # Python's numbers may be finite where smaller ones are not
        try:
            other = self.function(individual)
        except Exception:
            return  # DEAP's script would end here
        values = _numbers(other)
        if values is None or not np.isfinite(values).all() or self._alike(own, other) or not self.is_steady(individual):
            return
        given = _shortened(tuple(values.tolist())) if len(values) > 1 else repr(values.tolist()[0])
        raise ValueError(
            f"{self._difference(individual, own, other)}, as it is not finite in every row: give the evaluator "
            f"failed={given} if your function returns this for such individuals, or check=False if the difference is "
            "meant"
        )

    def _alike(self, own: tuple[float, ...], other: Any) -> bool:
        values, known = _numbers(other), np.array(own)
        if values is None or values.shape != known.shape:
            return False
        with np.errstate(invalid="ignore"):
            # Values below this share of the target's mean square may differ as values of this size may.
            most = _TOLERANCE[self.dtype] * np.maximum(np.abs(known), 1e-6 * self.scale)
            near = np.isfinite(known) & (np.abs(values - known) <= most)
        return bool((near | (values == known)).all())

    def _difference(self, individual: Any, own: tuple[float, ...], other: Any) -> str:
        written = str(individual) if isinstance(individual, gp.PrimitiveTree) else ", ".join(map(str, individual))
        shown = repr(own[0]) if len(own) == 1 else _shortened(own)
        compiled = described(self.objectives)
        return f"toolbox.evaluate returns {_shortened(other)} for {written}, but the compiled {compiled} is {shown}"


def _covering(individuals: Sequence[Any]) -> list[int]:
    """Positions of small individuals that together have all names of the population, those of functions first."""
    smallest: dict[tuple[bool, int, str], int] = {}
    held = [set(_names(individual)) for individual in individuals]
    for position in sorted(range(len(individuals)), key=lambda i: _size(individuals[i])):
        for name in held[position]:
            smallest.setdefault(name, position)
    chosen: list[int] = [min(range(len(individuals)), key=lambda i: _size(individuals[i]))]
    covered = set(held[chosen[0]])
    for name in sorted(smallest):
        # Most individuals that the script's function, which is slow, is called for.
        if name not in covered and len(chosen) < 20:
            chosen.append(smallest[name])
            covered |= held[smallest[name]]
    return chosen


def _names(individual: Any) -> Iterator[tuple[bool, int, str]]:
    """For each node whether it is no function, the position of its tree, and its name; numbers have one name."""
    for position, tree in enumerate([individual] if isinstance(individual, gp.PrimitiveTree) else individual):
        for node in tree:
            named = node.arity or isinstance(getattr(node, "value", None), str)
            yield not node.arity, position, node.name if named else ""


def _size(individual: Any) -> int:
    """Number of nodes; of all trees if there are several."""
    return len(individual) if isinstance(individual, gp.PrimitiveTree) else sum(map(len, individual))


def _numbers(fitness: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """The values of a fitness; None if it is none."""
    if fitness is None:
        return None
    try:
        return np.ravel(np.asarray(fitness, dtype=np.float64))
    except (TypeError, ValueError):
        return None


def _shortened(values: Any, most: int = 6) -> str:
    """A fitness in a message; only the first values of many."""
    if isinstance(values, tuple) and len(values) > most:
        return f"({', '.join(map(repr, values[:most]))}, ... {len(values)} values)"
    return repr(values)
