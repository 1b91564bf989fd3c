"""The kinds of files of a tensor program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from unit.tensor.native.programs import idle, matmul

from shine.aot import target_of
from shine.base.errors import CompilationError, ExportError
from shine.tensor.form.types import TensorType
from shine.tensor.native.code import TensorCode
from shine.tensor.native.interface import Tensor

needs_linker = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def test_every_kind_has_its_files():
    kinds = ["object", "header", "ir", "asm", "cmake", "pkgconfig"]
    names = {f"matmul.{ending}" for ending in ("o", "h", "ll", "s", "cmake", "pc")}
    assert set(matmul().files(kinds)) == names
    assert set(replace(matmul(), cpp_class="Product").files(["object"])) == {"matmul.o", "matmul.hpp"}


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=f"cannot emit 'bench'; use some of {', '.join(TensorCode.emitters)}"):
        matmul().files(["bench"])


def test_a_target_without_shared_libraries_is_refused():
    with pytest.raises(ExportError, match="no shared libraries"):
        matmul(target=target_of("wasm32")).files(["python"])


@pytest.mark.parametrize(
    ("kind", "said"), [("object", "has no object files; emit ptx"), ("header", "has no header in C; emit ptx")]
)
def test_a_gpu_has_neither_objects_nor_headers_in_c(kind, said):
    with pytest.raises(CompilationError, match=said):
        matmul(target=target_of("nvptx64-nvidia-cuda")).files([kind])


@needs_linker
def test_the_python_module_needs_only_numpy(tmp_path):
    for name, content in matmul().files(["python"]).items():
        (tmp_path / name).write_bytes(content)
    code = """
import sys, numpy as np, matmul
x, y = np.arange(1, 7, dtype="float32").reshape(2, 3), np.arange(7, 13, dtype="float32").reshape(3, 2)
print(matmul.matmul(x, y).tolist(), matmul.matmul(x.tolist(), y.T.copy().T).tolist(), "llvmlite" in sys.modules)
for given in ((x, x), (x.astype(float), y)):
    try: matmul.matmul(*given)
    except (TypeError, ValueError) as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    product = np.array([[58.0, 64.0], [139.0, 154.0]]).tolist()
    assert done.stdout.splitlines() == [
        f"{product} {product} False",
        "argument 'scope/y:0' has shape (2, 3), not (3, 2)",
        "argument 'x_hold' has elements of type float64, not float32",
    ]


@needs_linker
def test_the_python_module_takes_names_of_its_own_as_arguments(tmp_path):
    arguments = tuple(Tensor(name, name, TensorType("f32")) for name in ("np", "ctypes"))
    results = tuple(Tensor(name, name, TensorType("i64", (2,))) for name in ("a", "b"))
    for name, content in idle(arguments, results).files(["python"]).items():
        (tmp_path / name).write_bytes(content)
    code = "import idle; print([array.shape for array in idle.idle(np_=1, ctypes_=2)])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[(2,), (2,)]"
