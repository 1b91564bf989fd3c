"""Checks of a state that was read from a file, which can have any content.

The machine runs tapes without checks, and a search trusts its state. So these checks cover types and shapes, ranges,
and whether the parts fit each other.
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
    **{f"{name}.{part}": form for name in ("islands", "archive", "past", "parts") for part, form in _TAPES.items()},
    "islands.losses": ("float64", 1),
    **{f"{name}.scores": ("float64", 2) for name in ("archive", "past")},
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


def formed(what: str) -> AbstractContextManager[None]:
    """Raise a `ValueError` for what a file lacks, or holds in another form."""
    errors = KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError
    return placed(f"a part of the {what} is missing or has another form", *errors, kind=ValueError, told=cut)
