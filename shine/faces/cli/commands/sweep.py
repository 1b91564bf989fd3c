"""``shine sweep``: run a configuration with many settings, print what won."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import placed
from shine.faces.cli.commands.evolve import interruption_of, printed_by
from shine.faces.cli.commands.runs import text_of
from shine.faces.cli.options import (
    FILE,
    SEED,
    json_option,
    parallel_options,
    parallel_overrides,
    quiet_option,
    set_option,
)
from shine.faces.cli.output import FAILURE, number, print_json, share, table

if TYPE_CHECKING:
    from shine.faces.runs.sweeping import Outcome, Standing, SweepResult
    from shine.search.evolution.observers import Progress


@click.command("sweep")
@click.argument("config", type=FILE)
@click.option("--grid", multiple=True, metavar="KEY=V1,V2,...", help="Values of a setting; all combinations are tried.")
@click.option("--random", type=click.IntRange(1), metavar="N", help="Draw so many combinations instead.")
@click.option(
    "ranges",
    "--range",
    multiple=True,
    metavar="KEY=LOW..HIGH",
    help="Draw evenly from it, or with :log from its logarithms.",
)
@click.option("--draw", type=SEED, default=0, metavar="N", help="Seed of the drawing. [0]")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="Runs of each combination, with the seeds 0, 1, ...")
@click.option("--folds", type=click.IntRange(2), metavar="N", help="Judge by rows kept back: each of N parts in turn.")
@click.option("--holdout", is_flag=True, help="Only the first of the folds.")
@click.option("--targets", metavar="A,B,...", help="Columns to explain, each in runs of its own.")
@click.option("--by", type=click.Choice(["loss", "r2", "nodes", "seconds"]), help="Rank combinations by this. [loss]")
@click.option("--out", type=FILE, metavar="DIR", help="The folder of the runs. [runs/<CONFIG>-sweep]")
@parallel_options
@set_option
@quiet_option
@json_option
@click.pass_context
def sweep(
    context: click.Context,
    /,
    config: Path,
    grid: Sequence[str],
    random: int | None,
    ranges: Sequence[str],
    draw: int,
    seeds: int | None,
    folds: int | None,
    holdout: bool,
    targets: str | None,
    by: str | None,
    out: Path | None,
    workers: int | None,
    dask: str | None,
    slurm: dict[str, str] | None,
    overrides: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> int:
    """Run CONFIG with many settings, and rank them.

    Each run has its folder, which 'shine runs' finds. The same command again takes finished runs as they are and does
    the rest. Combinations are ranked by the medians of their runs: with --folds on rows that a run did not see.
    --workers, --dask and --slurm share whole runs here.

    \b
    Example:
      shine sweep diabetes.yaml --grid evolution.population=200,500 --grid stop.seconds=10,20 --seeds 5
      shine sweep diabetes.yaml --random 20 --range evolution.parsimony=1e-3..1e-1:log --folds 5 --workers 4
    """
    from shine.base.parallel import ParallelSettings
    from shine.faces.cli.progress import display_for
    from shine.faces.runs.sweeping import run_sweep
    from shine.faces.runs.variants import Sweep

    printed, interruption = printed_by(quiet, as_json), interruption_of(context)
    if holdout and folds is None:
        raise click.UsageError("--holdout is for --folds")
    with placed("", ValueError, kind=click.UsageError):
        parallel_overrides(workers, dask, slurm)  # tells what does not go together
        place = ParallelSettings(workers, dask, None if slurm is None else "slurm", dict(slurm or {}))
        options = {} if targets is None else {"data.target": "--targets"}
        values = _grid(config, grid, targets, overrides)
        plan = Sweep(values, random, _ranges(ranges), seeds, folds, holdout, draw, options)
        count = len(plan.variants())
        done = 0

        def show(progress: Progress) -> None:
            interruption.keep()
            display.generation(progress)

        def tell(outcome: Outcome) -> None:
            nonlocal done
            done += 1
            if printed == "front":
                display.message(f"{done} of {count}: {_told(outcome)}")

        if place.is_set:
            interruption.keep()  # runs of workers are kept as they come
        with display_for(printed, f"{count} runs of {config}") as display:
            result = run_sweep(config, plan, overrides, out, by, place, None, tell, show)
    if as_json:
        print_json(_as_json(result))
    else:
        _print(result, quiet)
    for outcome in result.failed:
        click.echo(f"error: {_told(outcome)}", err=True)
    if len(result.outcomes) < result.planned:
        return interruption.code
    return FAILURE if result.failed else 0


def _grid(config: Path, grid: Sequence[str], targets: str | None, overrides: Sequence[str]) -> dict[str, list[str]]:
    from shine.faces.runs.variants import values_of

    found = {}
    given = [_pair("--grid", text, "evolution.population=200,500") for text in grid]
    if targets is not None:
        from shine.faces.config import read_config

        first = [f"--targets data.target={name}" for name in values_of(targets)[:1]]
        if read_config(config, [*overrides, *first]).data.features is None:
            raise click.UsageError("--targets needs data.features, so that no target explains another")
        given.insert(0, ("data.target", targets))
    for key, text in given:
        if key in found:
            raise click.UsageError(f"--grid {key} is given twice; separate its values by commas")
        found[key] = values_of(text)
    return found


def _ranges(ranges: Sequence[str]) -> dict[str, Any]:
    from shine.faces.runs.variants import range_of

    pairs = [_pair("--range", text, "evolution.population=100..1000") for text in ranges]
    return {key: range_of(key, text) for key, text in pairs}


def _pair(option: str, text: str, example: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    if not key.strip() or not value.strip():
        raise click.UsageError(f"{option} {text}: write {option} {example}")
    return key.strip(), value.strip()


def _told(outcome: Outcome) -> str:
    name = Path(outcome.folder).name
    if outcome.problem:
        return f"{name}: {outcome.problem}"
    return f"{name}: loss {number(outcome.loss)}, R2 {share(outcome.r2)}, {text_of(outcome.formula)}"


def _print(result: SweepResult, quiet: bool) -> None:
    standings = result.standings
    best = result.best
    if quiet:
        if best is not None:
            click.echo(best.runs[0].formula)
        return
    keys = list(dict.fromkeys(key for each in standings for key in each.settings))
    heading = (*keys, "runs", "loss", "R2", "nodes", "seconds", "formula of its best run")
    rows = [
        (
            *(each.settings.get(key, "") for key in keys), str(len(each.runs)), number(each.loss), share(each.r2),
            f"{each.nodes:g}", f"{each.seconds:.1f}", text_of(each.runs[0].formula),
        )
        for each in standings
    ]  # fmt: skip
    if rows:
        for line in table([heading, *rows], cut=True):
            click.echo(line)
        click.echo("")
    if (done := len(result.outcomes)) < result.planned:
        click.echo(f"interrupted: {done} of {result.planned} runs are done; the same command goes on", err=True)
    if best is not None:
        click.echo(f"won{_by(result)}: {_named(best)}")
        click.echo(f"its best run is in {_shown(best.runs[0].folder)}")


def _by(result: SweepResult) -> str:
    rows = " on rows kept back" if any(each.variant.fold for each in result.outcomes) else ""
    several = "median " if any(len(each.runs) > 1 for each in result.standings) else ""
    return f" by the {several}{result.by}{rows}"


def _named(standing: Standing) -> str:
    return ", ".join(f"{key}={value}" for key, value in standing.settings.items()) or "the configuration as it is"


def _shown(folder: str) -> str:
    """A folder as one would type it from here."""
    near = os.path.relpath(folder)
    return folder if near.startswith("..") else near


def _as_json(result: SweepResult) -> dict[str, Any]:
    def plain(outcome: Outcome) -> dict[str, Any]:
        own = outcome.variant
        return {**asdict(outcome), "variant": None, "settings": dict(own.settings), "seed": own.seed, "fold": own.fold}

    return {
        "by": result.by,
        "planned": result.planned,
        "standings": [{**asdict(each), "runs": [one.folder for one in each.runs]} for each in result.standings],
        "runs": [{key: value for key, value in plain(each).items() if key != "variant"} for each in result.outcomes],
    }
