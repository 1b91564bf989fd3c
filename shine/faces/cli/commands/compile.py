"""``shine jit`` and ``shine compile``: the code of a formula, and files that other programs build with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.base.errors import CompilationError, FormError, LoweringError, ShineError, placed, reason
from shine.faces.cli.graphs import GraphOptions, graph_of
from shine.faces.cli.group import FormulaCommand
from shine.faces.cli.options import (
    FILE,
    exists,
    index_option,
    json_option,
    level_option,
    model_of,
    out_option,
    parameters_option,
    parsed,
)
from shine.faces.cli.output import deliver, print_json, print_text, write_file
from shine.lang.forms.names import shown

if TYPE_CHECKING:
    from shine.evaluate.kernels.kernel import Kernel
    from shine.lang.forms.tree import Tree
    from shine.lang.program.program import Program
    from shine.search.models.model import Model
    from shine.tensor.native.function import TensorFunction
    from shine.trees import CompiledTrees


@click.command("compile", cls=FormulaCommand)
@click.argument("source", metavar="FORMULA|GRAPH|RUN")
@click.option("--name", metavar="NAME", help="Name of the function, and of the files. [f; of tensors, the file's]")
@click.option(
    "--out", type=FILE, default=Path(), metavar="DIR", help="Folder of the files; by default the current one."
)
@click.option(
    "--emit", multiple=True, default=("object,header",), metavar="KINDS", help="Output, as ir,asm. [object,header]"
)
@click.option("--target", metavar="TRIPLE", help="Target, such as aarch64-linux-gnu; by default this host.")
@click.option("--cpu", metavar="NAME", help="LLVM's name of a processor, or native; by default the target's baseline.")
@click.option("--features", default="", metavar="LIST", help="Added to the processor's, such as +avx2,-fma.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "int64", "int32"]),
    help="Type of a formula's arguments and result. [float64]",
)
@level_option
@parameters_option
@index_option
@click.option("outputs", "--output", multiple=True, metavar="NODE", help="Output of a graph; may be repeated.")
@click.option("--config", type=FILE, metavar="FILE", help="Feeds and fetches of a TensorFlow graph, a tf2xla Config.")
@click.option("--checkpoint", type=FILE, metavar="FILE", help="Checkpoint with the values of a graph's variables.")
@click.option("shapes", "--shape", multiple=True, metavar="NAME=SIZES", help="Shape of an argument, as x=1,28,28.")
@click.option("--cpp-class", metavar="NAME", help="Write a class in C++ too, such as foo::bar::MatMulComp.")
@json_option
def compile_command(
    source: str,
    name: str | None,
    out: Path,
    emit: Sequence[str],
    target: str | None,
    cpu: str | None,
    features: str,
    dtype: str | None,
    level: str,
    parameters: str | None,
    index: int | None,
    outputs: Sequence[str],
    config: Path | None,
    checkpoint: Path | None,
    cpp_class: str | None,
    shapes: Sequence[str],
    as_json: bool,
) -> None:
    """Compile a formula, a graph or a run's formula ahead of time, and print the paths of the files.

    A file is a graph, a folder a run, everything else a formula. KINDS are some of object, header, ir, asm,
    shared, cmake, pkgconfig, python, bench, wasm, wasm-scalar, ptx. The code needs no library.

    Elementwise graphs are compiled for rows of numbers. Graphs of tensors (TensorFlow, ONNX, or Shine's text) become
    one function of arrays, and a class in C++; they have no bench and wasm-scalar. Ensembles of trees in ONNX become a
    function of rows: object, header, ir, asm, shared, cmake, pkgconfig.

    \b
    Example:
      shine compile "sqrt(a*a + b*b)" --name hypotenuse --out build
      shine compile runs/pythagoras --emit python --cpu native
      shine compile graph.pb --target aarch64-linux-gnu --emit object,header,asm
      shine compile model.pb --config feeds.pbtxt --cpp-class foo::bar::MatMulComp
    """
    from shine.formats.native import code_of
    from shine.lang.forms.names import c_identifier
    from shine.trees import CompiledTrees

    options: dict[str, object] = {"target": target, "cpu": cpu, "features": features, "opt_level": level}
    wanted = GraphOptions(tuple(outputs), config, checkpoint, cpp_class, tuple(shapes))
    compiled = _source(source, dtype, parameters, index, wanted)
    if isinstance(compiled, CompiledTrees):
        name = c_identifier(Path(source).stem) if name is None else name
    elif hasattr(compiled, "code"):
        options["cpp_class"] = cpp_class or ""
    else:
        options["dtype"] = dtype or "float64"
    with placed("", LoweringError, CompilationError, FormError, ValueError, kind=click.UsageError):
        made = code_of(compiled, name, **options)
        kinds = _kinds(emit, made.emitters)
        files = made.files(kinds)
    with placed(f"{out}: cannot be made", OSError, kind=click.ClickException, told=reason):
        out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_file(out / file, content)
    paths = [str(out / file) for file in files]
    if as_json:
        print_json({**made.described(), "emit": kinds, "files": paths})
    else:
        print_text("\n".join(paths))


def _kinds(emit: Sequence[str], known: Collection[str]) -> list[str]:
    kinds = [kind.strip() for listed in emit for kind in listed.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in known:
            raise click.UsageError(f"--emit {kind}: is not a kind of output; use some of {','.join(known)}")
    if not kinds:
        raise click.UsageError(f"--emit: names nothing; use some of {','.join(known)}")
    return list(dict.fromkeys(kinds))


def _source(
    source: str, dtype: str | None, parameters: str | None, index: int | None, wanted: GraphOptions
) -> Model | Tree | Program | TensorFunction | CompiledTrees:
    """The formula or graph to compile: a file is a graph, a folder is a run, everything else is a formula."""
    from shine.tensor.loading import ENDINGS, OF_TORCH

    path = Path(source)
    # A file with the ending of a graph need not exist to be meant; any other file is a graph if it exists.
    if path.suffix.lower() in (*ENDINGS, *OF_TORCH) or (exists(path) and path.is_file() and path.name != "result.json"):
        for option, value in (("--dtype", dtype), ("--params", parameters), ("--index", index)):
            if value is not None:
                raise click.UsageError(f"{option}: is not for graphs, which define it themselves")
        if path.suffix == ".onnx" and not wanted.first_option and (trees := _trees_of(path)) is not None:
            return trees
        return graph_of(path, wanted)
    if wanted.first_option:
        raise click.UsageError(f"{wanted.first_option} is for graphs, and there is no file {shown(source)}")
    found, run = model_of(source, index)
    if parameters is None:
        return found
    if run is not None:
        raise click.UsageError("--params: is for formulas; the function of a run takes its columns in their order")
    return parsed(source, parameters)


def _trees_of(path: Path) -> CompiledTrees | None:
    """The ensemble of trees in a file of ONNX; None if there is something else."""
    from shine import trees
    from shine.trees.onnx import is_ensemble

    with placed("", ShineError, kind=click.UsageError):
        return trees.compile(path) if is_ensemble(path) else None


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
