"""Options that several commands have."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
"""A file or a folder that may or may not exist."""

SEED = click.IntRange(0, 2**63 - 1)
"""A seed, within the bounds of the configuration's `seed`."""

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
"""A share between 0 and 1."""

json_option = click.option("as_json", "--json", is_flag=True, help="Print JSON.")
out_option = click.option("--out", type=FILE, metavar="FILE", help="Write a file instead of printing.")
set_option = click.option(
    "overrides", "--set", multiple=True, metavar="KEY=VALUE", help="Override a setting, as evolution.population=500."
)
index_option = click.option(
    "--index", type=click.IntRange(0), metavar="N", help="Index of the formula in the front; by default the chosen one."
)
live_option = click.option("--live", is_flag=True, help="Show the search on a page, and steer it there.")
open_option = click.option("show", "--open", is_flag=True, help="Open the live page in a browser.")
quiet_option = click.option("--quiet", is_flag=True, help="Print the chosen formula only.")
result_json_option = click.option(
    "as_json", "--json", is_flag=True, help="Print the contents of result.json and nothing else."
)
log_option = click.option(
    "logs", "--log", type=click.Choice(["mlflow", "tensorboard"]), multiple=True,
    help="Also keep the run in MLflow, or for TensorBoard in the run's folder.",
)  # fmt: skip
level_option = click.option(
    "level", "--opt", type=click.Choice(["O0", "O1", "O2", "O3"]), default="O2", help="Optimization level. [O2]"
)


def _options(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """Options of a batch system's jobs, from ``key=value,key=value``."""
    if not texts:
        return None
    pairs = [pair.partition("=") for text in texts for pair in text.split(",") if pair]
    for key, equals, _ in pairs:
        if not equals or not key.strip():
            raise click.BadParameter(f"{key!r} is not KEY=VALUE, as in cores=4,memory=8GB,walltime=02:00:00")
    return {key.strip(): value.strip() for key, _, value in pairs}


_PARALLEL = (
    click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Processes that share the islands and the seeding."
    ),
    click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster whose workers share them."),
    click.option(
        "--slurm", multiple=True, metavar="KEY=VALUE,...", callback=_options,
        help="Jobs of Slurm share them; with --workers. For example cores=4,memory=8GB,walltime=02:00:00.",
    ),
)  # fmt: skip


def parallel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of where a search is done."""
    for option in reversed(_PARALLEL):
        command = option(command)
    return command


def parallel_overrides(workers: int | None, dask: str | None, slurm: Mapping[str, str] | None) -> list[str]:
    """The overrides of the configuration that these options stand for; they replace its whole section."""
    if workers is None and dask is None and slurm is None:
        return []
    if dask is not None and (workers is not None or slurm is not None):
        raise click.UsageError("--dask names workers that run already; leave --workers and --slurm out")
    if slurm is not None and workers is None:
        raise click.UsageError("--slurm needs --workers, the number of workers to ask for")
    section: dict[str, object] = {"workers": workers} if dask is None else {"dask": dask}
    if slurm is not None:
        section |= {"cluster": "slurm", "options": {key: _number(value) for key, value in slurm.items()}}
    option = "--workers" if dask is None else "--dask"
    return [f"{option} parallel={json.dumps(section)}"]


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _precision(text: str) -> int | str:
    """A number of significant digits, or ``exact``."""
    if text != "exact" and not (text.isdecimal() and int(text) > 0):
        raise click.BadParameter("is a number of significant digits from 1 on, or exact")
    return text if text == "exact" else int(text)


precision_option = click.option(
    "--precision", type=_precision, metavar="N|exact",
    help="Significant digits of constants. By default those that the data support, in forms for people, else all.",
)  # fmt: skip
parameters_option = click.option(
    "parameters", "--params", metavar="NAMES", help="Order of the arguments, such as b,a. [natural order]"
)
