"""A process that is killed leaves nothing: no workers, no semaphores, no folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shine

SEARCH = """
import numpy as np, shine
rng = np.random.default_rng(0)
X = rng.uniform(1, 2, (200, 3))
y = np.sin(X[:, 0]*X[:, 1]) + rng.normal(size=200)
print("begun", flush=True)
shine.evolve(X, y, workers=2, islands=2, seconds=300, generations=10**6, seeding=0.0, stop_loss=0.0)
"""

PATIENCE = 40.0
"""Seconds that all of it may take on a busy machine; two or three on an idle one."""


def descendants(root: int) -> set[int]:
    """Processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in found | {root}} - found:
        found |= more
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition) -> bool:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def semaphores(process: int) -> list[str]:
    folder = Path("/dev/shm")
    return [path.name for path in folder.glob(f"sem.loky-{process}-*")] if folder.is_dir() else []


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_killed_search_leaves_nothing(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(Path(shine.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", SEARCH], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as search:
        try:
            assert eventually(lambda: len(descendants(search.pid)) >= 3 and any(tmp_path.iterdir()))
            started = descendants(search.pid)
        finally:
            search.send_signal(signal.SIGKILL)
    assert eventually(lambda: not any(map(alive, started)))
    assert eventually(lambda: not semaphores(search.pid))
    assert eventually(lambda: not any(tmp_path.iterdir()))
