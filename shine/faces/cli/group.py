"""One way to report all errors: ``error: ...`` on stderr, an exit code, and a traceback only with ``--debug``."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import click

from shine.faces.cli.output import FAILURE, INTERRUPTED, USAGE

GRACE = 0.8
"""Seconds from a signal to the end of the process if there is nothing to keep."""
ECHO = 0.15
"""Seconds in which signals count as one: a wrapper may pass on a Ctrl-C that the terminal also sends to Shine."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that are handled, all in the same way: Ctrl-C, `kill`, and a terminal that closes."""


class Interruption:
    """Whether the process was asked to end, and by which signal.

    The first signal raises one `KeyboardInterrupt` in the main thread. A process that still runs after `GRACE` is
    ended, unless there is something to `keep`: then it has all the time it needs, until a second signal.

    Attributes
    ----------
    signal : int
        Number of the first signal; 0 before it.
    began : float
        When the process began, on `time.monotonic`, but for the start of Python.
    """

    def __init__(self) -> None:
        self.signal, self.began = 0, time.monotonic()
        self._keeping = False
        self._raised = False

    def install(self) -> None:
        """Handle the signals of this process, except signals it was started to ignore (``nohup``, ``command &``)."""
        answered = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        if sys.platform != "win32":  # its select() only knows sockets; there, native code ends first
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, args=(reader, set(answered)), daemon=True).start()
        for number in answered:
            signal.signal(number, self._raise_once)
        sys.unraisablehook = _quiet_hook(sys.unraisablehook)

    def keep(self) -> None:
        """From now on there is something to write: the first signal no longer sets a time limit."""
        self._keeping = True

    @property
    def code(self) -> int:
        """Exit code of an interrupted process, by the convention of shells."""
        return 128 + (self.signal or signal.SIGINT)

    def leave(self, message: str = "") -> NoReturn:
        """End the interrupted process, after a message, without waiting for threads in native code."""
        if message:
            _say(message)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):  # None, a closed pipe, a closed file
                continue
        os._exit(self.code)

    def _raise_once(self, number: int, frame: FrameType | None) -> None:
        self.signal = self.signal or number
        if not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def _watch(self, reader: int, answered: set[int]) -> None:
        while not (heard := os.read(reader, 1)) or heard[0] not in answered:
            pass
        self.signal = self.signal or heard[0]
        if self._keeping:
            _say("interrupted: writing the result; again to quit at once")
        time.sleep(ECHO)
        if select.select([reader], [], [], 0)[0]:
            os.read(reader, 512)
        again = select.select([reader], [], [], None if self._keeping else GRACE - ECHO)[0]
        _say("error: interrupted again; unwritten results are lost" if again else "error: interrupted")
        os._exit(self.code)


def _quiet_hook(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook for exceptions that Python drops. It does not report interrupts, because the thread ends the process."""

    def quiet(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            hook(dropped)

    return quiet


def _say(message: str) -> None:
    """Write to standard error, over a progress bar; without Python's buffer, whose lock the main thread may hold."""
    try:
        start = "\r\x1b[K" if os.isatty(2) else ""
        os.write(2, f"{start}{message}\n".encode())
    except OSError:
        return


DEBUG = "--debug"
LONGEST_LINE = 1000
"""Longest line of an error, in characters; a longer line loses its middle."""


class Group(click.Group):
    """The root of the command line; ``--debug`` may stand anywhere before a ``--``."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; exits with its code, as click does, unless `standalone_mode` is off."""
        given = list(sys.argv[1:] if args is None else args)
        end = given.index("--") if "--" in given else len(given)
        debug = DEBUG in given[:end]
        given = [argument for argument in given[:end] if argument != DEBUG] + given[end:]
        command = partial(super().main, given, prog_name, complete_var, False, **extra)
        if not standalone_mode:
            return command()
        code = _guarded(command, debug, extra.get("obj"))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; click itself would print an empty line for an interrupt."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise click.Abort from error


class FormulaCommand(click.Command):
    """A command that takes a formula, which may begin with a minus."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, with a hint if a formula was taken for an option."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = "write -- before a formula that begins with a minus"
            raise click.UsageError(f"{error.format_message().rstrip('.')}; {hint}", ctx) from None


def _guarded(command: Callable[[], Any], debug: bool, interruption: Interruption | None) -> int:
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(code or 0)
    except BaseException as error:  # every error gets one line and an exit code
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        if debug and not isinstance(error, click.exceptions.Exit):
            traceback.print_exc()
        return _reported(error, debug, interruption)


def _reported(error: BaseException, debug: bool, interruption: Interruption | None) -> int:
    """Print an error; returns the exit code."""
    from shine.base.errors import ConfigError, DataError, ShineError

    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.Abort() | KeyboardInterrupt():
            code = interruption.code if interruption is not None else INTERRUPTED
            return _complain("interrupted", code)
        case OSError() if error.filename is None and error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            return _lost_output(error)
        case click.NoSuchOption():
            context = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
            return _complain(_no_such_option(error) + context, USAGE)
        case click.UsageError():
            context = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
            return _complain(error.format_message().rstrip(".") + context, USAGE)
        case click.ClickException():
            return _complain(error.format_message(), FAILURE)
        case ConfigError() | DataError():
            return _complain(str(error), USAGE)
        case ShineError():
            return _complain(str(error), FAILURE)
        case OSError() if error.filename is not None:
            return _complain(f"{error.filename}: {error.strerror}", FAILURE)
        case MemoryError():
            return _complain("out of memory; use fewer rows or a smaller population", FAILURE)
    what = " ".join(str(error).split())
    hint = "" if debug else f"; run with {DEBUG} for the traceback"
    return _complain(f"{type(error).__name__}{': ' if what else ''}{what}{hint}", FAILURE)


def _no_such_option(error: click.NoSuchOption) -> str:
    """The message for an unknown option: the option or the setting that is meant."""
    from shine.faces.keywords import KEYWORDS
    from shine.lang.forms.synonyms import synonym

    word = error.option_name.lstrip("-").replace("-", "_")
    options = {} if error.ctx is None else {each.name: each.opts[-1] for each in error.ctx.command.params if each.name}
    option, keyword = synonym(word, options), synonym(word, KEYWORDS)
    told = f"no such option: {error.option_name}"
    if option is not None:
        return f"{told}; did you mean {options[option]}?"
    if keyword is not None and "overrides" in options:
        return f"{told}; did you mean --set {'.'.join(KEYWORDS[keyword])}=...?"
    return error.format_message().rstrip(".")


def _lost_output(error: OSError) -> int:
    """Handle a failed write to standard output; silently if its reader has left."""
    if sys.stdout is not None:
        # Discard the buffered output, so that the interpreter reports no second error at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return FAILURE
    return _complain(f"the output cannot be written: {error.strerror}", FAILURE)


def _complain(message: str, code: int) -> int:
    for line in message.splitlines():
        # click repeats arguments in full, however long they are.
        shown = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE // 2]}...{line[-LONGEST_LINE // 4 :]}"
        try:
            click.echo(f"error: {shown}", err=True)
        except OSError:  # standard error is closed
            break
    return code
