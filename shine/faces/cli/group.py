"""One way to report all errors: ``error: ...`` on stderr, an exit code, and a traceback only with ``--debug``."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from shine.faces.cli.interruption import Interruption
from shine.faces.cli.output import FAILURE, INTERRUPTED, USAGE

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
        case click.UsageError():
            context = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
            return _complain(_wrong_usage(error) + context, USAGE)
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


def _wrong_usage(error: click.UsageError) -> str:
    """The message for what click refuses, or a callback of ours."""
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error)
    parameter: Any = getattr(error, "param", None)
    if parameter is None or isinstance(error, click.MissingParameter):
        told = error.format_message().rstrip(".")
        options = [] if error.ctx is None else [each for param in error.ctx.command.params for each in param.opts]
        return f"--{told}" if f"--{told.partition(':')[0]}" in options else told  # a keyword of Python's face
    kind, told = parameter.type, error.message
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    bounds = "" if low is None else f" from {low} on" if high is None else f" from {low} to {high}"
    allowed = {
        click.types.IntParamType: f"a whole number{bounds}",
        click.types.FloatParamType: f"a number{' between 0 and 1' if getattr(kind, 'max_open', False) else bounds}",
        click.Choice: f"one of {', '.join(map(str, getattr(kind, 'choices', ())))}",
    }
    for known in set(allowed) & set(type(kind).__mro__):
        told = f"must be {allowed[known]}, not {error.message.rpartition(' is not ')[0]}"
    return f"{max(parameter.opts, key=len)}: {told}"


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
