"""From a template to its composition: with the columns of the data, the number of groups, and functions of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shine.base.errors import DataError
from shine.lang.forms.names import listed, shown
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive
from shine.lang.vocabulary import PrimitiveSource, primitive_table
from shine.search.evolution.operators.slots import Slot, SlottedSet
from shine.search.templates.composition import Composition, functions_of_slots
from shine.search.templates.template import Template, Unknown


def bound(
    template: Template,
    features: Sequence[str],
    n_groups: int,
    primitives: Sequence[PrimitiveSource],
    max_size: int,
    max_depth: int,
) -> Composition:
    """The composition of a template.

    Parameters
    ----------
    template : Template
    features : sequence of str
        Columns of the data.
    n_groups : int
        Number of groups; 0 without groups.
    primitives : sequence of str, function or Primitive
        Functions of unknown functions that have none of their own.
    max_size, max_depth : int
        Limits of unknown functions that have none of their own.

    Raises
    ------
    DataError
        If the data lack a column.
    UnsupportedSyntaxError, TypeError, ValueError
        If a primitive cannot be used.
    """
    known = resolved(template, features)
    slots = [_slot(unknown, primitives, max_size, max_depth) for unknown in template.unknowns]
    fitted = tuple(each for each in known.parameters if each.value is None)
    numbers = [each.first for each in fitted for _ in range(n_groups if each.by_group else 1)]
    genome = SlottedSet.of(slots, numbers)
    functions = _functions(template, slots)
    return Composition(
        known, tuple(features), n_groups, genome, PrimitiveSet(tuple(functions.values()), tuple(features)), fitted
    )


def resolved(template: Template, features: Sequence[str]) -> Template:
    """The template for data with some columns: names of columns are no parameters.

    Raises
    ------
    DataError
        If the data lack a column.
    """
    missing = [name for name in template.columns if name not in features]
    if missing:
        raise DataError(f"the template needs a column {shown(missing[0])}; the data have {listed(features)}")
    columns = template.open & set(features)
    both = [each.name for each in template.parameters if each.name in features and each.name not in columns]
    if both:
        raise DataError(
            f"{shown(both[0])} is a parameter of the template, and a column of the data; rename one of them"
        )
    return replace(template, parameters=tuple(each for each in template.parameters if each.name not in columns))


def _slot(unknown: Unknown, primitives: Sequence[PrimitiveSource], max_size: int, max_depth: int) -> Slot:
    try:
        table, names = primitive_table(primitives if unknown.primitives is None else unknown.primitives)
        own = PrimitiveSet(select(table, names), unknown.arguments)
    except (TypeError, ValueError) as error:
        raise type(error)(f"unknown function {unknown.name!r}: {error}") from None
    return Slot(unknown.name, own, unknown.max_size or max_size, unknown.max_depth or max_depth)


def _functions(template: Template, slots: Sequence[Slot]) -> dict[str, Primitive]:
    """Functions of the composed formulas, by name."""
    found = functions_of_slots(template, slots)
    for tree in template.outputs:
        found |= {name: tree.functions[name] for name in functions_of(tree) if name not in template.calls}
    return found
