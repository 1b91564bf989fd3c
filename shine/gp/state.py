"""The state of a run between two generations: everything that what follows depends on, as a plain value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shine.fitness import Scores
from shine.gp.archive import Archive
from shine.gp.hashing import Known
from shine.gp.islands import Island
from shine.gp.randomness import plain
from shine.gp.structure import Parents
from shine.lang.population import Population
from shine.lang.primitives import Primitive, PrimitiveSet, select

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class State:
    """A run after a generation; `shine.gp.evolution.evolve` goes on from it as if it had never stopped.

    Parameters
    ----------
    islands : tuple of Island
    archive : Archive
    known : Known
        The individuals that were scored before.
    parts : Population
        Formulas whose parts the seeding found useful; may be empty.
    generation : int
    evaluations : int
        Distinct individuals evaluated so far.
    seconds : float
        Since the run began.
    random : mapping
        State of the run's generator (see `shine.gp.randomness.generator_state`).
    """

    islands: tuple[Island, ...]
    archive: Archive
    known: Known
    parts: Population
    generation: int
    evaluations: int
    seconds: float
    random: Mapping[str, Any]

    @property
    def primitives(self) -> PrimitiveSet:
        """What the individuals are made of."""
        return self.archive.individuals.primitives

    def header(self) -> dict[str, Any]:
        """All that is no array, as JSON can hold it. Numbers keep every bit; some have 128."""
        return {
            "functions": [function.name for function in self.primitives.functions],
            "features": list(self.primitives.features),
            "complexity": dict(self.archive.weights),
            "generation": self.generation,
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "random": plain(self.random),
            "islands": [
                {
                    "individuals": len(island.parents),
                    "generation": island.generation,
                    "improved": island.improved,
                    "random": plain(island.random),
                }
                for island in self.islands
            ],
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name; the islands one after the other."""
        everyone = Population.concatenate([island.parents.population for island in self.islands])
        scores, known = self.archive.scores, self.known
        return {
            **_population_arrays("islands", everyone),
            "islands.losses": np.concatenate([island.losses for island in self.islands]),
            "islands.births": np.concatenate([island.births for island in self.islands]),
            **_population_arrays("archive", self.archive.individuals),
            "archive.scores": np.column_stack((scores.losses, scores.slopes, scores.intercepts)),
            **_population_arrays("parts", self.parts),
            "known.younger_keys": known.younger_keys,
            "known.younger_rows": known.younger_rows,
            "known.elder_keys": known.elder_keys,
            "known.elder_rows": known.elder_rows,
        }

    @classmethod
    def from_arrays(cls, header: Mapping[str, Any], arrays: Arrays, table: Mapping[str, Primitive]) -> Self:
        """The state that `header` and `to_arrays` have taken apart.

        Parameters
        ----------
        header : mapping
        arrays : mapping of str to ndarray
        table : mapping of str to Primitive
            Functions by name.

        Raises
        ------
        ValueError
            If something is missing, does not fit the rest, or is no formula.
        """
        try:
            primitives = PrimitiveSet(select(table, header["functions"]), tuple(header["features"]))
            losses, slopes, intercepts = arrays["archive.scores"].T.copy()
            return cls(
                tuple(_islands(header["islands"], arrays, primitives)),
                Archive(
                    _population("archive", arrays, primitives), Scores(losses, slopes, intercepts), header["complexity"]
                ),
                Known(
                    *(arrays[f"known.{name}"] for name in ("younger_keys", "younger_rows", "elder_keys", "elder_rows"))
                ),
                _population("parts", arrays, primitives),
                header["generation"],
                header["evaluations"],
                header["seconds"],
                header["random"],
            )
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the state of the run lacks something, or has it in another form: {error}") from None


def _islands(headers: Sequence[Mapping[str, Any]], arrays: Arrays, primitives: PrimitiveSet) -> Iterator[Island]:
    everyone = _population("islands", arrays, primitives)
    start = 0
    for header in headers:
        own = np.arange(start, start + header["individuals"])
        yield Island(
            Parents.of(everyone.take(own)),
            arrays["islands.losses"][own],
            arrays["islands.births"][own],
            header["generation"],
            header["improved"],
            header["random"],
        )
        start += header["individuals"]
    if start != len(everyone):
        raise ValueError(f"the islands have {start} individuals, and {len(everyone)} are there")


def _population_arrays(name: str, population: Population) -> dict[str, NDArray[Any]]:
    return {
        f"{name}.codes": population.codes,
        f"{name}.values": population.values,
        f"{name}.sizes": population.sizes,
    }


def _population(name: str, arrays: Arrays, primitives: PrimitiveSet) -> Population:
    codes, values, sizes = (arrays[f"{name}.{part}"] for part in ("codes", "values", "sizes"))
    population = Population(codes, values, sizes, primitives)
    # The machine runs tapes unseen.
    types = [array.dtype.name for array in (codes, values, sizes)]
    if types != ["int16", "float64", "int64"] or not population.is_valid:
        raise ValueError(f"the individuals of {name!r} are no formulas")
    return population
