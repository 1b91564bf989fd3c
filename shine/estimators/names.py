"""Names of columns in formulas, made from headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from shine.gp.complexity import CONSTANT_NAME
from shine.gp.constraints.constraints import Constraints
from shine.lang.library import STANDARD
from shine.lang.names import distinct_names


def formula_names(headings: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """A distinct identifier for each column.

    See `shine.lang.names.distinct_names`; names of Shine's primitives count as taken.

    Parameters
    ----------
    headings : sequence, optional
        The names are ``x0, x1, ...`` without headings.
    count : int
        Number of columns.

    Examples
    --------
    >>> formula_names(["mass", "my col", "my-col", "lambda", "sin"], 5)
    ('mass', 'my_col', 'my_col_2', 'lambda_', 'sin_')
    """
    if headings is None:
        return tuple(f"x{i}" for i in range(count))
    return distinct_names(headings, STANDARD.keys() | {CONSTANT_NAME})


def constraints_in_formula_names(
    given: Constraints | Mapping[str, Any] | None, renamed: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of constraints, with the headings of columns replaced by their names in formulas.

    Parameters
    ----------
    given : Constraints or mapping, optional
    renamed : mapping of str to str
        Name in formulas of each heading. The name of a primitive always means the primitive.
    """
    if given is None:
        return {}
    if isinstance(given, Constraints):
        given = {field.name: getattr(given, field.name) for field in fields(Constraints)}
    return {key: _in_formula_names(value, renamed) if key != "target_unit" else value for key, value in given.items()}


def _in_formula_names(value: Any, renamed: Mapping[str, str]) -> Any:
    def name(text: Any) -> Any:
        return text if text in STANDARD or text == CONSTANT_NAME else renamed.get(text, text)

    if isinstance(value, Mapping):
        return {
            name(key): _in_formula_names(inner, renamed) if isinstance(inner, Mapping) else inner
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return tuple(name(item) for item in value)
    return value
