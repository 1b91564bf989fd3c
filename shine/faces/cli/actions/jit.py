"""``shine jit``: the code of a formula, from LLVM IR to an object file."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import click

from shine.base.errors import CompilationError, LoweringError
from shine.compiler.llvm import optimized_ir
from shine.evaluate.kernels.kernel import Kernel
from shine.faces.cli.output import print_bytes, print_json, print_text, write_file
from shine.faces.cli.sources import parsed
from shine.formats.native.targets import check_triple, target_of

Emit = Callable[[Kernel, str | None, str | None], str | bytes]

EMITTED: dict[str, Emit] = {
    "ir": lambda kernel, target, cpu: kernel.ir,
    "opt": lambda kernel, target, cpu: optimized_ir(kernel.ir, target, cpu, level=kernel.opt_level),
    "asm": lambda kernel, target, cpu: kernel.assembly(target, cpu),
    "obj": lambda kernel, target, cpu: kernel.object_code(target, cpu),
}
"""Makes each output from a kernel, a target (None for this processor) and the name of a processor."""


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
    """Print or write the code of a formula."""
    tree = parsed(formula, parameters)
    try:
        check_triple(target)
        if cpu is not None:
            target_of(target, cpu)
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
