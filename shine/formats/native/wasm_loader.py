"""The ES module that loads a WebAssembly module and calls it, and its types for TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from shine.formats.native.interface import Column, Interface

_RESERVED = """
    arguments await break case catch class const continue debugger default delete do else enum eval export extends false
    finally for function if implements import in instanceof interface let new null package private protected public
    return static super switch this throw true try typeof var void while with yield
    """
"""Words that cannot name a parameter in a strict JavaScript module."""

SCALARS = {"float64": "number", "float32": "number", "int64": "bigint", "int32": "number", "bool": "boolean"}
"""Type in TypeScript of one number of each storage type."""

ARRAYS = {
    "float64": "Float64Array", "float32": "Float32Array", "int64": "BigInt64Array", "int32": "Int32Array",
    "int16": "Int16Array", "int8": "Int8Array", "uint8": "Uint8Array", "bool": "Uint8Array",
}  # fmt: skip
"""Typed array of each storage type; of bool, 0 is false and everything else true."""

_ES_MODULE = """\
{comment}
// Works in browsers and in Node, and needs only {name}.wasm beside it; {name}.d.ts has the types.

const NAME = {quoted};
{constants}
/**
 * Load the {what}.
 * @param source - where the module is (a URL), its bytes, the response of a request for it, or the compiled module;
 *     by default the file beside this one.
 */
export async function load(source = new URL("./{name}.wasm", import.meta.url)) {{
  const {{ exports }} = await instantiate(await source);
{loaded}}}

