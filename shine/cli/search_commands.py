"""The commands about searches: evolve, resume, config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.cli.interruption import Interruption
from shine.cli.options import (
    FILE,
    SEED,
    json_option,
    live_option,
    log_option,
    open_option,
    parallel_options,
    parallel_overrides,
    precision_option,
    quiet_option,
    result_json_option,
    set_option,
)

if TYPE_CHECKING:
    from shine.cli.evolve import LivePage
    from shine.lang.rounding import Precision


@click.command("evolve")
@click.argument("config", type=FILE)
@click.option("--seed", type=SEED, metavar="N", help="Seed, instead of the configuration's.")
@click.option("--out", type=FILE, metavar="DIR", help="New or empty folder; by default runs/<CONFIG>[-2, ...].")
@set_option
@live_option
@open_option
@parallel_options
@precision_option
@log_option
@quiet_option
@result_json_option
@click.pass_context
def evolve_command(
    context: click.Context,
    config: Path,
    seed: int | None,
    out: Path | None,
    overrides: tuple[str, ...],
    live: bool,
    show: bool,
    workers: int | None,
    dask: str | None,
    slurm: dict[str, str] | None,
    precision: Precision,
    logs: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Search for formulas with the settings of CONFIG, a YAML file.

    Prints the Pareto front of loss and complexity, and writes the configuration and the result to a folder. Ctrl-C ends
    the search and keeps the formulas found so far; 'shine resume' goes on with it.

    \b
    Example:
      shine evolve configs/pythagoras.yaml --seed 3 --set stop.seconds=10
      shine evolve big.yaml --set evolution.islands=16 --workers 8
    """
    from shine.cli.evolve import evolve_config

    printed = _printed(quiet, as_json)
    overrides += tuple(parallel_overrides(workers, dask, slurm))
    page = _live_page(live, show)
    return evolve_config(config, seed, out, overrides, printed, precision, _interruption(context), page, logs)


@click.command("resume")
@click.argument("run", type=FILE)
@set_option
@live_option
@open_option
@parallel_options
@precision_option
@log_option
@quiet_option
@result_json_option
@click.pass_context
def resume_command(
    context: click.Context,
    run: Path,
    overrides: tuple[str, ...],
    live: bool,
    show: bool,
    workers: int | None,
    dask: str | None,
    slurm: dict[str, str] | None,
    precision: Precision,
    logs: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Go on with the interrupted search in the folder RUN.

    The result is the same, to the last bit, as without the interruption, also on another number of workers. --set can
    raise limits.

    \b
    Example:
      shine resume runs/pythagoras --set stop.generations=500
    """
    from shine.cli.evolve import resume_run

    overrides += tuple(parallel_overrides(workers, dask, slurm))
    page = _live_page(live, show)
    return resume_run(run, overrides, _printed(quiet, as_json), precision, _interruption(context), page, logs)


@click.group("config")
def config_group() -> None:
    """Check configurations, or print their schema."""


@config_group.command("schema")
@click.option("--json", is_flag=True, expose_value=False, help="The schema is always JSON.")
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


def _live_page(live: bool, show: bool) -> LivePage | None:
    from shine.cli.evolve import LivePage

    if show and not live:
        raise click.UsageError("--open opens the live page; add --live")
    return LivePage(show) if live else None


def _printed(quiet: bool, as_json: bool) -> str:
    if quiet and as_json:
        raise click.UsageError("--quiet and --json exclude each other")
    return "json" if as_json else "formula" if quiet else "front"


def _interruption(context: click.Context) -> Interruption:
    return context.find_object(Interruption) or Interruption()
