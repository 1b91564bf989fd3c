"""One run in a process of its own: `python -m quality.worker TASK.npz RESULT.json`.

Needs NumPy and the engine, and may run under another interpreter than the experiment.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np

from quality.engines import ENGINES, Found, Task


def write_task(path: Path, engine: str, task: Task) -> None:
    """Write a task for a worker."""
    words = json.dumps([engine, list(task.features), task.budget, task.threads, task.seed])
    np.savez(path, X=task.X, y=task.y, words=np.array(words))


def read_task(path: Path) -> tuple[str, Task]:
    """The engine's name and the task that `write_task` wrote."""
    with np.load(path) as arrays:
        engine, features, budget, threads, seed = json.loads(str(arrays["words"]))
        return engine, Task(arrays["X"], arrays["y"], features, budget, threads, seed)


def read_result(path: Path) -> Found:
    """A worker's result; raises OSError or ValueError if the worker did not finish."""
    return Found(**json.loads(path.read_text(encoding="utf-8")))


def main() -> None:
    warnings.simplefilter("ignore")
    source, target = map(Path, sys.argv[1:])
    engine, task = read_task(source)
    target.write_text(json.dumps(asdict(ENGINES[engine](task))), encoding="utf-8")


if __name__ == "__main__":
    main()
