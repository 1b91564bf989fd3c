"""Error and speed of the elementary functions: `python experiments/accuracy.py --samples 20000 --bulk 2000000`.

Prints a Markdown table. Two measurements of the error, in units in the last place of the true value: against
mpmath on `--samples` points a function, and against NumPy's long double on `--bulk` points, where that has at
least eight more bits than float64 (x86). Both sample every magnitude from subnormals to the largest number,
ordinary sizes, the neighbourhood of 1 and of the bounds, and multiples of pi/2.

Times are of one thread, with arguments in the first-level cache; NumPy is timed in the same run on the same data.

`--magnitudes` prints the time of a value over the size of the arguments instead, compiled as the tile machine is:
64-byte vectors, without LLVM's passes.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import mpmath
import numpy as np
from llvmlite import ir

from shine.compiler.codegen.vecmath import functions as vecmath
from shine.compiler.llvm import Engine

LANES = 8
BLOCK = 1024
Array = np.ndarray
PRECISIONS: tuple[type, ...] = (np.float64, np.float32)
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "pow": "power"}
# Beyond these, results are infinite, zero or NaN.
BOUNDS: dict[str, dict[type, float]] = {
    "exp": {np.float64: 745.2, np.float32: 104.0},
    "sinh": {np.float64: 710.5, np.float32: 89.5},
    "cosh": {np.float64: 710.5, np.float32: 89.5},
    "asin": {np.float64: 1.0, np.float32: 1.0},
    "acos": {np.float64: 1.0, np.float32: 1.0},
}
TIMED = {"log": (1e-3, 1e3), "asin": (-1, 1), "acos": (-1, 1), "pow": (0.01, 20), "exp": (-20, 20)}


def repeated_loop(name: str, dtype: type, lanes: int = LANES) -> str:
    """IR of `f(arguments..., out, n, repetitions)`, n a multiple of `lanes`."""
    element = ir.DoubleType() if dtype is np.float64 else ir.FloatType()
    pointer, index = ir.PointerType(), ir.IntType(64)
    module = ir.Module("accuracy")
    arity = vecmath.FUNCTIONS[name].arity
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (arity + 1) + [index] * 2), "f")
    entry, outer, body, latch, end = (
        function.append_basic_block(b) for b in ("entry", "outer", "body", "latch", "end")
    )
    n, repetitions = function.args[-2:]
    ir.IRBuilder(entry).branch(outer)
    builder = ir.IRBuilder(outer)
    repetition = builder.phi(index)
    builder.branch(body)
    builder = ir.IRBuilder(body)
    i = builder.phi(index)
    *places, out = (builder.gep(argument, [i], source_etype=element) for argument in function.args[:-2])
    loaded = [builder.load(place, typ=ir.VectorType(element, lanes)) for place in places]
    stored = builder.store(vecmath.call(builder, name, *loaded), out)
    for access in (*loaded, stored):
        access.align = np.dtype(dtype).itemsize
    following = builder.add(i, index(lanes))
    i.add_incoming(index(0), outer)
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, n), body, latch)
    builder = ir.IRBuilder(latch)
    later = builder.add(repetition, index(1))
    repetition.add_incoming(index(0), entry)
    repetition.add_incoming(later, latch)
    builder.cbranch(builder.icmp_signed("<", later, repetitions), outer, end)
    ir.IRBuilder(end).ret_void()
    return str(module)


def compiled(
    name: str, dtype: type, lanes: int = LANES, level: str = "O2", selection: int | None = None
) -> Callable[..., Array]:
    """`f(*arguments, repetitions=1)` over arrays of one length, a multiple of `lanes`."""
    pointers = [ctypes.c_void_p] * (vecmath.FUNCTIONS[name].arity + 1)
    engine = Engine(repeated_loop(name, dtype, lanes), level, selection)
    function = engine.function("f", None, *pointers, ctypes.c_int64, ctypes.c_int64)

    def evaluate(*arguments: Array, repetitions: int = 1) -> Array:
        out = aligned(arguments[0])
        function(*(array.ctypes.data for array in (*arguments, out)), len(out), repetitions)
        return out

    return evaluate


def aligned(values: Array) -> Array:
    """A copy that begins at a multiple of 64 bytes, as the machine's tiles do."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + values.nbytes].view(values.dtype)
    copy[:] = values
    return copy


