"""``shine mcp``: a server of the Model Context Protocol, for agents."""

from __future__ import annotations

from pathlib import Path

import click

from shine.base.errors import needing
from shine.faces.cli.options import FILE


@click.command("mcp")
@click.option("--folder", type=FILE, default=Path(), metavar="DIR", help="All that agents may read and write. [here]")
@click.option("--seconds", type=click.FloatRange(1), default=600, metavar="N", help="Most seconds of a search. [600]")
@click.option("--call-seconds", type=click.FloatRange(1), default=60, metavar="N", help="Most of other calls. [60]")
@click.option("--memory", type=click.FloatRange(0.5), default=4, metavar="GIB", help="Most memory of a call. [4]")
@click.option("--searches", type=click.IntRange(1), default=1, metavar="N", help="Most searches at once. [1]")
def mcp_command(folder: Path, seconds: float, call_seconds: float, memory: float, searches: int) -> None:
    """Serve an agent by the Model Context Protocol, over standard input and output.

    The agent's program starts it. Files outside DIR, hidden files and links are neither read nor written.

    \b
    Example:
      shine mcp --folder experiments
    """
    from shine.faces.mcp.places import CallError, check_private

    with needing("the server", "the package mcp", "mcp"):
        from shine.faces.mcp.calls import Desk
        from shine.faces.mcp.server import serve
    try:
        check_private(folder)
    except CallError as error:
        raise click.UsageError(f"--folder {error}") from None
    serve(Desk(folder.resolve(), seconds, call_seconds, memory, searches))
