"""A call as a process: started, heard, and ended by its answer, its limits, a cancellation or the end of the server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from shine.faces.mcp.answers import LATE
from shine.faces.mcp.worker import GRACE

LONGEST_CALL = 1 << 20
"""Most bytes of the arguments of a call."""

LONGEST_LINE = 1 << 26
"""Most bytes of a line of a worker: pictures are the longest."""

LASTED = None, -getattr(signal, "SIGALRM", 14)
"""Exit codes of a worker that its timer ended, `LATE` after its limit of time, or that has not ended yet."""

AT_ONCE = 4
"""Most calls that run at once, besides searches."""

Tell = Callable[[float, float, str], Awaitable[None]]
"""Receives seconds, their limit, and what a search does."""


@dataclass(eq=False)
class Desk:
    """Executor of the clients' calls.

    Parameters
    ----------
    folder : Path
        What calls may read and write.
    seconds, call_seconds : float
        Limits of time of searches, and of other calls.
    memory : float
        Limit of memory of each call, in GiB.
    searches : int
        Most searches at once.
    """

    folder: Path
    seconds: float = 600.0
    call_seconds: float = 60.0
    memory: float = 4.0
    searches: int = 1
    _searching: int = 0
    _places: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(AT_ONCE))

    async def answered(self, tool: str, arguments: Mapping[str, Any], tell: Tell | None = None) -> dict[str, Any]:
        """The line of the worker that answers a call: an answer, or an error."""
        if tool != "search":
            async with self._places:
                return await self._worked(tool, arguments, self.call_seconds, tell)
        if self._searching >= self.searches:
            return {"error": "a search is running; wait until it ends, or cancel it"}
        self._searching += 1
        try:
            return await self._worked(tool, arguments, self.seconds, tell)
        finally:
            self._searching -= 1

    async def _worked(
        self, tool: str, arguments: Mapping[str, Any], seconds: float, tell: Tell | None
    ) -> dict[str, Any]:
        began = time.monotonic()
        limits = {"folder": str(self.folder), "seconds": seconds, "memory": self.memory, "began": began}
        call = json.dumps({"tool": tool, "arguments": arguments, **limits}).encode() + b"\n"
        if len(call) > LONGEST_CALL:
            return {"error": f"the arguments are longer than {LONGEST_CALL} bytes; put data into files"}
        # -P: a module in the working directory is not Shine's. A session of its own: a signal to the server's group
        # does not keep a search from writing what it has found.
        command = [sys.executable, "-P", "-m", "shine.faces.mcp.worker"]
        worker = await anyio.open_process(command, stdout=subprocess.PIPE, stderr=None, start_new_session=True)
        try:
            with anyio.fail_after(seconds + 2 * LATE):  # the process ends itself before
                assert worker.stdin is not None and worker.stdout is not None
                await worker.stdin.send(call)
                lines = BufferedByteReceiveStream(worker.stdout)
                while True:
                    line: dict[str, Any] = json.loads(await lines.receive_until(b"\n", LONGEST_LINE))
                    if "progress" not in line:
                        return line
                    if tell is not None:
                        await tell(line["progress"], line["total"], line["message"])
        except (TimeoutError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            with anyio.move_on_after(1):
                await worker.wait()
            if worker.returncode == 1:
                return {"error": "the process of the call did not start; the server's log says why"}
            if worker.returncode in LASTED:
                return {"error": f"took more than {seconds:g} s, the limit of a call; use fewer rows or columns"}
            return {"error": f"the process of the call died: perhaps it needed more than {self.memory:g} GiB"}
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(worker)


async def _ended(worker: anyio.abc.Process) -> None:
    """End a worker: it hears that its input is closed, and may write what it has found."""
    with anyio.move_on_after(GRACE + 1):
        if worker.stdin is not None:
            await worker.stdin.aclose()
        await worker.wait()
    if worker.returncode is None:
        worker.kill()
    await worker.aclose()
