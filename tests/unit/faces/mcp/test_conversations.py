"""The server, asked by the SDK's own client over a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytest.importorskip("mcp")

import anyio
import numpy as np
from helpers.agents import LONG, TEA, answer, command, conversation, error, tea, until, workers

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table."""
    made = tmp_path / "shared"
    made.mkdir(mode=0o755)
    tea(made)
    return made


def test_a_cancelled_search_keeps_what_it_found(folder):
    async def talk(client):
        with anyio.CancelScope() as scope:

            async def progress(seconds, total, message):
                if "generation" in message:
                    scope.cancel()

            await client.call_tool("search", {"settings": LONG}, progress_callback=progress)
        assert scope.cancelled_caught
        with anyio.fail_after(30):
            while (await answer(client, "past_runs"))["runs"][0]["stopped_by"] == "unfinished":
                await anyio.sleep(0.2)
        (run,) = (await answer(client, "past_runs"))["runs"]
        assert run["stopped_by"] == "interrupted"
        return await answer(client, "front", run=run["run"])

    found = conversation(folder, talk)
    assert len(found["front"]) > 1
    until(lambda: not workers(folder), 15, "the end of all workers")


def test_a_search_keeps_its_limit_of_time(folder):
    async def talk(client):
        began = time.monotonic()
        found = await answer(client, "search", settings={**LONG, "stop": {**LONG["stop"], "seconds": 3}})
        return found, time.monotonic() - began

    found, seconds = conversation(folder, talk)
    assert "stopped by the limit of seconds" in found["ending"]
    assert seconds < 3 + 12  # the process starts, and tells what it found; under load both are slow


def test_one_search_runs_at_a_time_unless_the_server_was_told_otherwise(folder):
    async def together(client):
        results = []

        async def one(name):
            result = await client.call_tool("search", {"settings": TEA, "name": name})
            results.append((result.is_error, result.content[0].text))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "first")
            tasks.start_soon(one, "second")
        return sorted(results)

    (fails, _), (failed, text) = conversation(folder, together)
    assert (fails, failed) == (False, True)
    assert json.loads(text) == {"error": "a search is running; wait until it ends, or cancel it"}
    assert [failed for failed, _ in conversation(folder, together, "--searches", "2")] == [False, False]


def test_two_clients_search_in_one_folder(folder):
    async def talk(client):
        return (await answer(client, "search", settings=TEA))["run"]

    with subprocess.Popen([sys.executable, "-c", CLIENT, str(folder)], stdout=subprocess.PIPE, text=True) as other:
        mine = conversation(folder, talk)
        theirs = other.communicate(timeout=100)[0].strip()
    assert {mine, theirs} == {"runs/tea", "runs/tea-2"}
    for name in (mine, theirs):
        assert (folder / name / "result.json").is_file()


CLIENT = textwrap.dedent(
    f"""
    import sys
    from pathlib import Path
    sys.path.insert(0, {str(Path(__file__).parents[3])!r})
    import anyio
    from helpers.agents import LONG, TEA, answer, conversation
    folder = Path(sys.argv[1])
    async def talk(client):
        settings = LONG if "long" in sys.argv else TEA
        print((await answer(client, "search", settings=settings))["run"], flush=True)
    conversation(folder, talk)
    """
)
"""A client as a program."""


def test_a_killed_client_leaves_nothing_behind(folder):
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(folder), "long"])
    run = folder / "runs" / "tea"
    try:
        until(lambda: (run / "log.jsonl").is_file() and (run / "log.jsonl").stat().st_size, 60, "a generation")
        assert workers(folder)
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait()
    until(lambda: not workers(folder) and not servers(folder), 20, "the end of the server and its worker")
    assert json.loads((run / "result.json").read_text(encoding="utf-8"))["stopped_by"] == "interrupted"


def test_a_killed_server_leaves_nothing_behind(folder):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command(folder), **pipes, text=True) as server:
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        for message in (
            {"id": 1, "method": "initialize", "params": begin},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"settings": LONG}}},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        log = folder / "runs" / "tea" / "log.jsonl"
        until(lambda: log.is_file() and log.stat().st_size, 60, "a generation")
        server.send_signal(signal.SIGKILL)
    until(lambda: not workers(folder), 20, "the end of the worker")
    assert (folder / "runs" / "tea" / "result.json").is_file()


def servers(folder: Path) -> list[int]:
    """Processes that serve a folder."""
    import psutil

    words = command(folder)[1:]
    return [each.pid for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[1:] == words]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of memory are those of POSIX")
def test_calls_have_limits_of_memory_and_time(folder):
    rows = np.lib.format.open_memmap(folder / "rows.npy", mode="w+", dtype=np.float64, shape=(60_000_000, 2))
    del rows  # a file with a hole of a gigabyte

    async def talk(client):
        too_much = await error(client, "predict", of={"formula": "x0"}, data="rows.npy")
        assert "GiB" in too_much
        slow = await error(client, "explain", of={"formula": SLOW}, ranges={f"x{i}": [1, 2] for i in range(121)})
        assert slow == "took more than 2 s, the limit of a call; use fewer rows or columns"
        return await answer(client, "describe_table", path="tea.csv")  # the server goes on

    assert conversation(folder, talk, "--memory", "0.5", "--call-seconds", "2")["rows"] == 40


SLOW = "+".join(f"sin(x{i}*x{i + 1})" for i in range(120))
"""A formula that takes long to explain, feature by feature: 15 s of the processor need 0.15 GiB."""
