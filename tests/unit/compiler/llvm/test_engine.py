"""Compiled code: its lifetime, its leaks, and the IR that LLVM refuses."""

import ctypes
import gc
import subprocess
import sys

import pytest

from shine.base.errors import CompilationError
from shine.compiler.llvm import PIPELINES, Engine, assembly, object_code, optimized_ir

ADD = "define i32 @add(i32 %a, i32 %b) {\n %s = add i32 %a, %b\n ret i32 %s\n}"


@pytest.mark.parametrize("level", [*PIPELINES, 0, 1, 2, 3])
def test_compiled_code_runs(level):
    with Engine(ADD, level) as engine:
        assert engine.function("add", ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(2, 3) == 5


@pytest.mark.slow
def test_a_function_keeps_its_engine_alive():
    function = Engine(ADD).function("add", ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
    gc.collect()
    assert function(2, 3) == 5


def test_a_function_that_does_not_exist_is_an_error_not_an_abort():
    with pytest.raises(CompilationError, match="no function 'sub'"):
        Engine(ADD).address("sub")


def test_a_closed_engine_has_no_functions():
    engine = Engine(ADD)
    engine.close()
    engine.close()
    with pytest.raises(CompilationError, match="closed"):
        engine.address("add")


@pytest.mark.parametrize("text", ["nonsense", "define i32 @f() { ret i64 0 }", ADD + ADD])
def test_ir_that_is_not_valid_is_an_error(text):
    with pytest.raises(CompilationError, match="LLVM rejects the module"):
        Engine(text)


@pytest.mark.parametrize("level", ["O4", -1, 4, True, "fast"])
def test_an_unknown_pipeline_is_an_error(level):
    with pytest.raises(ValueError, match="use one of O0, O1, O2, O3"):
        Engine(ADD, level)


COMPILES = """
from shine.compiler.llvm import Engine
ADD = "define i32 @add(i32 %a, i32 %b) {\\n %s = add i32 %a, %b\\n ret i32 %s\\n}"

def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

def grown(count):
    before = resident_bytes()
    for _ in range(count):
        Engine(ADD, "O1").close()
    return resident_bytes() - before

grown(100)
print(grown(300))
"""
"""In a process of its own: what other tests left behind grows by megabytes at any time."""


@pytest.mark.slow
def test_hundreds_of_compiles_do_not_grow_the_process():
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, check=True, timeout=120)
    # LLVM itself keeps a few hundred bytes of each; this catches a leak of a few KB each.
    assert int(done.stdout) < 300_000


@pytest.mark.parametrize(
    ("triple", "magic"),
    [
        ("x86_64-linux-gnu", b"\x7fELF"),
        ("aarch64-linux-gnu", b"\x7fELF"),
        ("riscv64-linux-gnu", b"\x7fELF"),
        ("wasm32", b"\0asm"),
        ("x86_64-apple-macosx", b"\xcf\xfa\xed\xfe"),
    ],
)
def test_object_files_are_in_the_target_s_own_format(triple, magic):
    assert object_code(ADD, triple).startswith(magic)


def test_a_named_cpu_is_honoured():
    vector = "define <8 x float> @f(<8 x float> %a) {\n %s = fadd <8 x float> %a, %a\n ret <8 x float> %s\n}"
    assert "ymm" in assembly(vector, "x86_64-linux-gnu", "x86-64-v3")
    assert "ymm" not in assembly(vector, "x86_64-linux-gnu", "x86-64")


def test_optimized_ir_is_for_the_asked_target():
    assert 'target triple = "aarch64' in optimized_ir(ADD, "aarch64-linux-gnu")
