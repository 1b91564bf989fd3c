"""Conversations of the SDK's own client with a server in a process of its own."""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

Talk = Callable[[Client], Awaitable[Any]]

TEA = {
    "data": {"path": "tea.csv", "target": "tea [degC]"},
    "primitives": ["add", "sub", "mul", "div", "exp"],
    "stop": {"generations": 2, "seconds": 60},
}
"""Settings of a short search in `tea`."""

LONG = {**TEA, "stop": {"seconds": 300, "stagnation": 100000, "loss": 0}, "evolution": {"seeding": 0}}
"""Settings of a search that goes on until it is cancelled."""


def tea(folder: Path) -> Path:
    """A table of cups that cool from 90 to 20 degrees."""
    rng = random.Random(1)
    rows = ["minutes [min],tea [degC]"]
    for _ in range(40):
        minutes = rng.uniform(0, 60)
        rows.append(f"{minutes:.2f},{20 + 70 * math.exp(-0.05 * minutes) + rng.gauss(0, 0.2):.2f}")
    path = folder / "tea.csv"
    path.write_text("\n".join([*rows, ""]), encoding="utf-8")
    return path


def command(folder: Path, *options: str) -> list[str]:
    """The command that starts a server."""
    return [sys.executable, "-m", "shine", "mcp", "--folder", str(folder), *options]


def conversation(folder: Path, talk: Talk, *options: str) -> Any:
    """What a conversation returns; the server prints no traceback."""
    program, *words = command(folder, *options)
    server = StdioServerParameters(command=program, args=words, env=dict(os.environ))

    async def held() -> Any:
        async with Client(stdio_client(server, errlog=errors)) as client:
            return await talk(client)

    path = folder.with_name(f"{folder.name}.errors")
    with path.open("w+", encoding="utf-8") as errors:
        found = anyio.run(held)
    assert "Traceback" not in path.read_text(encoding="utf-8"), path.read_text(encoding="utf-8")
    return found


async def answer(client: Client, tool: str, **arguments: Any) -> Any:
    """The answer of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


async def error(client: Client, tool: str, **arguments: Any) -> str:
    """The error of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content[0].text
    return str(json.loads(result.content[0].text)["error"])


def workers(folder: Path) -> list[psutil.Process]:
    """Processes of calls whose working directory is a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words, cwd = process.info["cmdline"] or [], process.info["cwd"]
        if "shine.faces.mcp.worker" in words and cwd == str(folder.resolve()):
            found.append(process)
    return found


def until(reached: Callable[[], Any], seconds: float, what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)
