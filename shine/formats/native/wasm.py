"""WebAssembly: a module that imports nothing, and an ES module with types that loads it in browsers and in Node."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Collection

from llvmlite import ir

from shine.base.errors import CompilationError, MissingExtraError
from shine.compiler.codegen.native.row_by_row import emit_wasm
from shine.formats.native.code import Code, Files
from shine.formats.native.interface import interface_of
from shine.formats.native.linking import run
from shine.formats.native.targets import Target, target_of
from shine.formats.native.wasm_loader import formula_loader
from shine.lang.program.program import Program

TRIPLE = "wasm32-unknown-unknown"
"""The triple used if a job's target is of another kind."""

TAKEN = frozenset({"batch", "exports", "main", "memory"})
"""Names that the module or its loader uses for something else."""

STACK_BYTES = 8 * 1024
"""Bytes of the stack of a module, which lies below everything else: an overflow traps and overwrites nothing."""


def formula_files(code: Code, program: Program, *, batch: bool) -> Files:
    """A module with the functions of one row and of many, its loader and the loader's types.

    Code for a target of another kind is made again for `TRIPLE`. The function of many rows works on vectors if the
    target has SIMD128.

    Parameters
    ----------
    code : Code
    program : Program
    batch : bool
        Whether there is a function of many rows; the smallest module has none.

    Raises
    ------
    CompilationError, MissingExtraError
        If the name is taken, or the program has constant arrays; if there is no linker.
    """
    order, name = code.order.on(wasm_target(code, TAKEN)), code.name
    interface_of(program, name, False)  # refuses programs before they are lowered
    vectors = "+simd128" in order.target.features or order.target.cpu == "bleeding-edge"
    module = ir.Module(name=name)
    fails = emit_wasm(module, program, name, batch=batch, vectors=vectors)
    interface = interface_of(program, name, fails)
    columns = len(interface.parameters) + len(interface.outputs)
    exports = [name, *([f"{name}_batch"] if batch else [])]
    # The loader's scratch memory begins where the module's own ends.
    scratch = batch or fails or len(interface.outputs) > 1
    # Bytes of stack for each column: more than one vector of its rows.
    linked = link(
        order.object_code(order.prepared(str(module))),
        [*exports, *(["__heap_base"] if scratch else [])],
        STACK_BYTES + 256 * columns,
    )
    return {f"{name}.wasm": linked, **formula_loader(interface, code.description, batch=batch)}


def wasm_target(code: Code, taken: Collection[str]) -> Target:
    """The target of a module of some code: its own, if that is WebAssembly, else the least of `TRIPLE`.

    A `CompilationError` if it is WebAssembly with another size of addresses, or the name of the code is taken.
    """
    if code.name in taken:
        raise CompilationError(f"name {code.name!r} means something else in WebAssembly modules; use another one")
    target = code.target if code.target.format == "wasm" else target_of(TRIPLE)
    if not target.triple.startswith("wasm32"):
        raise CompilationError(f"{target.triple}: WebAssembly modules are made for {TRIPLE}")
    return target


def link(code: bytes, exports: list[str], stack: int) -> bytes:
    """Object code linked to a module that can be instantiated without imports.

    Parameters
    ----------
    code : bytes
        A WebAssembly object file.
    exports : list of str
        Names that are visible from outside, besides `memory`.
    stack : int
        Bytes of its stack.

    Raises
    ------
    CompilationError
        If there is no ``wasm-ld``, or it fails.
    """
    options = ["--no-entry", "--strip-all", "--stack-first", "-z", f"stack-size={stack}"]
    options += [f"--export={name}" for name in exports]
    made = run([*_linker(), *options, "-o", "code.wasm", "code.o"], code, "code.o", "code.wasm")
    if isinstance(made, str):
        raise CompilationError(f"wasm-ld: {made}")
    return made


def _linker() -> list[str]:
    """The command of ``wasm-ld``: of the extra `aot`, or of this system, possibly with a version in its name."""
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "wasm-ld"]
    for name in ("wasm-ld", *(f"wasm-ld-{version}" for version in range(30, 12, -1))):
        path = shutil.which(name)
        if path:
            return [path]
    raise MissingExtraError("WebAssembly", "wasm-ld (of LLVM's lld)", "aot")
