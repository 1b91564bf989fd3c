"""Constants of conditions beside columns of Arrow's types: which fit, and what comparing them means."""

from __future__ import annotations

import math
import operator
from datetime import datetime
from functools import reduce
from typing import Any

_OPERATORS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}


def family(kind: Any) -> str | None:
    """What values of a type can be compared with: "text", "bool", "number" or "time"; None for all others."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    return "time" if types.is_timestamp(kind) or types.is_date(kind) else None


def fitting(value: int | float | str, kind: Any) -> Any:
    """A constant as the kind of value that a column holds.

    Raises
    ------
    ValueError
        If it is of another kind; says what to write.
    """
    of_column = family(kind)
    if of_column == "time":
        return _moment(value, kind)
    if of_column == "text" and not isinstance(value, str):
        raise ValueError(f"write texts in quotes, as in {str(value)!r}")
    if of_column == "number" and isinstance(value, str):
        raise ValueError(f"write numbers without quotes, not {value!r}")
    if of_column == "bool" and value not in (0, 1):
        raise ValueError(f"write True or False, not {value!r}")
    if of_column is None:
        raise ValueError("conditions compare numbers, texts, truth values and dates")
    return bool(value) if of_column == "bool" else value if of_column == "text" else _number(value)


def _number(value: Any) -> int | float:
    return int(value) if isinstance(value, bool) else value


def _moment(value: Any, kind: Any) -> datetime:
    """A text as a time: without a zone it is the local time of the column, the first of two if clocks are set back."""
    from pyarrow import lib

    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"write dates as '2023-12-31' or '2023-12-31 13:30', not {value!r}")
    zone = getattr(kind, "tz", None)
    if zone is None and found.tzinfo is not None:
        raise ValueError(f"it has no time zone; write the time without one, not {value!r}")
    return found.replace(tzinfo=lib.string_to_tzinfo(zone)) if zone and found.tzinfo is None else found


def compared(field: Any, kind: Any, sign: str, value: Any) -> Any:
    """The comparison of a column with a value that fits; `sign` is a name of `operator`, such as "lt"."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_integer(kind):
        return _compared_whole(field, kind, sign, value)
    if types.is_decimal(kind) or types.is_floating(kind):
        value = _float(value)
    elif isinstance(value, datetime):
        is_day = types.is_date(kind) and value == datetime(value.year, value.month, value.day)
        value = pyarrow.scalar(value, kind if is_day else pyarrow.timestamp("us", getattr(kind, "tz", None)))
    return _OPERATORS[sign](field, compute.scalar(value))


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _compared_whole(field: Any, kind: Any, sign: str, value: int | float) -> Any:
    """Whole numbers beside any number, exactly, as Arrow would convert them to floats or refuse to."""
    import pyarrow
    from pyarrow import compute

    lowest, highest = _range(kind)
    if value > highest or value < lowest:
        is_true = sign in (("lt", "le", "ne") if value > highest else ("gt", "ge", "ne"))
        end, beyond = (highest, operator.gt) if value > highest else (lowest, operator.lt)
        outside = beyond(field, compute.scalar(pyarrow.scalar(end, kind)))
        return ~outside if is_true else outside
    below, above = (compute.scalar(pyarrow.scalar(rounded(value), kind)) for rounded in (math.floor, math.ceil))
    if value == math.floor(value):
        return _OPERATORS[sign](field, below)
    if sign in ("eq", "ne"):
        return (field <= below) & (field >= above) if sign == "eq" else (field <= below) | (field >= above)
    return field <= below if sign in ("lt", "le") else field >= above


def _range(kind: Any) -> tuple[int, int]:
    from pyarrow import types

    if types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def among(field: Any, kind: Any, values: list[Any]) -> Any:
    """Whether a column has one of some values that fit."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_integer(kind):
        lowest, highest = _range(kind)
        values = [int(value) for value in values if lowest <= value <= highest and value == math.floor(value)]
    elif family(kind) != "text":
        equal = [compared(field, kind, "eq", value) for value in values]
        return reduce(operator.or_, equal) if equal else compute.scalar(False)
    return field.isin(pyarrow.array(values, kind.value_type if types.is_dictionary(kind) else kind))


def nothing() -> Any:
    """The truth value of what is not known."""
    import pyarrow
    from pyarrow import compute

    return compute.scalar(pyarrow.scalar(None, pyarrow.bool_()))
