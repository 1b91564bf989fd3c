"""The commands about searches: evolve, resume, config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.faces.cli.interruption import Interruption
from shine.faces.cli.options import (
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
    from shine.faces.cli.actions.evolve import LivePage
    from shine.lang.forms.rounding import Precision


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
    from shine.faces.cli.actions.evolve import evolve_config

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
    from shine.faces.cli.actions.evolve import resume_run

    overrides += tuple(parallel_overrides(workers, dask, slurm))
    page = _live_page(live, show)
    return resume_run(run, overrides, _printed(quiet, as_json), precision, _interruption(context), page, logs)


@click.command("distil")
@click.argument("model", type=FILE)
@click.option("--inputs", metavar="RANGES", help="Where to sample, as x=-2:2,y=-1:1; or columns of --data, as x,y.")
@click.option("--data", type=FILE, metavar="FILE", help="Measured rows: the formula is compared with them, too.")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Column that an output predicts.")
@click.option("--layer", metavar="NAME", help="A value inside of the network, in place of its outputs.")
@click.option("--output", "outputs", multiple=True, metavar="N|NAME", help="Output to distil; by default all.")
@click.option("--largest", type=click.IntRange(1), metavar="N", help="Distil the N outputs of the largest variance.")
@click.option("--rows", type=click.IntRange(8), metavar="N", help="Rows that the search sees. [512]")
@click.option("--config", type=FILE, metavar="FILE", help="Feeds and fetches of a TensorFlow graph, a tf2xla Config.")
@click.option("--checkpoint", type=FILE, metavar="FILE", help="Checkpoint with the values of a graph's variables.")
@click.option("shapes", "--shape", multiple=True, metavar="NAME=SIZES", help="Shape of a network's input, as x=64,2.")
@click.option("--seed", type=SEED, default=0, metavar="N", help="Seed of the samples and the search. [0]")
@click.option("--out", type=FILE, metavar="DIR", help="New or empty folder; by default runs/<MODEL>[-2, ...].")
@set_option
@parallel_options
@precision_option
@quiet_option
@json_option
@click.pass_context
def distil_command(
    context: click.Context,
    /,
    config: Path | None,
    checkpoint: Path | None,
    shapes: tuple[str, ...],
    overrides: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    slurm: dict[str, str] | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Search for the formulas that a trained network, MODEL, has learned.

    MODEL is a file of ONNX or TensorFlow, or a tensor program as text. It is compiled and sampled. The folder gets the
    samples, a run for each output, and fidelity.json.

    \b
    Example:
      shine distil model.onnx --inputs x=-2:2,y=-1:1 --set stop.seconds=10
      shine distil model.onnx --data measured.csv --target force
      shine distil edges.onnx --inputs dx=-2:2,dy=-2:2 --layer messages --largest 2
    """
    from shine.faces.cli.actions.distil import distil_network
    from shine.faces.cli.actions.graphs import GraphOptions

    return distil_network(
        **options,
        reading=GraphOptions((), config, checkpoint, None, shapes),
        overrides=[*overrides, *parallel_overrides(workers, dask, slurm)],
        printed=_printed(quiet, as_json),
        interruption=_interruption(context),
    )


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
    from shine.faces.cli.actions.config import schema

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
    from shine.faces.cli.actions.config import check

    return check(config, overrides, as_json)


def _live_page(live: bool, show: bool) -> LivePage | None:
    from shine.faces.cli.actions.evolve import LivePage

    if show and not live:
        raise click.UsageError("--open opens the live page; add --live")
    return LivePage(show) if live else None


def _printed(quiet: bool, as_json: bool) -> str:
    if quiet and as_json:
        raise click.UsageError("--quiet and --json exclude each other")
    return "json" if as_json else "formula" if quiet else "front"


def _interruption(context: click.Context) -> Interruption:
    return context.find_object(Interruption) or Interruption()
