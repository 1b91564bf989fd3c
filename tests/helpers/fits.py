"""Judges a fit: a formula with values on fresh rows, a clear error, or a failure.

A fit fails if it raises anything but a `DataError` or scikit-learn's own `ValueError` for unfit data, if it warns or
writes to the terminal, or if a prediction for fresh rows is not finite.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from helpers.awkward_tables import Case

from shine import SymbolicTransformer
from shine.base.errors import DataError, ExtrapolationWarning

EXPECTED = (
    r"Found array with \d+ sample\(s\)",
    r"needs samples of at least 2 classes",
    r"Sample weights must contain at least one",
)
"""Legitimate errors of scikit-learn's kind: too few rows, one class, no weight."""


class Skipped(logging.Handler):
    """Records the seeding's searches that failed and were skipped."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        places = traceback.extract_tb(error.__traceback__)[-1:] if error else []
        self.found += [f"{record.getMessage()}: {error!r} in {os.path.basename(p.filename)}:{p.name}" for p in places]


@contextlib.contextmanager
def terminal() -> Iterator[list[str]]:
    """Collects what the process, libraries included, writes to standard error."""
    found: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode(errors="replace").strip())


def judged(fit: Callable[[], tuple[str, str]], expected: Sequence[str] = (), verbose: bool = False) -> tuple[str, str]:
    """Verdict of a fit: its own, 'error' (a clear one) or 'FAILED', and a message.

    Parameters
    ----------
    fit : callable
        Returns a verdict and a message.
    expected : sequence of str
        Patterns of messages of a legitimate `ValueError`.
    verbose : bool
        Whether the message of an internal error is its whole traceback.
    """
    with warnings.catch_warnings(), terminal() as written:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the rows are few and wild
        try:
            result = fit()
        except DataError as error:
            result = "error", str(error)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.basename(place.filename)}:{place.name}"
            result = "FAILED", f"{type(error).__name__} in {where}: {str(error)[:150]}"
            if type(error) is ValueError and any(re.search(text, str(error)) for text in expected):
                result = "error", str(error)
            elif verbose:
                result = "FAILED", traceback.format_exc()
    if written[0] and result[0] != "FAILED":
        result = "FAILED", f"wrote to the terminal: {written[0][:150]}"
    return result


def outcome(case_: Case, verbose: bool = False) -> tuple[str, str]:
    """Verdict on a case: 'ok', 'error' (a clear one) or 'FAILED', and a message."""
    return judged(lambda: _fitted(case_), EXPECTED, verbose)


def _fitted(case_: Case) -> tuple[str, str]:
    model = case_.estimator.fit(case_.X, case_.y, sample_weight=case_.weights)
    forward = model.transform if isinstance(model, SymbolicTransformer) else model.predict
    predicted = np.asarray(forward(case_.fresh), float)
    finite = np.isfinite(predicted)
    if finite.all():
        return "ok", ""
    shown = model.best_ if isinstance(model.best_, list) else [model.best_]
    texts = "; ".join(one.expression[:200] for one in shown)
    return "FAILED", f"{(~finite).sum()} of {finite.size} predictions are not finite: {texts}"
