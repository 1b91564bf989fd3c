"""The command line in tests: in this process where that is enough, else in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import shine as installed
from shine.faces.cli.commands import shine as group

ROOT = Path(__file__).resolve().parents[2]
SMALL = """
data: {generate: {rows: 20, features: {a: {uniform: {low: 1, high: 2}}, b: {uniform: {low: 1, high: 2}}}, target: a*b}}
evolution: {population: 50, max_size: 5, seeding: 0}
fitness: {tier: reference, noise: absolute}
stop: {generations: 5}
"""
PRODUCTS = ("a*b", "b*a")
ENDLESS = [
    "--set", "stop={generations: 1000000, seconds: 600, stagnation: null, loss: 0}",
    "--set", "data.generate.target=sin(a*b)",
]  # fmt: skip
"""Options that make a search of SMALL go on until a signal, or until a limit that is set after these."""


def shine(*arguments: str | Path) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(group, [str(argument) for argument in arguments], prog_name="shine")


def environment(**extra: str) -> dict[str, str]:
    """Environment of a process that runs Shine."""
    # The Shine that is tested here, wherever it is installed and whatever the current folder is.
    return {**os.environ, "PYTHONPATH": str(Path(installed.__file__).parents[1]), "COLUMNS": "80", **extra}


def command(*arguments: str | Path) -> list[str]:
    """A command line for a process."""
    return [sys.executable, "-m", "shine", *map(str, arguments)]


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own, to its end."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.run(command(*arguments), text=True, timeout=60, check=False, **streams)


def started(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command line in a process that answers Ctrl-C, even if this one was started not to."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    before = signal.signal(signal.SIGINT, signal.default_int_handler) if ignored else None
    try:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
        return subprocess.Popen(command(*arguments), text=True, **streams)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def await_text(path: Path, running: subprocess.Popen[str], seconds: float = 30.0) -> None:
    """Wait until a file has something in it."""
    patience = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < patience
        time.sleep(0.02)
