"""The constants of a formula with their intervals, in the few lines below the table of a front."""

from __future__ import annotations

import math

from shine.base.errors import DataError
from shine.evaluate.inference.summary import number_text
from shine.search.models.model import Model

LEVEL = 0.95
"""Level of the intervals."""


def constants_text(model: Model) -> str:
    """The formula with names in place of constants, and a line with their intervals.

    Empty if it has none, or the rows do not tell them: because the model does not know its rows, or there is no noise.
    """
    try:
        known = model.uncertainty
        if not known.names or known.exact or not math.isfinite(known.scale):
            return ""
        ends = model.conf_int(LEVEL, model.quick_method(LEVEL))
    except DataError:
        return ""
    told = []
    for name, value, error in zip(known.names, known.values.tolist(), known.errors.tolist(), strict=True):
        low, high = (number_text(end, error) for end in ends[name])
        told.append(f"{name} = {number_text(value, error)} ({f'{low} to {high}' if error < math.inf else 'unknown'})")
    return f"with 95 % intervals: {model.form().text}\n    {', '.join(told)}"
