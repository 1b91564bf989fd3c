"""Values of a caller's variables in a query."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A variable's value as Python's own number, text or date, or a tuple of such."""
    if isinstance(value, np.datetime64 | np.timedelta64 | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return tuple(value.ravel()) if value.ndim else value[()]
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, name):
            value = getattr(value, name)()
            break
    return tuple(map(plain, value)) if isinstance(value, list | tuple | set | frozenset | range) else value


def is_known(value: object) -> bool:
    """Whether queries can use a value."""
    if isinstance(value, tuple):
        return all(is_known(each) and not isinstance(each, tuple) for each in value)
    kinds = (bool, int, float, str, datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)
    return isinstance(value, kinds)
