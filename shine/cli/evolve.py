"""``shine evolve`` and ``shine resume``: search, print."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click
from tqdm import tqdm

from shine.cli.arguments import check_folder
from shine.cli.codes import FAILURE, USAGE
from shine.cli.display import front_table, progress_text
from shine.cli.interruption import Interruption
from shine.cli.output import is_terminal, print_json
from shine.config import Config, read_config, read_job
from shine.errors import ExportError
from shine.runs import ResultRecord, chosen_folder, default_folder, open_run, result_record, resume_job, run_job
from shine.runs.jobs import primitives_of, target_name
from shine.runs.keeping import Notice

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.model import Result


def evolve(
    config_path: Path,
    seed: int | None,
    out: Path | None,
    overrides: Sequence[str],
    printed: str,
    interruption: Interruption,
) -> int:
    """Run a configuration and print what it found.

    Returns
    -------
    int
        Exit code.
    """
    job = read_job(config_path, [*overrides, *([] if seed is None else [f"seed={seed}"])])
    try:
        folder = default_folder(config_path) if out is None else chosen_folder(out)
    except FileExistsError as error:
        click.echo(f"error: --out {error}", err=True)
        return USAGE
    return _searched(partial(run_job, job, folder), job.config, folder, printed, interruption)


def resume(folder: Path, overrides: Sequence[str], printed: str, interruption: Interruption) -> int:
    """Go on with a run and print what it found.

    Returns
    -------
    int
        Exit code.
    """
    check_folder(folder)
    try:
        open_run(folder)
        config = read_config(folder / "config.yaml", overrides)
        return _searched(partial(resume_job, folder, overrides=overrides), config, folder, printed, interruption)
    except ExportError as error:
        raise click.UsageError(str(error)) from None


class _Search(Protocol):
    def __call__(self, report: Callable[[Progress], None], *, tell: Callable[[Notice], None]) -> Result: ...


def _searched(search: _Search, config: Config, folder: Path, printed: str, interruption: Interruption) -> int:
    """Search with a progress bar, and print the result."""
    hidden = printed == "formula" or not is_terminal(sys.stderr)
    shape = "{percentage:3.0f}%|{bar:12}| generation {n}/{total}{postfix}"
    notices: list[Notice] = []
    with tqdm(total=config.stop.generations, bar_format=shape, dynamic_ncols=True, leave=False, disable=hidden) as bar:

        def show(progress: Progress) -> None:
            interruption.keep()
            bar.update(progress.generation - bar.n)
            if not hidden:
                bar.set_postfix_str(progress_text(progress), refresh=False)

        def tell(notice: Notice) -> None:
            notices.append(notice)
            bar.clear()
            click.echo(f"{'error' if notice.failed else 'note'}: {notice.text}", err=True)

        result = search(show, tell=tell)
    failed = any(notice.failed for notice in notices)
    kept = "what could be written is" if failed else "result.json, front.csv, log.jsonl and config.yaml are"
    _print_result(result_record(result, target_name(config), primitives_of(config)), f"{kept} in {folder}", printed)
    if result.stopped_by == "interrupted":
        return interruption.code
    return FAILURE if failed else 0


def _print_result(record: ResultRecord, kept: str, printed: str) -> None:
    if printed == "formula":
        click.echo(record.best.expression)
        return
    if printed == "json":
        print_json(record.model_dump(mode="json"))
        return
    # A terminal gets lines that fit; a file or a pipe gets every formula in full.
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    click.echo(front_table(record, width))
    reasons = {"interrupted": "the user", "callback": "a callback"}
    reason = reasons.get(record.stopped_by, f"the limit of {record.stopped_by}")
    click.echo(
        f"\n{record.evaluations} evaluations in {record.generations} generations and {record.seconds:.1f} s; "
        f"stopped by {reason}"
    )
    click.echo(kept)
