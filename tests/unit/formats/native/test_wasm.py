import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.aot_programs import DTYPES, columns, expressions, program_of
from helpers.equality import assert_same_bits

import shine
from shine import aot
from shine.base.errors import CompilationError, MissingExtraError
from shine.formats.native import wasm
from shine.formats.native.freestanding import undefined
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.interpret import interpret

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ziglang") is None and shutil.which("wasm-ld") is None,
        reason="needs a linker for WebAssembly (pip install ziglang)",
    ),
]
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")

HARNESS = """
import { readFile, writeFile } from "node:fs/promises";
import { load, parameters, outputs } from "./NAME.js";
const ARRAYS = {
  float64: Float64Array, float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array,
};
const kernel = await load();
const read = async ([, type], i) => {
  const bytes = await readFile(new URL(`in${i}`, import.meta.url));
  return new ARRAYS[type](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};
const inputs = await Promise.all(parameters.map(read));
const found = kernel.batch(inputs);
for (const [i, [label]] of outputs.entries()) {
  await writeFile(new URL(`out${i}`, import.meta.url), outputs.length > 1 ? found[label] : found);
}
const row = (i) => kernel.NAME(...inputs.map((column, j) => {
  return parameters[j][1] === "bool" ? column[i] !== 0 : column[i];
}));
const all = outputs.length > 1 ? found : { [outputs[0][0]]: found };
for (let i = 0; i < Math.min(50, inputs[0].length); i++) {
  const values = outputs.length > 1 ? row(i) : { [outputs[0][0]]: row(i) };
  for (const [label, type] of outputs) {
    const many = type === "bool" ? all[label][i] !== 0 : all[label][i];
    if (!Object.is(values[label], many)) throw new Error(`${label}, row ${i}: ${values[label]}, not ${many}`);
  }
}
"""


