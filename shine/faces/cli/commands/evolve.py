"""``shine evolve`` and ``shine resume``: search, and go on with a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shine.base.errors import ExportError, placed
from shine.faces.cli.interruption import Interruption
from shine.faces.cli.options import (
    FILE,
    SEED,
    check_folder,
    live_option,
    log_option,
    open_option,
    parallel_options,
    parallel_overrides,
    precision_option,
    quiet_option,
    result_json_option,
    run_folder,
    set_option,
)
from shine.faces.cli.output import FAILURE, USAGE, print_json
from shine.lang.wrapping import wrapped
from shine.search.models.front_table import screen_width

if TYPE_CHECKING:
    from shine.faces.cli.progress import Silence
    from shine.faces.config import Config
    from shine.faces.runs import Run
    from shine.faces.runs.keeping import Notice
    from shine.lang.forms.rounding import Precision
    from shine.search.dynamics.result import DynamicsResult
    from shine.search.evolution.observers import Progress
    from shine.search.models.result import Result
    from shine.search.run import Callback


def search_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of commands that search; they get `overrides`, `printed`, `page`, `precision` and `logs`."""

    @wraps(command)
    def asked(
        *given: Any,
        overrides: tuple[str, ...],
        live: bool,
        show: bool,
        workers: int | None,
        dask: str | None,
        slurm: dict[str, str] | None,
        quiet: bool,
        as_json: bool,
        **others: Any,
    ) -> int:
        overrides += tuple(parallel_overrides(workers, dask, slurm))
        printed, page = printed_by(quiet, as_json), live_page(live, show)
        return command(*given, overrides=overrides, printed=printed, page=page, **others)

    options = set_option, live_option, open_option, parallel_options, precision_option, log_option, quiet_option
    for option in (result_json_option, *reversed(options)):
        asked = option(asked)
    return asked


@click.command("evolve")
@click.argument("config", type=FILE)
@click.option("--seed", type=SEED, metavar="N", help="Seed, instead of the configuration's.")
@click.option("--out", type=FILE, metavar="DIR", help="New or empty folder; by default runs/<CONFIG>[-2, ...].")
@search_options
@click.pass_context
def evolve(
    context: click.Context,
    config: Path,
    seed: int | None,
    out: Path | None,
    overrides: tuple[str, ...],
    printed: str,
    page: bool | None,
    precision: Precision,
    logs: tuple[str, ...],
) -> int:
    """Search for formulas with the settings of CONFIG, a YAML file.

    Prints the Pareto front of loss and complexity, and writes the configuration and the result to a folder. Ctrl-C ends
    the search and keeps the formulas found so far; 'shine resume' goes on with it.

    \b
    Example:
      shine evolve configs/pythagoras.yaml --seed 3 --set stop.seconds=10
      shine evolve big.yaml --set evolution.islands=16 --workers 8
    """
    return run_config(config, seed, out, overrides, printed, precision, interruption_of(context), page, logs)


def run_config(
    config_path: Path,
    seed: int | None,
    out: Path | None,
    overrides: Sequence[str],
    printed: str,
    precision: Precision,
    interruption: Interruption,
    live: bool | None = None,
    logs: Sequence[str] = (),
) -> int:
    """Run a configuration and print the result; return the exit code."""
    from shine.base.stages import stage
    from shine.faces.cli.progress import display_for
    from shine.faces.config import read_any_job
    from shine.faces.runs import chosen_folder, default_folder, run_job

    with display_for(printed, f"reading {config_path} and its data") as display:
        job = read_any_job(config_path, [*overrides, *([] if seed is None else [f"seed={seed}"])])
        loggers(logs, Path())  # what they lack is told before there is a folder
        try:
            folder = default_folder(config_path) if out is None else chosen_folder(out)
        except FileExistsError as error:
            display.message(f"error: --out {error}")
            return USAGE
        with stage(f"searching, and keeping the run in {folder}"):
            search, also = partial(run_job, job, folder, began=interruption.began), loggers(logs, folder)
            found = searched(search, job.config, display, interruption, also, live, folder)
    return print_result(*found, job.config, folder, printed, precision, interruption)


def live_page(live: bool, show: bool) -> bool | None:
    """Whether a browser is to open the live page; None without a page."""
    if show and not live:
        raise click.UsageError("--open opens the live page; add --live")
    return show if live else None


def printed_by(quiet: bool, as_json: bool) -> str:
    """Printed output at the end: json, formula or front."""
    if quiet and as_json:
        raise click.UsageError("--quiet and --json exclude each other")
    return "json" if as_json else "formula" if quiet else "front"


def interruption_of(context: click.Context) -> Interruption:
    """Handler of signals to this process."""
    return context.find_object(Interruption) or Interruption()


