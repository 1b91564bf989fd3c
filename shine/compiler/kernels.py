"""Loops over arrays as native code, written as plain Python functions of numbers and flat arrays.

A kernel has assignments, `for ... in range(...)`, `for ... in (0, 1)`, which is unrolled, `while`, which may `break`,
`if`, elements of arrays and their rests `array[first:]`, arithmetic, comparisons, `min`, `max`, `abs`, `sqrt` and
`int`, numbers and flat float64 arrays of its module, and calls of functions of the same kind, which `return` at most at
their end. `name: Floats = job["word"]` gives the array at an address, or a function of such a type;
`np.empty(2)` is room on the stack, which only the kernel has. `array[first:][:4]` and `np.zeros(4)` are vectors, for
arithmetic, also with numbers, `abs`, and comparisons in `np.where`.

A kernel means what it means in Python, except that whole numbers have 64 bits and wrap, that `>>` shifts in zeros, that
`**` is the power of formulas, that no index is checked, that a vector is a copy, that a conditional expression computes
both values, and that an array which a kernel of `native_functions` writes to overlaps none of the others.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, declare, load, number
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.kernel_code import Emission, type_of
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import HEAD, WORD


def native_functions(name: str, kernels: Iterable[Callable[..., None]]) -> dict[str, Any]:
    """The kernels as native functions by name, of addresses of array objects (`id`) and of numbers.

    Parameters
    ----------
    name : str
        Part of the name in the cache. Others are the source of the kernels, and of the rooms `compiler` and `lang`.
    kernels : iterable of functions
    """
    entries = {kernel: f"{kernel.__name__}.entry" for kernel in kernels}

    def emitted() -> ir.Module:
        module = ir.Module(name=name)
        for kernel, entry in entries.items():
            inner = emit_kernel(module, kernel)
            types = [each.type for each in inner.args]
            function = declare(module, entry, ir.VoidType(), types, [each.name for each in inner.args])
            build = ir.IRBuilder(function.append_basic_block("entry"))
            given = list(function.args)
            for place, (kind, argument) in enumerate(zip(types, inner.args, strict=True)):
                if kind != I64:
                    argument.add_attribute("noalias")  # an array that a kernel writes to is none of the others
                    # NumPy's array object has the address of its data first, in all versions.
                    given[place] = load(build, given[place], number(HEAD // WORD), I64, POINTER)
            build.call(inner, given)
            build.ret_void()
        return module

    files = sorted({kernel.__code__.co_filename for kernel in entries})
    digest = hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()
    meaning = ("kernels", source_digest("lang"), digest, name, str(HEAD))
    engine = Engine.kept(entries.values(), meaning, emitted, vectorize=True)
    found = {}
    for kernel, entry in entries.items():
        kinds = [type_of(kind, kernel.__globals__) for name, kind in kernel.__annotations__.items() if name != "return"]
        types = (ctypes.c_int64 if kind == I64 else ctypes.c_void_p for kind in kinds)
        found[kernel.__name__] = engine.function(entry, None, *types)
    return found


def emit_kernel(
    module: ir.Module,
    kernel: Callable[..., object],
    words: Sequence[str] = (),
    linkage: str = "internal",
    known: Mapping[str, Any] = MappingProxyType({}),
) -> ir.Function:
    """A kernel as a function of a module, which other kernels there call by its name.

    Parameters
    ----------
    module : ir.Module
    kernel : function
        Of numbers, of arrays, given as the addresses of their elements, and of `Words`.
    words : sequence of str
        Names of the words of a job.
    linkage : str
        ``"external"`` for a function that Python calls.
    known : mapping of str to int or ir.GlobalValue
        Values of parameters that the function does not take; other names do not matter.
    """
    types = {name: type_of(kind, kernel.__globals__) for name, kind in kernel.__annotations__.items()}
    result = types.pop("return")
    free = {name: kind for name, kind in types.items() if name not in known}
    function = declare(module, kernel.__name__, result, list(free.values()), list(free))
    function.linkage = linkage
    emission = Emission(function, words)
    given = dict(zip(free, function.args, strict=True))
    for name in types.keys() - free.keys():
        value = known[name]
        if types[name] == I64:
            given[name] = number(value) if isinstance(value, int) else value.ptrtoint(I64)
        else:
            value.type, given[name] = types[name], value
    found = emission.body(kernel, [given[name] for name in types])
    if found is None:
        emission.build.ret_void()
    else:
        emission.build.ret(found)
    emission.at_entry.branch(function.blocks[1])
    return function