def magnitudes(rng: np.random.Generator, dtype: type, bound: float, count: int) -> Array:
    """Both signs; a third each of every exponent up to `bound`, of ordinary numbers, and near 1 and the bound."""
    smallest = np.log2(float(np.finfo(dtype).smallest_subnormal))
    third = -(-count // 3)
    parts = [
        2.0 ** rng.uniform(smallest, np.log2(bound), third),
        rng.uniform(0, min(bound, 30.0), third),
        1 + rng.normal(0, 0.05, third - third // 3),
        bound * (1 - 2.0 ** rng.uniform(-40, -4, third // 3)),
    ]
    x: Array = np.clip(np.concatenate(parts), 0, bound).astype(dtype)
    return rng.permutation(x * rng.choice(np.array([-1, 1], dtype), len(x)))[:count]


def near_quarter_turns(rng: np.random.Generator, dtype: type, bound: float, count: int) -> Array:
    """The numbers next to multiples of pi/2."""
    turns = 2.0 ** rng.uniform(0, np.log2(bound) - 1, count)
    with mpmath.workprec(1200):
        return np.array([float(mpmath.nint(k) * mpmath.pi / 2) for k in turns], dtype)


def arguments_of(name: str, dtype: type, count: int, seed: int) -> list[Array]:
    """`count` sample points, as a multiple of `LANES`."""
    rng = np.random.default_rng(seed)
    count -= count % LANES
    largest = float(np.finfo(dtype).max)
    x = magnitudes(rng, dtype, BOUNDS.get(name, {}).get(dtype, largest), count)
    if name in ("log", "pow"):
        x = np.abs(x)
        x[x == 0] = 1
    if name in ("sin", "cos", "tan"):
        x[: min(count // 4, 20000)] = near_quarter_turns(rng, dtype, largest, min(count // 4, 20000))
    if name == "fmod":
        return [x, rng.permutation(x)]
    if name != "pow":
        return [x]
    # Exponents that spread the results over all magnitudes, some at the very ends, some whole.
    limit = np.finfo(dtype).maxexp
    target = rng.uniform(-limit * 1.05, limit, count)
    with np.errstate(all="ignore"):
        y: Array = (target / np.log2(x.astype(np.float64))).astype(dtype)
        y[::4] = np.rint(y[::4])
    return [x, np.where(np.isfinite(y), y, dtype(2)).astype(dtype)]


def true_values(name: str, arguments: Sequence[Array]) -> list[mpmath.mpf]:
    """C's fmod is exact, so the result has far more correct bits than a long double holds."""
    function = {"pow": mpmath.power, "fmod": math.fmod}.get(name) or getattr(mpmath, name)
    number = float if name == "fmod" else mpmath.mpf
    with mpmath.workprec(160):
        rows = zip(*(x.tolist() for x in arguments), strict=True)
        return [mpmath.mpf(function(*map(number, row))) for row in rows]


def exact_error(got: Array, truth: Sequence[mpmath.mpf]) -> float:
    """Largest error in ulp against mpmath numbers; results that overflow count as 2 ** maxexp."""
    info = np.finfo(got.dtype)
    overflow = mpmath.ldexp(1, info.maxexp)
    worst = 0.0
    with mpmath.workprec(160):
        for value, true in zip(got.tolist(), truth, strict=True):
            true = mpmath.sign(true) * min(abs(true), overflow)
            value = mpmath.sign(value) * min(abs(mpmath.mpf(value)), overflow)
            exponent = min(max(mpmath.frexp(true)[1] - 1, int(info.minexp)), info.maxexp - 1)
            worst = max(worst, float(abs(value - true) / mpmath.ldexp(1, exponent - info.nmant)))
    return worst


def bulk_error(got: Array, name: str, arguments: Sequence[Array]) -> float:
    """Largest error in ulp against NumPy's long double (float64 for float32), where the truth is finite."""
    wide = np.longdouble if got.dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        truth = getattr(np, NUMPY_NAMES.get(name, name))(*(x.astype(wide) for x in arguments))
        finite = np.isfinite(truth.astype(got.dtype))
        values = np.where(np.isinf(got), np.ldexp(np.sign(got).astype(wide), np.finfo(got.dtype).maxexp), got)
        error = np.abs(values[finite] - truth[finite])
        below = np.frexp(truth[finite])[1] - 1
    info = np.finfo(got.dtype)
    return float(np.max(np.ldexp(error, info.nmant - np.maximum(below, info.minexp))))


def seconds(run: Callable[[], object], least: int = 30) -> float:
    best = float("inf")
    for _ in range(least):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def nanoseconds(name: str, dtype: type, function: Callable[..., Array]) -> tuple[float, float]:
    """Time per value, here and in NumPy."""
    rng = np.random.default_rng(0)
    low, high = TIMED.get(name, (-10, 10))
    arity = vecmath.FUNCTIONS[name].arity
    arguments: list[Array] = [aligned(rng.uniform(low, high, BLOCK).astype(dtype)) for _ in range(arity)]
    # Enough to hide the cost of a call from Python.
    repetitions = 400
    ours = seconds(lambda: function(*arguments, repetitions=repetitions)) / repetitions
    reference, out = getattr(np, NUMPY_NAMES.get(name, name)), np.empty_like(arguments[0])
    theirs = seconds(lambda: [reference(*arguments, out=out) for _ in range(10)]) / 10
    return ours / BLOCK * 1e9, theirs / BLOCK * 1e9


SIZES = (1.0, 1e2, 1e3, 1e5, 1e7, 1e20, 1e38, 1e300)


def print_magnitudes() -> None:
    """Nanoseconds per value, for arguments uniform in [-size, size] for each size; for `log`, in (0, size]."""
    print(f"| function | precision | {' | '.join(f'{size:g}' for size in SIZES)} |")
    print("|---|---|" + "---|" * len(SIZES))
    rng = np.random.default_rng(0)
    for dtype in reversed(PRECISIONS):
        lanes = 64 // np.dtype(dtype).itemsize
        for name in ("exp", "log", "sin", "cos", "tan"):
            function = compiled(name, dtype, lanes, "O0", 1)
            cells = []
            for size in SIZES:
                x = aligned((rng.uniform(0 if name == "log" else -1, 1, BLOCK) * size).astype(dtype))
                taken = seconds(partial(function, x, repetitions=200), 15) / 200 / BLOCK
                cells.append(f"{taken * 1e9:.2f}" if np.isfinite(x).all() else "-")
            print(f"| {name} | {dtype.__name__} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20000, help="points against mpmath (default: %(default)s)")
    parser.add_argument("--bulk", type=int, default=1000000, help="points against long double; 0 for none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--magnitudes", action="store_true", help="print times over the size of the arguments instead")
    options = parser.parse_args()
    if options.magnitudes:
        with np.errstate(over="ignore"):
            print_magnitudes()
        return
    print("| function | precision | error, mpmath (ulp) | error, bulk (ulp) | ns | ns, NumPy | NumPy / Shine |")
    print("|---|---|---|---|---|---|---|")
    for name in vecmath.FUNCTIONS:
        for dtype in PRECISIONS:
            function = compiled(name, dtype)
            arguments = arguments_of(name, dtype, options.samples, options.seed)
            error = exact_error(function(*arguments), true_values(name, arguments))
            bulk = "-"
            if options.bulk and (dtype is np.float32 or np.finfo(np.longdouble).nmant >= 60):
                arguments = arguments_of(name, dtype, options.bulk, options.seed + 1)
                bulk = f"{bulk_error(function(*arguments), name, arguments):.3f}"
            ours, theirs = nanoseconds(name, dtype, function)
            cells = (name, dtype.__name__, f"{error:.3f}", bulk, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
