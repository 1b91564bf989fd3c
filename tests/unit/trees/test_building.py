"""Estimators as object files: called from C's side, they give the same numbers."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.markers import mostly_slow
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

import shine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
X[:, 2] = RNG.integers(0, 9, 150)
GOAL = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
CLASSES = np.array(["a", "b", "c"])[np.digitize(GOAL, [-0.5, 0.5])]

MODELS = {
    "categories": lambda: HistGradientBoostingRegressor(max_iter=9, categorical_features=[2]).fit(X, GOAL),
    "softmax": lambda: GradientBoostingClassifier(n_estimators=5).fit(X, CLASSES),
    "forest": lambda: RandomForestClassifier(5).fit(X, np.column_stack([CLASSES == "a", X[:, 2] > 4])),
    "two": lambda: HistGradientBoostingClassifier(max_iter=5).fit(X, CLASSES == "a"),
}


def called(folder: Path, name: str, rows: Any, width: int) -> tuple[Any, int]:
    """What a function of a shared library computes for rows, and what it returns."""
    function = getattr(ctypes.CDLL(str(folder / "libf.so")), name)
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_ssize_t] * 2, *[ctypes.c_void_p] * 2]
    header = (folder / "f.h").read_text(encoding="utf-8")
    size = int(header.split("_arena_bytes ((size_t)")[1].split("u")[0])
    memory, out = np.zeros(size + 64, np.uint8), np.full((len(rows) + 1, width), 77.0)
    address = -(-memory.ctypes.data // 64) * 64
    strides = [stride // rows.itemsize for stride in rows.strides]
    answer = function(rows.ctypes.data, len(rows), *strides, out.ctypes.data, address)
    assert (out[-1] == 77.0).all() and not memory[address - memory.ctypes.data + size :].any()
    return out[:-1], answer


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler to link")
@pytest.mark.parametrize("name", mostly_slow(MODELS, ("categories",)))
def test_a_library_computes_what_the_compiled_model_computes(name, tmp_path):
    model = MODELS[name]()
    compiled = shine.trees.compile(model)
    shine.trees.build(model, tmp_path, emit=["header", "shared"])
    method = "predict_proba" if compiled.reading.classes else "predict"
    expected = getattr(compiled, method)(X)
    if isinstance(expected, list):
        expected = np.concatenate(expected, axis=1)
    expected = expected.reshape(len(X), -1)
    # Codes of categories are the values themselves here: 0 to 8.
    for rows in (X, np.asfortranarray(X), X[::2]):
        found, answer = called(tmp_path, "f", rows, expected.shape[1])
        places = slice(None, None, 2 if len(rows) < len(X) else 1)
        assert found.tobytes() == expected[places].tobytes() and answer == 0
    single = X.astype(np.float32)
    again = getattr(compiled, method)(single)
    again = np.concatenate(again, axis=1) if isinstance(again, list) else again.reshape(len(X), -1)
    assert called(tmp_path, "f_single", single, expected.shape[1])[0].tobytes() == again.tobytes()
    bad = X.copy()
    bad[3, 0], bad[4, 1] = np.nan, np.inf
    assert called(tmp_path, "f", bad, expected.shape[1])[1] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    ["aarch64-linux-gnu", "wasm32", "s390x-linux-gnu", "armv7-linux-gnueabihf", "riscv64-linux-gnu",
     "x86_64-pc-windows-msvc", "i686-linux-gnu"],
)  # fmt: skip
def test_objects_for_other_targets_need_no_library(target, tmp_path):
    for name in ("categories", "softmax"):
        assert shine.trees.build(MODELS[name](), tmp_path, target=target)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize("language", ["-std=c89", "-std=c17", "-xc++"])
def test_headers_are_accepted_by_compilers(language, tmp_path):
    shine.trees.build(MODELS["categories"](), tmp_path, "price", "header")
    source = tmp_path / "use.c"
    source.write_text('#include "price.h"\nint main(void) { return price_n_results - 1; }\n', encoding="utf-8")
    options = [language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    done = subprocess.run(["cc", *options, str(source)], capture_output=True, text=True, check=False)
    assert done.stderr == "" and done.returncode == 0


def test_the_header_tells_what_the_numbers_are(tmp_path):
    boosted = HistGradientBoostingClassifier(max_iter=2, categorical_features=[2]).fit(X, CLASSES)
    (path,) = shine.trees.build(boosted, tmp_path, "rank", "header")
    text = path.read_text(encoding="utf-8")
    assert "k = 1: the probability of class 'b'" in text
    assert "Feature 2 is a code: 0 for 0.0, 1 for 1.0" in text and "price" not in text
    shine.trees.build(shine.trees.compile(boosted), tmp_path, "rank", "header", method="decision_function")
    assert "k = 2: the decision for class 'c'" in path.read_text(encoding="utf-8")


def test_bad_requests_are_refused(tmp_path):
    model = RandomForestClassifier(2, random_state=0).fit(X, CLASSES)
    for options, error, message in [
        ({"method": "predict"}, ValueError, "there is predict_proba; the class is the one of the largest number"),
        ({"method": "decision_function"}, ValueError, "a RandomForestClassifier has no 'decision_function' in C"),
        ({"name": "1x"}, ValueError, "name '1x' is not free for a function in C"),
        ({"emit": "cobol"}, ValueError, "cannot emit 'cobol'; use some of object, header"),
        ({"target": "nvptx64-nvidia-cuda"}, shine.CompilationError, "there is no code of trees for GPUs"),
        ({"target": "toaster"}, shine.CompilationError, "LLVM has no target"),
    ]:
        with pytest.raises(error, match=message):
            shine.trees.build(model, tmp_path / "none", **options)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_the_program_of_the_tutorial_prints_what_the_model_predicts(tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / "tutorial-trees.md").read_text(encoding="utf-8")
    program = re.findall(r'^```cpp title="main.c"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks[:3]:
        exec(block, names)
    Path("main.c").write_text(program, encoding="utf-8")
    shine.trees.build(names["model"], "delivery", "minutes")
    command = ["cc", "-O1", "-Werror", "-Wall", "-Idelivery", "main.c", "delivery/minutes.o", "-o", "main"]
    subprocess.run(command, check=True)
    printed = subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout.split()
    expected = names["model"].predict([[3.0, 18.5, 0.0, 0.2], [3.0, 18.5, 0.0, np.nan]])
    assert printed == [f"{value:.6f}" for value in expected]
