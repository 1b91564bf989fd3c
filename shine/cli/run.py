"""``shine evolve``: read, search, print."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tqdm import tqdm

from shine.cli import INTERRUPTED, USAGE
from shine.cli.display import front_table, progress_text
from shine.config import read_job
from shine.runs import ResultRecord, chosen_folder, default_folder, result_record, run_job

if TYPE_CHECKING:
    from shine.gp.evolution import Progress


def run(config_path: Path, seed: int | None, out: Path | None, overrides: Sequence[str], quiet: bool) -> int:
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
    generations = job.config.stop.generations
    hidden = quiet or not sys.stderr.isatty()
    shape = "{percentage:3.0f}%|{bar:12}| generation {n}/{total}{postfix}"
    with tqdm(total=generations, bar_format=shape, dynamic_ncols=True, leave=False, disable=hidden) as bar:

        def show(progress: Progress) -> None:
            bar.update(progress.generation - bar.n)
            if not hidden:
                bar.set_postfix_str(progress_text(progress), refresh=False)

        result = run_job(job, folder, show)
    _print_result(result_record(result), folder, quiet)
    return INTERRUPTED if result.stopped_by == "interrupted" else 0


def _print_result(record: ResultRecord, folder: Path, quiet: bool) -> None:
    if quiet:
        click.echo(record.best.expression)
        return
    # A terminal gets lines that fit; a file or a pipe gets every formula in full.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    click.echo(front_table(record, width))
    reason = "the user" if record.stopped_by == "interrupted" else f"the limit of {record.stopped_by}"
    click.echo(
        f"\n{record.evaluations} evaluations in {record.generations} generations and {record.seconds:.1f} s; "
        f"stopped by {reason}"
    )
    click.echo(f"result.json, front.csv, log.jsonl and config.yaml are in {folder}")