def node(folder, code):
    """Output of an ES module that runs in a folder."""
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "main.mjs").write_text(code)
    done = subprocess.run(["node", "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(folder, program, inputs, name="f", **options):
    """Outputs of a program for columns, from Node, which also checks the function of one row against that of many."""
    folder.mkdir(exist_ok=True)
    aot.build(program, folder, name, "wasm", **options)
    for i, column in enumerate(inputs):
        (folder / f"in{i}").write_bytes(column.tobytes())
    node(folder, HARNESS.replace("NAME", name))
    return [
        np.frombuffer((folder / f"out{i}").read_bytes(), "uint8" if output.dtype == "bool" else output.dtype)
        for i, output in enumerate(program.outputs)
    ]


@needs_node
def test_the_hypotenuse_is_small_and_right(tmp_path):
    files = aot.compile("sqrt(a*a + b*b)", "hypotenuse", "wasm-scalar")
    size = len(files["hypotenuse.wasm"])
    print(f"hypotenuse.wasm: {size} bytes")
    assert size < 100
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = node(
        tmp_path,
        'import { load } from "./hypotenuse.js";\n'
        "const { hypotenuse, batch } = await load();\nconsole.log(hypotenuse(3, 4), batch);",
    )
    assert found.split() == ["5", "undefined"]


@needs_node
@pytest.mark.parametrize("features", ["", "+simd128"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_primitive_has_the_bits_of_this_machine(tmp_path, dtype, features):
    formulas = expressions(dtype)
    # More than two pieces of the loader, and a last vector that is not full.
    inputs = columns(dtype, 3, 2051)
    target = {"target": wasm.TRIPLE, "features": features} if features else {}
    program = program_of(formulas, dtype)
    expected = shine.jit(program)(*inputs)
    for name, found, column in zip(formulas, run(tmp_path, program, inputs, **target), expected, strict=True):
        assert_same_bits(found, column, name)


@needs_node
def test_a_program_of_many_types_is_called_with_them(tmp_path):
    build = ProgramBuilder()
    x, n = build.parameter("x:0", "float64"), build.parameter("new", "int64")
    i, flag = build.parameter("i", "int32"), build.parameter("flag", "bool")
    product = build.assign("float64", shine.parse(f"{x} * {build.convert(n, 'float64')}").result)
    chosen = build.assign("int32", shine.parse(f"{i} if {flag} else -{i}").result)
    short = build.convert(product, "float32")
    outputs = [("whole", build.convert(product, "int64"), "int64"), ("chosen", chosen, "int32")]
    program = build.finish([*outputs, ("short", short, "float32"), ("truth", chosen, "bool")])
    rng = np.random.default_rng(3)
    inputs = [
        *(columns("float64", 1, 300) + columns("int64", 1, 300) + [rng.integers(-2, 3, 300, dtype="int32")]),
        rng.integers(0, 2, 300, dtype="uint8"),
    ]
    expected = interpret(program, [*inputs[:3], inputs[3].astype(bool)])
    for found, column in zip(run(tmp_path, program, inputs), expected, strict=True):
        assert_same_bits(found, column.view("uint8") if column.dtype == bool else column)


@needs_node
@pytest.mark.parametrize(("dtype", "seven", "zero"), [("int64", "7n", "0n"), ("int32", "7", "0")])
def test_division_by_zero_is_reported_and_nothing_else_is(tmp_path, dtype, seven, zero):
    aot.build("a // b", tmp_path, "quotient", "wasm", dtype=dtype)
    array = {"int64": "BigInt64Array", "int32": "Int32Array"}[dtype]
    found = node(
        tmp_path,
        f"""
import {{ load }} from "./quotient.js";
const {{ quotient, batch }} = await load();
const columns = (...divisors) => [new {array}(divisors.length).fill({seven}), new {array}(divisors)];
const out = new {array}(2);
const tried = [
  () => quotient({seven}, {zero}), () => quotient(-{seven}, -{seven} + {seven} - {seven}), () => batch(columns({zero})),
  () => batch(columns({seven}, {zero}), out), () => out[0], () => batch(columns({seven}))[0],
];
for (const each of tried) {{
  try {{ console.log(String(each())); }} catch (error) {{ console.log(`${{error.name}}: ${{error.message}}`); }}
}}""",
    )
    message = "RangeError: quotient: integer division by zero"
    assert found.splitlines() == [message, "1", message, message, "1", "1"]


@needs_node
def test_wrong_arguments_are_refused(tmp_path):
    aot.build("a + b", tmp_path, "total", "wasm", dtype="int32")
    found = node(
        tmp_path,
        """
import { load } from "./total.js";
const { total, batch } = await load();
const one = new Int32Array(1);
const tried = [
  () => total(1), () => total(1.5, 2), () => total(2 ** 31, 2), () => batch([one]),
  () => batch([one, new Int32Array(2)]),
  () => batch([one, new Float64Array(1)]), () => batch({ a: one }), () => batch({ b: one, a: one }).length,
  () => batch([one, one], new Int32Array(3)), () => batch([new Int32Array(0), new Int32Array(0)]).length,
];
for (const each of tried) {
  try { console.log(String(each())); } catch (error) { console.log(`${error.name}: ${error.message}`); }
}""",
    )
    assert found.splitlines() == [
        "TypeError: total takes 2 arguments, not 1",
        "TypeError: total: a = 1.5 is no int32",
        "TypeError: total: a = 2147483648 is no int32",
        "TypeError: total: columns are 2 arrays, not 1",
        "RangeError: total: b has 2 rows, not 1",
        "TypeError: total: b is no Int32Array",
        "TypeError: total: b is no Int32Array",
        "1",
        "RangeError: total: result has 3 rows, not 1",
        "0",
    ]


@needs_node
def test_the_module_is_loaded_from_every_kind_of_source(tmp_path):
    aot.build("a + 1", tmp_path, "next_one", "wasm")
    found = node(
        tmp_path,
        """
import { readFile } from "node:fs/promises";
import { load } from "./next_one.js";
const bytes = await readFile("next_one.wasm");
const url = new URL("next_one.wasm", import.meta.url);
const data = `data:application/wasm;base64,${bytes.toString("base64")}`;
const copied = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const sources = [
  undefined, "./next_one.wasm", url, bytes, copied, new WebAssembly.Module(bytes), new Response(bytes),
  Promise.resolve(new Response(bytes)), data,
];
for (const source of sources) console.log((await load(source)).next_one(41));
await load(new Response("", { status: 404, statusText: "Not Found" })).catch((error) => console.log(error.message));""",
    )
    assert found.split()[:9] == ["42"] * 9
    assert "404 Not Found" in found


@pytest.mark.parametrize("features", ["", "+simd128"])
def test_modules_import_nothing(features):
    for kind in ("wasm", "wasm-scalar"):
        files = aot.compile("sin(a) % floor(b)", "f", kind, target=wasm.TRIPLE, features=features)
        assert files["f.wasm"].startswith(b"\0asm") and not undefined(files["f.wasm"])


@pytest.mark.skipif(shutil.which("tsc") is None, reason="needs TypeScript")
def test_types_are_those_of_typescript(tmp_path):
    aot.build("a * b", tmp_path, "area", "wasm")
    aot.build("a // b", tmp_path, "ratio", "wasm-scalar", dtype="int64")
    (tmp_path / "use.ts").write_text(
        """
import { load, parameters } from "./area.js";
import { load as loadRatio } from "./ratio.js";
const { area, batch } = await load(new Uint8Array(8));
const { ratio } = await loadRatio();
export const text: string = area(3, 4).toFixed() + ratio(3n, 4n) + parameters[0][0];
const column = new Float64Array(2);
export const rows: Float64Array[] = [batch([column, column]), batch({ a: column, b: column }, column).subarray(1)];
// @ts-expect-error
area("3", 4);
// @ts-expect-error
ratio(3, 4);
// @ts-expect-error
batch([column]);
// @ts-expect-error
batch({ a: column });
"""
    )
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node"]
    done = subprocess.run(
        ["tsc", *options, "use.ts"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


def test_a_formula_in_a_comment_stays_in_it():
    files = aot.compile("a + 1", "f", "wasm", params=["a"])
    job = aot.FormulaCode(aot.Order.of("f"), "x\nalert(1) */ \u2028 evil", aot.code_of("a + 1").program)
    for name, content in job.files("wasm").items():
        if not name.endswith(".wasm"):
            assert content.isascii()
            assert not re.search(r"^\s*alert", content.decode(), re.MULTILINE)
    assert json.dumps([["a", "float64"]]) in files["f.js"].decode()


@pytest.mark.parametrize("name", sorted(wasm.TAKEN - {"main"}))
def test_names_of_the_loader_are_refused(name):
    with pytest.raises(CompilationError, match="use another"):
        aot.compile("a + 1", name, "wasm")


def test_without_a_linker_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'shine-gp\[aot\]'"):
        aot.compile("a + 1", "f", "wasm")


def test_a_linker_that_fails_is_an_error():
    with pytest.raises(CompilationError, match=r"wasm-ld: .*absent"):
        wasm.link(aot.compile("a + 1", "f", "object", target=wasm.TRIPLE)["f.o"], ["absent"], 1024)


@needs_node
def test_the_page_about_the_web_shows_what_happens(tmp_path):
    page = (Path(__file__).parents[4] / "docs" / "aot-web.md").read_text(encoding="utf-8")
    formula, name = re.search(r'shine compile "(.*)" --name (\w+) --emit wasm', page).groups()
    aot.build(formula, tmp_path / "web", name, "wasm")
    code, printed = re.search(r'```javascript title="main.mjs"\n(.*?)```.*?```\n(.*?)```', page, re.DOTALL).groups()
    (tmp_path / "web" / "package.json").write_text('{"type": "module"}')
    assert node(tmp_path, code) == printed
