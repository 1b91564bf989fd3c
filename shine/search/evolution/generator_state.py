"""The state of a random generator as plain values: lists, texts and numbers, which JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.lang.forms.names import cut, shown


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


def restored_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """The generator with a state that `generator_state` returned.

    Raises
    ------
    ValueError
        If it is not the state of a generator.
    """
    try:
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
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise _unfit(error) from None


def generator_of(bits: Mapping[str, Any]) -> np.random.Generator:
    """A generator with the state of a bit generator; it must not spawn. Raises a `ValueError` for any other state."""
    try:
        return _with_bits(_bit_generator(bits["bit_generator"])(), bits)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise _unfit(error) from None


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


def _unfit(error: Exception) -> ValueError:
    return ValueError(f"a part of the random generator's state is missing or has another form: {cut(error, 100)}")


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
