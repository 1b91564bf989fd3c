"""Output of results: text or bytes, to standard output or to a file that is written completely or not at all."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, TextIO

import click

FAILURE = 1
"""Something failed: a file cannot be written, an extra is not installed, a reader of the output left early."""
USAGE = 2
"""The arguments, the configuration, the data or the run they name are wrong."""
INTERRUPTED = 130
"""Ctrl-C. Other signals that ask a process to end give 128 and their number too: 143 for SIGTERM."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; a closed stream is None."""
    return stream is not None and stream.isatty()


def json_text(value: Any, indent: int | None = 2) -> str:
    """A value as JSON; NaN and infinity, which JSON lacks, become null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False) + "\n"


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON."""
    print_text(json_text(value, indent))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_text(text: str) -> None:
    """Print a text and end its last line."""
    click.echo(text, nl=not text.endswith("\n"))


def print_bytes(content: bytes, what: str) -> None:
    """Print binary output, but never to a terminal.

    Raises
    ------
    click.UsageError
        If standard output is a terminal, or closed.
    """
    if sys.stdout is None or is_terminal(sys.stdout):
        raise click.UsageError(f"{what} is binary and not for a terminal; name a file with --out, or write to a pipe")
    sys.stdout.buffer.write(content)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the user named; an earlier file stays until the new one is complete.

    Raises
    ------
    click.ClickException
        If it cannot be written.
    """
    from shine.base.files import target, write_bytes

    try:
        place = target(path)  # a link stays
        if place.exists() and not place.is_file() and not place.is_dir():
            place.write_bytes(content)  # a device or a named pipe must not be replaced
        else:
            write_bytes(place, content)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte
        reason = getattr(error, "strerror", None) or error
        raise click.ClickException(f"{path}: cannot be written: {reason}") from None
