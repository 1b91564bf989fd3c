"""Object files, headers and their companions, used by compilers, build systems and Python of this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from unit.formats.native.cases import columns_of, equal, mixed

import shine
from shine.aot import build, code_of, compile
from shine.base.errors import CompilationError, ExportError, MissingExtraError
from shine.lang.program.builder import ProgramBuilder

FORMULA, NAMES = "sqrt(a*a + b*b) + floor(x1) * exp(b)", ("a", "b", "x1")
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def needs(*tools: str) -> pytest.MarkDecorator:
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(absent), reason=f"there is no {', '.join(absent)}")


def run(*command: str | Path, cwd: Path, **options: object) -> str:
    """Output of a command, which must succeed and print nothing on standard error."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), (command, done.stdout, done.stderr)
    return done.stdout


MAIN = r"""
#include <stdio.h>
#include "f.h"

int main(void)
{
    double matrix[ROWS * 3], transposed[3 * ROWS], y[3][ROWS];
    size_t i, j;
    if (fread(transposed, sizeof(double), 3 * ROWS, stdin) != 3 * ROWS) {
        return 1;
    }
    for (i = 0; i < ROWS; i++) {
        for (j = 0; j < 3; j++) {
            matrix[3 * i + j] = transposed[ROWS * j + i];
        }
        y[0][i] = f(matrix[3 * i], matrix[3 * i + 1], matrix[3 * i + 2]);
    }
    f_batch(matrix, ROWS, f_n_features, 1, y[1]);
    f_batch(transposed, ROWS, 1, ROWS, y[2]);
    return fwrite(y, sizeof y, 1, stdout) != 1;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "source", "options"),
    [
        ("cc", "main.c", ["-std=c99", "-fPIE", "-pie"]),
        ("cc", "main.c", ["-std=c89", "-static"]),
        ("c++", "main.cpp", ["-std=c++11"]),
        ("clang", "main.c", ["-std=c17", "-fPIE", "-pie"]),
    ],
    ids=["c99-pie", "c89-static", "c++", "clang"],
)
def test_a_program_in_c_or_cpp_computes_what_jit_does(
    compiler: str, source: str, options: list[str], tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    made = code_of(FORMULA, "f", params=NAMES)
    columns = columns_of(made.program, 300)
    build(FORMULA, tmp_path, params=NAMES)
    (tmp_path / source).write_text(MAIN.replace("ROWS", "300"))
    run(compiler, *options, *WARNINGS, source, "f.o", "-o", "main", cwd=tmp_path)
    done = subprocess.run([tmp_path / "main"], input=b"".join(map(np.ndarray.tobytes, columns)), capture_output=True)
    found = np.frombuffer(done.stdout).reshape(3, 300)
    expected = shine.jit(FORMULA, params=NAMES)(*columns)
    assert all(equal(one, expected) for one in found)


@needs("cc")
def test_names_that_c_has_already_are_changed_in_the_header(tmp_path: Path) -> None:
    files = compile("double_ + n_rows * π + y", emit=("header", "object"), params=["double_", "n_rows", "π", "y"])
    header = files["f.h"].decode()
    assert "double f(double double_, double n_rows_2, double u03c0, double y);" in header
    assert "n_rows_2 is n_rows." in header and "u03c0 is \\u03c0." in header
    (tmp_path / "f.h").write_bytes(files["f.h"])
    run("cc", *WARNINGS, "-fsyntax-only", "-x", "c", "-include", "f.h", "/dev/null", cwd=tmp_path)


@pytest.mark.parametrize("name", ["double", "exp", "class", "2a", "a-b", "", "printf", "_x", "shine_x"])
def test_names_that_no_function_can_have_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not free for a function in C"):
        compile("a", name)


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="cannot emit 'exe'; use some of object, header"):
        compile("a", emit="exe")


def test_a_graph_with_an_array_of_its_own_is_refused() -> None:
    maker = ProgramBuilder()
    x, w = maker.parameter("x", "float64"), maker.parameter("w", "float64", (3,), np.arange(3.0))
    total = maker.assign("float64", shine.parse(f"{x} * {w}", [x, w]).result)
    with pytest.raises(CompilationError, match="'w' is a constant array of 3 numbers"):
        compile(maker.finish([("y", total, "float64")]))


def test_ir_and_assembly_are_those_of_the_target() -> None:
    files = compile("a - 2 + 5 + 100", "f", ("ir", "asm"), target="aarch64-linux-gnu", dtype="int32")
    assert 'target triple = "aarch64-unknown-linux-gnu"' in files["f.ll"].decode()
    assert "#103" in files["f.s"].decode()


def test_a_named_processor_gets_its_instructions() -> None:
    assert "%zmm" in compile("a*b", emit="asm", target="x86_64-linux-gnu", cpu="znver4")["f.s"].decode()
    assert "%ymm" not in compile("a*b", emit="asm", target="x86_64-linux-gnu")["f.s"].decode()


@pytest.mark.slow
@needs("cc")
def test_the_benchmark_prints_the_time_of_a_row(tmp_path: Path) -> None:
    build("a*b", tmp_path, "area", "bench")
    run("cc", "-std=c99", "-O1", *WARNINGS, "area_bench.c", "area.o", "-o", "area_bench", cwd=tmp_path)
    lines = run("./area_bench", "1000", cwd=tmp_path).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["columns", "row-major matrix"]
    assert all(float(line.split()[-8]) > 0 for line in lines), lines


@needs("cc", "pkg-config")
def test_pkg_config_finds_it(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    build(FORMULA, folder, "f", "pkgconfig", params=NAMES)
    flags = run("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--cflags", "--libs", "f", cwd=tmp_path)
    (tmp_path / "main.c").write_text('#include "f.h"\nint main(void) { return f(3.0, 0.0, 0.5) != 3.0; }\n')
    run("sh", "-c", f"cc main.c {flags.strip()} -o main && ./main", cwd=tmp_path)


@needs("cmake", "cc", "make")
@pytest.mark.slow
def test_cmake_finds_it(tmp_path: Path) -> None:
    build(FORMULA, tmp_path / "formula", "f", "cmake", params=NAMES)
    (tmp_path / "main.c").write_text('#include "f.h"\nint main(void) { return f(3.0, 0.0, 0.5) != 3.0; }\n')
    lines = ["cmake_minimum_required(VERSION 3.16)", "project(test C)", "include(formula/f.cmake)"]
    lines += ["add_executable(main main.c)", "target_link_libraries(main PRIVATE shine::f)"]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    run("cmake", "-S", ".", "-B", "made", "-G", "Unix Makefiles", cwd=tmp_path)
    run("cmake", "--build", "made", cwd=tmp_path)
    run("made/main", cwd=tmp_path)


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two Python modules."""
    if not any(map(shutil.which, ("cc", "clang", "ld"))):
        pytest.skip("there is no linker")
    folder = tmp_path_factory.mktemp("modules")
    build(FORMULA, folder, "length", "python", params=NAMES)
    build("(a + shape) // b", folder, "quotient", "python", dtype="int32", params=["a", "b", "shape"])
    build(mixed(), folder, "many", "python")
    return folder


