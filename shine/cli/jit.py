"""``shine jit``: what becomes of a formula, from LLVM IR to an object file."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import click

from shine.cli.arguments import parsed
from shine.cli.output import print_bytes, print_json, print_text, write_file
from shine.errors import CompilationError, LoweringError
from shine.kernel import Kernel
from shine.llvm import optimized_ir
from shine.llvm.target import target_machine

Emit = Callable[[Kernel, str | None, str | None], str | bytes]

EMITTED: dict[str, Emit] = {
    "ir": lambda kernel, target, cpu: kernel.ir,
    "opt": lambda kernel, target, cpu: optimized_ir(kernel.ir, target, cpu, level=kernel.opt_level),
    "asm": lambda kernel, target, cpu: kernel.assembly(target, cpu),
    "obj": lambda kernel, target, cpu: kernel.object_code(target, cpu),
}
"""What is made of a kernel for a target (this very processor without one) and the name of a processor."""

ARCHITECTURES = (
    "x86_64", "i686", "aarch64", "armv7", "thumbv7", "riscv32", "riscv64", "powerpc", "powerpc64", "powerpc64le",
    "s390x", "wasm32", "wasm64", "mips", "mips64", "sparc", "sparcv9", "loongarch64", "hexagon", "nvptx64",
)  # fmt: skip
"""First parts of triples that are asked for; LLVM is built for more or fewer of them, and lists them to no caller."""

FATAL = ("amdgcn", "r600", "bpf")
"""What triples begin with have no meaning for Shine's code, and where LLVM ends the process instead of saying so."""


def jit(
    formula: str,
    emit: str,
    target: str | None,
    cpu: str | None,
    dtype: str,
    level: str,
    parameters: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print or write what a formula is compiled to."""
    tree = parsed(formula, parameters)
    _check_target(target)
    try:
        kernel = Kernel(tree, dtype, level)
        made = EMITTED[emit](kernel, target, cpu)
    except (LoweringError, CompilationError) as error:
        raise click.UsageError(str(error)) from None
    content = made.encode() if isinstance(made, str) else made
    if out is not None:
        write_file(out, content)
    if as_json:
        shown = {"text": made} if isinstance(made, str) else {"base64": base64.b64encode(made).decode()}
        where = shown if out is None else {"file": str(out)}
        settings = {"parameters": kernel.parameters, "dtype": dtype, "emit": emit, "target": target, "cpu": cpu}
        print_json({"expression": str(tree), **settings, **where})
    elif out is None and isinstance(made, str):
        print_text(made)
    elif out is None:
        print_bytes(content, "an object file")


def _check_target(triple: str | None) -> None:
    if triple is None:
        return
    try:
        target_machine(triple)
    except CompilationError as error:
        reason = str(error).partition(";")[0]
        known = ", ".join(filter(_is_known, ARCHITECTURES))
        raise click.UsageError(
            f"{reason}; a triple is ARCHITECTURE-SYSTEM, such as aarch64-linux-gnu, x86_64-pc-windows-msvc or "
            f"arm64-apple-darwin; LLVM has here: {known}"
        ) from None
    if triple.startswith(FATAL):
        raise click.UsageError(f"--target {triple}: LLVM has this target, but cannot compile formulas for it")


def _is_known(architecture: str) -> bool:
    try:
        target_machine(architecture)
    except CompilationError:
        return False
    return True
