"""Conditions on rows of files -> expressions of Arrow, which leaves out what cannot fulfil them before it reads it."""

from __future__ import annotations

import ast
import math
import operator
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

from shine.base.errors import DataError, UnsupportedSyntaxError, placed
from shine.lang.conditions.reading import HOLDS, Literal, Reader
from shine.lang.conditions.scanning import Name, scan
from shine.lang.forms.names import listed, normalized, shown, similar, value_text


def condition(text: str, schema: Any) -> Any:
    """The expression of a condition.

    Parameters
    ----------
    text : str
        Such as ``year >= 2020 and region in ("north", "west")``, in the language of `df.shine.query`; headings that are
        no names are in backticks.
    schema : pyarrow.Schema
        Of the columns.

    Raises
    ------
    DataError
        If it is no condition, or a column is not there; with the place in the text.
    """
    with placed("where", UnsupportedSyntaxError, kind=DataError):
        reader = _Reader(scan(text), schema)
        return reader.read()


@dataclass(frozen=True)
class _Column:
    """A column of the files; `kind` is its type."""

    name: str
    field: Any
    kind: Any


class _Reader(Reader):
    """The result of a node is a `Literal`, a `_Column`, or an expression that is true or false."""

    def __init__(self, scanned: Any, schema: Any) -> None:
        super().__init__(scanned)
        self._schema = schema

    def read(self) -> Any:
        """The expression of the whole condition."""
        return self.truth(self.visit(self._scanned.tree), self._scanned.tree)

    def column(self, name: Name) -> _Column:
        from pyarrow import compute

        heading = (
            name.text
            if name.text in self._schema.names
            else next((each for each in self._schema.names if normalized(each) == name.text), name.text)
        )
        if heading not in self._schema.names:
            near = similar(heading, self._schema.names)
            hint = f"did you mean {shown(near)}? " if near else ""
            raise LookupError(f"there is no column {shown(heading)}; {hint}there are {listed(self._schema.names)}")
        return _Column(heading, compute.field(heading), self._schema.field(heading).type)

    def truth(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, _Column) and family(value.kind) == "bool":
            return value.field
        if isinstance(value, Literal | _Column):
            what = value_text(value.value) if isinstance(value, Literal) else f"column {shown(value.name)}"
            self.reject(f"{what} is no condition; write a comparison such as x != 0", node)
        return value

    def joined(self, name: str, left: Any, right: Any) -> Any:
        return left & right if name == "and" else left | right

    def opposite(self, found: Any) -> Any:
        return ~found

    def missing(self, value: Any, node: ast.AST) -> Any:
        return self._checked(value, node).field.is_null(nan_is_null=True)

    def with_literal(self, comparison: str, left: Any, right: Literal, node: ast.AST) -> Any:
        left = self._checked(left, node)
        return compared(left.field, left.kind, comparison, self._fitting(right.value, left, node))

    def of_columns(self, comparison: str, left: Any, right: Any, node: ast.AST) -> Any:
        left, right = self._checked(left, node), self._checked(right, node)
        if family(left.kind) is None or family(left.kind) != family(right.kind):
            self.reject(f"{left.name} ({left.kind}) and {right.name} ({right.kind}) cannot be compared", node)
        return HOLDS[comparison](left.field, right.field)

    def among(self, left: Any, right: Literal, node: ast.AST) -> Any:
        from pyarrow import compute

        left = self._checked(left, node)
        assert isinstance(right.value, tuple)
        found = among(left.field, left.kind, [self._fitting(value, left, node) for value in right.value])
        # Arrow's search in a list says "false" of a missing value, whose opposite would select it.
        return compute.if_else(left.field.is_valid(), found, nothing())

    def _checked(self, value: Any, node: ast.AST) -> _Column:
        if not isinstance(value, _Column):
            self.reject("a comparison is not compared again; join comparisons by 'and'", node)
        return value

    def _fitting(self, value: Any, column: _Column, node: ast.AST) -> Any:
        """The value of a constant beside a column."""
        try:
            return fitting(value, column.kind)
        except ValueError as error:
            self.reject(f"column {shown(column.name)} holds {column.kind}; {error}", node)


def family(kind: Any) -> str | None:
    """Group of types that a column can be compared with: "text", "bool", "number" or "time"; None for all others."""
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

    A `ValueError` if it is of another kind; says what to write.
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
    """The comparison of a column with a value that fits; `sign` is that of a comparison."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_integer(kind):
        return _compared_integers(field, kind, sign, value)
    if types.is_decimal(kind) or types.is_floating(kind):
        value = _float(value)
    elif isinstance(value, datetime):
        is_day = types.is_date(kind) and value == datetime(value.year, value.month, value.day)
        value = pyarrow.scalar(value, kind if is_day else pyarrow.timestamp("us", getattr(kind, "tz", None)))
    return HOLDS[sign](field, compute.scalar(value))


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _compared_integers(field: Any, kind: Any, sign: str, value: int | float) -> Any:
    """Whole numbers beside any number, exactly, as Arrow would convert them to floats or refuse to."""
    import pyarrow
    from pyarrow import compute

    lowest, highest = _range(kind)
    if value > highest or value < lowest:
        is_true = sign in (("<", "<=", "!=") if value > highest else (">", ">=", "!="))
        end, beyond = (highest, operator.gt) if value > highest else (lowest, operator.lt)
        outside = beyond(field, compute.scalar(pyarrow.scalar(end, kind)))
        return ~outside if is_true else outside
    below, above = (compute.scalar(pyarrow.scalar(rounded(value), kind)) for rounded in (math.floor, math.ceil))
    if value == math.floor(value):
        return HOLDS[sign](field, below)
    if sign in ("==", "!="):
        return (field <= below) & (field >= above) if sign == "==" else (field <= below) | (field >= above)
    return field <= below if sign in ("<", "<=") else field >= above


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
        equal = [compared(field, kind, "==", value) for value in values]
        return reduce(operator.or_, equal) if equal else compute.scalar(False)
    return field.isin(pyarrow.array(values, kind.value_type if types.is_dictionary(kind) else kind))


def nothing() -> Any:
    """The truth value of what is not known."""
    import pyarrow
    from pyarrow import compute

    return compute.scalar(pyarrow.scalar(None, pyarrow.bool_()))