def in_python(folder: Path, code: str) -> str:
    """Output of code that can import the modules, but not Shine."""
    blocked = "import sys; sys.modules['shine'] = None; sys.modules['llvmlite'] = None\n"
    return run(sys.executable, "-W", "error", "-c", f"{blocked}import numpy as np\n{code}", cwd=folder).strip()


@pytest.mark.slow
def test_the_python_module_needs_no_shine_and_broadcasts(module_folder: Path) -> None:
    code = """
from length import length
rng = np.random.default_rng(0)
a, b = rng.normal(size=(4, 1)), rng.normal(size=(3,))[::-1]
print(length(3, 0, 0.5), type(length(3, 0, 0.5)).__name__)
print(length(a, b, 2.5).tolist())
print(length(np.zeros((0, 3)), 1.0, 1.0).shape)
"""
    first, second, third = in_python(module_folder, code).splitlines()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 1)), rng.normal(size=(3,))[::-1]
    assert first == "3.0 float"
    assert second == str(shine.jit(FORMULA, params=NAMES)(a, b, 2.5).tolist())
    assert third == "(0, 3)"


@pytest.mark.slow
def test_the_python_module_reports_what_is_wrong(module_folder: Path) -> None:
    code = """
from quotient import quotient
assert quotient(7, 2, 0) == 3 and quotient(np.arange(5), np.int64(2), 1).dtype == np.int32
for arguments in ((1, 0, 2), (1.5, 2, 2), (2**40, 1, 1), ("a", 1, 1), (1, 2)):
    try:
        quotient(*arguments)
    except Exception as error:
        print(type(error).__name__)
"""
    assert in_python(module_folder, code).split() == ["ZeroDivisionError", *["TypeError"] * 4]


def test_the_python_module_of_a_graph_has_several_results_and_a_docstring(module_folder: Path) -> None:
    code = """
from many import many
import inspect
results = many(*[1] * 15)
print(results, [np.asarray(one).dtype.kind for one in results])
print([one.dtype.name for one in many(np.ones(2), *[1] * 14)] if False else inspect.signature(many).parameters.keys())
assert "p0 : number or array of int32" in many.__doc__
"""
    printed = in_python(module_folder, code)
    assert printed.startswith("(120.0, 120, 120.0, 120, True) ['f', 'i', 'f', 'i', 'b']")


def test_a_missing_linker_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs a linker \(cc or clang\); install it with: pip install"):
        compile("a", emit="shared")
    with pytest.raises(MissingExtraError, match=r"needs a linker \(riscv64-linux-gnu-ld or ld.lld\)"):
        compile("a", emit="shared", target="riscv64-linux-gnu")


def test_a_target_without_shared_libraries_says_so() -> None:
    with pytest.raises(ExportError, match="has no shared libraries"):
        compile("a", emit="shared", target="wasm32")


@pytest.mark.parametrize(
    ("triple", "binutils"), [("aarch64-linux-gnu", "aarch64-linux-gnu"), ("arm-linux-gnueabihf", "arm-linux-gnueabihf")]
)
def test_binutils_link_shared_libraries_for_other_processors(triple: str, binutils: str, tmp_path: Path) -> None:
    if shutil.which(f"{binutils}-ld") is None:
        pytest.skip(f"there is no {binutils}-ld")
    build("exp(a)", tmp_path, "f", "shared", target=triple)
    assert "f_batch" in run(f"{binutils}-nm", "-D", "libf.so", cwd=tmp_path)


@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "x86_64-pc-windows-gnu", "arm64-apple-darwin"])
def test_zig_links_where_nothing_else_does(triple: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setattr("shutil.which", lambda name: None)
    (library,) = build("a*b", tmp_path, "f", "shared", target=triple)
    assert b"f_columns" in library.read_bytes()
