"""Kernels of tensor programs beside OpenBLAS, ONNX Runtime and JAX: `python experiments/tensor_kernels.py`.

All run on one thread and take turns, unless `--threads N` asks for the time on the clock of products and convolutions
that N threads share, beside one thread and OpenBLAS with N.
A figure is the median of five measurements of processor time; a ratio above 1
means that Shine is faster. Products are called from machine code, many times in a loop: OpenBLAS is the one inside
NumPy. Networks are called from Python as their users call them; `native` is the time of Shine's code without Python,
and `bound` a call of ONNX Runtime whose arrays were bound before. `peak` is the share
of the multiply-adds that two vector units could do at the frequency that a chain of additions shows. `naive` are the
same loops without tiles and vectors, which LLVM vectorizes itself. Needs onnx, onnxruntime and jax for the networks;
`--only products` needs none.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
# NumPy reads it when it is imported, before options are read.
os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv[:-1] else "1"
)

import llvmlite.binding as llvm
import numpy as np

from shine.compiler.llvm import Engine, object_code
from shine.compiler.llvm.target import parse, target_machine
from shine.compiler.processor import Machine, machine_of
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module, Value
from shine.tensor.form.types import TensorType
from shine.tensor.loops.emission import emit
from shine.tensor.native.function import TensorFunction

SIZES = (8, 16, 32, 64, 256, 512, 1024)
LAYERS = [
    *((1, 256, 256), (1, 1000, 100), (1, 1024, 1024), (1, 4096, 1024)),
    *((m, 784, 128) for m in (1, 2, 4, 8, 16, 64)),
    *((64, 784, 100), (64, 784, 300)),
]
SECONDS = 0.05
"""Length of a measurement, about."""

LOOPED = 100
"""Calls of a network from machine code in a row."""

Call = Callable[[], Any]

_DRIVER = """
define void @drive(ptr %f, ptr %a, ptr %r, ptr %s, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  call void %f(ptr %a, ptr %r, ptr %s)
  %n = add i64 %i, 1
  %more = icmp slt i64 %n, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @blas(ptr %f, i64 %m, ptr %a, ptr %b, ptr %c, i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  call void %f(i32 101, i32 111, i32 111, i64 %m, i64 %m, i64 %m,
               float 1.0, ptr %a, i64 %m, ptr %b, i64 %m, float 0.0, ptr %c, i64 %m)
  %n = add i64 %i, 1
  %more = icmp slt i64 %n, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
define i64 @chain(i64 %times) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %i2 = add i64 %i, 1
  %n = call i64 asm sideeffect "", "=r,0"(i64 %i2)
  %more = icmp slt i64 %n, %times
  br i1 %more, label %loop, label %done
done:
  ret i64 %n
}
"""


def compared(calls: Sequence[Call]) -> list[float]:
    """Seconds of each call: medians of five measurements that take turns."""
    repeats = []
    for call in calls:
        call()
        start = time.process_time()
        call()
        repeats.append(max(1, int(SECONDS / max(time.process_time() - start, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(5):
        for call, count, found in zip(calls, repeats, times, strict=True):
            start = time.process_time()
            for _ in range(count):
                call()
            found.append((time.process_time() - start) / count)
    return [median(found) for found in times]


class Compiled:
    """A module compiled for a machine, with memory for its arguments and results."""

    def __init__(self, module: Module, arguments: Sequence[np.ndarray], machine: Machine | None = None) -> None:
        start = time.process_time()
        self.ir, self.interface = emit(module, machine)
        self.engine = Engine(vectorized(self.ir) if machine is not None else self.ir)
        self.seconds = time.process_time() - start
        self.function = self.engine.function(self.interface.name, None, *[ctypes.c_void_p] * 3)
        self.results = [aligned(np.zeros(type.shape, type.numpy)) for type in self.interface.results]
        self.arguments = [aligned(argument) for argument in arguments]
        arena = aligned(np.zeros(self.interface.arena_bytes + 64, np.uint8))
        tables = [
            (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
            for arrays in (self.arguments, self.results)
        ]
        self.pointers = (*map(ctypes.addressof, tables), arena.ctypes.data)
        self._kept = (tables, arena)

    def __call__(self) -> None:
        self.function(*self.pointers)

    def looped(self, times: int) -> Call:
        """Many calls from machine code."""
        drive = driver().function("drive", None, *[ctypes.c_void_p] * 4, ctypes.c_int64)
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        return lambda: drive(address, *self.pointers, times)


@cache
def driver() -> Engine:
    """Loops of calls."""
    return Engine(_DRIVER)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a line of the cache."""
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def vectorized(ir: str) -> str:
    """IR after LLVM's own vectorizers and unroller."""
    module, machine = parse(ir), target_machine(level=3, jit=True)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(module)


def module_of(make: Callable[..., Value], *types: TensorType) -> Module:
    """A module of one function."""
    b = FunctionBuilder("main")
    return Module("m", {"main": b.done(make(b, *(b.parameter(f"x{i}", type) for i, type in enumerate(types))))})


def softmax(b: FunctionBuilder, x: Value) -> Value:
    """Over the last axis."""
    last = (x.type.rank - 1,)
    powers = b.exp(b.sub(x, b.reduce_max(x, axes=last, keep=True)))
    found: Value = b.div(powers, b.reduce_sum(powers, axes=last, keep=True))
    return found


def products(sizes: Sequence[int]) -> None:
    """Square float32 products beside OpenBLAS."""
    import numpy

    folder = Path(numpy.__path__[0]).parent / "numpy.libs"
    library = ctypes.CDLL(glob.glob(str(folder / "libscipy_openblas64*"))[0])
    library.scipy_openblas_set_num_threads64_(1)
    gemm = ctypes.cast(library.scipy_cblas_sgemm64_, ctypes.c_void_p).value
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    blas = driver().function("blas", None, pointer, count, *[pointer] * 3, count)
    chain = driver().function("chain", count, count)
    start = time.process_time()
    chain(200_000_000)
    frequency = 2e8 / (time.process_time() - start)
    machine = machine_of()
    peak = frequency * 4 * machine.lanes(4)
    print(f"float32 products, n x n x n; {frequency / 1e9:.1f} GHz, {machine.vector_bytes} bytes a vector")
    print(f"{'n':>5} {'Shine GF/s':>11} {'OpenBLAS':>9} {'ratio':>6} {'peak':>5} {'ms to compile':>14}  tiles")
    for n in sizes:
        rng = np.random.default_rng(n)
        a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
        type = TensorType("f32", (n, n))
        ours = Compiled(module_of(lambda f, x, y: f.dot(x, y), type, type), [a, b])
        other = aligned(np.zeros((n, n), np.float32))
        times = max(1, int(1e6 / n**3))
        left, right = (array.ctypes.data for array in ours.arguments)

        def openblas(n: int = n, left: int = left, right: int = right, other: Any = other, times: int = times) -> None:
            blas(gemm, n, left, right, other.ctypes.data, times)

        mine, theirs = (seconds / times for seconds in compared([ours.looped(times), openblas]))
        bound = 1e-5 * n
        if abs(ours.results[0] - other).max() > bound or abs(other - a @ b).max() > bound:
            raise SystemExit(f"n = {n}: the products disagree")
        rates = [2 * n**3 / seconds for seconds in (mine, theirs)]
        print(
            f"{n:5} {rates[0] / 1e9:11.1f} {rates[1] / 1e9:9.1f} {theirs / mine:6.2f} {rates[0] / peak:5.2f} "
            f"{ours.seconds * 1e3:14.0f}  {ours.interface.report[0].partition(': ')[2]}",
            flush=True,
        )


def session(
    nodes: list[Any], x: np.ndarray, y: Sequence[int], weights: dict[str, np.ndarray]
) -> tuple[Callable[[], np.ndarray], Call]:
    """A call of ONNX Runtime on one thread, and one whose arrays were bound before."""
    import onnxruntime
    from onnx import helper, numpy_helper

    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [helper.make_tensor_value_info("x", kind, x.shape)]
    outputs = [helper.make_tensor_value_info("y", kind, y)]
    data = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in weights.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, data), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, result, feeds = made.io_binding(), np.zeros(y, x.dtype), {"x": x}
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, result.dtype, result.shape, result.ctypes.data)
    return lambda: made.run(None, feeds)[0], lambda kept=result: made.run_with_iobinding(binding)


