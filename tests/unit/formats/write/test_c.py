"""Formulas as C: compiled by the system's compiler without a warning, called, and compared."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import (
    EXACT,
    application,
    chain_of_functions,
    deep_tree,
    differences,
    primitives_of_the_target,
    rows,
)

import shine
from shine.evaluate.kernels.kernel import Kernel
from shine.formats.write.c import c_files, c_source
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

COMPILER = shutil.which("cc")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-ffp-contract=off"]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler cc")
DOUBLES = ctypes.POINTER(ctypes.c_double)


def compiled(folder: Path, files: dict[str, str], *flags: str) -> ctypes.CDLL:
    """The files as a shared library."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = [str(folder / name) for name in files if name.endswith(".c")]
    library = folder / "formulas.so"
    options = flags or FLAGS
    command = [COMPILER, *options, "-shared", "-fPIC", *sources, "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return ctypes.CDLL(str(library))


def one_file(trees: list[Tree]) -> dict[str, str]:
    """Many formulas in one file: f0, f1, ..."""
    return {"formulas.c": "\n".join(c_source(tree, f"f{number}") for number, tree in enumerate(trees))}


def batch(library: ctypes.CDLL, name: str, columns: list[np.ndarray], order: str = "F") -> np.ndarray:
    """Call of a batch function on columns, in one of the two orders."""
    matrix = np.array(columns).T.copy(order=order) if columns else np.empty((1, 0))
    result = np.empty(len(matrix))
    strides = [ctypes.c_ssize_t(stride // 8) for stride in matrix.strides]
    function = getattr(library, f"{name}_batch")
    function.restype = None
    function(matrix.ctypes.data_as(DOUBLES), ctypes.c_size_t(len(matrix)), *strides, result.ctypes.data_as(DOUBLES))
    return result


@pytest.fixture(scope="module")
def primitives(tmp_path_factory):
    """Every primitive of the standard library, compiled: name -> function of three columns."""
    library = compiled(tmp_path_factory.mktemp("primitives"), one_file([application(name) for name in STANDARD]))

    def function(position: int):
        return lambda *columns: batch(library, f"f{position}", list(columns))

    return {name: function(position) for position, name in enumerate(STANDARD)}


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_primitive_has_the_same_bits(name, primitives):
    columns = rows(0, 10_000)
    assert differences(primitives[name](*columns), evaluate(application(name), columns), columns) == []


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_primitive_is_within_two_ulp_of_the_compiled_one(name, primitives):
    columns = rows(1, 10_000)
    expected = Kernel(application(name))(*columns)
    assert differences(primitives[name](*columns), expected, columns, 2) == []


@needs_compiler
@pytest.mark.parametrize("name", [name for name in STANDARD if name not in ARITIES])
def test_a_composite_is_made_of_the_same_primitives(name, primitives):
    columns = rows(2, 10_000)
    with primitives_of_the_target(primitives):
        expected = evaluate(application(name), columns)
    assert differences(primitives[name](*columns), expected, columns) == []


@pytest.mark.slow
@needs_compiler
@settings(max_examples=3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(trees(), min_size=1, max_size=40), st.integers(0, 2**32))
def test_random_trees_have_the_bits_of_their_primitives(primitives, tmp_path_factory, formulas, seed):
    # Without -fno-builtin the compiler would compute functions of constants, and round better than libm.
    library = compiled(tmp_path_factory.mktemp("trees"), one_file(formulas), *FLAGS, "-fno-builtin")
    columns = rows(seed, 1000)
    with primitives_of_the_target(primitives):
        for number, tree in enumerate(formulas):
            values = batch(library, f"f{number}", columns)
            assert differences(values, evaluate(tree, columns), columns) == [], str(tree)


@needs_compiler
@pytest.mark.parametrize("text", ["a - b", "2.5", "a"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_of_rows_and_columns_are_read(text, order, tmp_path):
    library = compiled(tmp_path, c_files(shine.parse(text, ("a", "b"))))
    columns = [np.arange(5.0), np.arange(5.0) ** 2]
    expected = evaluate(shine.parse(text, ("a", "b")), columns)
    assert batch(library, "f", columns, order).tolist() == expected.tolist()


@needs_compiler
def test_a_formula_without_features_is_a_function_of_nothing(tmp_path):
    library = compiled(tmp_path, c_files(shine.parse("2*pi")))
    library.f.restype = ctypes.c_double
    assert library.f() == 2 * np.pi
    assert batch(library, "f", []).tolist() == [2 * np.pi]


@pytest.mark.slow
@needs_compiler
def test_ten_thousand_levels_compile(tmp_path):
    tree = deep_tree(10_000)
    columns = rows(3, 100, features=2)
    # Optimizing a function of that length takes a while, and is not the point.
    library = compiled(tmp_path, c_files(tree), *(flag for flag in FLAGS if flag != "-O2"))
    assert differences(batch(library, "f", columns), evaluate(tree, columns), columns) == []


@needs_compiler
def test_functions_may_call_functions_to_any_depth():
    source = c_source(chain_of_functions(1200))
    assert source.count("static double f_g") == 1200


@needs_compiler
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler g++")
def test_a_program_in_cpp_can_include_and_link_it(tmp_path):
    files = c_files(shine.parse("hypot(a, new) + sign(b)", ("new", "a", "b")), "length")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    main = '#include "length.h"\n#include <cstdio>\nint main() { std::printf("%.17g", length(3, 4, -7)); }\n'
    (tmp_path / "main.cpp").write_text(main)
    options = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["cc", *FLAGS, "-c", "length.c", "-o", "length.o"], cwd=tmp_path, check=True)
    subprocess.run(["g++", *options, "main.cpp", "length.o", "-o", "as_c", "-lm"], cwd=tmp_path, check=True)
    # The source itself compiles as C++ too.
    subprocess.run(["g++", *options, "-x", "c++", "main.cpp", "length.c", "-o", "as_cpp"], cwd=tmp_path, check=True)
    for program in ("as_c", "as_cpp"):
        done = subprocess.run([str(tmp_path / program)], capture_output=True, text=True, check=True)
        assert done.stdout == "4"


@needs_compiler
def test_fast_math_is_refused_by_the_compiler(tmp_path):
    for name, text in c_files(shine.parse("a + 1")).items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(["cc", "-ffast-math", "-c", "f.c"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "-ffast-math" in done.stderr


NAMES = ["int", "new", "exp", "NAN", "I", "linux", "sinf", "π", "f", "f_min", "v1", "X", "y", "main", "size_t", "_x"]


@needs_compiler
def test_names_reserved_in_c_are_changed(tmp_path):
    # Every primitive of <math.h> is called, too, and variables are called v1, v2, ...
    text = " + ".join(NAMES) + " + exp(int) + cos(new) + min(X, y) + hypot(y, sqrt(X*y)**(X*y))"
    tree = shine.parse(text, tuple(NAMES))
    library = compiled(
        tmp_path, {f"{name}.c": c_source(tree, name) for name in ("f", "printf", "1 2", "double", "exp")}
    )
    columns = [np.full(3, 0.125 * 3**position) for position in range(len(NAMES))]
    for name in ("f", "printf_", "x1_2", "double_", "exp_"):
        assert batch(library, name, columns) == pytest.approx(evaluate(tree, columns), rel=1e-15)


def test_a_function_without_a_definition_is_named():
    tree = Tree(("a",), shine.parse("square(a)").result)
    with pytest.raises(shine.ExportError, match="'square' cannot be exported to C"):
        c_files(tree)
