"""The options of the command line and the arguments of agents' tools; finished runs that many rows share."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from cli.commandline import shine as command

from shine.faces.cli.commands import shine as group
from shine.faces.mcp.worker import MODULES, function_of

COMMANDS = ("command line",)
AGENTS = ("agents",)
TOOLS = tuple(name for name in MODULES if name != "resource")
LEFT, RIGHT = np.random.default_rng(0).uniform(1, 2, (2, 40))
TARGET = 1.2345 * LEFT * RIGHT + np.random.default_rng(1).normal(0, 0.02, 40)
"""The columns a, b and y of the shared run, whose chosen formula is c*a*b."""

SEARCH = """
data: {path: rows.csv, target: y}
primitives: [add, mul]
evolution: {population: 60, max_size: 7, seeding: 0}
fitness: {noise: absolute, threads: 1, tier: reference}
stop: {generations: 3}
"""


def walked(inner: click.Command = group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Parameter]]:
    """Every argument and option of a command and of those below it, with the words before it."""
    for each in inner.params:
        name = max(each.opts, key=len) if isinstance(each, click.Option) else each.human_readable_name
        yield " ".join((*path, name)), each
    for name, below in getattr(inner, "commands", {}).items():
        yield from walked(below, (*path, name))


OPTIONS = dict(walked())


def choices(option: str) -> tuple[str, ...]:
    """All values that an option takes."""
    return tuple(OPTIONS[option].type.choices)  # type: ignore[attr-defined]


def arguments() -> set[str]:
    """The tools of agents, and each argument as TOOL.ARGUMENT."""
    return {f"{tool}.{name}" for tool in TOOLS for name in inspect.signature(function_of(tool)).parameters} | {*TOOLS}


def told(*words: str | Path, code: int = 0) -> str:
    """What a command line prints."""
    ended = command(*words)
    assert ended.exit_code == code, ended.output
    return ended.stdout


def begin() -> Path:
    """Write the shared table and the configuration of a search in it; returns the configuration."""
    rows = np.column_stack([LEFT, RIGHT, TARGET])
    np.savetxt("rows.csv", rows, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    Path("search.yaml").write_text(SEARCH)
    return Path("search.yaml")


def finished() -> Path:
    """A copy of the shared run, in the current folder."""
    kept = Path.cwd().parent / "kept"
    if not kept.exists():
        told("evolve", begin(), "--out", kept, "--quiet")
    else:
        begin()
    return Path(shutil.copytree(kept, "run"))


def record(run: str | Path) -> Any:
    """The result.json of a run."""
    return json.loads(Path(run, "result.json").read_text(encoding="utf-8"))


def formulas(run: str | Path) -> list[str]:
    return [each["expression"] for each in record(run)["front"]]
