"""The state of a random generator as plain values: lists, texts and numbers, which JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """What `restored_generator` makes an equal generator of, the children that it will spawn included.

    Raises
    ------
    TypeError
        If the generator was not made from a seed, so that it cannot spawn.
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


def restored_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """A generator that goes on where the one went whose state this is."""
    seed = state["seed"]
    sequence = np.random.SeedSequence(
        seed["entropy"],
        spawn_key=seed["spawn_key"],
        pool_size=seed["pool_size"],
        n_children_spawned=seed["children"],
    )
    bits = _bit_generator(state["bits"]["bit_generator"])(sequence)
    bits.state = state["bits"]
    return np.random.Generator(bits)


def generator_of(bits: Mapping[str, Any]) -> np.random.Generator:
    """A generator of given bits alone: it cannot be relied on to spawn."""
    generator = _bit_generator(bits["bit_generator"])()
    generator.state = bits
    return np.random.Generator(generator)


def plain(value: Any) -> Any:
    """A state with lists for arrays and tuples, and Python's numbers for NumPy's."""
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
        raise ValueError(f"unknown random generator {name!r}; known are {', '.join(kinds)}")
    return getattr(np.random, name)
