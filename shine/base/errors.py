"""The errors a user of Shine can meet; all of them are a `ShineError`.

A message says what is wrong, where, what is allowed and what to do about it. Bad arguments of Python calls
stay `ValueError` and `TypeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

DISTRIBUTION = "shine-gp"
"""The name by which package indexes know Shine; `shine` is another project there."""

MOST_PROBLEMS = 50
"""Most problems of a configuration that the message of its error lists."""


class ShineError(Exception):
    """Base of the errors that Shine raises for its users' input."""


class UnsupportedSyntaxError(ShineError):
    """A formula is not part of the restricted language.

    Parameters
    ----------
    message : str
        What is wrong and what is allowed.
    line, column : int, optional
        One-based place in the source, if known.
    file : str, optional
        The file of that place.
    """

    def __init__(
        self, message: str, line: int | None = None, column: int | None = None, file: str | None = None
    ) -> None:
        self.message, self.line, self.column, self.file = message, line, column, file
        place = "" if line is None else f"line {line}, column {column}: "
        super().__init__(f"{file}, {place}{message}" if file and place else f"{place}{message}")


class LoweringError(ShineError):
    """A verified formula has no meaning in the requested number type."""


class CompilationError(ShineError):
    """LLVM refused a module, a target or an option."""


class WorkerError(ShineError):
    """The workers of an executor died again and again over one task."""


class DataError(ShineError):
    """A data set cannot be used: its file, its columns or its values."""


class ConfigError(ShineError):
    """A configuration is invalid; lists every problem with its place.

    Parameters
    ----------
    problems : sequence of str
        One line each, place first.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = len(self.problems) - MOST_PROBLEMS
        rest = [f"and {more} more problems"] if more > 0 else []
        super().__init__("\n".join([*self.problems[:MOST_PROBLEMS], *rest]))


class MissingExtraError(ShineError, ImportError):
    """Something needs a package that only an extra of Shine installs.

    Parameters
    ----------
    what, package, extra : str
        What needs it; the package, as people call it; the extra that installs it.
    """

    def __str__(self) -> str:
        what, package, extra = self.args  # with which the error is also unpickled
        return f"{what} needs {package}; install it with: pip install '{DISTRIBUTION}[{extra}]'"


@contextmanager
def needing(what: str, package: str, extra: str) -> Iterator[None]:
    """Import what an extra installs: an `ImportError` becomes a `MissingExtraError`, which has these parameters."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(what, package, extra) from None


def reason(error: BaseException) -> str:
    """What the system says of an error, without its number and the file; the whole message of any other error."""
    return str(getattr(error, "strerror", None) or error)


@contextmanager
def placed(
    place: object,
    *errors: type[BaseException],
    kind: type[BaseException] | None = None,
    told: Callable[[BaseException], str] = str,
    but: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> Iterator[None]:
    """Raise some errors with a place before their message, and without the chain of errors that led to them.

    Parameters
    ----------
    place : object
        What the message begins with, before a colon; nothing if it is empty.
    *errors : types of exceptions
        Those that are replaced.
    kind : type of exception, optional
        What is raised; by default the first of `errors`.
    told : callable
        The message of an error.
    but : type of exception, or tuple of them
        Those of `errors` that pass as they are.

    Examples
    --------
    >>> with placed("a.csv", ValueError):
    ...     int("x")
    Traceback (most recent call last):
    ValueError: a.csv: invalid literal for int() with base 10: 'x'
    """
    try:
        yield
    except but:
        raise
    except errors as error:
        start = str(place)
        raise (kind or errors[0])(f"{start}: {told(error)}" if start else told(error)) from None


class ExportError(ShineError):
    """A formula or a result cannot be written in the requested form."""


class InterruptedFitWarning(UserWarning):
    """The user interrupted a fit, which keeps what it has found so far."""


class ExtrapolationWarning(UserWarning):
    """A formula is applied to rows whose features leave the range of the rows that it was fitted to."""


class SamplingWarning(UserWarning):
    """Readings of a trajectory are too far apart for the motion that they show."""


class GraphImportError(ShineError):
    """A foreign graph cannot be turned into a formula."""


class FormError(ShineError):
    """A tensor program is not valid: its text, its types, or its structure."""
