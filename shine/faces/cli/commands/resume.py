"""``shine resume``: go on with a search."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shine.base.errors import ExportError, placed
from shine.faces.cli.commands.evolve import interruption_of, loggers, print_result, search_options, searched
from shine.faces.cli.options import FILE, check_folder, run_folder

if TYPE_CHECKING:
    from shine.lang.forms.rounding import Precision


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
