"""The commands about many runs: runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shine.cli.options import FILE, json_option, precision_option

in_option = click.option("folder", "--in", type=FILE, metavar="DIR", help="The folder that holds the runs. [runs]")
_SEVERAL = {"multiple": True, "metavar": "NAME"}


@click.group("runs", invoke_without_command=True)
@click.option("--uses", **_SEVERAL, help="A function, an operator or a feature of the formula: exp, /, x1.")
@click.option("--without", **_SEVERAL, help="One that the formula does not have.")
@click.option("--formula", metavar="TEXT", help="A part of the formula's text.")
@click.option("--nodes", metavar="N", help="Most nodes of the formula, or a comparison: '<12'.")
@click.option("--r2", metavar="X", help="Least R2 of the formula, or a comparison.")
@click.option("--loss", metavar="X", help="Largest loss of the formula, or a comparison.")
@click.option("--data", metavar="FILE", help="File of the data: its path, its name, or how the data's hash begins.")
@click.option("--target", metavar="NAME", help="What was explained.")
@click.option("--since", metavar="DATE", help="The first day, as 2026-01-31.")
@click.option("--until", metavar="DATE", help="The first day that is too late.")
@click.option("settings", "--set", multiple=True, metavar="KEY=VALUE", help="A setting, as evolution.population=500.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Another comparison, as 'seconds < 60'.")
@click.option("--formulas", is_flag=True, help="List every formula of the fronts, not one of each run.")
@click.option("--best", is_flag=True, help="Consider only the formulas that runs chose.")
@click.option("--sort", default="date", metavar="KEY", help="date, r2, loss, nodes, seconds, name, ... [date]")
@click.option("--reverse", is_flag=True, help="The last first.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Most rows. [50 in the table]")
@in_option
@click.option("--rebuild", is_flag=True, help="Read all folders again.")
@json_option
@click.pass_context
def runs_group(context: click.Context, **options: Any) -> None:
    """List past runs, and search them and their formulas.

    All conditions must hold, those on formulas for one and the same. The formula shown is the chosen one if it meets
    them, else that of the least loss. --where compares name, date, target, data, hash, generations, evaluations,
    seconds, seed, stopped_by, shine, formula, loss, r2, nodes and all settings by =, !=, <, <=, >, >= and ~ (contains).

    \b
    Example:
      shine runs --uses exp --nodes '<12' --r2 0.9
      shine runs --data plants.csv --set evolution.population=500 --sort r2 --limit 5
    """
    from shine.cli.runs import list_runs

    if context.invoked_subcommand is None:
        list_runs(**options)


@runs_group.command("show")
@click.argument("run", type=FILE)
@precision_option
@json_option
def runs_show(run: Path, precision: Any, as_json: bool) -> None:
    """Show what RUN searched in, its settings that are not the defaults, and its front.

    \b
    Example:
      shine runs show pythagoras
    """
    from shine.cli.runs import show_run

    show_run(run, precision, as_json)


@runs_group.command("compare")
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN RUN...")
@json_option
def runs_compare(runs: tuple[Path, ...], as_json: bool) -> None:
    """Compare runs: their results, the settings that differ, and their fronts.

    \b
    Example:
      shine runs compare pythagoras pythagoras-2
    """
    from shine.cli.runs import compare_runs

    if len(runs) < 2:
        raise click.UsageError("compare needs at least two runs")
    compare_runs(runs, as_json)
