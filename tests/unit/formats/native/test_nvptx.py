"""PTX: its interface, rounding to nearest, and the rows that each thread takes."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from helpers.aot_programs import DTYPES, columns, expressions, program_of
from helpers.equality import assert_same_bits
from helpers.gpu_threads import run_threads
from llvmlite import ir

import shine
from shine import aot
from shine.compiler.codegen.native.row_by_row import emit_kernel

needs_ptxas = pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas of CUDA")

INEXACT = r"\b(fma|mad)\.|\.(ftz|approx|full|rz\.f|sat)"
"""Instructions that do not round every operation, or do not round to nearest."""


def ptx(source, name="f", **options):
    return aot.compile(source, name, "ptx", **options)[f"{name}.ptx"].decode()


def assembled(text, folder, processor="sm_75"):
    """Output of ptxas for a module."""
    (folder / "f.ptx").write_text(text)
    command = ["ptxas", "-v", f"-arch={processor}", "f.ptx", "-o", "f.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_formula_is_a_device_function_and_a_kernel():
    text = ptx("sqrt(a*a + b*b)", "hypotenuse")
    assert ".target sm_75\n" in text and ".address_size 64\n" in text
    assert re.search(r"\.visible \.func +\(.*\) hypotenuse\(", text)
    assert ".visible .entry hypotenuse_kernel(" in text
    assert "ld.global" in text and "st.global" in text


@pytest.mark.parametrize(("dtype", "suffix"), [("float64", "f64"), ("float32", "f32")])
def test_arithmetic_is_rounded_to_nearest_an_operation_at_a_time(dtype, suffix):
    text = ptx("sqrt(a*b + a/b) - a", dtype=dtype)
    found = re.findall(rf"\b(mul|div|add|sqrt|sub)\.rn\.{suffix}\b", text)
    assert sorted(found) == sorted(["mul", "div", "add", "sqrt", "sub"] * 2)
    assert not re.search(INEXACT, text)


FUSED = frozenset({"exp", "log", "sin", "cos", "tanh"})
"""Elementary functions with fused multiply-adds in float32."""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "level"), [("float64", "O2"), ("float32", "O2"), ("float32", "O0")])
def test_no_primitive_is_contracted_approximated_or_flushed(dtype, level):
    every = expressions(dtype)
    asking = {name for name, value in every.items() if dtype == "float32" and "llvm.fma" in kernel_ir(value)}
    assert asking >= FUSED or dtype == "float64"
    assert "nested" not in asking
    for names, allowed in ((every.keys() - asking, ()), (asking, ("fma.rn.f32",))):
        if not names:
            continue
        text = ptx(program_of({name: every[name] for name in sorted(names)}, dtype), opt_level=level)
        for line in text.splitlines():
            # A product of integers added to another is exact.
            exact = re.search(r"mad\.(lo|wide)\.[su]\d+", line) or line.split()[:1] == [*allowed]
            assert exact or not re.search(INEXACT, line), line
        # ptxas may contract instructions without .rn.
        assert not re.search(r"\b(add|sub|mul)\.f(32|64)\b", text)


def kernel_ir(expression):
    """Operations of a float32 kernel of a function, before LLVM changes it."""
    module = ir.Module()
    emit_kernel(module, program_of({"value": expression}, "float32"), "k")
    return str(module)


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("dtype", DTYPES)
def test_ptxas_takes_every_primitive(dtype, tmp_path):
    text = ptx(program_of(expressions(dtype), dtype))
    said = assembled(text, tmp_path)
    assert "f_kernel" in said
    # Every function that is called is defined.
    assert ".extern" not in text


@needs_ptxas
def test_an_integer_division_has_a_status(tmp_path):
    text = ptx("a // b", dtype="int64")
    kernel = text[text.index(".entry f_kernel(") :]
    assert len(re.findall(r"^\s*\.param", kernel, re.MULTILINE)) == 5
    assert re.search(r"st\.global\.b32\s+\[%rd\d+\], 1;", kernel)
    assembled(text, tmp_path)
    total = ptx("a + b", dtype="int64")
    assert len(re.findall(r"^\s*\.param", total[total.index(".entry") :], re.MULTILINE)) == 4


@pytest.mark.parametrize(
    ("source", "dtype", "declared"),
    [
        ("exp(-a*a) * sin(b)", "float64", "double f(double a, double b);"),
        ("a // b", "int64", "int64_t f(int64_t a, int64_t b, unsigned char * /* becomes 1 if a divisor is zero */);"),
    ],
)
def test_a_header_declares_the_device_function_as_it_is(source, dtype, declared):
    files = aot.compile(source, "f", "ptx", dtype=dtype)
    header, text = files["f.cuh"].decode(), files["f.ptx"].decode()
    assert f'extern "C" __device__ {declared}' in header
    function, _, kernel = text.partition(".visible .entry")
    assert function.count(".param") - 1 >= declared.count(",") + 1
    listed = header.partition("f_kernel:\n")[2].partition(" */")[0]
    assert len(re.findall(r"\.param .*f_kernel_param_\d+[,\n]", kernel)) == len(listed.splitlines())
    assert "nvptx64-nvidia-cuda" in header


def threads_on_this_machine(program, arguments, places):
    """Run a kernel's code for some threads, each given as tid, ctaid, ntid and nctaid."""
    module = ir.Module()
    emit_kernel(module, program, "f")
    run_threads(str(module), "f_kernel", arguments, places)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_the_kernel_computes_what_this_machine_does(dtype):
    program = program_of(expressions(dtype), dtype)
    inputs = columns(dtype, 3, 400, seed=2)
    found = [np.zeros(400, dtype) for _ in program.outputs]
    status = np.zeros(1, np.int32)
    # Whether there is a status, an argument more or less changes nothing in the other ones.
    threads_on_this_machine(program, [*inputs, *found, 400, status], [(0, 0, 1, 1)])
    for each, expected in zip(found, shine.jit(program)(*inputs), strict=True):
        assert_same_bits(each, expected)
    assert not status[0]


def test_threads_take_all_rows_and_each_row_once():
    x = np.arange(101.0)
    tree = shine.jit("a + 1").tree
    program = aot.code_of(tree).program
    places = [(tid, ctaid, 4, 3) for ctaid in range(3) for tid in range(4)]
    taken = np.zeros(101, int)
    for place in places:
        found = np.full(110, -1.0)
        threads_on_this_machine(program, [x, found, 101], [place])
        assert (found[101:] == -1).all()
        mine = found[:101] != -1
        taken += mine
        np.testing.assert_array_equal(found[:101][mine], x[mine] + 1)
        assert mine.sum() in (8, 9)
    np.testing.assert_array_equal(taken, 1)


def test_a_zero_divisor_in_any_row_is_in_the_status():
    program = aot.code_of("a // b", dtype="int32").program
    a, b = np.full(50, 7, np.int32), np.full(50, 2, np.int32)
    b[33] = 0
    found, status = np.zeros(50, np.int32), np.zeros(1, np.int32)
    threads_on_this_machine(program, [a, b, found, 50, status], [(0, 0, 1, 1)])
    assert status[0] == 1
    np.testing.assert_array_equal(np.delete(found, 33), 3)
    status[:] = 0
    threads_on_this_machine(program, [a, b, found, 33, status], [(0, 0, 1, 1)])
    assert status[0] == 0
