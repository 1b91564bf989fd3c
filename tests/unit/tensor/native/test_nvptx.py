"""Tensor programs as PTX: the kernel's items, the numbers of a thread, and what ptxas and C++ take."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from helpers.equality import assert_same_bits
from helpers.gpu_threads import run_threads
from helpers.tensor_modules import SMOOTH, random_arguments, random_module
from unit.tensor.native.programs import matmul

from shine.formats.native.targets import GPU_TRIPLE
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.form.types import DTYPES, TensorType
from shine.tensor.native.function import TensorFunction

needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas of CUDA")

GRID = [(tid, ctaid, 2, 2) for ctaid in range(2) for tid in range(2)]
ITEMS = 7
CANARY = 171


def on_threads(
    function: TensorFunction, items: list[list[np.ndarray]], shared: frozenset[int]
) -> list[list[np.ndarray]]:
    """Results of each item, computed by the threads of a grid; arguments in `shared` are those of the first item."""
    code = function.code("net", target=GPU_TRIPLE)
    interface = code.interface
    given: list[int | np.ndarray] = []
    for place, each in enumerate(interface.arguments):
        columns = [item[place] for item in (items[:1] if place in shared else items)]
        given += [np.stack(columns), 0 if place in shared else each.type.elements]
    made = [np.full((len(items), *each.type.shape), 99, each.type.numpy) for each in interface.results]
    size = -(-interface.arena_bytes // 64) * 64
    room = np.full(len(GRID) * size + 128, CANARY, np.uint8)
    arenas = room[-room.ctypes.data % 64 :]
    run_threads(code.ir, "net_kernel", [*given, *made, arenas, len(items)], GRID)
    assert (arenas[len(GRID) * size :] == CANARY).all()
    return [[array[item] for array in made] for item in range(len(items))]


def batch(module: Module, shared: frozenset[int]) -> list[list[np.ndarray]]:
    """Arguments of some items."""
    items = [list(random_arguments(module, "main", seed)) for seed in range(ITEMS)]
    return [[items[0][i] if i in shared else each for i, each in enumerate(item)] for item in items]


def check_items(seed: int, *, bits: bool) -> None:
    """Each item has the interpreter's results: nearly, or to the bit."""
    operations = ELEMENTWISE - {"pow"} if bits else SMOOTH
    module = random_module(seed, operations=operations, floats=("f32", "f64") if bits else ("f64",))
    shared = frozenset(range(0, len(module.function("main").parameters), 3))
    items = batch(module, shared)
    function = TensorFunction(module)
    for item, found in zip(items, on_threads(function, items, shared), strict=True):
        expected = function(*item) if bits else interpret(module, "main", item)
        for one, other in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
            if bits:
                assert_same_bits(one, np.asarray(other))
            else:
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 5])
def test_threads_compute_all_items_of_a_batch(seed: int) -> None:
    check_items(seed, bits=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_threads_compute_what_the_interpreter_does(seed: int) -> None:
    check_items(seed, bits=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 210))
def test_elementwise_operations_have_the_bits_of_this_machine(seed: int) -> None:
    check_items(seed, bits=True)


INEXACT = r"\b(fma|mad)\.(rn|rz|rm|rp|f)|\.(ftz|approx|full|rz\.f|sat)|\b(add|sub|mul)\.f(32|64)\b"
"""Instructions that do not round every operation, or do not round to nearest."""


def ptx(function: TensorFunction, **options: str) -> str:
    return function.code("net", **options).files("ptx")["net.ptx"].decode()


def assembled(text: str, processor: str, folder) -> None:
    """Have ptxas make code of a module."""
    (folder / "net.ptx").write_text(text)
    command = ["ptxas", f"-arch={processor}", "net.ptx", "-o", "net.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_a_program_is_a_function_a_kernel_and_a_header() -> None:
    text = ptx(TensorFunction(random_module(0)))
    assert ".target sm_75\n" in text and ".extern" not in text
    assert re.search(r"\.visible \.func net\(", text)
    assert ".visible .entry net_kernel(" in text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_elementwise_operations_are_rounded_one_at_a_time(seed: int) -> None:
    # Some elementary functions of float32 use fused multiply-adds by definition.
    text = ptx(TensorFunction(random_module(seed, operations=ELEMENTWISE, floats=("f64",))))
    assert not re.search(INEXACT, text)


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_ptxas_takes_random_programs(seed: int, tmp_path) -> None:
    text = ptx(TensorFunction(random_module(seed)))
    assert ".extern" not in text
    assembled(text, "sm_75", tmp_path)


def test_items_of_every_element_type_are_found() -> None:
    build = FunctionBuilder("main")
    values = [build.parameter(dtype, TensorType(dtype, (3,))) for dtype in DTYPES]
    module = Module("copy", {"main": build.done(*values)})
    items = batch(module, frozenset({1}))
    for item, found in zip(items, on_threads(TensorFunction(module), items, frozenset({1})), strict=True):
        for one, other in zip(found, item, strict=True):
            np.testing.assert_array_equal(one, other)


HEADER = """
#include "matmul.cuh"
#include "matmul.cuh"

#ifdef __CUDACC__
__device__ void use(const float *x, const float *y, float *z, void *arena) { matmul_call(x, y, z, arena); }
#endif

int main() { return matmul_arena_bytes != 64; }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("options", [["-std=c++11"], ["-std=c++20", "-D__CUDACC__", "-D__device__="]])
def test_the_header_is_cpp_with_and_without_cuda(options: list[str], tmp_path) -> None:
    (tmp_path / "matmul.cuh").write_bytes(matmul().files("ptx")["matmul.cuh"])
    (tmp_path / "main.cpp").write_text(HEADER)
    command = ["g++", *options, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_header_says_what_the_kernel_takes() -> None:
    text = matmul().files("ptx")["matmul.cuh"].decode()
    assert "processor sm_75" in text and "#define matmul_arena_bytes ((size_t)64u)" in text
    listed = re.findall(r"^ \*   (.*)", text, re.MULTILINE)
    assert listed == [
        "const float *x_hold, int64_t its stride",
        "const float *y_hold, int64_t its stride",
        "float *x_y_prod: the items one after the other",
        "void *arenas: matmul_arena_bytes for each thread of the grid",
        "int64_t items",
    ]
