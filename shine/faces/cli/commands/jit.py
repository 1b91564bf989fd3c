"""``shine jit``: the code of a formula, from LLVM IR to an object file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.base.errors import CompilationError, LoweringError, placed
from shine.faces.cli.group import FormulaCommand
from shine.faces.cli.options import json_option, level_option, out_option, parameters_option, parsed
from shine.faces.cli.output import deliver

if TYPE_CHECKING:
    from shine.evaluate.kernels.kernel import Kernel

Emit = Callable[["Kernel", str | None, str | None], str | bytes]

EMITTED: dict[str, Emit] = {
    "ir": lambda kernel, target, cpu: kernel.ir,
    "opt": lambda kernel, target, cpu: _optimized(kernel, target, cpu),
    "asm": lambda kernel, target, cpu: kernel.assembly(target, cpu),
    "obj": lambda kernel, target, cpu: kernel.object_code(target, cpu),
}
"""Makes each output from a kernel, a target (None for this processor) and the name of a processor."""


@click.command("jit", cls=FormulaCommand)
@click.argument("formula")
@click.option("--emit", type=click.Choice(list(EMITTED)), default="asm", help="Kind of output. [asm]")
@click.option("--target", metavar="TRIPLE", help="Target, such as aarch64-linux-gnu; by default this processor.")
@click.option("--cpu", metavar="NAME", help="LLVM's name of a processor of the target, such as x86-64-v3.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "int64", "int32"]),
    default="float64",
    help="Type of arguments and result. [float64]",
)
@level_option
@parameters_option
@out_option
@json_option
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
    """Show the compiled code of FORMULA: a function of one row.

    The code is LLVM IR as Shine writes it (ir) or as LLVM optimizes it for the target (opt), assembly (asm), or an
    object file (obj). For integers, / truncates.

    \b
    Example:
      shine jit "a - 2 + 5 + 100" --dtype int32 --target aarch64-linux-gnu
      shine jit --emit obj --out formula.o -- "-a*exp(b)"
    """
    from shine.evaluate.kernels.kernel import Kernel
    from shine.formats.native.targets import check_triple, target_of

    tree = parsed(formula, parameters)
    with placed("", LoweringError, CompilationError, kind=click.UsageError):
        check_triple(target)
        if cpu is not None:
            target_of(target, cpu)
        kernel = Kernel(tree, dtype, level)
        made = EMITTED[emit](kernel, target, cpu)
    settings = {"parameters": kernel.parameters, "dtype": dtype, "emit": emit, "target": target, "cpu": cpu}
    deliver(made, out, "an object file", {"expression": str(tree), **settings} if as_json else None, "file")


def _optimized(kernel: Kernel, target: str | None, cpu: str | None) -> str:
    from shine.compiler.llvm import optimized_ir

    return optimized_ir(kernel.ir, target, cpu, level=kernel.opt_level)
