"""Output of results: text, tables or bytes, to standard output or to a file that is complete or not there."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from shine.lang.wrapping import wrapped
from shine.search.models.front_table import Layout, text_table

if TYPE_CHECKING:
    from shine.lang.forms.rounding import Precision
    from shine.search.models.result import Result

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

    A `click.UsageError` if standard output is a terminal, or closed.
    """
    if sys.stdout is None or is_terminal(sys.stdout):
        raise click.UsageError(f"{what} is binary and not for a terminal; name a file with --out, or write to a pipe")
    sys.stdout.buffer.write(content)


def deliver(made: str | bytes, out: Path | None, what: str, record: Mapping[str, Any] | None, named: str) -> None:
    """Write what was made to a file, or print it; with a record, print this as JSON with the text, or with the file.

    Bytes are called `what` in a message; the file is `named` "file" or "files" in the record.
    """
    if out is not None:
        write_file(out, made.encode() if isinstance(made, str) else made)
    if record is not None and out is not None:
        print_json({**record, named: [str(out)] if named == "files" else str(out)})
    elif record is not None:
        shown = {"text": made} if isinstance(made, str) else {"base64": base64.b64encode(made).decode()}
        print_json({**record, **shown})
    elif out is None:
        print_text(made) if isinstance(made, str) else print_bytes(made, what)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the user named; an earlier file stays until the new one is complete.

    A `click.ClickException` if it cannot be written.
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


WIDEST = 40
"""Most columns of a cell of a table that is cut, except the first, which names the row, and the last."""


def table(rows: Sequence[tuple[str, ...]], cut: bool = False) -> list[str]:
    """The lines of a table; on a terminal, cells that are too long can be cut."""
    from shine.search.models.front_table import screen_width

    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    widths = [min(width, WIDEST) if cut and place else width for place, width in enumerate(widths)]
    screen = screen_width() if cut else None
    # Least columns for the last cell: on a narrower terminal, lines are longer than it.
    room = None if screen is None else max(screen - sum(widths) - 2 * len(widths), 20)
    lines = []
    for row in rows:
        cells = [f"{_short(cell, width):<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, _short(row[-1], room)]).rstrip())
    return lines


def number(value: float | None) -> str:
    """A loss; empty if it is not known."""
    return "" if value is None or math.isnan(value) else f"{value:.5g}"


def share(value: float | None) -> str:
    """An R2; empty if it is not known."""
    return "" if value is None or math.isnan(value) else f"{round(value, 6) + 0.0:.6f}"


def count_text(value: int | None) -> str:
    """A count; empty if it is not known."""
    return "" if value is None else str(value)


def seconds(value: float | None) -> str:
    """A duration; empty if it is not known."""
    return "" if value is None else f"{value:.1f}"


def _short(text: str, width: int | None) -> str:
    text = " ".join(text.split("\n"))
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


LAYOUT = Layout(
    line="{mark:1} {index:>5}  {complexity:>10}  {loss:>{loss_width}}  {r2:>9}  ",
    loss_width=11,
    mark="*",
    index="index",
    formula="formula",
    cells={
        "complexity": str,
        "loss": "{:.5g}".format,
        "r2": lambda r2: f"{round(r2, 6) + 0.0:.6f}" if math.isfinite(r2) else "",  # + 0.0 turns -0.0 into 0.0
    },
)
"""Layout of a front in the terminal."""


def front_table(result: Result, width: int | None = None, precision: Precision = None) -> str:
    """The front, one formula per line, the simplest first; the chosen one is marked, with the reason.

    Parameters
    ----------
    result : Result
    width : int, optional
        Most columns of a line; longer formulas go on in further lines. By default each is one line.
    precision : int, "exact" or None
        Significant digits of constants, or all; by default those that the data support.
    """
    rows = (
        {**row, "formula": model.formula(precision)} for row, model in zip(result.rows(), result.front, strict=True)
    )
    table = text_table(rows, LAYOUT, width, result.front.noise)
    return "\n".join([table, *(wrapped(f"chosen: {result.reason}", width, "    ") if result.reason else [])])
