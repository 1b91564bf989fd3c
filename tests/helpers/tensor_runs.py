"""Runs tensor programs that the loop nests' emitter compiled, and compares arrays to rounding."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from shine.compiler.llvm import Engine
from shine.compiler.processor import Machine
from shine.tensor.form.module import Module
from shine.tensor.loops.emission import Interface, emit

FILLING = 0xA5
"""Byte that results and arena hold before a run: what is not written shows."""


def run(
    module: Module, arguments: Sequence[np.ndarray], machine: Machine | None = None, level: str = "O2"
) -> tuple[list[np.ndarray], Interface]:
    """Results of `@main`, compiled for a machine."""
    text, interface = emit(module, machine)
    engine = Engine(text, level)
    function = engine.function(interface.name, None, *[ctypes.c_void_p] * 3)
    given = [np.ascontiguousarray(argument) for argument in arguments]
    results = [np.empty(type.shape, type.numpy) for type in interface.results]
    arena = np.full(interface.arena_bytes + 64, FILLING, np.uint8)
    for result in results:
        result.reshape(-1).view(np.uint8).fill(FILLING)
    start = -(-arena.ctypes.data // 64) * 64
    function(table_of(given), table_of(results), start)
    return results, interface


def table_of(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    """Addresses of arrays."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))


def assert_close(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], float32: float = 2e-4) -> None:
    """Equal, but for rounding of floats."""
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.kind == "f":
            bound = float32 if one.dtype.itemsize == 4 else 1e-9
            np.testing.assert_allclose(one, other, rtol=bound, atol=bound / 2)
        else:
            np.testing.assert_array_equal(one, other)
