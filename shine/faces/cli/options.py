"""Options that several commands have, and arguments: runs, positions in their fronts, and formulas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import placed
from shine.lang.forms.names import shown

if TYPE_CHECKING:
    from shine.faces.runs import Run
    from shine.lang.forms.tree import Tree
    from shine.search.models.model import Model


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


def run_folder(folder: Path) -> Path:
    """The folder of a run: as it is named, or else in ``runs``, where `shine evolve` puts it."""
    known = Path("runs") / folder
    return known if len(folder.parts) == 1 and not exists(folder) and exists(known) else folder


def opened(folder: Path) -> Run:
    """The finished run in a folder, here or in ``runs``; the path of its ``result.json`` also works.

    A `click.UsageError` if the folder holds no run or no result, or a damaged one.
    """
    from shine.base.errors import ShineError
    from shine.faces.runs import Run, open_run

    folder = run_folder(folder)
    folder = folder.parent if folder.name == "result.json" and not folder.is_dir() else folder
    check_folder(folder)
    with placed("", ShineError, kind=click.UsageError):
        run = Run(open_run(folder).folder)  # of one target: with equations of motion it says what takes them
        if not (folder / "result.json").exists():
            raise click.UsageError(f"{folder}: has no result yet; finish it with 'shine resume {folder}'")
        _ = run.result
    return run


def check_folder(folder: Path, hint: str = "RUN is the folder of a run, such as runs/pythagoras") -> None:
    """Raise a usage error unless a folder exists."""
    if not exists(folder) or not folder.is_dir():
        problem = "is not a folder" if exists(folder) else "no such folder"
        raise click.UsageError(f"{folder}: {problem}; {hint}")


def chosen(run: Run, index: int | None) -> tuple[int, Model]:
    """The position and the model at `index` in a run's front; without an index, those of the recommended model.

    A `click.UsageError` if the front has no such index.
    """
    result = run.result
    place = result.front.best_index if index is None else index
    if place >= len(result.front):
        raise click.UsageError(
            f"--index {place}: the front of {run.folder} has the indices 0 to {len(result.front) - 1}"
        )
    return place, result.front[place]


def parsed(formula: str, parameters: str | None = None) -> Tree:
    """A formula from the command line; a `click.UsageError` if it is not part of the language.

    Parameters
    ----------
    formula : str
    parameters : str, optional
        Names of its arguments in order, separated by commas; the order of `shine.parse` by default.
    """
    from shine.base.errors import UnsupportedSyntaxError
    from shine.lang.parse import parse

    names = None if parameters is None else [name.strip() for name in parameters.split(",")]
    with placed(shown(formula), UnsupportedSyntaxError, kind=click.UsageError):
        return parse(formula, names)


def model_of(source: str, index: int | None) -> tuple[Model | Tree, Run | None]:
    """The model of a run, and the run, if the argument is an existing folder; otherwise the argument as a formula.

    A `click.UsageError` if it is neither a run nor a formula.
    """
    path = run_folder(Path(source))
    # A path in an existing folder is a mistyped run, not a formula.
    if exists(path) or ("/" in source and " " not in source and exists(path.parent)):
        run = opened(path)
        return chosen(run, index)[1], run
    tree = parsed(source)
    if index is not None:
        raise click.UsageError(f"--index is for runs, and there is no folder {shown(source)}")
    if source.isidentifier() and len(source) > 1:  # runs have longer names than x
        click.echo(f"warning: there is no run {shown(source)}; it is taken for a formula of one name", err=True)
    return tree, None


def exists(path: Path) -> bool:
    """Whether there is a file or a folder."""
    # A formula can be too long for a file name, or have characters that a file name cannot have.
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
