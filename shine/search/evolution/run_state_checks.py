"""Checks of a state that was read from a file, which can have any content; a random generator's state as plain values.

The machine runs tapes without checks, random generators index their own tables, and a search trusts its state. So these
checks cover types and shapes, ranges, and whether the parts fit each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from shine.base.errors import placed
from shine.base.typing import AnyArray, Floats, Hashes
from shine.evaluate.scores import Scores
from shine.lang.forms.names import cut, shown, value_text
from shine.lang.population import Population
from shine.search.description import Stagnation
from shine.search.evolution.archive import Archive, form_complexities
from shine.search.evolution.memory import CAPACITY

_TAPES = {"codes": ("int16", 2), "values": ("float64", 2), "sizes": ("int64", 1)}

FORMS: dict[str, tuple[str, int]] = {
    **{f"{name}.{part}": form for name in ("islands", "archive", "parts") for part, form in _TAPES.items()},
    "islands.losses": ("float64", 1),
    "archive.scores": ("float64", 2),
    **{f"known.{age}_keys": ("uint64", 1) for age in ("younger", "elder")},
    **{f"known.{age}_losses": ("float64", 1) for age in ("younger", "elder")},
}
"""Type and number of dimensions of each array."""


def checked_arrays(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The arrays of a state, contiguous; their types and numbers of dimensions are those of `FORMS`.

    Raises
    ------
    ValueError
        If an array is missing or has another form; the message names it.
    """
    checked = {}
    for name, (dtype, dimensions) in FORMS.items():
        if name not in arrays:
            raise ValueError(f"the state of the run lacks the array {name!r}")
        array = arrays[name]
        if array.dtype != np.dtype(dtype) or array.ndim != dimensions:
            raise ValueError(
                f"{name!r} is an array of {array.dtype} with {array.ndim} dimensions, not of {dtype} with {dimensions}"
            )
        checked[name] = np.ascontiguousarray(array)
    widths = {checked[f"{name}.codes"].shape[1] for name in ("islands", "archive", "parts")}
    if len(widths) > 1:
        raise ValueError("the individuals of islands, archive and parts differ in their width")
    return checked


def check_integer(value: Any, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """The value, if it is a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, is {value_text(value)}")
    return value


def text_of(value: Any, name: str) -> str:
    """The value, if it is a text."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, is {value_text(value)}")
    return value


def seconds_of(value: Any) -> float:
    """The value as a duration, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"seconds must be a number from 0, is {value_text(value)}")
    return float(value)


def stagnation_of(value: Any, generation: int) -> Stagnation:
    """The value as a stagnation, if it is one."""
    length = value["length"]
    if not isinstance(length, str):
        raise ValueError(f"the description length must be a number as text, is {value_text(length)}")
    if math.isnan(float(length)):
        raise ValueError("the description length is NaN")
    return Stagnation(float(length), check_integer(value["fell"], "generation of the last improvement", 0, generation))


def names_of(value: Any, name: str) -> list[str]:
    """The value as a list of names, if it is one."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name} must be a list of names, is {value_text(value)}")
    return list(value)


def weights_of(value: Any) -> dict[str, float]:
    """The value as complexity weights, if it has their form."""
    if not isinstance(value, Mapping):
        raise ValueError(f"complexity must map names to weights, is {value_text(value)}")
    for name, weight in value.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1000:
            raise ValueError(f"complexity of {shown(name)} must be above 0 and at most 1000, is {value_text(weight)}")
    return {str(name): weight for name, weight in value.items()}


def check_formulas(name: str, population: Population) -> None:
    """Raise an error if individuals are not formulas."""
    if not population.is_valid:
        raise ValueError(f"the individuals of {name!r} are not formulas")


def check_losses(name: str, losses: Floats, count: int) -> None:
    """Raise an error if there is not one loss, from 0 to inf, for each of `count` individuals."""
    if losses.shape != (count,):
        raise ValueError(f"{name!r} has {losses.shape[0]} losses for {count} individuals")
    if not (losses >= 0).all():
        raise ValueError(f"{name!r} has losses that are NaN or negative")


def check_scores(name: str, rows: Floats, count: int) -> None:
    """Raise an error if there are not a loss, a slope and an intercept for each of `count` individuals."""
    if rows.shape != (count, 3):
        raise ValueError(f"{name!r} has the shape {rows.shape}, not {(count, 3)}")
    check_losses(name, rows[:, 0], count)
    if not np.isfinite(rows[:, 1:]).all():
        raise ValueError(f"{name!r} has slopes or intercepts that are not finite")