def searched(
    search: Callable[..., Result | DynamicsResult],
    config: Config,
    display: Silence,
    interruption: Interruption,
    also: Sequence[Callback],
    live: bool | None,
    folder: Path,
    before: Run | None = None,
) -> tuple[Result | DynamicsResult, list[Notice]]:
    """Search and show the progress, on a live page, too, if it is wanted; notices are shown at once."""
    from shine.search.models.result import Result
    from shine.search.run import Several

    notices: list[Notice] = []
    display.status.stop = config.stop

    def show(progress: Progress) -> None:
        interruption.keep()
        display.generation(progress)

    def tell(notice: Notice) -> None:
        notices.append(notice)
        display.message(f"{'error' if notice.failed else 'note'}: {notice.text}")

    if live is None:
        return search(Several((show, *also)), tell=tell, visitor=None), notices
    from shine.faces.live.view import Live  # slow to import, and few searches need it

    motion = config.dynamics is not None
    with Live(folder.resolve().name, "rate" if motion else config.constraints.with_unit(config.target_name)) as page:
        visitor = page.watch(history=before.history if before and not motion else ())
        display.message(f"live page, for you alone: {page.url}")
        if live and not page.show_in_browser():
            display.message("note: no browser can be opened; open the address yourself")
        result = search(Several((show, *also, *([page] if motion else []))), tell=tell, visitor=visitor)
        settings = config.model_dump(mode="json")
        if isinstance(result, Result):
            page.ended(result, settings)
        else:
            from shine.faces.config import read_dynamics
            from shine.faces.dynamics.report import report_parts

            readings = read_dynamics(folder / "config.yaml").trajectories
            page.reports(report_parts(result.front, readings, folder.resolve().name, settings))
    return result, notices


def loggers(names: Sequence[str], folder: Path) -> list[Callback]:
    """The callbacks that keep a run elsewhere too."""
    made: list[Callback] = []
    if "mlflow" in names:
        from shine.faces.callbacks import MLflow

        made.append(MLflow(name=folder.name))
    if "tensorboard" in names:
        from shine.faces.callbacks import TensorBoard

        made.append(TensorBoard(folder / "tensorboard"))
    return made


def print_result(
    result: Result | DynamicsResult,
    notices: list[Notice],
    config: Config,
    folder: Path,
    printed: str,
    precision: Precision,
    interruption: Interruption,
) -> int:
    """Print the result; returns the exit code."""
    from shine.faces.runs import open_run
    from shine.faces.runs.jobs import record_of

    failed = any(notice.failed for notice in notices)
    kept = "what could be written is" if failed else "result.json, front.csv, log.jsonl and config.yaml are"
    if printed == "json":
        record = record_of(result, config) if failed else open_run(folder).record
        print_json(record.model_dump(mode="json"))
    elif printed != "nothing":
        _print_result(result, f"{kept} in {folder}", printed, precision)
    if result.stopped_by == "interrupted":
        return interruption.code
    return FAILURE if failed else 0


def _print_result(result: Result | DynamicsResult, kept: str, printed: str, precision: Precision) -> None:
    from shine.faces.cli.output import front_table
    from shine.search.models.result import Result

    if not isinstance(result, Result):
        front = result.front
        exact = "\n".join(front.best.lines("exact") if front.found else [front.reason])
        text = exact if printed == "formula" else f"{front.table(precision)}\n{result.ending}\n{kept}"
        click.echo(text, err=printed == "formula" and not front.found)
        return
    if printed == "formula":
        click.echo(result.best.expression)
        return
    # Lines are wrapped on a terminal; a file or a pipe gets each formula in one line.
    width = screen_width()
    click.echo(front_table(result, width, precision))
    ties = "" if result.stopped_by == "interrupted" else result.ties_text  # takes long
    lines = ["", *result.constants_text.splitlines(), *([ties] if ties else []), result.ending, kept]
    for line in (part for whole in lines for part in (wrapped(whole, width) or [""])):
        click.echo(line)


@click.command("resume")
@click.argument("folder", metavar="RUN", type=FILE)
@search_options
@click.pass_context
def resume(
    context: click.Context,
    folder: Path,
    overrides: tuple[str, ...],
    printed: str,
    page: bool | None,
    precision: Precision,
    logs: tuple[str, ...],
) -> int:
    """Go on with the interrupted search in the folder RUN.

    The result is the same, to the last bit, as without the interruption, also on another number of workers. --set can
    raise limits.

    \b
    Example:
      shine resume runs/pythagoras --set stop.generations=500
    """
    from shine.base.stages import stage
    from shine.faces.cli.progress import display_for
    from shine.faces.config import read_config
    from shine.faces.runs import open_run, resume_job

    folder, interruption = run_folder(folder), interruption_of(context)
    check_folder(folder)
    with placed("", ExportError, kind=click.UsageError):
        with display_for(printed, f"reading {folder}") as display:
            run = open_run(folder)
            config = read_config(folder / "config.yaml", overrides)
            with stage(f"going on with the run in {folder}"):
                search = partial(resume_job, folder, overrides=overrides, began=interruption.began)
                also = loggers(logs, folder)
                found = searched(search, config, display, interruption, also, page, folder, run)
        return print_result(*found, config, folder, printed, precision, interruption)
