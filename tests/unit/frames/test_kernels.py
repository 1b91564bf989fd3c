"""Positions of bits."""

from __future__ import annotations

import numpy as np
import pytest

from shine.frames.running import positions


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_positions_are_those_of_the_bits_and_nothing_is_written_beyond_them(bits, share):
    rng = np.random.default_rng(3)
    mask = rng.random(64 * 50) < share
    words = np.packbits(mask, bitorder="little").view(np.uint64)
    first = 2**40 if bits == 64 else 1000
    out = np.full(mask.sum() + 3, 77, f"uint{bits}")
    count = positions(bits)(words.ctypes.data, len(words), first, out.ctypes.data, int(mask.sum()))
    assert count == mask.sum()
    assert (out[:count] == np.flatnonzero(mask) + first).all()
    assert (out[count:] == 77).all()