def said(name: str, module: Module, x: np.ndarray, others: dict[str, Call], wanted: np.ndarray) -> None:
    """Print a line of figures."""
    ours, function = Compiled(module, [x]), TensorFunction(module)
    if abs(function(x) - wanted).max() > 1e-4 * max(1.0, abs(wanted).max()):
        raise SystemExit(f"{name}: the results disagree")
    native, mine, *theirs = compared([ours.looped(LOOPED), lambda: function(x), *others.values()])
    ratios = "  ".join(
        f"{label} {seconds * 1e6:9.1f} us ({seconds / mine:5.2f})"
        for label, seconds in zip(others, theirs, strict=True)
    )
    size = len(object_code(ours.ir)) - sum(part.count("\\") for part in ours.ir.splitlines() if " constant [" in part)
    made = f"compiled in {ours.seconds * 1e3:.0f} ms, {size / 1024:.0f} KB"
    times = f"{mine * 1e6:9.1f} us, native {native / LOOPED * 1e6:9.2f} us"
    print(f"{name:24} Shine {times}  {ratios}  {made}", flush=True)


def convolutions() -> None:
    """28 x 28 images, 32 filters of 5 x 5, bias and softmax over the filters."""
    from onnx import helper

    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((5, 5, 1, 32)).astype(np.float32) / 5
    bias = rng.standard_normal(32).astype(np.float32)
    for batch in (1, 16):
        for padding in (0, 2):

            def network(b: FunctionBuilder, x: Value, padding: int = padding) -> Value:
                around = (padding, padding)
                sums = b.convolve(x, b.constant(kernel), low=around, high=around)
                return softmax(b, b.add(sums, b.constant(bias)))

            module = module_of(network, TensorType("f32", (batch, 28, 28, 1)))
            x = rng.standard_normal((batch, 28, 28, 1)).astype(np.float32)
            host = machine_of()
            naive = Compiled(module, [x], Machine(4, 4, host.fma, host.caches, host.triple))
            nodes = [
                helper.make_node("Conv", ["x", "k", "b"], ["c"], pads=[padding] * 4),
                helper.make_node("Softmax", ["c"], ["y"], axis=1),
            ]
            size = 28 - 4 + 2 * padding
            weights = {"k": kernel.transpose(3, 2, 0, 1), "b": bias}
            run, bound = session(nodes, x.transpose(0, 3, 1, 2).copy(), (batch, 32, size, size), weights)
            name = f"conv2d, {batch}, {'same' if padding else 'valid'}"
            calls = {"naive": naive, "ONNX Runtime": run, "bound": bound}
            said(name, module, x, calls, run().transpose(0, 2, 3, 1))


