"""The commands that use a formula: predict, summary, export, report, jit, compile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from shine.faces.cli.group import FormulaCommand
from shine.faces.cli.options import (
    FILE,
    SHARE,
    index_option,
    json_option,
    level_option,
    out_option,
    parameters_option,
    precision_option,
)

if TYPE_CHECKING:
    from shine.lang.forms.rounding import Precision


@click.command("predict")
@click.argument("run", type=FILE)
@click.argument("data", type=FILE)
@index_option
@out_option
@click.option("--interval", type=SHARE, metavar="LEVEL", help="Add the ends of intervals, such as 0.95 of readings.")
@click.option("kind", "--mean", flag_value="mean", default="prediction", help="Intervals of the value, without noise.")
@json_option
def predict_command(
    run: Path,
    data: Path,
    index: int | None,
    out: Path | None,
    interval: float | None,
    kind: Literal["mean", "prediction"],
    as_json: bool,
) -> None:
    """Apply the formula of RUN, a run's folder, to the file DATA.

    DATA is a table in any format that Shine reads, with the columns that the formula uses, by heading, in any order;
    other columns are ignored. Texts, dates and missing values become numbers as in the training data. The output is one
    column, 'prediction', and with --interval two more, 'low' and 'high'. Its format is the ending of FILE; without
    --out it is CSV, or Parquet if DATA is Parquet and the output is not a terminal.

    \b
    Example:
      shine predict runs/pythagoras triangles.csv --out predicted.csv
    """
    from shine.faces.cli.actions.predict import predict

    predict(run, data, index, out, interval, kind, as_json)


@click.command("summary")
@click.argument("run", type=FILE)
@index_option
@json_option
def summary_command(run: Path, index: int | None, as_json: bool) -> None:
    """Print the constants of the formula of RUN with their standard errors and 95 % intervals.

    \b
    Example:
      shine summary runs/pythagoras
    """
    from shine.faces.cli.actions.summary import summary

    summary(run, index, as_json)


class _ExportCommand(FormulaCommand):
    """The command whose help lists the forms of the table of exports."""

    def get_help(self, ctx: click.Context) -> str:
        from shine.formats.write import EXPORTS

        *forms, last = EXPORTS
        self.help = (self.help or "").replace("{formats}", f"{', '.join(forms)} or {last}")
        return super().get_help(ctx)


@click.command("export", cls=_ExportCommand)
@click.argument("source", metavar="RUN|FORMULA")
@click.option("--to", required=True, metavar="FORMAT", help="Language of the result.")
@index_option
@out_option
@click.option("--name", default="f", metavar="NAME", help="Name of the function. [f]")
@precision_option
@click.option("--dialect", metavar="NAME", help="Database that SQL is for: standard, sqlite, postgres or duckdb.")
@json_option
def export_command(**options: Any) -> None:
    """Write the formula of a run, or a formula given as text, in another language.

    FORMAT is {formats}. With --out, C makes a header beside the source. SQL, pandas and Polars find the columns of a
    run by their headings.

    \b
    Example:
      shine export runs/pythagoras --to latex --precision 3
      shine export runs/pythagoras --to sql --dialect sqlite
      shine export "sqrt(a*a + b*b)" --to c --out hypotenuse.c --name hypotenuse
      shine export --to python -- "-a*exp(b)"
    """
    from shine.faces.cli.actions.export import export_formula

    export_formula(**options)


@click.command("report")
@click.argument("run", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="File of the page; by default report.html in the run's folder.")
@click.option("show", "--open", is_flag=True, help="Open it in a browser.")
@precision_option
@json_option
def report_command(run: Path, out: Path | None, show: bool, precision: Precision, as_json: bool) -> None:
    """Write an HTML page about RUN, a run's folder, and print its path.

    The page needs no other files and no network.

    \b
    Example:
      shine report runs/pythagoras --open
    """
    from shine.faces.cli.actions.report import report

    report(run, out, show, precision, as_json)


@click.command("jit", cls=FormulaCommand)
@click.argument("formula")
@click.option("--emit", type=click.Choice(["ir", "opt", "asm", "obj"]), default="asm", help="Kind of output. [asm]")
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
def jit_command(**options: Any) -> None:
    """Show the compiled code of FORMULA: a function of one row.

    The code is LLVM IR as Shine writes it (ir) or as LLVM optimizes it for the target (opt), assembly (asm), or an
    object file (obj). For integers, / truncates.

    \b
    Example:
      shine jit "a - 2 + 5 + 100" --dtype int32 --target aarch64-linux-gnu
      shine jit --emit obj --out formula.o -- "-a*exp(b)"
    """
    from shine.faces.cli.actions.jit import jit

    jit(**options)


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
def compile_command(**options: Any) -> None:
    """Compile a formula, a graph or a run's formula ahead of time, and print the paths of the files.

    A file is a graph, a folder a run, everything else a formula. KINDS are some of object, header, ir, asm,
    shared, python, cmake, pkgconfig, bench, wasm, wasm-scalar, ptx. The code needs no library.

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
    from shine.faces.cli.actions.compile import compile_source

    compile_source(**options)
