"""A formula of a template with names in place of its constants, so that the rows can tell how sure they are.

A constant of an unknown function has one name, however often the template calls the function or its derivatives.
Parameters keep their names; a parameter by group has one for each group, `k_A`. Fixed values belong to the structure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.compiler.arrays import COMPILED
from shine.evaluate.inference.constants import NOTHING_HELD, Form, Held, form_of
from shine.lang.derivative import derivative
from shine.lang.forms.names import identifier
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.simplify.simplifier import simplify
from shine.search.templates.law import Law, by_group, inlined

MOST_CONSTANTS = 100
"""Most constants whose intervals are told: the work grows with their square."""


def form_of_law(law: Law, held: Held = NOTHING_HELD, output: int = 0) -> Form:
    """The form of a formula of a template.

    Parameters
    ----------
    law : Law
    held : Held
        Which numbers of the unknown functions are no constants (see `shine.evaluate.inference.constants`).
    output : int
        The output that it is the form of, with the functions and parameters that this one uses.

    Raises
    ------
    DataError
        If it has more than `MOST_CONSTANTS` constants.
    """
    body = law.template.outputs[output]
    law = _used_by(law, body)
    parameters = _free_parameters(law)
    taken = {*law.features, *law.constants, *parameters}
    forms: dict[str, Form] = {}
    for name, tree in law.functions.items():
        before = list(forms.values())
        first, place = sum(len(each.names) for each in before), sum(each.count for each in before)
        forms[name] = form_of(tree, held, first=first, first_place=place, taken=taken)
    own = {name: value for each in forms.values() for name, value in zip(each.names, each.values, strict=True)}
    values = own | parameters
    if len(values) > MOST_CONSTANTS:
        raise DataError(f"the formula has {len(values)} constants; intervals are told for at most {MOST_CONSTANTS}")
    exact = {name: value for name, value in law.constants.items() if isinstance(value, float) and name not in values}
    by_groups = [name for name, value in law.constants.items() if not isinstance(value, float)]
    names = (*values, *law.features, *by_groups)
    definitions = _definitions(law, forms)
    tree = inlined(body, definitions, names, exact, free=own)
    used = tree.used_parameters
    assignments = tuple((name, _by_group(law, name)) for name in by_groups if name in used)
    return Form(
        replace(tree, parameters=(*values, *law.features), assignments=assignments),
        tuple(values),
        np.array(list(values.values()), np.float64),
        tuple(dict.fromkeys(number for each in forms.values() for number in each.exact)),
        held,
        (*(place for each in forms.values() for place in each.places), *(-1 for _ in parameters)),
        sum(each.count for each in forms.values()),
        tuple(place for each in forms.values() for place in each.implied),
        law.with_groups(inlined(body, definitions, names, exact, free=own)),
    )


def _used_by(law: Law, body: Tree) -> Law:
    """The law with the functions and the parameters that an output uses."""
    found = functions_of(body)
    called = {name: call for name, call in law.template.calls.items() if name in found}
    unknowns = {unknown for unknown, _ in called.values()}
    return replace(
        law,
        template=replace(law.template, calls=called),
        functions={name: tree for name, tree in law.functions.items() if name in unknowns},
        constants={name: value for name, value in law.constants.items() if name in body.used_parameters},
    )


def _free_parameters(law: Law) -> dict[str, float]:
    """The numbers that were fitted for parameters, by name."""
    held = {each.name for each in law.template.parameters if each.value is not None or each.integer}
    found: dict[str, float] = {}
    for name, value in law.constants.items():
        if name not in held:
            found |= {name: value} if isinstance(value, float) else dict(zip(_names(law, name), value, strict=True))
    return found


def _names(law: Law, parameter: str) -> list[str]:
    """Names of a parameter's values by group."""
    assert law.groups is not None
    labels = [f"{parameter}_{label}" for label in law.groups.names_as_texts]
    told = [identifier(each) for each in labels]
    return told if len(set(told)) == len(told) else [f"{parameter}_{number}" for number in range(len(told))]


def _by_group(law: Law, name: str) -> ast.expr:
    assert law.groups is not None
    held = next(each for each in law.template.parameters if each.name == name)
    own: Any = law.constants[name]
    numbers: Any = own.tolist() if held.integer else [ast.Name(each) for each in _names(law, name)]
    return by_group(law.groups.column, law.groups.values, numbers)


def _definitions(law: Law, forms: Mapping[str, Form]) -> dict[str, Tree]:
    """The unknown functions and their derivatives, with names in place of constants."""
    found: dict[str, Tree] = {}
    for name, (unknown, by) in law.template.calls.items():
        tree = forms[unknown].tree
        for place in by:
            tree = simplify(derivative(tree, law.functions[unknown].parameters[place]), functions=COMPILED)
        found[name] = tree
    return found