def perceptrons() -> None:
    """A network 784-128-10 with relu and softmax."""
    import jax
    import jax.numpy as jnp
    from onnx import helper

    rng = np.random.default_rng(0)
    w1, b1, w2, b2 = (
        (rng.standard_normal(shape) / 16).astype(np.float32) for shape in ((784, 128), (128,), (128, 10), (10,))
    )

    def network(b: FunctionBuilder, x: Value) -> Value:
        hidden = b.add(b.dot(x, b.constant(w1)), b.constant(b1))
        hidden = b.max(hidden, b.like(hidden, 0.0))
        return softmax(b, b.add(b.dot(hidden, b.constant(w2)), b.constant(b2)))

    for batch in (1, 64):
        x = rng.standard_normal((batch, 784)).astype(np.float32)
        nodes = [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("Gemm", ["r", "w2", "b2"], ["o"]),
            helper.make_node("Softmax", ["o"], ["y"], axis=1),
        ]
        run, bound = session(nodes, x, (batch, 10), {"w1": w1, "b1": b1, "w2": w2, "b2": b2})
        jitted = jax.jit(lambda x: jax.nn.softmax(jnp.maximum(x @ w1 + b1, 0) @ w2 + b2))

        def compiled(jitted: Any = jitted, x: np.ndarray = x) -> Any:
            return jitted(x).block_until_ready()

        module = module_of(network, TensorType("f32", x.shape))
        said(f"784-128-10, batch {batch}", module, x, {"ONNX Runtime": run, "bound": bound, "jax.jit": compiled}, run())


