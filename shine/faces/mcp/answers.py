"""Arguments and answers of calls: types that schemas are made of, and short JSON that a model can read."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

LONGEST_TEXT = 2000
"""Most characters of a text in an answer."""

LONGEST_LIST = 50
"""Most entries of a list in an answer."""

LONGEST_ANSWER = 16_000
"""Most characters of an answer."""

NAME = 80
"""Most characters of a heading or a value from a table."""

LATE = 15.0
"""Seconds beyond its limit in which a call may start and write its result; after them the process is ended."""


class Channel:
    """Receiver of a call's progress and answer.

    Parameters
    ----------
    descriptor : int
        Of the pipe to the server.
    seconds : float
        Limit of time of the call.
    began : float
        When the server received it, on `time.monotonic`, which all processes share.
    """

    def __init__(self, descriptor: int, seconds: float, began: float) -> None:
        self.seconds, self.began = seconds, began
        self._descriptor, self._lock = descriptor, threading.Lock()
        self.end_after(seconds)

    def send(self, **message: Any) -> None:
        """Write a line; nobody may be there to read it."""
        rest = json.dumps(message).encode() + b"\n"
        with self._lock, suppress(OSError):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def end_after(self, seconds: float) -> None:
        """End this process so many seconds after the call began, and a short time, whatever it does then.

        The system's timer does, since native code may keep the interpreter's lock; on Windows the server.
        """
        if hasattr(signal, "setitimer"):
            rest = seconds + LATE - (time.monotonic() - self.began)
            signal.setitimer(signal.ITIMER_REAL, max(rest, 1.0))


CHANNEL: ContextVar[Channel] = ContextVar("CHANNEL")
"""The channel of the call that this process answers."""


def quoted(text: object, most: int = NAME) -> str:
    """A text from a file, as data: one line of printable characters, cut."""
    line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text))
    return line if len(line) <= most else f"{line[: most - 3]}..."


def plain(value: Any, longest_list: int = LONGEST_LIST, longest_text: int = LONGEST_TEXT) -> Any:
    """A value as JSON has it, with long texts and lists cut, and numbers of few digits."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        # Significant digits of numbers; formulas and files have them all.
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {quoted(key): plain(each, longest_list, longest_text) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [plain(each, longest_list, longest_text) for each in value[:longest_list]]
        return parts if len(parts) == len(value) else [*parts, f"... and {len(value) - len(parts)} more"]
    return quoted(value, longest_text)


def brief(value: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of at most `LONGEST_ANSWER` characters: the longer it is, the less of its lists and texts is told."""
    lists, texts = LONGEST_LIST, LONGEST_TEXT
    while True:
        answer: dict[str, Any] = plain(value, lists, texts)
        if len(json.dumps(answer)) <= LONGEST_ANSWER or lists == 1:
            return answer
        lists, texts = max(lists // 2, 1), max(texts // 2, NAME)


Answer = dict[str, Any]


class Formula(TypedDict, total=False):
    """A formula: ``{"run": "runs/NAME"}``, perhaps with an ``index`` of its front, or ``{"formula": "a*exp(-b)"}``."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    run: str
    index: int
    formula: Annotated[str, Field(max_length=20_000)]


Of = Annotated[Formula, Field(description='{"run": "runs/NAME"}, perhaps with "index", or {"formula": "a*exp(-b)"}')]
Table = Annotated[str, Field(description="Path of a table below the server's folder, such as data.csv")]
Run = Annotated[str, Field(description="Folder of a run, such as runs/cooling")]
Index = Annotated[int | None, Field(description="Place in the front; by default that of the chosen formula")]
Out = Annotated[str | None, Field(description="File to write below the server's folder; it must not exist")]
Name = Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_-]*$", max_length=60)]
Settings = Annotated[
    dict[str, Any],
    Field(
        description="As in Shine's YAML: {data: {path, target, features?, missing?, categories?, sigma?}, "
        "primitives?: [add, sub, mul, div, exp, ...], stop?: {seconds?, generations?}, constraints?: {units?, "
        "target_unit?, monotonic?}, evolution?: {max_size?}, fitness?: {loss?}, template?, guesses?, seed?}"
    ),
]
