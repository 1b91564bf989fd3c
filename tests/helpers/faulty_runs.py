"""Runs whose writes fail and runs whose checkpoints are damaged, and checks of how they end.

While a small run writes a checkpoint after every generation, one call of the operating system fails, once or from then
on. The run must go on to the same end and say that something was not written, no good checkpoint may be lost, and the
run resumed from what is there must end the same. If checkpoints are truncated, overwritten or have a flipped bit, the
run must end the same from an earlier checkpoint, or be refused; a damaged checkpoint must never be read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from helpers.faulty_system import FaultySystem
from helpers.run_folders import newest_good

from shine.base import files
from shine.faces.config import read_job
from shine.faces.runs import keeping
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.runs import Notice, chosen_folder, open_run, resume_job, run_job


class WatchedShelf(Shelf):
    """A shelf that counts good checkpoints lost by attempts to add one."""

    lost = 0

    def put(self, checkpoint: Checkpoint) -> None:
        before = newest_good(self.folder)
        try:
            super().put(checkpoint)
        finally:
            WatchedShelf.lost += newest_good(self.folder) < before


def rows(folder: Path) -> list[dict[str, Any]]:
    """The front in a folder."""
    return list(open_run(folder).result.rows())


def write_fault(scratch: Path, expected: list[dict[str, Any]], system: FaultySystem) -> str:
    """One run with a failing call; the fault that was found, or an empty text."""
    call = system.name
    folder, told, lost = chosen_folder(scratch / "run"), list[Notice](), WatchedShelf.lost
    job = read_job(scratch / "config.yaml")

    def start(progress: Any) -> None:
        if progress.generation == 0:  # not before: a run that cannot begin is refused
            for module in (files, keeping):
                module.os = system  # type: ignore[attr-defined]

    try:
        result = run_job(job, folder, start, tell=told.append, checkpoint_seconds=0)
    finally:
        for module in (files, keeping):
            module.os = os  # type: ignore[attr-defined]
    if list(result.rows()) != expected:
        return f"{call}: another front"
    if WatchedShelf.lost != lost:
        return f"{call}: a good checkpoint was lost"
    if system.failed and not any(notice.failed for notice in told):
        return f"{call}: nothing was said"
    if len([notice for notice in told if notice.failed]) > 1 + 4:  # the first, and one for each file at the end
        return f"{call}: {len(told)} messages"
    resume_job(folder, tell=told.append)
    return "" if rows(folder) == expected else f"{call}: another front after resuming"