def layers() -> None:
    """Products with constant matrices, beside ONNX Runtime and NumPy's OpenBLAS."""
    from onnx import helper

    rng = np.random.default_rng(0)
    for dtype, kind in (("f32", np.float32), ("f64", np.float64)):
        for m, k, n in LAYERS:
            w, x = (rng.standard_normal(shape).astype(kind) / 16 for shape in ((k, n), (m, k)))
            run, bound = session([helper.make_node("MatMul", ["x", "w"], ["y"])], x, (m, n), {"w": w})
            result = run()

            def multiplied(x: np.ndarray = x, w: np.ndarray = w, to: np.ndarray = result) -> Any:
                return np.dot(x, w, out=to)

            module = module_of(lambda b, x, w=w: b.dot(x, b.constant(w)), TensorType(dtype, x.shape))
            said(
                f"{dtype}, {m} x {k} x {n}",
                module,
                x,
                {"ONNX Runtime": run, "bound": bound, "NumPy": multiplied},
                x @ w,
            )


def shared(threads: int) -> None:
    """Calls from Python on the clock: one thread, some of them, and OpenBLAS with as many."""
    rng = np.random.default_rng(0)

    def measured(calls: Sequence[Call]) -> list[float]:
        times: list[list[float]] = [[] for _ in calls]
        for _ in range(31):
            for call, found in zip(calls, times, strict=True):
                start = time.perf_counter()
                call()
                found.append(time.perf_counter() - start)
        return [median(found) for found in times]

    for n in (256, 512, 1024):
        a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
        module = module_of(lambda f, x, y: f.dot(x, y), *[TensorType("f32", (n, n))] * 2)
        one, several = (TensorFunction(module, threads=count) for count in (1, threads))
        assert np.array_equal(one(a, b), several(a, b))
        alone, mine = measured([partial(one, a, b), partial(several, a, b)])
        # Threads of OpenBLAS look for work for some 30 ms after a call, and take a processor from whoever comes next.
        (theirs,) = measured([partial(np.matmul, a, b)])
        time.sleep(0.2)
        print(
            f"{n:5} cubed  1 thread {alone * 1e6:9.1f} us  {threads} threads {mine * 1e6:9.1f} us "
            f"({alone / mine:4.2f})  OpenBLAS {theirs * 1e6:9.1f} us ({theirs / mine:4.2f})",
            flush=True,
        )
    kernel = rng.standard_normal((3, 3, 64, 64)).astype(np.float32) / 24
    for batch in (1, 16):
        x = rng.standard_normal((batch, 56, 56, 64)).astype(np.float32)

        def layer(f: FunctionBuilder, image: Value) -> Value:
            return f.convolve(image, f.constant(kernel), low=(1, 1), high=(1, 1))

        one, several = (
            TensorFunction(module_of(layer, TensorType("f32", x.shape)), threads=count) for count in (1, threads)
        )
        assert np.array_equal(one(x), several(x))
        alone, mine = measured([partial(one, x), partial(several, x)])
        print(
            f"convolution of {batch:2} images 56 x 56 x 64 by 3 x 3  1 thread {alone * 1e6:9.1f} us  "
            f"{threads} threads {mine * 1e6:9.1f} us ({alone / mine:4.2f})",
            flush=True,
        )


PARTS: dict[str, Callable[[], None]] = {
    "products": lambda: products(SIZES),
    "convolutions": convolutions,
    "perceptrons": perceptrons,
    "layers": layers,
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part; all by default")
    parser.add_argument("--threads", type=int, help="compare this many threads with one, instead of the rest")
    options = parser.parse_args()
    chosen = options.only
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"load of the machine: {load:.1f} on {os.cpu_count()} cores")
    if options.threads is not None:
        shared(options.threads)
        return
    for name, part in PARTS.items():
        if chosen in (None, name):
            part()


if __name__ == "__main__":
    main()
