"""Names of columns in formulas, made from headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from shine.gp.complexity import CONSTANT_NAME
from shine.gp.constraints.constraints import Constraints
from shine.lang.library import STANDARD
from shine.lang.names import Numbering, identifier, normalized


def formula_names(headings: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """A distinct identifier for each column.

    A heading that is a valid name stays as it is, in Unicode's normal form. Characters that an identifier cannot have
    become ``_``; keywords and names of Shine's primitives get a ``_`` at the end; long names are cut; a repeated name
    gets a number.

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
    texts = [str(heading) for heading in headings]
    wanted = [_fit(text) for text in texts]
    # A valid heading keeps its name, even if an earlier heading turns into the same name.
    owners: dict[str, int] = {}
    for exact in (True, False):
        for column, (text, name) in enumerate(zip(texts, wanted, strict=True)):
            if (text if exact else normalized(text)) == name:
                owners.setdefault(name, column)
    numbering = Numbering(owners)
    return tuple(name if owners.get(name) == column else numbering.take(name) for column, name in enumerate(wanted))


def _fit(text: str) -> str:
    name = identifier(text)
    return f"{name}_" if name in STANDARD or name == CONSTANT_NAME else name


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
