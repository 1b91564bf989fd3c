"""The C++ class: a program that uses it as TensorFlow's users do, without any library and on another processor too."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from unit.formats.native.cross import MACHINES, link
from unit.tensor.native.programs import idle, matmul

from shine.aot import Target, target_of
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.native.code import TensorCode
from shine.tensor.native.function import TensorFunction
from shine.tensor.native.interface import Tensor

NAME = "foo::bar::MatMulComp"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wtype-limits", "-Werror"]

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

USE = """
#include "matmul.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

#define CHECK(condition) if (!(condition)) { std::printf("line %d\\n", __LINE__); return 1; }

int main() {
  using foo::bar::MatMulComp;
  MatMulComp one;
  CHECK(one.arg0_data() == one.arg_data(0) && one.args()[1] == one.arg1_data());
  for (size_t i = 0; i < 6; i++) one.arg0(i / 3, i % 3) = static_cast<float>(i + 1);
  for (size_t i = 0; i < 6; i++) one.arg1_data()[i] = static_cast<float>(i + 7);
  CHECK(one.Run() && one.error_msg() == std::string());
  const MatMulComp &read = one;
  for (size_t i = 0; i < 4; i++) {
    CHECK(read.result0(i / 2, i % 2) == one.result0_data()[i]);
    CHECK(one.result_x_y_prod(i / 2, i % 2) == read.result_x_y_prod_data()[i]);
    std::printf("%g\\n", static_cast<double>(read.result0(i / 2, i % 2)));
  }
  CHECK(read.results()[0] == one.result_data(0) && read.arg_x_hold(1, 2) == 6 && read.arg_y_hold(2, 1) == 12);
  for (size_t i = 0; i < 2; i++) CHECK(reinterpret_cast<std::uintptr_t>(one.args()[i]) % 64 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(one.results()[0]) % 64 == 0);
  CHECK(one.arg0_size() == 24 && MatMulComp::arg0_count() == 6 && one.result0_size() == 16 && one.arg_size(1) == 24);
  CHECK(MatMulComp::LookupArgIndex("scope/y:0") == 1 && MatMulComp::LookupArgIndex("scope/y") == -1);
  CHECK(MatMulComp::LookupResultIndex("x_y_prod") == 0 && MatMulComp::LookupResultIndex("") == -1);
  one.set_thread_pool(&one);

  MatMulComp two(MatMulComp::AllocMode::RESULTS_AND_TEMPS_ONLY);
  const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};
  float y[3][2] = {{7, 8}, {9, 10}, {11, 12}};
  CHECK(two.arg0_data() == nullptr && !two.Run() && two.error_msg() != std::string());
  two.set_arg0_data(&x);
  CHECK(!two.Run());
  two.set_arg_y_hold_data(y);
  CHECK(two.arg1_data() == &y[0][0] && two.Run() && two.error_msg() == std::string() && two.result0(1, 1) == 154);
  y[0][0] = 8;
  CHECK(two.Run() && two.result0(0, 0) == 59 && read.result0(0, 0) == 58);
  MatMulComp three(MatMulComp::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  CHECK(three.arg1_data() == nullptr);
  return 0;
}
"""

FREESTANDING = """
#include "matmul.hpp"

CALL

static char room[1024];
void *operator new(size_t) { return room; }
void operator delete(void *) noexcept {}

extern "C" void _start() {
  foo::bar::MatMulComp product;
  for (size_t i = 0; i < 6; i++) {
    product.arg0_data()[i] = static_cast<float>(i + 1);
    product.arg1_data()[i] = static_cast<float>(i + 7);
  }
  bool done = product.Run();
  for (size_t i = 0; i < 4; i++) {
    int number = static_cast<int>(product.result0(i / 2, i % 2));
    char text[4] = {static_cast<char>('0' + number / 100), static_cast<char>('0' + number / 10 % 10),
                    static_cast<char>('0' + number % 10), '\\n'};
    call(WRITE, 1, reinterpret_cast<long>(text), 4);
  }
  call(EXIT, done ? 0 : 1, 0, 0);
  for (;;) {}
}
"""


def written(job: TensorCode, name: str, folder: Path) -> None:
    """The headers of a job, and its object as `f.o`."""
    files = {**replace(job, cpp_class=name).class_header(), **job.header(), "f.o": job.object_code}
    for file, content in files.items():
        (folder / file).write_bytes(content)


def run(command: list[str], folder: Path) -> str:
    """Output of a command that succeeds and complains of nothing."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_a_program_computes_the_product_of_tensorflows_example(standard, tmp_path):
    written(matmul(), NAME, tmp_path)
    (tmp_path / "main.cpp").write_text(USE)
    run(["g++", f"-std={standard}", *STRICT, "main.cpp", "f.o", "-o", "main"], tmp_path)
    assert run(["./main"], tmp_path).split() == ["58", "64", "139", "154"]


