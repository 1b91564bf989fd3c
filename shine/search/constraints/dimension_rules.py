"""The rule of each function for dimensions: conditions on its arguments, and the dimension of its result.

Both are linear in the exponents of the base units: `add` requires equal exponents, `mul` adds them, `sqrt` halves them,
`exp` requires that they are 0. So a rule is a few linear forms. The rule of a composite follows from its definition.
`shine.search.constraints.dimensional_analysis` applies the rules to populations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown
from shine.lang.forms.tree import Primitive
from shine.lang.interpret import REFERENCE
from shine.lang.values import ValueGraph

Form = dict[int, Fraction]
"""A linear form: coefficient by unknown, without zeros. An unknown is the exponent of a base unit in some value."""

_LARGEST_DENOMINATOR = 100
"""Largest denominator of a constant exponent within a definition: 0.3333333333333333 is read as 1/3."""


@dataclass(frozen=True)
class Rule:
    """Conditions and result of a function; unknowns 0, 1, ... are its arguments.

    Parameters
    ----------
    conditions : tuple of Form
        Each must be 0.
    result : Form, optional
        Dimension of the result; None if it can be any.
    """

    conditions: tuple[Form, ...]
    result: Form | None


def _rule(result: Sequence[Fraction | int], *conditions: Sequence[int]) -> Rule:
    return Rule(tuple(_form(condition) for condition in conditions), _form(result))


def _form(coefficients: Sequence[Fraction | int]) -> Form:
    return {i: Fraction(coefficient) for i, coefficient in enumerate(coefficients) if coefficient}


_SAME = _rule((1, 0), (1, -1))
_COMPARISON = _rule((), (1, -1))
_NUMBER = _rule((), (1,))
_SCALE = _rule((1,))

RULES: dict[str, Rule] = {
    "add": _SAME, "sub": _SAME, "min": _SAME, "max": _SAME, "mod": _SAME,
    "mul": _rule((1, 1)), "div": _rule((1, -1)), "floordiv": _COMPARISON,
    # This rule is for exponents that vary; `_derived` and the dimensional analysis treat constant ones apart.
    "pow": _rule((), (1, 0), (0, 1)),
    "neg": _SCALE, "abs": _SCALE, "sqrt": _rule((Fraction(1, 2),)), "sign": _rule(()),
    # Rounding a length gives another result in metres than in feet.
    "floor": _NUMBER, "ceil": _NUMBER,
    "exp": _NUMBER, "log": _NUMBER, "sin": _NUMBER, "cos": _NUMBER, "tan": _NUMBER, "asin": _NUMBER, "acos": _NUMBER,
    "atan": _NUMBER, "sinh": _NUMBER, "cosh": _NUMBER, "tanh": _NUMBER,
    "lt": _COMPARISON, "le": _COMPARISON, "gt": _COMPARISON, "ge": _COMPARISON, "eq": _COMPARISON, "ne": _COMPARISON,
    "logical_and": _SAME, "logical_or": _SAME, "logical_not": _rule(()), "where": _rule((0, 1, 0), (0, 1, -1)),
}  # fmt: skip
"""Rule of every basic primitive. Truth values are numbers; any quantity can be tested for 0."""

LIBRARY_RULES: dict[str, Rule] = {"cbrt": _rule((Fraction(1, 3),))}
"""Rules of composites whose definitions compare numbers and scale them: their rules do not follow from these."""


def rule_of(primitive: Primitive) -> Rule:
    """The rule of a primitive for dimensions.

    The rule of a composite follows from its definition. Numbers in it have no dimension, except 0, which has any.

    Raises
    ------
    ValueError
        If the primitive is basic and not in `RULES`.
    """
    if primitive.definition is None:
        return _listed_rule(primitive.name, RULES)
    if primitive is STANDARD.get(primitive.name) and primitive.name in LIBRARY_RULES:
        return LIBRARY_RULES[primitive.name]
    return _derived(primitive)


def _listed_rule(name: str, rules: Mapping[str, Rule]) -> Rule:
    if name not in rules:
        raise ValueError(
            f"primitive {shown(name)} has no rule for units; known are {listed(rules, 100)}; "
            f"define it by these, or leave out the units"
        )
    return rules[name]


def _derived(primitive: Primitive) -> Rule:
    """The rule of a composite, by its definition."""
    tree = primitive.definition
    assert tree is not None
    graph = ValueGraph()
    arguments = [graph.parameter(name) for name in tree.parameters]
    result = graph.read(tree, arguments, LIBRARY_RULES)
    forms: list[Form] = []
    numbers: list[float | None] = []
    conditions: list[Form] = []
    unknowns = len(arguments)
    for value, name in enumerate(graph.names):
        operands = graph.operands[value]
        number = graph.number(value)
        if number is None and operands and name in REFERENCE:
            number = _folded(name, [numbers[operand] for operand in operands])
        numbers.append(None if number is None else float(number))
        inner = []
        for operand in operands:
            # Each use of the number 0 may have another dimension.
            if graph.number(operand) == 0:
                inner.append({unknowns: Fraction(1)})
                unknowns += 1
            else:
                inner.append(forms[operand])
        if graph.is_parameter(value):
            forms.append({arguments.index(value): Fraction(1)})
        elif not operands:
            forms.append({})
        elif name == "pow" and (exponent := numbers[operands[1]]) is not None and np.isfinite(exponent):
            forms.append(_combined({0: Fraction(exponent).limit_denominator(_LARGEST_DENOMINATOR)}, inner))
        else:
            rule = _listed_rule(name, RULES | LIBRARY_RULES)
            assert rule.result is not None
            conditions += [_combined(condition, inner) for condition in rule.conditions]
            forms.append(_combined(rule.result, inner))
    own = {unknowns: Fraction(1)} if graph.number(result) == 0 else forms[result]
    return eliminated(Rule(tuple(conditions), own), range(len(arguments), unknowns + 1))


def _folded(name: str, numbers: Sequence[float | None]) -> float | None:
    """The value of a primitive, if all its arguments are numbers."""
    arguments = [np.float64(number) for number in numbers if number is not None]
    if len(arguments) < len(numbers):
        return None
    with np.errstate(all="ignore"):
        return float(REFERENCE[name](*map(np.asarray, arguments)))


def _combined(outer: Form, inner: Sequence[Form]) -> Form:
    """The form that results if each unknown of `outer` is replaced by a form."""
    total: Form = {}
    for position, coefficient in outer.items():
        total = _sum(total, inner[position], coefficient)
    return total


def _sum(one: Form, other: Form, factor: Fraction) -> Form:
    total = dict(one)
    for unknown, coefficient in other.items():
        total[unknown] = total.get(unknown, Fraction(0)) + factor * coefficient
    return {unknown: coefficient for unknown, coefficient in total.items() if coefficient}


def eliminated(rule: Rule, free: Iterable[int]) -> Rule:
    """The rule if some unknowns are free to take any value (Gauss-Jordan elimination, free columns first).

    A condition with a free unknown determines that unknown; the conditions without one remain.
    """
    pending, result = list(rule.conditions), rule.result
    left: list[Form] = []
    free = set(free)
    while pending:
        condition = pending.pop()
        pivot = max(condition, key=lambda unknown: (unknown in free, unknown), default=None)
        if pivot is None:
            continue

        def without(form: Form, row: Form = condition, pivot: int = pivot) -> Form:
            return _sum(form, row, -form.get(pivot, Fraction(0)) / row[pivot])

        pending, left = [without(form) for form in pending], [without(form) for form in left]
        if pivot not in free:
            left.append(condition)
        if result is not None and pivot in free:
            result = without(result)
    if result is not None and free & set(result):
        result = None
    return Rule(tuple(form for form in left if form), result)
