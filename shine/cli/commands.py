"""The commands and their options. What they do is in a module each, imported when they run."""

from __future__ import annotations

from pathlib import Path

import click

from shine.cli.group import FormulaCommand, Group
from shine.cli.interruption import Interruption

FILE = click.Path(path_type=Path)
SEED = click.IntRange(0, 2**63 - 1)


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from shine import __version__

        click.echo(f"shine {__version__}")
        context.exit()


json_option = click.option("as_json", "--json", is_flag=True, help="Print JSON.")
out_option = click.option("--out", type=FILE, metavar="FILE", help="Write a file instead of printing.")
set_option = click.option(
    "overrides", "--set", multiple=True, metavar="KEY=VALUE", help="Override, as evolution.population=500."
)
index_option = click.option(
    "--index", type=click.IntRange(0), metavar="N", help="Index of the formula in the front; the chosen one else."
)


@click.group(cls=Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show it.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def shine(context: click.Context) -> None:
    """Shine finds formulas that explain data.

    \b
    Example:
      shine evolve configs/pythagoras.yaml
      shine report runs/pythagoras --open

    Exit codes: 0 done, 1 failed, 2 wrong usage, configuration or data, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _printed(quiet: bool, as_json: bool) -> str:
    if quiet and as_json:
        raise click.UsageError("--quiet and --json exclude each other")
    return "json" if as_json else "formula" if quiet else "front"


def _interruption(context: click.Context) -> Interruption:
    return context.find_object(Interruption) or Interruption()


@shine.command()
@click.argument("config", type=FILE)
@click.option("--seed", type=SEED, metavar="N", help="Seed, instead of the configuration's.")
@click.option("--out", type=FILE, metavar="DIR", help="New or empty folder; runs/<CONFIG>[-2, ...] else.")
@set_option
@click.option("--quiet", is_flag=True, help="Print the chosen formula only.")
@click.option("as_json", "--json", is_flag=True, help="Print what result.json says, and nothing else.")
@click.pass_context
def evolve(
    context: click.Context,
    config: Path,
    seed: int | None,
    out: Path | None,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Search for formulas as CONFIG, a YAML file, says.

    Prints the Pareto front of loss and complexity, and keeps what was used and found in a folder. Ctrl-C ends the
    search and keeps what it found; 'shine resume' goes on with it.

    \b
    Example:
      shine evolve configs/pythagoras.yaml --seed 3 --set stop.seconds=10
    """
    from shine.cli.evolve import evolve

    return evolve(config, seed, out, overrides, _printed(quiet, as_json), _interruption(context))


@shine.command()
@click.argument("run", type=FILE)
@set_option
@click.option("--quiet", is_flag=True, help="Print the chosen formula only.")
@click.option("as_json", "--json", is_flag=True, help="Print what result.json says, and nothing else.")
@click.pass_context
def resume(context: click.Context, run: Path, overrides: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Go on with the search that was interrupted in the folder RUN.

    It ends as it would have without the interruption, to the last bit. With --set, limits can be raised first.

    \b
    Example:
      shine resume runs/pythagoras --set stop.generations=500
    """
    from shine.cli.evolve import resume

    return resume(run, overrides, _printed(quiet, as_json), _interruption(context))


@shine.command()
@click.argument("run", type=FILE)
@click.argument("data", type=FILE)
@index_option
@out_option
@json_option
def predict(run: Path, data: Path, index: int | None, out: Path | None, as_json: bool) -> None:
    """Apply the formula of RUN, a run's folder, to the file DATA.

    DATA is like the file that was learned from (CSV, TSV, NPZ, Parquet) and needs the columns that the formula uses, by
    name; their order, others and the target do not matter. One column, 'prediction', comes out: as CSV, as Parquet
    where DATA is and the output is no terminal, or as the name of FILE says.

    \b
    Example:
      shine predict runs/pythagoras triangles.csv --out predicted.csv
    """
    from shine.cli.predict import predict

    predict(run, data, index, out, as_json)


class _ExportCommand(FormulaCommand):
    """The command whose help lists the forms of the table of exports."""

    def get_help(self, ctx: click.Context) -> str:
        from shine.export import EXPORTS

        *forms, last = EXPORTS
        self.help = (self.help or "").replace("{formats}", f"{', '.join(forms)} or {last}")
        return super().get_help(ctx)


@shine.command(cls=_ExportCommand)
@click.argument("source", metavar="RUN|FORMULA")
@click.option("--to", required=True, metavar="FORMAT", help="Language of the result.")
@index_option
@out_option
@click.option("--name", default="f", metavar="NAME", help="Name of the function. [f]")
@json_option
def export(source: str, to: str, index: int | None, out: Path | None, name: str, as_json: bool) -> None:
    """Write the formula of a run, or one given as text, in another language.

    FORMAT is {formats}. C makes a source and, with --out, a header beside it.

    \b
    Example:
      shine export runs/pythagoras --to latex
      shine export "sqrt(a*a + b*b)" --to c --out hypotenuse.c --name hypotenuse
      shine export --to python -- "-a*exp(b)"
    """
    from shine.cli.export import export_formula

    export_formula(source, to, index, out, name, as_json)


@shine.command()
@click.argument("run", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="Where the page goes; report.html in the run's folder else.")
@click.option("show", "--open", is_flag=True, help="Open it in a browser.")
@json_option
def report(run: Path, out: Path | None, show: bool, as_json: bool) -> None:
    """Write a page of HTML about RUN, a run's folder; prints where it is.

    The page holds all it needs, and can be sent and read without a network.

    \b
    Example:
      shine report runs/pythagoras --open
    """
    from shine.cli.report import report

    report(run, out, show, as_json)


class _ManyRows(click.Command):
    """Takes ``--rows 1000 10000`` for ``--rows 1000 --rows 10000``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for argument in args:
            again = argument.isdigit() and len(spread) > 1 and spread[-2] == "--rows"
            spread += ["--rows", argument] if again else [argument]
        return super().parse_args(ctx, spread)


@shine.command(cls=_ManyRows)
@click.option("--rows", type=click.IntRange(1), multiple=True, metavar="N ...", help="Rows of the data. [1000 10000]")
@click.option("--population", type=click.IntRange(1), default=1000, metavar="N", help="Random formulas. [1000]")
@click.option("--primitives", default="add,sub,mul,div", metavar="NAMES", help="What they use. [add,sub,mul,div]")
@click.option("--seed", type=SEED, default=0, metavar="N", help="Other formulas and data. [0]")
@click.option(
    "json_path",
    "--json",
    type=click.Path(path_type=Path, allow_dash=True),
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write everything measured to a file, or print it instead of the table.",
)
@click.option("plot_path", "--plot", type=FILE, metavar="FILE", help="Draw it over more rows.")
def bench(
    rows: tuple[int, ...],
    population: int,
    primitives: str,
    seed: int,
    json_path: Path | None,
    plot_path: Path | None,
) -> int:
    """Compare interpreted with compiled evaluation of random formulas.

    Shine's tiers, plain Python, and DEAP, gplearn and pyoperon where they are installed. All must compute the same
    losses.

    \b
    Example:
      shine bench --rows 1000 10000 --primitives add,mul,sin
    """
    from shine.bench import Settings
    from shine.cli.bench import run

    chosen = tuple(dict.fromkeys(rows)) or ((100, 1000, 10_000, 100_000) if plot_path else (1000, 10_000))
    names = tuple(name.strip() for name in primitives.split(","))
    return run(Settings(chosen, population, names, seed=seed), json_path, plot_path)


@shine.command(cls=FormulaCommand)
@click.argument("formula")
@click.option("--emit", type=click.Choice(["ir", "opt", "asm", "obj"]), default="asm", help="What to make. [asm]")
@click.option("--target", metavar="TRIPLE", help="Such as aarch64-linux-gnu; this very processor else.")
@click.option("--cpu", metavar="NAME", help="LLVM's name of a processor of the target, such as x86-64-v3.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "int64", "int32"]),
    default="float64",
    help="Type of arguments and result. [float64]",
)
@click.option("level", "--opt", type=click.Choice(["O0", "O1", "O2", "O3"]), default="O2", help="Pipeline. [O2]")
@click.option("parameters", "--params", metavar="NAMES", help="Order of the arguments, as b,a. [natural order]")
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
    """Show what FORMULA is compiled to: a function of one row.

    LLVM IR as Shine writes it (ir) or as LLVM optimizes it for the target (opt), assembly (asm), or an object file
    (obj). Among integers / truncates.

    \b
    Example:
      shine jit "a - 2 + 5 + 100" --dtype int32 --target aarch64-linux-gnu
      shine jit --emit obj --out formula.o -- "-a*exp(b)"
    """
    from shine.cli.jit import jit

    jit(formula, emit, target, cpu, dtype, level, parameters, out, as_json)


@shine.command(cls=FormulaCommand)
@click.argument("source", metavar="FORMULA|GRAPH|RUN")
@click.option("--name", default="f", metavar="NAME", help="Name of the function, and of the files. [f]")
@click.option("--out", type=FILE, default=Path(), metavar="DIR", help="Folder of the files; the current one else.")
@click.option("--emit", multiple=True, default=("object,header",), metavar="KINDS", help="As a,b. [object,header]")
@click.option("--target", metavar="TRIPLE", help="Such as aarch64-linux-gnu; this host's else.")
@click.option("--cpu", metavar="NAME", help="LLVM's name of a processor, or native; the least of the target else.")
@click.option("--features", default="", metavar="LIST", help="On top of the processor's, as +avx2,-fma.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "int64", "int32"]),
    help="Type of a formula's arguments and result. [float64]",
)
@click.option("level", "--opt", type=click.Choice(["O0", "O1", "O2", "O3"]), default="O2", help="Pipeline. [O2]")
@click.option("parameters", "--params", metavar="NAMES", help="Order of the arguments, as b,a. [natural order]")
@index_option
@click.option("outputs", "--output", multiple=True, metavar="NODE", help="Output of a graph; may be repeated.")
@json_option
def compile(
    source: str,
    name: str,
    out: Path,
    emit: tuple[str, ...],
    target: str | None,
    cpu: str | None,
    features: str,
    dtype: str | None,
    level: str,
    parameters: str | None,
    index: int | None,
    outputs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile a formula, a graph or a run's formula ahead of time; prints what was written.

    A file is a TensorFlow graph, a folder a run, everything else a formula. KINDS are some of object, header, ir, asm,
    shared, python, cmake, pkgconfig, bench, wasm, wasm-scalar, ptx. The code needs no library.

    \b
    Example:
      shine compile "sqrt(a*a + b*b)" --name hypotenuse --out build
      shine compile runs/pythagoras --emit python --cpu native
      shine compile graph.pb --target aarch64-linux-gnu --emit object,header,asm
    """
    from shine.cli.compile import compile_source

    compile_source(source, name, out, emit, target, cpu, features, dtype, level, parameters, index, outputs, as_json)


@shine.command()
@click.option("--clear-cache", is_flag=True, help="Remove the compiled code that is kept; it is made again.")
@json_option
def info(clear_cache: bool, as_json: bool) -> None:
    """Print versions, the processor and its features, threads, the cache, and which extras are installed.

    \b
    Example:
      shine info --json
    """
    from shine.cli.info import info

    info(clear_cache, as_json)


@shine.group("config")
def config_group() -> None:
    """Look at configurations."""


@config_group.command("schema")
@click.option("--json", is_flag=True, expose_value=False, help="The schema is JSON anyway.")
def config_schema() -> None:
    """Print the JSON schema of configurations.

    \b
    Example:
      shine config schema > shine.schema.json
    """
    from shine.cli.config import schema

    schema()


@config_group.command("check")
@click.argument("config", type=FILE)
@set_option
@json_option
def config_check(config: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Check CONFIG and its data without searching; prints every problem.

    \b
    Example:
      shine config check configs/pythagoras.yaml --set seed=7
    """
    from shine.cli.config import check

    return check(config, overrides, as_json)
