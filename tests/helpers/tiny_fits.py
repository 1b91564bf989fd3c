"""Judges a fit of a tiny table: a sensible formula, a clear error, or a failure.

A fit fails if it raises anything but a `DataError`, if it warns or writes to the terminal, if the chosen formula has a
value that is not finite at a row, if it is worse than the mean, or if it has more fitted constants than rows minus one.
Worse means in the mean square and in the median: a model of relative noise may leave an outlier alone. Whole numbers
and named constants are not fitted.
"""

from __future__ import annotations

import ast
import math

import numpy as np
from helpers.fits import judged
from helpers.tiny_tables import TinyCase

import shine

NAMED = (math.pi, math.e)
WHOLE = 1000
"""Largest whole number that counts as part of a form."""

MEMBERS = 300
"""Expressions that the seeding combines: 30 000, its default, take ten times as long on some tables."""


def fitted_constants(expression: str) -> int:
    """Numbers in a formula that rows must have determined, each of them once."""
    numbers = {abs(float(node.value)) for node in ast.walk(ast.parse(expression, mode="eval"))
               if isinstance(node, ast.Constant)}  # fmt: skip
    return sum(not (x == int(x) and x <= WHOLE) and x not in NAMED for x in numbers)


def tiny_outcome(case: TinyCase, generations: int = 3, verbose: bool = False) -> tuple[str, str]:
    """Verdict on a case: 'ok', 'error' (a clear one) or 'FAILED', and the formula or a message."""
    return judged(lambda: _fitted(case, generations), verbose=verbose)


def _fitted(case: TinyCase, generations: int) -> tuple[str, str]:
    result = shine.evolve(
        case.X, case.y, generations=generations, seconds=None, population=60, seeding_members=MEMBERS, threads=1,
        seed=case.number,
    )  # fmt: skip
    return _verdict(case, result)


def _verdict(case: TinyCase, result: shine.Result) -> tuple[str, str]:
    """Whether a result is sensible."""
    text, predicted = result.best.expression, result.predict(case.X)
    if not np.isfinite(predicted).all():
        return "FAILED", f"not finite at a row: {text[:200]}"
    size = float(np.abs(case.y).max()) or 1.0
    errors, spread = predicted / size - case.y / size, case.y / size - np.mean(case.y / size)
    if all(of(errors**2) > 1.001 * of(spread**2) + 1e-20 for of in (np.mean, np.median)):
        return "FAILED", f"worse than the mean: {text[:200]}"
    if (constants := fitted_constants(text)) > len(case.y) - 1:
        return "FAILED", f"{constants} fitted constants for {len(case.y)} rows: {text[:200]}"
    return "ok", text
