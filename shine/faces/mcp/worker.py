"""The process of one call: it reads the call from standard input, and writes progress and the answer as lines of JSON.

The end of its input, which the server closes and the system closes when the server dies, interrupts a search, which
keeps what it has found; every process ends a short time after that, and at its limit of time.
"""

from __future__ import annotations

import _thread
import base64
import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shine.faces.mcp.answers import CHANNEL, Answer, Channel, brief, quoted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MODULES = {
    "describe_table": "tables", "search": "searching", "front": "searching", "explain": "applying",
    "compare": "applying", "predict": "applying", "plot": "applying", "export": "applying",
    "next_measurement": "applying", "past_runs": "searching", "resource": "searching",
}  # fmt: skip
"""Module of each tool's function, and of what reads resources: a process loads only what its call needs."""

MOST_PROBLEMS = 10
"""Most problems that an error lists."""

GRACE = 8.0
"""Seconds in which an interrupted search writes what it has found."""


def function_of(tool: str) -> Callable[..., Answer]:
    """The function that does the work of a tool."""
    found: Callable[..., Answer] = getattr(import_module(f"shine.faces.mcp.{MODULES[tool]}"), tool)
    return found


def answer(function: Callable[..., Answer], call: Mapping[str, Any]) -> dict[str, Any]:
    """What a function answers to a call, or the error that says what to change."""
    from pydantic import ValidationError, validate_call

    from shine.base.errors import ShineError

    try:
        found = validate_call(config={"strict": True})(function)(**call["arguments"])
        apart: dict[str, Any] = {name: found.pop(name) for name in ("raw", "png") if name in found}
        if "png" in apart:
            apart["png"] = base64.b64encode(apart["png"]).decode()
        return {"answer": brief(found), **apart}
    except ValidationError as error:
        lines = [_wrong(each) for each in error.errors()]
    except (ShineError, ValueError, TypeError, OSError) as error:
        lines = str(error).replace(f"{Path.cwd()}{os.sep}", "").splitlines() or [type(error).__name__]
    except MemoryError:
        lines = [f"needs more than the {call['memory']:g} GiB of a call; use fewer rows or columns"]
    except KeyboardInterrupt:
        lines = ["stopped before anything was found"]
    except Exception as error:
        traceback.print_exc()
        lines = [f"a defect of Shine: {type(error).__name__}: {quoted(error, 200)}; nothing is wrong with the call"]
    more = [f"and {len(lines) - MOST_PROBLEMS} more problems"] if len(lines) > MOST_PROBLEMS else []
    return {"error": "\n".join([*(quoted(line, 600) for line in lines[:MOST_PROBLEMS]), *more])}


def _wrong(details: ErrorDetails) -> str:
    """An error of an argument, as a sentence."""
    from shine.evaluate.validation import worded
    from shine.faces.config.problems import shown

    kind, place = details["type"], ".".join(map(str, details["loc"]))
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: there is no such argument"
    return f"{place}: is missing" if kind.startswith("missing") else f"{place}: {worded(details, shown)}"


def limit(memory: float) -> None:
    """Give this process no more memory than so many GiB."""
    with suppress(ImportError, ValueError, OSError):  # Windows; limits of the system that are lower
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Address space is taken in advance by allocators and threads; what may be written is what counts.
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)


def end_with_input(answered: threading.Event) -> None:
    """Interrupt the main thread when the input ends before it has answered, and end the process soon after."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        if not answered.is_set():
            _thread.interrupt_main()
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Answer the call in the first line of standard input."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    call = json.loads(_line())
    channel = Channel(answers, call["seconds"], call["began"])
    CHANNEL.set(channel)
    function = function_of(call["tool"])
    limit(call["memory"])
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)  # the end of the input tells
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answered = threading.Event()
    end_with_input(answered)
    os.environ["MPLBACKEND"] = "agg"
    warnings.simplefilter("ignore")
    if call["tool"] == "plot":
        with suppress(ImportError):
            import matplotlib  # noqa: F401  # it reads settings from the working directory, which may hold any
    os.chdir(call["folder"])
    found = answer(function, call)
    answered.set()
    channel.send(**found)
    os._exit(0)


def _line() -> bytes:
    """The first line of standard input; byte by byte, because the rest tells when to end."""
    line = bytearray()
    while (found := os.read(0, 1)) and found != b"\n":
        line += found
    return bytes(line)


if __name__ == "__main__":
    main()
