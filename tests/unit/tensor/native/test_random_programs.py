"""Random programs: the class in C++, the module in Node and the callable have the same bits, near the interpreter's."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.tensor_modules import SMOOTH, random_arguments, random_module
from unit.tensor.native.cpp import joined, results_in_cpp, split

import shine.tensor
from shine.tensor.form.interpreter import interpret
from shine.tensor.native.function import TensorFunction

SEEDS = range(12)

NODE = """
import { readFile, writeFile } from "node:fs/promises";
import { load } from "./net.js";
const kernel = await load();
const given = await readFile("given");
let at = 0;
for (const array of kernel.arguments) {
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(given.subarray(at, (at += array.byteLength)));
}
kernel.run();
const bytes = kernel.results.map((array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
await writeFile("made", Buffer.concat(bytes));
"""


def program(seed: int) -> tuple[TensorFunction, list[np.ndarray], list[np.ndarray]]:
    """A function, arguments, and its results in this process."""
    module = random_module(seed)
    function = TensorFunction(module)
    arguments = list(random_arguments(module, "main", seed))
    results = function(*arguments)
    return function, arguments, list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_the_callable_agrees_with_the_interpreter(seed: int) -> None:
    module = random_module(seed, operations=SMOOTH, floats=("f64",))
    arguments = random_arguments(module, "main", seed)
    found = TensorFunction(module)(*arguments)
    for one, other in zip(
        found if isinstance(found, tuple) else [found], interpret(module, "main", arguments), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_class_has_the_bits_of_the_callable(seed: int, tmp_path: Path) -> None:
    function, arguments, results = program(seed)
    shine.tensor.build(function, tmp_path, "net", cpu="native", cpp_class="a::Net")
    found = results_in_cpp(tmp_path, "net", arguments, results)
    for one, other in zip(found, results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("node") is None or (importlib.util.find_spec("ziglang") is None and shutil.which("wasm-ld") is None),
    reason="needs Node, and a linker for WebAssembly (pip install ziglang)",
)
@pytest.mark.parametrize("seed", SEEDS)
def test_node_agrees_with_the_callable(seed: int, tmp_path: Path) -> None:
    module = random_module(seed, operations=SMOOTH, floats=("f64",))
    function, arguments = TensorFunction(module), list(random_arguments(module, "main", seed))
    found = function(*arguments)
    results = list(found) if isinstance(found, tuple) else [found]
    shine.tensor.build(function, tmp_path, "net", "wasm")
    (tmp_path / "main.mjs").write_text(NODE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "given").write_bytes(joined(arguments))
    done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for one, other in zip(split((tmp_path / "made").read_bytes(), results), results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
