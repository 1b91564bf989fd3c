"""WebAssembly: a module without imports, and its loader in Node."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest
from unit.tensor.native.programs import idle, matmul

from shine.base.errors import CompilationError
from shine.formats.native.freestanding import undefined
from shine.tensor.form.types import TensorType
from shine.tensor.native.interface import Tensor
from shine.tensor.native.wasm import TAKEN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ziglang") is None and shutil.which("wasm-ld") is None,
        reason="needs a linker for WebAssembly (pip install ziglang)",
    ),
]
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


def node(folder, job, code):
    """Lines that an ES module prints; the loader and the module are beside it."""
    for name, content in job.files("wasm").items():
        (folder / name).write_bytes(content)
    (folder / "main.mjs").write_text(code)
    (folder / "package.json").write_text('{"type": "module"}')
    done = subprocess.run(["node", "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_module_imports_nothing():
    module = matmul().files("wasm")["matmul.wasm"]
    assert module.startswith(b"\0asm") and not undefined(module)


@needs_node
def test_node_computes_the_product_of_typed_arrays(tmp_path):
    lines = node(
        tmp_path,
        matmul(),
        """
import { load, parameters, outputs } from "./matmul.js";
const kernel = await load();
const x = Float32Array.of(1, 2, 3, 4, 5, 6);
const y = Float32Array.of(7, 8, 9, 10, 11, 12);
const z = kernel.matmul(x, y);
console.log(z.constructor.name, z.join());
kernel.arguments[0].fill(1);
kernel.run();
console.log(kernel.results[0].join(), z.join());
console.log(kernel.matmul(kernel.arguments[0], kernel.arguments[1]).join());
for (const [label, type, shape] of [...parameters, ...outputs]) console.log(label, type.name, shape.join());
const tried = [() => kernel.matmul(x), () => kernel.matmul(x, z), () => kernel.matmul(x, [...y])];
for (const each of tried) {
  try { each(); } catch (error) { console.log(`${error.name}: ${error.message}`); }
}
""",
    )
    assert lines == [
        "Float32Array 58,64,139,154",
        "27,30,27,30 58,64,139,154",
        "27,30,27,30",
        "x_hold Float32Array 2,3",
        "scope/y:0 Float32Array 3,2",
        "x_y_prod Float32Array 2,2",
        "TypeError: matmul takes 2 arrays, not 1",
        "RangeError: matmul: scope/y:0 has 4 elements, not 6 for shape [3, 2]",
        "TypeError: matmul: scope/y:0 is no Float32Array",
    ]


@needs_node
def test_several_results_have_their_labels_and_large_tensors_fit(tmp_path):
    tensors = tuple(
        Tensor(f"t{i}", f"t:{i}", TensorType(dtype, (3, 70_000))) for i, dtype in enumerate(["i64", "bool"])
    )
    job = idle(tensors[:1], (*tensors, Tensor("none", "none", TensorType("f64", (0,)))))
    lines = node(
        tmp_path,
        job,
        """
import { load } from "./idle.js";
const { idle, arguments: [x], results } = await load();
const found = idle(x);
console.log(Object.keys(found).join(), found["t:0"].length, found["t:1"].constructor.name, found.none.length);
const ends = [x, ...results].map((array) => [array.byteOffset % 64, array.byteOffset + array.byteLength]);
console.log(ends.every(([start]) => start === 0), ends.every(([, end]) => end <= x.buffer.byteLength));
""",
    )
    assert lines == ["t:0,t:1,none 210000 Uint8Array 0", "true true"]


@pytest.mark.skipif(shutil.which("tsc") is None, reason="needs TypeScript")
def test_types_are_those_of_typescript(tmp_path):
    for name, content in matmul().files("wasm").items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "use.ts").write_text(
        """
import { load, parameters } from "./matmul.js";
const { matmul, run, arguments: given } = await load(new Uint8Array(8));
const x = new Float32Array(6);
export const size: number = matmul(x, given[1]).length + parameters[0][2][0];
run();
// @ts-expect-error
matmul(x);
// @ts-expect-error
matmul(x, new Float64Array(6));
"""
    )
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    command = ["tsc", *options, "use.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_names_of_the_loader_are_refused(name):
    with pytest.raises(CompilationError, match="use another"):
        matmul(name).files("wasm")