def product(target: Target) -> TensorCode:
    """The product as Shine compiles it."""
    types = TensorType("f32", (2, 3)), TensorType("f32", (3, 2))
    build = FunctionBuilder("main")
    x, y = (build.parameter(name, kind) for name, kind in zip(("x_hold", "y_hold"), types, strict=True))
    function = TensorFunction(Module("matmul", {"main": build.done(build.dot(x, y))}))
    return function.code(target=target.triple)


@pytest.mark.slow
@pytest.mark.parametrize("source", [matmul, product])
@pytest.mark.parametrize("machine", MACHINES)
def test_other_processors_compute_it_without_any_library(machine, source, tmp_path):
    tools = MACHINES[machine]
    if missing := tools.missing():
        pytest.skip(f"there is no {missing}")
    job = source(target=target_of(tools.triple))
    written(job, NAME, tmp_path)
    exit_, _, write = tools.numbers
    text = FREESTANDING.replace("CALL", tools.syscall()).replace("EXIT", str(exit_)).replace("WRITE", str(write))
    (tmp_path / "main.cpp").write_text(text)
    link(machine, "main.cpp", tmp_path, ["-std=c++11", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wno-register"])
    assert run([tools.emulator, "main"], tmp_path).split() == ["058", "064", "139", "154"]


@needs_compiler
def test_tensors_of_every_type_and_shape_have_accessors(tmp_path):
    arguments = (
        Tensor("scalar", "scalar", TensorType("bool")),
        Tensor("empty", "empty", TensorType("i8", (0, 3))),
        Tensor("data", "data", TensorType("i64", (2,))),
        Tensor("x", "x", TensorType("u8", (2, 3, 4))),
        Tensor("x_data", 'a "quoted"\n*/ label\\ é', TensorType("f64", (5, 1))),
    )
    results = (Tensor("size", "size", TensorType("i16", (7,))), Tensor("y", "y", TensorType("i32", (1, 2, 3, 4))))
    written(idle(arguments, results), "Odd", tmp_path)
    (tmp_path / "main.cpp").write_text(
        """
#include "idle.h"
#include "idle.hpp"
int main() {
  Odd odd;
  odd.arg0() = true;
  odd.arg_scalar() = false;
  odd.arg2(1) = INT64_MAX;
  odd.arg_x(1, 2, 3) = 255;
  odd.arg3_data()[22] = 9;
  odd.arg4(4, 0) = 0.5;
  const bool done = odd.Run() && odd.arg3(1, 2, 2) == 9 && odd.arg_x(1, 2, 3) == 255 && odd.arg_empty_count() == 0;
  odd.result_y(0, 1, 2, 3) = 4;
  const bool found = odd.LookupArgIndex("a \\"quoted\\"\\n*/ label\\\\ \\xc3\\xa9") == 4;
  return done && found && !odd.arg0() && odd.result1_data()[23] == 4 && odd.result0_size() == 14 ? 0 : 1;
}
"""
    )
    run(["g++", "-std=c++11", *STRICT, "main.cpp", "f.o", "-o", "main"], tmp_path)
    run(["./main"], tmp_path)


@needs_compiler
def test_a_function_without_arguments_has_a_class(tmp_path):
    written(idle((), (Tensor("y", "y", TensorType("f32")),)), "Nothing", tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "idle.h"\n#include "idle.hpp"\n'
        "int main() { Nothing n; float y; idle_call(&y, nullptr); return n.Run() && n.result0_count() == 1 ? 0 : 1; }\n"
    )
    run(["g++", "-std=c++11", *STRICT, "main.cpp", "f.o", "-o", "main"], tmp_path)
    run(["./main"], tmp_path)


@pytest.mark.parametrize("name", ["", "a b", "foo::", "foo:bar", "::", "1st", "class", "foo::int", "a__b", "_x", "é"])
def test_what_is_no_name_of_a_class_is_refused(name):
    with pytest.raises(ValueError, match="is no name for a class"):
        replace(matmul(), cpp_class=name).class_header()


@pytest.mark.parametrize("name", ["Run", "foo::arg0_data", "arg_x_hold", "foo::AllocMode", "kNumArgs"])
def test_a_class_with_the_name_of_its_method_is_refused(name):
    with pytest.raises(ValueError, match="give it another name"):
        replace(matmul(), cpp_class=name).class_header()


@pytest.mark.parametrize("name", ["matmul", "::matmul", "matmul::Product"])
def test_the_function_and_the_class_cannot_have_one_name(name):
    with pytest.raises(ValueError, match="different names"):
        replace(matmul(), cpp_class=name).class_header()


def test_a_name_may_begin_with_colons():
    job = matmul()
    assert replace(job, cpp_class=f"::{NAME}").class_header() == replace(job, cpp_class=NAME).class_header()
