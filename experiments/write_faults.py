"""Does any failure to write, or any damage to what was written, cost a run its last good checkpoint or its result?

    python experiments/write_faults.py [--faults 200] [--seed 0]

While a small run writes a checkpoint after every generation, one call of the operating system fails: opening, writing
(nothing, or the first part), syncing, closing or renaming, once or from then on. The run must go on to the same end and
say that something was not written, no good checkpoint may be gone, and the run resumed from what is there must end the
same. Then what is on disk is damaged: cut short, a bit turned, filled with zeros, emptied. Resuming must end the same,
from an earlier checkpoint, or be refused; and a checkpoint with a turned bit must never be read.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shine.config import read_job
from shine.errors import ExportError
from shine.runs import Notice, chosen_folder, files, keeping, log, open_run, resume_job, run_job
from shine.runs.checkpoints import Checkpoint, DamagedCheckpointError, Shelf, read_checkpoint

CONFIG = """
data: {generate: {rows: 40, features: {a: {uniform: {low: 1, high: 2}}}, target: a**1.5}}
evolution: {population: 30, max_size: 7, seeding: 0.0}
stop: {generations: 6, seconds: null}
"""


class FaultySystem:
    """The module `os` with one call that fails.

    Parameters
    ----------
    call : str
        Its name; ``short`` is a write that writes half.
    first : int
        Which of these calls fails, from 1.
    error : int
        What it fails with.
    lasting : bool
        Whether all later ones fail too.
    """

    def __init__(self, call: str, first: int, error: int, lasting: bool) -> None:
        self.name, self.first, self.error, self.lasting = call.replace("short", "write"), first, error, lasting
        self.short, self.count, self.failed = call == "short", 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name) if name != self.name else self._call

    def _call(self, *arguments: Any) -> Any:
        self.count += 1
        if self.count == self.first or (self.lasting and self.count > self.first):
            self.failed += 1
            if self.short and self.failed == 1:
                os.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if self.name == "close":
                os.close(*arguments)  # a file that cannot be closed without an error is closed all the same
            raise OSError(self.error, os.strerror(self.error))
        return getattr(os, self.name)(*arguments)


FAULTS = {
    "open": (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.ENOENT),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT),
    "short": (errno.ENOSPC,),
    "fsync": (errno.EIO, errno.ENOSPC),
    "close": (errno.EIO, errno.ENOSPC),
    "replace": (errno.EACCES, errno.ENOSPC, errno.EROFS),
}


def cut(content: bytearray, rng: random.Random) -> None:
    """Lose the end."""
    del content[rng.randrange(len(content)) :]


def turn(content: bytearray, rng: random.Random) -> None:
    """Turn a bit."""
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def blank(content: bytearray, rng: random.Random) -> None:
    """Lose a block."""
    start = rng.randrange(len(content))
    content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    content[rng.randrange(len(content))] ^= 255


def append(content: bytearray, rng: random.Random) -> None:
    """Gain something at the end."""
    content += rng.randbytes(rng.randrange(1, 100))


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (cut, turn, blank, append)


def newest_good(folder: Path) -> int:
    """Generation of the last checkpoint that is whole; -1 without one."""
    return next((c.header["generation"] for c in Shelf(folder).readable() if isinstance(c, Checkpoint)), -1)


class WatchedShelf(Shelf):
    """A shelf on which good checkpoints are looked for before and after each attempt to add one."""

    lost = 0

    def put(self, checkpoint: Checkpoint) -> None:
        before = newest_good(self.folder)
        try:
            super().put(checkpoint)
        finally:
            WatchedShelf.lost += newest_good(self.folder) < before


def rows(folder: Path) -> list[dict[str, Any]]:
    """The front that a folder tells of."""
    return list(open_run(folder).result.rows())


def random_system(rng: random.Random) -> FaultySystem:
    """A system with any of the faults."""
    call = rng.choice(list(FAULTS))
    return FaultySystem(call, rng.randint(1, 25), rng.choice(FAULTS[call]), rng.random() < 0.5)


def write_fault(scratch: Path, expected: list[dict[str, Any]], system: FaultySystem) -> str:
    """One run with a call that fails; what was wrong with how it went, or nothing."""
    call = system.name
    folder, told, lost = chosen_folder(scratch / "run"), list[Notice](), WatchedShelf.lost
    job = read_job(scratch / "config.yaml")

    def start(progress: Any) -> None:
        if progress.generation == 0:  # not before: a run that cannot begin is refused, and has nothing to lose
            for module in (files, log):
                module.os = system  # type: ignore[attr-defined]

    try:
        result = run_job(job, folder, start, tell=told.append, checkpoint_seconds=0)
    finally:
        for module in (files, log):
            module.os = os  # type: ignore[attr-defined]
    if list(result.rows()) != expected:
        return f"{call}: another front"
    if WatchedShelf.lost != lost:
        return f"{call}: a good checkpoint was lost"
    if system.failed and not any(notice.failed for notice in told):
        return f"{call}: nothing was said"
    if len([notice for notice in told if notice.failed]) > 1 + 4:  # the first, and one for each file in the end
        return f"{call}: {len(told)} messages"
    resume_job(folder, tell=told.append)
    return "" if rows(folder) == expected else f"{call}: another front after resuming"


def damage(scratch: Path, expected: list[dict[str, Any]], rng: random.Random) -> str:
    """One finished run whose last checkpoints are damaged; what was wrong with how it went on, or nothing."""
    folder = scratch / "run"
    shutil.copytree(scratch / "whole", folder)
    (folder / "result.json").unlink()
    how, paths = rng.choice(DAMAGES), Shelf(folder).paths
    damaged = paths[: rng.randint(1, len(paths))]
    for path in damaged:
        content = bytearray(path.read_bytes())
        how(content, rng)
        path.write_bytes(content)
        try:
            read_checkpoint(path)
            return f"{how.__name__}: was read"
        except DamagedCheckpointError:
            pass
    try:
        resume_job(folder, tell=lambda notice: None)
    except ExportError:
        return "" if len(damaged) == len(paths) else f"{how.__name__}: refused"
    if len(damaged) == len(paths):
        return f"{how.__name__}: went on from nothing"
    return "" if rows(folder) == expected else f"{how.__name__}: another front"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, found = random.Random(options.seed), Counter[str]()
    keeping.Shelf = WatchedShelf  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "config.yaml").write_text(CONFIG)
        whole = run_job(read_job(scratch / "config.yaml"), chosen_folder(scratch / "whole"), checkpoint_seconds=0)
        expected = list(whole.rows())
        for number in range(options.faults):
            writes = bool(number % 2)
            wrong = write_fault(scratch, expected, random_system(rng)) if writes else damage(scratch, expected, rng)
            found[wrong] += 1
            if wrong:
                print(f"{number}: {wrong}", flush=True)
            shutil.rmtree(scratch / "run")
    good = found.pop("", 0)
    print(f"{good} of {options.faults} faults did no harm; {WatchedShelf.lost} good checkpoints lost")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
