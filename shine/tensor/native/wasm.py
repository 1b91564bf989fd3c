"""WebAssembly: a module that imports nothing, and an ES module whose tensors are typed arrays."""

from __future__ import annotations

import json

from shine.formats.native.code import Code, Files
from shine.formats.native.wasm import link
from shine.formats.native.wasm_loader import ARRAYS, Loader, object_type, variable
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.interface import Interface, Tensor

TAKEN = frozenset({"arguments", "exports", "memory", "results", "run"})
"""Names that the module or its loader uses for something else."""

_CONSTANTS = """\
const ARENA_BYTES = {arena};
/** Label, typed array and shape of each argument, in the order of calls. Elements are in row-major order. */
export const parameters = [{parameters}];
/** Label, typed array and shape of each result. */
export const outputs = [{outputs}];
"""

_LOADED = """\
  const places = placed(exports);
  const view = ([, type, shape], i) => new type(exports.memory.buffer, places.tensors[i], count(shape));
  const all = [...parameters, ...outputs].map(view);
  const given = all.slice(0, parameters.length);
  const made = all.slice(parameters.length);
  const run = () => exports[NAME](places.table, places.table + 4 * given.length, places.arena);
  return { [NAME]: (...arrays) => called(run, given, made, arrays), run, arguments: given, results: made, exports };
"""

_FUNCTIONS = """\
function count(shape) {{
  return shape.reduce((product, size) => product * size, 1);
}}

/** Addresses of the tensors, of the table of their addresses and of the arena, behind the module's own memory. */
function placed({{ memory, __heap_base: base }}) {{
  let end = base.value;
  const reserve = (bytes) => {{
    const start = Math.ceil(end / {alignment}) * {alignment};
    end = start + bytes;
    return start;
  }};
  const all = [...parameters, ...outputs];
  const tensors = all.map(([, type, shape]) => reserve(count(shape) * type.BYTES_PER_ELEMENT));
  const table = reserve(4 * all.length);
  const arena = reserve(ARENA_BYTES);
  const missing = end - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  new Uint32Array(memory.buffer, table, all.length).set(tensors);
  return {{ tensors, table, arena }};
}}

/** Copies arrays to the arguments unless they are the arguments themselves, and the results to new arrays. */
function called(run, given, made, arrays) {{
  if (arrays.length !== given.length) {{
    throw new TypeError(`${{NAME}} takes ${{given.length}} arrays, not ${{arrays.length}}`);
  }}
  parameters.forEach(([label, type, shape], i) => {{
    const array = arrays[i];
    if (!(array instanceof type)) throw new TypeError(`${{NAME}}: ${{label}} is no ${{type.name}}`);
    if (array.length !== given[i].length) {{
      const wanted = `${{given[i].length}} for shape [${{shape.join(", ")}}]`;
      throw new RangeError(`${{NAME}}: ${{label}} has ${{array.length}} elements, not ${{wanted}}`);
    }}
  }});
  arrays.forEach((array, i) => array !== given[i] && given[i].set(array));
  run();
  const results = made.map((array) => array.slice());
  return outputs.length === 1 ? results[0] : Object.fromEntries(outputs.map(([label], i) => [label, results[i]]));
}}
"""

_MEMBERS = """\
  /**
   * Compute the results, in new arrays.
{listed}
   */
  {name}({arguments}): {result};
  /** Compute `results` from `arguments`, in place. */
  run(): void;
  /** The arguments in the module's memory: what they hold when `run` is called counts. */
  readonly arguments: readonly [{argument_arrays}];
  /** The results in the module's memory. */
  readonly results: readonly [{result_arrays}];
"""

_DESCRIBED = """\
type Described = readonly [label: string, type: {constructors}, shape: readonly number[]];

/** Label, typed array and shape of each argument, in the order of calls. Elements are in row-major order. */
export const parameters: readonly Described[];

/** Label, typed array and shape of each result. */
export const outputs: readonly Described[];
"""


def tensor_files(code: Code, interface: Interface) -> Files:
    """A module with the function, its loader and the loader's types; the target is WebAssembly.

    A `MissingExtraError` if there is no linker.
    """
    name, arguments, results = code.name, interface.arguments, interface.results
    constants = _CONSTANTS.format(
        arena=interface.arena_bytes,
        parameters=", ".join(map(_described, arguments)),
        outputs=", ".join(map(_described, results)),
    )
    named = ", ".join(f"{variable(each.name)}: {_array(each)}" for each in arguments)
    members = _MEMBERS.format(
        name=name,
        listed="\n".join(f"   * @param {variable(a.name)} - of shape {list(a.type.shape)}" for a in arguments),
        arguments=named,
        result=_array(results[0]) if len(results) == 1 else object_type({each.label: _array(each) for each in results}),
        argument_arrays=named,
        result_arrays=", ".join(f"{variable(each.name)}: {_array(each)}" for each in results),
    )
    described = _DESCRIBED.format(
        constructors=" | ".join(f"{array}Constructor" for array in dict.fromkeys(ARRAYS.values()))
    )
    loader = Loader("function", constants, _LOADED, _FUNCTIONS.format(alignment=ALIGNMENT), members, described)
    # Bytes of the stack of a module, which lies below everything else: an overflow traps and overwrites nothing.
    linked = link(code.object_code, [name, "__heap_base"], 64 * 1024)
    return {f"{name}.wasm": linked, **loader.files(name, code.description)}


def _array(tensor: Tensor) -> str:
    """Name of the typed array of its elements."""
    return ARRAYS[tensor.type.numpy.name]


def _described(tensor: Tensor) -> str:
    return f"[{json.dumps(tensor.label)}, {_array(tensor)}, {json.dumps(tensor.type.shape)}]"
