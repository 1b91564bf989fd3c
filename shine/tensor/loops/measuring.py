"""Speed of each group of nests, beside that of the processor."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from shine.compiler.llvm import Engine
from shine.compiler.processor import Machine, machine_of
from shine.tensor.form.module import Function, Module
from shine.tensor.form.types import DTYPES
from shine.tensor.loops.emission import emit
from shine.tensor.loops.fusion import PRODUCTS, fuse

SECONDS = 0.01
"""Length of the measurement of the processor."""

_SUMS = 12
"""Chains of multiply-adds that keep two units busy."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Measured:
    """A group of nests.

    Parameters
    ----------
    text : str
        Description.
    seconds : float
    share : float
        Its multiply-adds in matrix products and convolutions, as a share of the processor's in this time; 0
        if it has none.
    """

    text: str
    seconds: float
    share: float

    def __str__(self) -> str:
        share = f", {self.share:.0%} of peak" if self.share else ""
        return f"{self.seconds * 1e6:.1f} us{share}: {self.text}"


def measured(
    module: Module, arguments: Sequence[np.ndarray], function: str = "main", clock: Clock = time.process_time
) -> tuple[Measured, ...]:
    """Run the groups of a function one by one.

    Parameters
    ----------
    module : Module
    arguments : sequence of ndarray
        Of the parameters' types, contiguous.
    function : str
    clock : callable
        Seconds; those of this process by default, which other load changes less.
    """
    machine = machine_of()
    text, interface = emit(module, machine, function, "measured", has_parts=True)
    engine, kinds = Engine(text), [ctypes.c_void_p] * 3
    results = [np.zeros(type.shape, type.numpy) for type in interface.results]
    arena = np.zeros(interface.arena_bytes + 64, np.uint8)
    tables = [
        (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
        for arrays in (arguments, results)
    ]
    given = (*tables, arena.ctypes.data + -arena.ctypes.data % 64)
    parts = [engine.function(f"measured.part.{i}", None, *kinds) for i in range(len(interface.report))]
    times: list[list[float]] = [[] for _ in parts]
    for _ in range(15):  # runs of each group; the median counts
        for part, found in zip(parts, times, strict=True):
            start = clock()
            part(*given)
            found.append(clock() - start)
    counts = multiply_adds(module.function(function))
    counts += [("f32", 0)] * (len(parts) - len(counts))
    peaks = {dtype: peak(machine, dtype, clock) for dtype, count in counts if count}
    lines = []
    for said, found, (dtype, count) in zip(interface.report, times, counts, strict=True):
        seconds = max(median(found), 1e-9)
        lines.append(Measured(said, seconds, count / seconds / peaks[dtype] if count else 0.0))
    return tuple(lines)


def multiply_adds(function: Function) -> list[tuple[str, int]]:
    """Multiply-adds in the products of each group, and their elements."""
    counts = []
    for group in fuse(function)[1]:
        dtype, count = "f32", 0
        for nest in group.nests:
            if nest.kind in PRODUCTS and nest.maker is not None:
                left, right = (operand.type for operand in nest.maker.operands)
                dtype, made = left.dtype, nest.maker.result.type.elements
                terms = left.shape[-1] if nest.kind == "dot" else right.elements // max(right.shape[-1], 1)
                count += made * terms
        counts.append((dtype, count))
    return counts


def peak(machine: Machine, dtype: str, clock: Clock = time.process_time) -> float:
    """Multiply-adds a second of a loop of nothing else, on this processor; of float32 for integers."""
    element = "double" if dtype == "f64" else "float"
    width = machine.lanes(DTYPES["f64" if dtype == "f64" else "f32"].itemsize)
    engine = Engine(_loop_of_sums(element, width, machine.fma))
    function = engine.function("sums", None, ctypes.c_int64, ctypes.c_void_p)
    room = np.zeros(_SUMS * width + 16)
    turns, seconds, best = 1000, 0.0, 0.0
    while seconds < SECONDS:
        turns *= 2
        start = clock()
        function(turns, room.ctypes.data)
        seconds = max(clock() - start, 1e-9)
        best = max(best, _SUMS * width * turns / seconds)
    return best


def _loop_of_sums(element: str, width: int, is_fused: bool) -> str:
    kind = f"<{width} x {element}>"
    suffix = f"v{width}f{64 if element == 'double' else 32}"
    phis, terms, ends = [], [], []
    for i in range(_SUMS):
        phis.append(f"  %s{i} = phi {kind} [ zeroinitializer, %entry ], [ %n{i}, %loop ]")
        if is_fused:
            terms.append(f"  %n{i} = call {kind} @llvm.fma.{suffix}({kind} %x, {kind} %x, {kind} %s{i})")
        else:
            terms.append(f"  %m{i} = fmul {kind} %x, %s{i}\n  %n{i} = fadd {kind} %m{i}, %x")
        ends.append(f"  %p{i} = getelementptr {kind}, ptr %room, i64 {i}\n  store {kind} %n{i}, ptr %p{i}, align 8")
    lines = [
        f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})" if is_fused else "",
        "define void @sums(i64 %turns, ptr %room) {",
        f"entry:\n  %x = load {kind}, ptr %room, align 8\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %j, %loop ]",
        *phis,
        *terms,
        "  %j = add i64 %i, 1\n  %more = icmp slt i64 %j, %turns\n  br i1 %more, label %loop, label %done",
        "done:",
        *ends,
        "  ret void\n}",
    ]
    return "\n".join(lines)
