"""The command line: arguments in, exit codes out. The work of each command is in a module imported on demand."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings


def main() -> None:
    """Run the command line of this process; never returns. It handles signals from the start, even during imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from shine.faces.cli.interruption import Interruption

    _open_closed_descriptors()
    warnings.showwarning = _warned
    interruption = Interruption()
    interruption.install()
    code: str | int | None = None
    try:
        try:
            from shine.faces.cli.commands import shine

            shine.main(prog_name="shine", obj=interruption)
        except SystemExit as end:
            code = end.code
        # The work is done: Ctrl-C must not kill the interpreter while it shuts down.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        interruption.leave("error: interrupted")
    except Exception:
        # Ctrl-C during an import: Python wraps errors that are raised while a class is made.
        if not interruption.signal:
            raise
        interruption.leave("error: interrupted")
    if interruption.signal:
        interruption.leave()
    sys.exit(code)


def _end(number: int, frame: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


def _warned(message: Warning | str, *place: object, **more: object) -> None:
    """A warning as a line for the user, without its place in the code."""
    with contextlib.suppress(OSError):
        print(f"warning: {message}", file=sys.stderr, flush=True)


def _open_closed_descriptors() -> None:
    """Open closed standard streams, so that no file opened later becomes standard output (``shine ... >&-``)."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
