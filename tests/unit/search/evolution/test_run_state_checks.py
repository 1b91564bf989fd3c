"""A restored random generator draws the numbers, and spawns the children, of the original."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shine.search.evolution.run_state_checks import generator_of, generator_state, restored_generator

KINDS = ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"]


def used_generator(kind):
    """A generator in use: it has children, and half of a 64-bit number is left."""
    rng = np.random.Generator(getattr(np.random, kind)([3, 2**80]))
    rng.spawn(3)
    rng.random(5)
    rng.integers(7, dtype=np.int32)
    return rng


def drawn(rng):
    return [rng.random(4).tolist(), rng.integers(9, size=5, dtype=np.int32).tolist(), rng.normal(size=3).tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_survives_json(kind):
    rng = used_generator(kind)
    copies = [restored_generator(json.loads(json.dumps(generator_state(rng)))) for _ in range(2)]
    expected = drawn(rng), [drawn(child) for child in rng.spawn(2)], drawn(rng)
    for copy in copies:
        assert (drawn(copy), [drawn(child) for child in copy.spawn(2)], drawn(copy)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_the_bit_generator_is_enough_to_draw(kind):
    rng = used_generator(kind)
    copy = generator_of(json.loads(json.dumps(generator_state(rng)))["bits"])
    assert drawn(copy) == drawn(rng)


def test_an_unknown_generator_is_refused():
    state = generator_state(np.random.default_rng(0))
    with pytest.raises(ValueError, match="unknown random generator 'Generator'; known are MT19937"):
        restored_generator({**state, "bits": {**state["bits"], "bit_generator": "Generator"}})