def check_keys(name: str, keys: Hashes) -> None:
    """Raise an error if hashes are too many, repeated or 0, which the memory of scores cannot hold."""
    if len(keys) > CAPACITY:
        raise ValueError(f"{name!r} has {len(keys)} keys; at most {CAPACITY} fit")
    if len(np.unique(keys)) < len(keys) or not keys.all():
        raise ValueError(f"{name!r} has keys that are 0 or occur twice")


def check_archive(individuals: Population, scores: Scores, weights: Mapping[str, float]) -> None:
    """Raise an error if an individual is in the row of another complexity."""
    seen = np.flatnonzero(np.isfinite(scores.losses))
    found = individuals.take(seen)
    forms = form_complexities(found, scores.take(seen), weights) - 1
    empty = Archive.empty(individuals.primitives, individuals.width, weights)
    if len(individuals) != len(empty.individuals):
        raise ValueError(f"the archive has {len(individuals)} rows, not {len(empty.individuals)}")
    if (forms != seen % empty.levels).any():
        raise ValueError("the archive has individuals in the rows of other complexities")


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a generator, including its future children; `restored_generator` is the inverse.

    Raises
    ------
    TypeError
        If the generator was not made from a seed: it cannot spawn.
    """
    sequence = rng.bit_generator.seed_seq
    if not isinstance(sequence, np.random.SeedSequence):
        raise TypeError("the random generator has no SeedSequence; make one by numpy.random.default_rng(seed)")
    seed = {
        "entropy": sequence.entropy,
        "spawn_key": sequence.spawn_key,
        "pool_size": sequence.pool_size,
        "children": sequence.n_children_spawned,
    }
    return {"bits": plain(rng.bit_generator.state), "seed": plain(seed)}


_MOST_POOL, _MOST_CHILDREN = 64, 2**32 - 1
"""Bounds of a seed from a file: NumPy makes pools of four words, and counts children in one word."""


def formed(what: str) -> AbstractContextManager[None]:
    """Raise a `ValueError` for what a file lacks, or holds in another form."""
    errors = KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError
    return placed(f"a part of the {what} is missing or has another form", *errors, kind=ValueError, told=cut)


def restored_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator with a state that `generator_state` returned.

    Raises
    ------
    ValueError
        If it is not the state of a generator.
    """
    with formed("random generator's state"):
        seed = state["seed"]
        if not 0 <= seed["children"] <= _MOST_CHILDREN or not 4 <= seed["pool_size"] <= _MOST_POOL:
            raise ValueError("the seed of the random generator has numbers out of range")
        sequence = np.random.SeedSequence(
            seed["entropy"],
            spawn_key=seed["spawn_key"],
            pool_size=seed["pool_size"],
            n_children_spawned=seed["children"],
        )
        return _with_bits(_bit_generator(state["bits"]["bit_generator"])(sequence), state["bits"])


def reserved_child(rng: np.random.Generator) -> np.random.Generator:
    """A child of a generator that it spawns itself only after all others: always the same, now and in a resumed run."""
    seed = rng.bit_generator.seed_seq
    assert isinstance(seed, np.random.SeedSequence)
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 2**32 - 1), pool_size=seed.pool_size)
    return np.random.Generator(type(rng.bit_generator)(child))


def generator_of(bits: Mapping[str, Any]) -> np.random.Generator:
    """A generator with the state of a bit generator; it must not spawn. Raises a `ValueError` for any other state."""
    with formed("random generator's state"):
        return _with_bits(_bit_generator(bits["bit_generator"])(), bits)


def _with_bits(generator: Any, bits: Mapping[str, Any]) -> np.random.Generator:
    # Some versions of NumPy accept any number as a position in its tables, and would read beyond them.
    for position, size in (("pos", 624), ("buffer_pos", 4)):
        holder = bits if position in bits else bits["state"]
        if not 0 <= holder.get(position, 0) <= size:
            raise ValueError(f"{position} of the random generator is {holder[position]}, beyond its table of {size}")
    # NumPy before 2.0 wraps negative numbers.
    numbers = [each for part in (bits, bits["state"]) for each in part.values()]
    if any(isinstance(number, int) and number < 0 for number in numbers):
        raise OverflowError("a negative number")
    generator.state = bits
    return np.random.Generator(generator)


def plain(value: Any) -> Any:
    """A state with arrays and tuples turned into lists, and NumPy numbers into Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _bit_generator(name: str) -> Any:
    kinds = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
    if name not in kinds:
        raise ValueError(f"unknown random generator {shown(name)}; known are {', '.join(kinds)}")
    return getattr(np.random, name)
