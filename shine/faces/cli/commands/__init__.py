"""The root of the command line; commands that answer one question share a module, which imports late what is slow."""

from __future__ import annotations

import click

from shine.faces.cli.commands import (
    bench,
    compile,
    distil,
    evolve,
    export,
    info,
    predict,
    runs,
    summary,
    sweep,
)  # fmt: skip
from shine.faces.cli.group import Group


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


for command in (
    evolve.evolve,
    evolve.resume,
    distil.distil,
    sweep.sweep,
    runs.runs,
    info.config,
    predict.predict,
    export.export_command,
    summary.summary,
    predict.next_command,
    summary.report,
    compile.jit,
    compile.compile_command,
    info.mcp_command,
    bench.bench,
    info.info,
):
    shine.add_command(command)
