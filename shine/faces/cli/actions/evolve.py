"""``shine evolve`` and ``shine resume``: search, print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from shine.base.errors import ExportError
from shine.base.stages import stage
from shine.faces.cli.codes import FAILURE, USAGE
from shine.faces.cli.display import front_table
from shine.faces.cli.interruption import Interruption
from shine.faces.cli.output import print_json
from shine.faces.cli.progress import Silence, display_for
from shine.faces.cli.sources import check_folder, run_folder
from shine.faces.config import Config, read_config, read_job
from shine.faces.runs import (
    Run,
    chosen_folder,
    default_folder,
    open_run,
    read_result,
    result_record,
    resume_job,
    run_job,
)
from shine.faces.runs.keeping import Notice
from shine.lang.forms.rounding import Precision
from shine.lang.wrapping import wrapped
from shine.search.models.figures import screen_width
from shine.search.watching.following import Callback, Several

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress, Visitor
    from shine.search.models.front import Result


def evolve_config(
    config_path: Path,
    seed: int | None,
    out: Path | None,
    overrides: Sequence[str],
    printed: str,
    precision: Precision,
    interruption: Interruption,
    live: LivePage | None = None,
    logs: Sequence[str] = (),
) -> int:
    """Run a configuration and print the result.

    Returns
    -------
    int
        Exit code.
    """
    with display_for(printed, f"reading {config_path} and its data") as display:
        job = read_job(config_path, [*overrides, *([] if seed is None else [f"seed={seed}"])])
        try:
            folder = default_folder(config_path) if out is None else chosen_folder(out)
        except FileExistsError as error:
            display.message(f"error: --out {error}")
            return USAGE
        with stage(f"searching, and keeping the run in {folder}"):
            search, also = partial(run_job, job, folder, began=interruption.began), loggers(logs, folder)
            found = _searched(search, job.config, display, interruption, also, live, folder)
    return _told(*found, job.config, folder, printed, precision, interruption)


def resume_run(
    folder: Path,
    overrides: Sequence[str],
    printed: str,
    precision: Precision,
    interruption: Interruption,
    live: LivePage | None = None,
    logs: Sequence[str] = (),
) -> int:
    """Go on with a run and print the result.

    Returns
    -------
    int
        Exit code.
    """
    folder = run_folder(folder)
    check_folder(folder)
    try:
        with display_for(printed, f"reading {folder}") as display:
            run = open_run(folder)
            config = read_config(folder / "config.yaml", overrides)
            with stage(f"going on with the run in {folder}"):
                search = partial(resume_job, folder, overrides=overrides, began=interruption.began)
                also = loggers(logs, folder)
                found = _searched(search, config, display, interruption, also, live, folder, run)
        return _told(*found, config, folder, printed, precision, interruption)
    except ExportError as error:
        raise click.UsageError(str(error)) from None


@dataclass(frozen=True)
class LivePage:
    """A live page is wanted.

    Parameters
    ----------
    show : bool
        Whether to open it in a browser.
    """

    show: bool


class _Search(Protocol):
    def __call__(
        self, report: Callable[[Progress], object], *, tell: Callable[[Notice], None], visitor: Visitor | None
    ) -> Result: ...


def _searched(
    search: _Search,
    config: Config,
    display: Silence,
    interruption: Interruption,
    also: Sequence[Callback],
    live: LivePage | None,
    folder: Path,
    before: Run | None = None,
) -> tuple[Result, list[Notice]]:
    """Search and show the progress, on a live page, too, if it is wanted; notices are shown at once."""
    notices: list[Notice] = []
    display.status.stop = config.stop

    def show(progress: Progress) -> None:
        interruption.keep()
        display.generation(progress)

    def tell(notice: Notice) -> None:
        notices.append(notice)
        display.message(f"{'error' if notice.failed else 'note'}: {notice.text}")

    report = Several((show, *also))
    if live is None:
        return search(report, tell=tell, visitor=None), notices
    from shine.faces.live.view import Live  # slow to import, and few searches need it

    with Live(folder.resolve().name, config.target_name) as page:
        visitor = page.watch(history=before.history if before else ())
        display.message(f"live page, for you alone: {page.url}")
        if live.show and not page.show_in_browser():
            display.message("note: no browser can be opened; open the address yourself")
        result = search(report, tell=tell, visitor=visitor)
        page.ended(result, config.model_dump(mode="json"))
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


def _told(
    result: Result,
    notices: list[Notice],
    config: Config,
    folder: Path,
    printed: str,
    precision: Precision,
    interruption: Interruption,
) -> int:
    """Print the result; returns the exit code."""
    failed = any(notice.failed for notice in notices)
    kept = "what could be written is" if failed else "result.json, front.csv, log.jsonl and config.yaml are"
    if printed == "json":
        record = result_record(result, config.target_name, config.primitive_texts) if failed else read_result(folder)
        print_json(record.model_dump(mode="json"))
    elif printed != "nothing":
        _print_result(result, f"{kept} in {folder}", printed, precision)
    if result.stopped_by == "interrupted":
        return interruption.code
    return FAILURE if failed else 0


def _print_result(result: Result, kept: str, printed: str, precision: Precision) -> None:
    if printed == "formula":
        click.echo(result.best.expression)
        return
    # Lines are wrapped on a terminal; a file or a pipe gets each formula in one line.
    width = screen_width()
    click.echo(front_table(result, width, precision))
    told = ["", *result.constants_text.splitlines(), result.ending, kept]
    for line in (part for whole in told for part in (wrapped(whole, width) or [""])):
        click.echo(line)
