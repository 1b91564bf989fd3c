"""The root of the command line, and the commands about this machine: bench, info."""

from __future__ import annotations

from pathlib import Path

import click

from shine.faces.cli import formula_commands, run_commands, search_commands
from shine.faces.cli.group import Group
from shine.faces.cli.options import FILE, SEED, json_option


def _show_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from shine import __version__

        click.echo(f"shine {__version__}")
        context.exit()


@click.group(cls=Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def shine(context: click.Context) -> None:
    """Shine finds formulas that explain data.

    \b
    Example:
      shine evolve configs/pythagoras.yaml
      shine report runs/pythagoras --open

    Exit codes: 0 done; 1 failed; 2 wrong usage, configuration or data; 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class _ManyRows(click.Command):
    """Reads ``--rows 1000 10000`` as ``--rows 1000 --rows 10000``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        for argument in args:
            again = argument.isdigit() and len(spread) > 1 and spread[-2] == "--rows"
            spread += ["--rows", argument] if again else [argument]
        return super().parse_args(ctx, spread)


@click.command("bench", cls=_ManyRows)
@click.option("--rows", type=click.IntRange(1), multiple=True, metavar="N ...", help="Rows of the data. [1000 10000]")
@click.option("--population", type=click.IntRange(1), default=1000, metavar="N", help="Random formulas. [1000]")
@click.option("--primitives", default="add,sub,mul,div", metavar="NAMES", help="Functions they use. [add,sub,mul,div]")
@click.option("--seed", type=SEED, default=0, metavar="N", help="Seed of formulas and data. [0]")
@click.option(
    "json_path",
    "--json",
    type=click.Path(path_type=Path, allow_dash=True),
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write all measurements to a file, or print them instead of the table.",
)
@click.option("plot_path", "--plot", type=FILE, metavar="FILE", help="Draw the speeds, by default for more rows.")
def bench_command(
    rows: tuple[int, ...],
    population: int,
    primitives: str,
    seed: int,
    json_path: Path | None,
    plot_path: Path | None,
) -> int:
    """Compare the speed of interpreted and compiled evaluation of random formulas.

    It measures Shine's tiers, plain Python, and DEAP, gplearn and pyoperon if they are installed. All must compute the
    same losses.

    \b
    Example:
      shine bench --rows 1000 10000 --primitives add,mul,sin
    """
    from shine.faces.bench import Settings
    from shine.faces.cli.actions.bench import run

    chosen = tuple(dict.fromkeys(rows)) or ((100, 1000, 10_000, 100_000) if plot_path else (1000, 10_000))
    names = tuple(name.strip() for name in primitives.split(","))
    return run(Settings(chosen, population, names, seed=seed), json_path, plot_path)


@click.command("info")
@click.option("--clear-cache", is_flag=True, help="Remove the compiled code; it is compiled again.")
@json_option
def info_command(clear_cache: bool, as_json: bool) -> None:
    """Print versions, the processor and its features, threads, the cache, and which extras are installed.

    \b
    Example:
      shine info --json
    """
    from shine.faces.cli.actions.info import info

    info(clear_cache, as_json)


for command in (
    search_commands.evolve_command,
    search_commands.resume_command,
    search_commands.distil_command,
    run_commands.sweep_command,
    run_commands.runs_group,
    search_commands.config_group,
    formula_commands.predict_command,
    formula_commands.export_command,
    formula_commands.summary_command,
    formula_commands.report_command,
    formula_commands.jit_command,
    formula_commands.compile_command,
    bench_command,
    info_command,
):
    shine.add_command(command)
