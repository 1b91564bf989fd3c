"""Prints the dialogue of agents.md: the client of the Model Context Protocol's SDK asks `shine mcp` about a cup of tea.

``python docs/dialogue.py``; it needs the extra `mcp`. Long answers are cut.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

LONGEST = 220
"""Most characters of an answer that are printed."""

RUN = {"run": "runs/tea"}

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("describe_table", {"path": "tea.csv"}),
    (
        "search",
        {
            "settings": {
                "data": {"path": "tea.csv", "target": "tea [degC]"},
                "primitives": ["add", "sub", "mul", "div", "exp"],
                "stop": {"generations": 2, "seconds": 100},
            }
        },
    ),
    ("explain", {"of": RUN, "units": {"minutes_min": "min", "target": "degC"}}),
    ("compare", {"first": RUN, "second": {**RUN, "index": 2}, "data": "fresh.csv", "target": "tea [degC]"}),
    ("export", {"of": RUN, "to": "c", "name": "degrees", "out": "degrees.c"}),
    ("predict", {"of": RUN, "data": "../secret.csv"}),
]
"""What the client asks."""


def cups(path: Path, rng: random.Random) -> None:
    """Write a table of readings of a cup that cools."""
    lines = ["minutes [min],tea [degC]"]
    for minutes in range(0, 60, 2):
        lines.append(f"{minutes},{20 + 70 * math.exp(-0.05 * minutes) + rng.uniform(-0.5, 0.5):.1f}")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


async def dialogue(folder: Path) -> None:
    """Hold the dialogue, and print it."""
    words = ["-m", "shine", "mcp", "--folder", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        for tool, arguments in CALLS:
            print(f"> {tool} {json.dumps(arguments)}")
            result = await client.call_tool(tool, arguments)
            text = result.content[0].text
            print(f"{text[:LONGEST]}{'...' if len(text) > LONGEST else ''}\n")


def main() -> None:
    """Print the dialogue."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("tea.csv", "fresh.csv"):
            cups(folder / name, rng)
        anyio.run(dialogue, folder)


if __name__ == "__main__":
    main()
