"""The constants of a formula with their intervals, in the few lines below the table of a front."""

from __future__ import annotations

import math

from shine.errors import DataError
from shine.inference.constants import form_of
from shine.inference.summary import number_text
from shine.search.model import Model

LEVEL = 0.95

PROFILED_ROWS = 100_000
"""Rows up to which intervals are profiles; with more, those by standard errors are equal."""


def constants_text(model: Model) -> str:
    """The formula with names in place of constants, and a line with their intervals.

    Empty if it has none, or the rows do not tell them: because the model does not know its rows, or there is no noise.
    """
    try:
        known = model.uncertainty
        if (
            not known.names
            or not known.scale > 0
            or any(note.startswith("the formula is exact") for note in known.notes)
        ):
            return ""
        profiled = model.basis is not None and known.rows <= PROFILED_ROWS
        ends = model.conf_int(LEVEL, "profile" if profiled or LEVEL in known.profiles else "wald")
    except DataError:
        return ""
    told = []
    for name, value, error in zip(known.names, known.values.tolist(), known.errors.tolist(), strict=True):
        low, high = ends[name]
        interval = (
            f"{number_text(low, error)} to {number_text(high, error)}" if math.isfinite(error) else "not determined"
        )
        told.append(f"{name} = {number_text(value, error)} ({interval})")
    return f"with 95 % intervals: {form_of(model.tree).text}\n    {', '.join(told)}"
