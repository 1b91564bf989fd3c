"""The state of a run between two generations: a plain value that the rest of the run depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from shine.base.typing import AnyArray, Mask
from shine.evaluate.scores import Scores
from shine.lang.forms.names import normalized
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population
from shine.search.description import Stagnation
from shine.search.evolution.archive import Archive
from shine.search.evolution.islands import Island
from shine.search.evolution.memory import Known
from shine.search.evolution.operators.slots import (
    Slot,
    SlottedSet,
    ends_of_slots,
    formula_depths,
    formula_limits,
    formula_sizes,
    width_of,
)
from shine.search.evolution.run_state_checks import (
    check_archive,
    check_formulas,
    check_integer,
    check_keys,
    check_losses,
    check_scores,
    checked_arrays,
    formed,
    names_of,
    seconds_of,
    stagnation_of,
    text_of,
    weights_of,
)
from shine.search.evolution.settings import EvolutionSettings

Arrays = Mapping[str, AnyArray]


@dataclass(frozen=True, eq=False)
class Past:
    """Former lives of a run: how many, what they took, what they found."""

    lives: int = 0
    generations: int = 0
    """With their first populations."""
    evaluations: int = 0
    archive: Archive | None = None


@dataclass(frozen=True, eq=False)
class State:
    """A run after a generation; `shine.search.evolution.evolution.evolve` continues it as if it had never stopped.

    Parameters
    ----------
    islands : tuple of Island
    archive : Archive
    known : tuple of Known
        The individuals that each island has scored.
    parts : Population
        Formulas that the seeding found to have useful parts; may be empty.
    generation : int
    stagnation : Stagnation
    evaluations : int
        Distinct individuals evaluated so far.
    seconds : float
        Since the run began.
    key : int
        Of all random numbers of the run.
    noise : str
        Model of the noise that the losses are measured with; empty if it is not known.
    past : Past
        The lives before this one; the counts above include theirs.
    """

    islands: tuple[Island, ...]
    archive: Archive
    known: tuple[Known, ...]
    parts: Population
    generation: int
    stagnation: Stagnation
    evaluations: int
    seconds: float
    key: int
    noise: str = ""
    past: Past = Past()

    @property
    def primitives(self) -> PrimitiveSet:
        """The primitive set of the individuals."""
        return self.archive.individuals.primitives

    def header(self) -> dict[str, Any]:
        """Everything except arrays, as JSON values. Whole numbers have up to 64 bits: store them exactly."""
        return {
            "functions": [function.name for function in self.primitives.functions],
            "features": list(self.primitives.features),
            **header_of_slots(self.primitives),
            "complexity": dict(self.archive.weights),
            "generation": self.generation,
            # As text, because JSON has no infinity.
            "stagnation": {"length": repr(self.stagnation.length), "fell": self.stagnation.fell},
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "key": self.key,
            "noise": self.noise,
            "past": {name: getattr(self.past, name) for name in ("lives", "generations", "evaluations")},
            "islands": [
                {
                    "individuals": len(island.parents),
                    "generation": island.generation,
                    "improved": island.improved,
                    "life": island.life,
                    "key": island.key,
                    "known": [len(known.younger_keys), len(known.elder_keys)],
                }
                for island, known in zip(self.islands, self.known, strict=True)
            ],
        }

    def to_arrays(self) -> dict[str, AnyArray]:
        """All arrays by name; the islands are concatenated."""
        everyone = Population.concatenate([island.parents for island in self.islands])
        own, none = self.archive, np.zeros(0, np.int64)
        past = self.past.archive or Archive(own.individuals.take(none), own.scores.take(none), own.weights)
        return {
            **_population_arrays("islands", everyone),
            "islands.losses": np.concatenate([island.losses for island in self.islands]),
            **_archive_arrays("archive", self.archive),
            **_archive_arrays("past", past),
            **_population_arrays("parts", self.parts),
            **{
                f"known.{each.name}": np.concatenate([getattr(known, each.name) for known in self.known])
                for each in fields(Known)
            },
        }

    @classmethod
    def from_arrays(cls, header: Mapping[str, Any], arrays: Arrays, table: Mapping[str, Primitive]) -> Self:
        """The state of a header and arrays (see `header` and `to_arrays`).

        Parameters
        ----------
        header : mapping
        arrays : mapping of str to ndarray
        table : mapping of str to Primitive
            Functions by name.

        Raises
        ------
        ValueError
            If a part is missing, does not fit the others, or is not a formula.
        """
        with formed("run's state"):
            return cls._checked(header, checked_arrays(arrays), table)

    @classmethod
    def _checked(cls, header: Mapping[str, Any], arrays: Arrays, table: Mapping[str, Primitive]) -> Self:
        primitives = _primitives(header, table)
        generation = check_integer(header["generation"], "generation")
        weights = weights_of(header["complexity"])
        evaluations, before = check_integer(header["evaluations"], "evaluations"), header["past"]
        most = {"lives": generation, "generations": generation, "evaluations": evaluations}
        past = [check_integer(before[name], f"past {name}", 0, limit) for name, limit in most.items()]
        former = _archive("past", arrays, primitives, weights) if past[0] else None
        return cls(
            tuple(_islands(header["islands"], arrays, primitives, generation)),
            _archive("archive", arrays, primitives, weights),
            tuple(_known(header["islands"], arrays)),
            _population("parts", arrays, primitives),
            generation,
            stagnation_of(header["stagnation"], generation),
            evaluations,
            seconds_of(header["seconds"]),
            check_integer(header["key"], "key"),
            text_of(header["noise"], "noise"),
            Past(past[0], past[1], past[2], former),
        )


def _primitives(header: Mapping[str, Any], table: Mapping[str, Primitive]) -> PrimitiveSet:
    if "slots" in header:
        return slotted_set(header["slots"], header["numbers"], table)
    functions = select(table, names_of(header["functions"], "functions"))
    return PrimitiveSet(functions, tuple(names_of(header["features"], "features")))


def _archive(name: str, arrays: Arrays, primitives: PrimitiveSet, weights: Mapping[str, float]) -> Archive:
    """A stored archive."""
    individuals = _population(name, arrays, primitives)
    check_scores(f"{name}.scores", arrays[f"{name}.scores"], len(individuals))
    scores = Scores(*arrays[f"{name}.scores"].T.copy())
    check_archive(individuals, scores, weights)
    return Archive(individuals, scores, weights)


def _archive_arrays(name: str, archive: Archive) -> dict[str, AnyArray]:
    scores = archive.scores
    every = np.column_stack((scores.losses, scores.slopes, scores.intercepts))
    return {**_population_arrays(name, archive.individuals), f"{name}.scores": every}


def _islands(
    headers: Sequence[Mapping[str, Any]], arrays: Arrays, primitives: PrimitiveSet, generations: int
) -> Iterator[Island]:
    everyone = _population("islands", arrays, primitives)
    check_losses("islands.losses", arrays["islands.losses"], len(everyone))
    counts = [check_integer(header["individuals"], "individuals of an island", 1, len(everyone)) for header in headers]
    if not counts or sum(counts) != len(everyone):
        raise ValueError(f"the islands have {sum(counts)} individuals, but their arrays hold {len(everyone)}")
    start = 0
    for header, count in zip(headers, counts, strict=True):
        own = np.arange(start, start + count)
        generation = check_integer(header["generation"], "generation of an island", 0, generations)
        yield Island(
            everyone.take(own),
            arrays["islands.losses"][own],
            generation,
            check_integer(header["improved"], "generation in which an island improved", 0, generation),
            check_integer(header["life"], "life of an island", 0, generations),
            check_integer(header["key"], "key of an island", 0, 2**64 - 1),
        )
        start += count


def _known(headers: Sequence[Mapping[str, Any]], arrays: Arrays) -> Iterator[Known]:
    """The memories of the islands."""
    ages = ("younger", "elder")
    begin = dict.fromkeys(ages, 0)
    for header in headers:
        parts = []
        for age, place in zip(ages, range(2), strict=True):
            keys, losses, start = arrays[f"known.{age}_keys"], arrays[f"known.{age}_losses"], begin[age]
            count = check_integer(header["known"][place], "individuals that an island knows", 0, len(keys) - start)
            begin[age] = start + count
            check_keys(f"known.{age}_keys", keys[start : start + count])
            check_losses(f"known.{age}_losses", losses[start : start + count], count)
            parts += [keys[start : start + count], losses[start : start + count]]
        yield Known(*parts)
    for age in ages:
        if begin[age] < len(arrays[f"known.{age}_keys"]):
            raise ValueError(f"the islands know {begin[age]} individuals, but 'known.{age}_keys' holds more")


def _population_arrays(name: str, population: Population) -> dict[str, AnyArray]:
    return {
        f"{name}.codes": population.codes,
        f"{name}.values": population.values,
        f"{name}.sizes": population.sizes,
    }


def _population(name: str, arrays: Arrays, primitives: PrimitiveSet) -> Population:
    codes, values, sizes = (arrays[f"{name}.{part}"] for part in ("codes", "values", "sizes"))
    population = Population(codes, values, sizes, primitives)
    check_formulas(name, population)
    if isinstance(primitives, SlottedSet):
        # Rows of an archive that were never filled hold a lone constant.
        used = population.sizes > 1 if name in ("archive", "past") else np.ones(len(population), np.bool_)
        if not keep_slots(population.take(used)).all():
            raise ValueError(f"the individuals of {name!r} do not have the slots of the run")
    return population


class StrangeStateError(ValueError):
    """A state belongs to another run."""


def check_state(state: State, primitives: PrimitiveSet, settings: EvolutionSettings) -> None:
    """Raise a `StrangeStateError` if the state shows that it belongs to a run of other primitives or settings."""
    if state.primitives != primitives:
        raise StrangeStateError("the state belongs to a run with another primitive set")
    empty = Archive.empty(primitives, width_of(primitives, settings.max_size), settings.complexity)
    found = state.archive.individuals.codes.shape, dict(state.archive.weights), len(state.islands)
    widths = empty.individuals.width, settings.longest, (state.past.archive or empty).individuals.width
    if max(widths) > max(widths[:2]) or found != (empty.individuals.codes.shape, dict(empty.weights), settings.islands):
        raise StrangeStateError("the state belongs to a run with another max_size, complexity or number of islands")
    everyone = [*(island.parents for island in state.islands), state.parts]
    nodes, levels = formula_limits(primitives, settings.max_size, settings.max_depth)
    if any((formula_sizes(each) > nodes).any() or (formula_depths(each) > levels).any() for each in everyone):
        raise StrangeStateError("the state has individuals of more nodes or levels than max_size and max_depth allow")


def header_of_slots(primitives: PrimitiveSet) -> dict[str, Any]:
    """Slots in a state's header, as JSON values; empty for an ordinary primitive set."""
    if not isinstance(primitives, SlottedSet):
        return {}
    slots = [
        {
            "name": slot.name,
            "functions": [function.name for function in slot.primitives.functions],
            "arguments": list(slot.primitives.features),
            "max_size": slot.max_size,
            "max_depth": slot.max_depth,
        }
        for slot in primitives.slots
    ]
    return {"slots": slots, "numbers": [repr(number) for number in primitives.numbers]}


