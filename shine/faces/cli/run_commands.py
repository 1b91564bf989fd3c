"""The commands about many runs: runs, sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shine.faces.cli.interruption import Interruption
from shine.faces.cli.options import (
    FILE,
    SEED,
    json_option,
    parallel_options,
    precision_option,
    quiet_option,
    set_option,
)

in_option = click.option("folder", "--in", type=FILE, metavar="DIR", help="The folder that holds the runs. [runs]")


@click.group("runs", invoke_without_command=True)
@click.option("--uses", multiple=True, metavar="NAME", help="Function, operator or feature of the formula: exp, /, x1.")
@click.option("--without", multiple=True, metavar="NAME", help="Function, operator or feature that it lacks.")
@click.option("--formula", metavar="TEXT", help="A part of the formula's text.")
@click.option("--nodes", metavar="N", help="Most nodes of the formula, or a comparison: '<12'.")
@click.option("--r2", metavar="X", help="Least R2 of the formula, or a comparison.")
@click.option("--loss", metavar="X", help="Largest loss of the formula, or a comparison.")
@click.option("--data", metavar="FILE", help="File of the data: its path, its name, or how the data's hash begins.")
@click.option("--target", metavar="NAME", help="Name of the target.")
@click.option("--since", metavar="DATE", help="The first day, as 2026-01-31.")
@click.option("--until", metavar="DATE", help="The day after the last, as 2026-03-01.")
@click.option("settings", "--set", multiple=True, metavar="KEY=VALUE", help="A setting, as evolution.population=500.")
@click.option("--where", multiple=True, metavar="CONDITION", help="A condition, as 'seconds < 60 and seed != 3'.")
@click.option("--formulas", is_flag=True, help="List every formula of the fronts, not one of each run.")
@click.option("--best", is_flag=True, help="Consider only the formulas that runs chose.")
@click.option("--sort", default="date", metavar="KEY", help="date, r2, loss, nodes, seconds, name, ... [date]")
@click.option("--reverse", is_flag=True, help="The last first.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Most rows. [50 in the table]")
@in_option
@json_option
@click.pass_context
def runs_group(context: click.Context, /, **options: Any) -> None:
    """List past runs, and search them and their formulas.

    All conditions must hold, those on formulas for one and the same. The formula shown is the chosen one if it meets
    them, else that of the least loss. --where compares name, date, target, data, hash, generations, evaluations,
    seconds, seed, stopped_by, shine, formula, loss, r2, nodes and all settings, in the language of df.shine.query;
    texts stand in quotes, and "'exp' in formula" asks for a part of a text.

    \b
    Example:
      shine runs --uses exp --nodes '<12' --r2 0.9
      shine runs --data plants.csv --set evolution.population=500 --sort r2 --limit 5
    """
    from shine.faces.cli.actions.runs import list_runs

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
    from shine.faces.cli.actions.runs import show_run

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
    from shine.faces.cli.actions.runs import compare_runs

    if len(runs) < 2:
        raise click.UsageError("compare needs at least two runs")
    compare_runs(runs, as_json)


@click.command("sweep")
@click.argument("config", type=FILE)
@click.option("--grid", multiple=True, metavar="KEY=V1,V2,...", help="Values of a setting; all combinations are tried.")
@click.option("--random", type=click.IntRange(1), metavar="N", help="Draw so many combinations instead.")
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="KEY=LOW..HIGH",
    help="Draw evenly from it, or with :log after it from its logarithms.",
)
@click.option("--draw", type=SEED, default=0, metavar="N", help="Seed of the drawing. [0]")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="Runs of each combination, with the seeds 0, 1, ...")
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="N",
    help="Judge by rows that a run did not see: each of N parts in turn.",
)
@click.option("--holdout", is_flag=True, help="Only the first of the folds.")
@click.option("--targets", metavar="A,B,...", help="Columns to explain, each in runs of its own.")
@click.option("--by", type=click.Choice(["loss", "r2", "nodes", "seconds"]), help="Rank combinations by this. [loss]")
@click.option("--out", type=FILE, metavar="DIR", help="The folder of the runs. [runs/<CONFIG>-sweep]")
@parallel_options
@set_option
@quiet_option
@json_option
@click.pass_context
def sweep_command(context: click.Context, /, **options: Any) -> int:
    """Run CONFIG with many settings, and rank them.

    Each run has its folder, which 'shine runs' finds. The same command again takes finished runs as they are and does
    the rest. Combinations are ranked by the medians of their runs: with --folds on rows that a run did not see.
    --workers, --dask and --slurm share whole runs here.

    \b
    Example:
      shine sweep diabetes.yaml --grid evolution.population=200,500 --grid stop.seconds=10,20 --seeds 5
      shine sweep diabetes.yaml --random 20 --range evolution.parsimony=1e-3..1e-1:log --folds 5 --workers 4
    """
    from shine.faces.cli.actions.sweep import sweep_config

    return sweep_config(interruption=context.find_object(Interruption) or Interruption(), **options)