async function instantiate(source) {{
  if (source instanceof WebAssembly.Module) return WebAssembly.instantiate(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {{
    return (await WebAssembly.instantiate(source)).instance;
  }}
  if (source instanceof URL || typeof source === "string") {{
    const url = new URL(source, globalThis.document?.baseURI ?? import.meta.url);
    if (url.protocol === "file:" && globalThis.process?.versions?.node) {{
      const {{ readFile }} = await import(/* webpackIgnore: true */ /* @vite-ignore */ "node:fs/promises");
      return instantiate(await readFile(url));
    }}
    source = await fetch(url);
  }}
  if (!source.ok) throw new Error(`${{source.url}}: ${{source.status}} ${{source.statusText}}`);
  return instantiate(await source.arrayBuffer());
}}

{functions}"""

_DECLARATIONS = """\
{comment}

/** The loaded {what}. */
export interface Kernel {{
{members}  /** What the WebAssembly module exports; its memory from `__heap_base` on is the loader's. */
  readonly exports: WebAssembly.Exports;
}}

/** Where the module is, its bytes, the response of a request for it, or the compiled module. */
export type Source = URL | string | ArrayBuffer | ArrayBufferView | Response | WebAssembly.Module;

/** Load the {what}; by default from {name}.wasm beside this module. */
export function load(source?: Source | Promise<Source>): Promise<Kernel>;

{described}"""


@dataclass(frozen=True)
class Loader:
    """The parts in which the loaders of WebAssembly modules differ.

    Parameters
    ----------
    what : str
        What is loaded, as comments call it.
    constants, loaded, functions : str
        JavaScript: constants of the module; the end of its function `load`; other functions.
    members, described : str
        TypeScript: members of what `load` returns; declarations of the constants.
    """

    what: str
    constants: str
    loaded: str
    functions: str
    members: str
    described: str

    def files(self, name: str, description: str) -> dict[str, bytes]:
        """The ES module ``NAME.js``, which exports ``load``, and its types ``NAME.d.ts``."""
        lines = f"{description}\nWritten by Shine.".splitlines()
        common = {"name": name, "what": self.what, "comment": "\n".join(f"// {ascii(line)[1:-1]}" for line in lines)}
        parts = {"constants": self.constants, "loaded": self.loaded, "functions": self.functions}
        module = _ES_MODULE.format(**common, **parts, quoted=json.dumps(name))
        types = _DECLARATIONS.format(**common, members=self.members, described=self.described)
        return {f"{name}.js": module.encode(), f"{name}.d.ts": types.encode()}


_CONSTANTS = """\
/** Label and type of each argument, in the order of the calls. */
export const parameters = {parameters};
/** Label and type of each result. */
export const outputs = {outputs};
const CAN_FAIL = {can_fail};

const TYPES = {{
  float64: {{ array: Float64Array, fits: (x) => typeof x === "number" }},
  float32: {{ array: Float32Array, fits: (x) => typeof x === "number" }},
  int64: {{ array: BigInt64Array, fits: (x) => typeof x === "bigint" && BigInt.asIntN(64, x) === x }},
  int32: {{ array: Int32Array, fits: (x) => (x | 0) === x }},
  bool: {{ array: Uint8Array, fits: (x) => typeof x === "boolean" }},
}};
"""

_LOADED = """\
  const memory = scratch(exports);
  return {{ [NAME]: oneRow(exports, memory){batch}, exports }};
"""

_FUNCTIONS = """\
/** Memory after the module's own: a function that reserves some bytes of it and returns where they begin. */
function scratch({ memory, __heap_base: base }) {
  if (base === undefined) return undefined;
  const start = (base.value + 15) & ~15;
  return (bytes) => {
    const missing = start + bytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    return start;
  };
}

function failed() {
  return new RangeError(`${NAME}: integer division by zero`);
}

/** The function of one row. After its arguments the module takes addresses for several results and for a status. */
function oneRow(exports, memory) {
  const run = exports[NAME];
  const several = outputs.length > 1;
  return (...values) => {
    if (values.length !== parameters.length) {
      throw new TypeError(`${NAME} takes ${parameters.length} arguments, not ${values.length}`);
    }
    parameters.forEach(([label, type], i) => {
      if (!TYPES[type].fits(values[i])) throw new TypeError(`${NAME}: ${label} = ${values[i]} is no ${type}`);
    });
    const start = memory?.(8 * outputs.length + 8);
    const places = several ? outputs.map((_, i) => start + 8 * i) : [];
    const status = start + 8 * outputs.length;
    const result = run(...values, ...places, ...(CAN_FAIL ? [status] : []));
    if (CAN_FAIL && new Uint8Array(exports.memory.buffer)[status]) throw failed();
    const truth = (value, type) => (type === "bool" ? value !== 0 : value);
    if (!several) return truth(result, outputs[0][1]);
    return Object.fromEntries(outputs.map(([label, type], i) => {
      return [label, truth(new TYPES[type].array(exports.memory.buffer, places[i], 1)[0], type)];
    }));
  };
}
"""

_BATCH = """
const ROWS = 1024;

/** The function of many rows: it copies some rows at a time to the module's memory, and the results back. */
function manyRows(exports, memory) {
  const run = exports[`${NAME}_batch`];
  const kinds = [...parameters, ...outputs].map(([, type]) => TYPES[type].array);
  const tables = Math.ceil((4 * kinds.length) / 16) * 16;
  const offsets = [];
  let bytes = tables;
  for (const kind of kinds) {
    offsets.push(bytes);
    bytes += ROWS * kind.BYTES_PER_ELEMENT;
  }
  return (columns, out) => {
    const inputs = listed(columns, parameters, "columns");
    const given = out === undefined ? [] : outputs.length > 1 ? listed(out, outputs, "out") : [out];
    const rows = (inputs[0] ?? given[0])?.length ?? 0;
    [...inputs, ...given].forEach((array, i) => {
      const [label] = [...parameters, ...outputs][i];
      if (!(array instanceof kinds[i])) throw new TypeError(`${NAME}: ${label} is no ${kinds[i].name}`);
      if (array.length !== rows) throw new RangeError(`${NAME}: ${label} has ${array.length} rows, not ${rows}`);
    });
    const results = outputs.map((_, i) => given[i] ?? new kinds[inputs.length + i](rows));
    const start = memory(bytes);
    const { buffer } = exports.memory;
    new Uint32Array(buffer, start, kinds.length).set(offsets.map((offset) => start + offset));
    const windows = kinds.map((kind, i) => new kind(buffer, start + offsets[i], ROWS));
    let status = 0;
    for (let first = 0; first < rows; first += ROWS) {
      const count = Math.min(ROWS, rows - first);
      inputs.forEach((array, i) => windows[i].set(array.subarray(first, first + count)));
      status |= run(start, start + 4 * inputs.length, count);
      results.forEach((array, i) => array.set(windows[inputs.length + i].subarray(0, count), first));
    }
    if (status) throw failed();
    return outputs.length > 1 ? Object.fromEntries(outputs.map(([label], i) => [label, results[i]])) : results[0];
  };
}

/** One array for each label, from a list or an object. */
function listed(arrays, described, what) {
  const found = Array.isArray(arrays) ? arrays : described.map(([label]) => arrays[label]);
  if (found.length !== described.length) {
    throw new TypeError(`${NAME}: ${what} are ${described.length} arrays, not ${found.length}`);
  }
  return found;
}
"""

_ONE_ROW = """\
  /**
   * One row.{failure}
   */
  {name}({arguments}): {result};
"""

_BATCH_TYPES = """\
  /**
   * Many rows: one array for each argument, in order or by label, all of one length.
   * Results go to `out` if it is given, and to new arrays otherwise.{failure}
   */
  batch(
    columns: {columns},
    out?: {out},
  ): {result};
"""

_DESCRIBED = """\
/** Label and type of each argument, in the order of the calls. */
export const parameters: readonly (readonly [label: string, type: string])[];

/** Label and type of each result. */
export const outputs: readonly (readonly [label: string, type: string])[];
"""


def formula_loader(interface: Interface, description: str, *, batch: bool) -> dict[str, bytes]:
    """The ES module of a formula, and its types.

    Parameters
    ----------
    interface : Interface
    description : str
        The formula as a reader knows it.
    batch : bool
        Whether the module has the function of many rows.
    """
    constants = _CONSTANTS.format(
        parameters=_described(interface.parameters),
        outputs=_described(interface.outputs),
        can_fail=json.dumps(interface.can_fail),
    )
    loaded = _LOADED.format(batch=", batch: manyRows(exports, memory)" if batch else "")
    functions = _FUNCTIONS + _BATCH if batch else _FUNCTIONS
    loader = Loader("formula", constants, loaded, functions, _members(interface, batch), _DESCRIBED)
    return loader.files(interface.name, description)


def _members(interface: Interface, batch: bool) -> str:
    failure = "\n   * @throws RangeError if an integer division has a zero divisor." if interface.can_fail else ""
    arguments = ", ".join(f"{variable(column.name)}: {SCALARS[column.dtype]}" for column in interface.parameters)
    one = _ONE_ROW.format(
        failure=failure, name=interface.name, arguments=arguments, result=_results(interface.outputs, SCALARS)
    )
    if not batch:
        return one
    ordered = ", ".join(f"{variable(each.name)}: {ARRAYS[each.dtype]}" for each in interface.parameters)
    results = _results(interface.outputs, ARRAYS)
    return one + _BATCH_TYPES.format(
        failure=failure,
        columns=f"readonly [{ordered}] | {_object(interface.parameters, ARRAYS)}",
        out=f"readonly [{', '.join(ARRAYS[each.dtype] for each in interface.outputs)}] | {results}"
        if len(interface.outputs) > 1
        else results,
        result=results,
    )


def _described(columns: Iterable[Column]) -> str:
    return json.dumps([[column.label, column.dtype] for column in columns])


def variable(name: str) -> str:
    """A C identifier, or another name where JavaScript has a word of its own."""
    return f"{name}_" if name in _RESERVED.split() else name


def object_type(kinds: dict[str, str]) -> str:
    """The type in TypeScript of an object with values of some types by label."""
    return "{ " + "; ".join(f"{_key(label)}: {kind}" for label, kind in kinds.items()) + " }"


def _object(columns: Iterable[Column], kinds: dict[str, str]) -> str:
    return object_type({column.label: kinds[column.dtype] for column in columns})


def _key(label: str) -> str:
    return label if re.fullmatch(r"[A-Za-z_]\w*", label, re.ASCII) else json.dumps(label)


def _results(columns: tuple[Column, ...], kinds: dict[str, str]) -> str:
    return kinds[columns[0].dtype] if len(columns) == 1 else _object(columns, kinds)