def slotted_set(slots: Any, numbers: Any, table: Mapping[str, Primitive]) -> SlottedSet:
    """The primitive set that a header describes.

    Raises
    ------
    ValueError
        If the header has another form, or a function is not in the table.
    """
    if not isinstance(slots, Sequence) or not slots or not isinstance(numbers, Sequence):
        raise ValueError("the slots of the run's state have another form")
    return SlottedSet.of([_slot(slot, table) for slot in slots], [float(text_of(each, "number")) for each in numbers])


def _slot(slot: Any, table: Mapping[str, Primitive]) -> Slot:
    functions = select(table, names_of(slot["functions"], "functions"))
    arguments = tuple(names_of(slot["arguments"], "arguments"))
    limits = (check_integer(slot[key], key, 1) for key in ("max_size", "max_depth"))
    return Slot(normalized(text_of(slot["name"], "name")), PrimitiveSet(functions, arguments), *limits)


def keep_slots(population: Population) -> Mask:
    """Whether valid individuals of a slotted set have root and numbers at the end, and in each slot its own codes."""
    primitives = population.primitives
    assert isinstance(primitives, SlottedSet)
    n, frame = len(population), primitives.frame
    everyone = np.arange(n)
    whole = population.sizes > frame
    roots = np.where(whole, population.sizes - 1, 0)
    inside = np.arange(population.width) < population.sizes[:, None]
    whole &= population.codes[everyone, roots] == primitives.root
    whole &= ((population.codes == primitives.root) & inside).sum(axis=1) == 1
    numbers = roots[:, None] - np.arange(1, frame)
    whole &= (population.codes[everyone[:, None], np.maximum(numbers, 0)] == CONSTANT).all(axis=1)
    kept = np.flatnonzero(whole)
    found = population.take(kept)
    ends, begins = ends_of_slots(found), np.zeros(len(kept), np.int64)
    positions = np.arange(population.width)
    for slot, codes in enumerate(primitives.codes_of_slots):
        allowed = np.isin(found.codes, codes)
        own = (positions >= begins[:, None]) & (positions <= ends[:, slot][:, None])
        whole[kept] &= (allowed | ~own).all(axis=1) & (ends[:, slot] >= begins)
        begins = ends[:, slot] + 1
    return whole
