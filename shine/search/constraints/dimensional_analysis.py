"""Dimensional analysis of populations: which formulas are consistent in their units.

A constant may have any dimension. A product with such a free part is free as well, and a condition on it holds for one
choice of the constant. Each constant stands in one place, so no two conditions constrain the same one. Therefore one
sweep over the nodes is exact: a formula is consistent if some dimensions of its constants make it so.

A function has a rule: conditions on its arguments, and the dimension of its result. Both are linear in the exponents of
the base units: `add` requires equal exponents, `mul` adds them, `sqrt` halves them, `exp` requires that they are 0. So
a rule is a few linear forms. The rule of a composite follows from its definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.tapes import Subtrees
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.population import Population
from shine.lang.values import ValueGraph
from shine.search.constraints.units import BASE, DIMENSIONLESS, Dimension

TOLERANCE = 1e-6
"""Exponents that differ by less are equal: a constant exponent such as 1/3 is rounded."""

MOST_ARGUMENTS = 8
"""Most arguments of a function if there are units: the tables have an entry for each set of free arguments."""


class DimensionalAnalysis:
    """The dimensional analysis of a primitive set, for whole populations.

    Parameters
    ----------
    primitives : PrimitiveSet
    features : mapping of str to Dimension
        Dimension of each feature; missing features are plain numbers.
    free_constants : bool
        Whether a constant may have any dimension; otherwise it is a plain number.

    Raises
    ------
    ValueError
        If a function has more than `MOST_ARGUMENTS` arguments, or no rule.
    """

    def __init__(
        self, primitives: PrimitiveSet, features: Mapping[str, Dimension], free_constants: bool = True
    ) -> None:
        self.primitives = primitives
        names = primitives.features
        dimensions = [DIMENSIONLESS, *(features.get(name, DIMENSIONLESS) for name in names)]
        self._terminals = np.array(dimensions, dtype=np.float64)
        self._free_constants = free_constants
        self._power = primitives.function_codes.get("pow", -1)
        self._arity = max((function.arity for function in primitives.functions), default=0)
        if self._arity > MOST_ARGUMENTS:
            widest = max(primitives.functions, key=lambda function: function.arity)
            raise ValueError(f"function {widest.name!r} has {widest.arity} arguments; units allow {MOST_ARGUMENTS}")
        rules = [rule_of(function) for function in primitives.functions]
        codes, sets, rows = len(primitives.functions), 1 << self._arity, self._arity
        # Indexed by function and by the set of its free arguments: bit i of the set is argument i.
        self._conditions = np.zeros((codes, sets, rows, self._arity))
        self._results = np.zeros((codes, sets, self._arity))
        self._any = np.zeros((codes, sets), np.bool_)
        for code, members in product(range(codes), range(sets)):
            rule = eliminated(rules[code], [i for i in range(self._arity) if members >> i & 1])
            for row, condition in enumerate(rule.conditions):
                self._conditions[code, members, row] = _dense(condition, self._arity)
            self._results[code, members] = _dense(rule.result or {}, self._arity)
            self._any[code, members] = rule.result is None

    def consistent(self, population: Population, target: Dimension | None) -> Mask:
        """Whether each individual is consistent, and has the dimension of the target, shape (n_individuals,).

        Parameters
        ----------
        population : Population
            Its primitive set must be that of the analysis.
        target : Dimension, optional
            Dimension of the whole formula; None allows any.
        """
        subtrees = Subtrees.of(population)
        rows, positions = np.nonzero(subtrees.sizes > 0)
        nodes = _Nodes(population.codes[rows, positions].astype(np.int64), population.values[rows, positions])
        sizes = subtrees.sizes[rows, positions].astype(np.int64)
        depths = subtrees.depths[rows, positions]
        first_function = self.primitives.first_function
        self._set_terminals(nodes)
        order = np.argsort(depths, kind="stable")
        ends = np.searchsorted(depths[order], np.arange(1, int(depths.max(initial=0)) + 1), side="right")
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            at = order[begin:end]
            arities = self.primitives.arities[nodes.codes[at]]
            # Individuals follow each other, in postfix order: the arguments of a node come before it.
            arguments = np.full((len(at), self._arity), -1)
            last = at - 1
            for argument in range(self._arity - 1, -1, -1):
                has = argument < arities
                arguments[has, argument] = last[has]
                last[has] -= sizes[last[has]]
            self._apply(nodes, at, nodes.codes[at] - first_function, arguments)
            if self._power >= 0:
                self._fold(nodes, at, arguments)
                self._powers(nodes, at[nodes.codes[at] == self._power], arguments[nodes.codes[at] == self._power])
        consistent = np.ones(len(population), np.bool_)
        np.logical_and.at(consistent, rows, nodes.consistent)
        if target is not None:
            roots = np.cumsum(population.sizes) - 1
            near = np.abs(nodes.dimensions[roots] - np.array(target, dtype=np.float64)).max(axis=1) <= TOLERANCE
            consistent &= near | nodes.free[roots]
        return consistent

    def _set_terminals(self, nodes: _Nodes) -> None:
        terminal = nodes.codes < self.primitives.first_function
        nodes.dimensions[terminal] = self._terminals[nodes.codes[terminal]]
        nodes.free[:] = (nodes.codes == CONSTANT) & self._free_constants
        nodes.values[nodes.codes != CONSTANT] = np.nan

    def _apply(self, nodes: _Nodes, at: Indices, functions: Indices, arguments: Indices) -> None:
        """Set the dimensions of some nodes from those of their arguments; -1 stands for no argument."""
        given = arguments >= 0
        free = nodes.free[arguments] & given
        members = free @ (1 << np.arange(self._arity))
        dimensions = np.where(given[:, :, None], nodes.dimensions[arguments], 0.0)
        with np.errstate(all="ignore"):
            left = self._conditions[functions, members] @ dimensions
            nodes.dimensions[at] = (self._results[functions, members][:, None, :] @ dimensions)[:, 0]
        # A power that overflows makes NaN here, which is not within the tolerance.
        nodes.consistent[at] = (np.abs(left) <= TOLERANCE).all(axis=(1, 2))
        nodes.free[at] = self._any[functions, members]

    def _fold(self, nodes: _Nodes, at: Indices, arguments: Indices) -> None:
        """Set the values of nodes with only constants below them; the values of all others are NaN."""
        constant = ((arguments < 0) | ~np.isnan(nodes.values[arguments])).all(axis=1)
        at, arguments = at[constant], arguments[constant]
        for code in np.unique(nodes.codes[at]).tolist():
            of_code = nodes.codes[at] == code
            function = self.primitives.function(code)
            operands = [nodes.values[arguments[of_code, i]] for i in range(function.arity)]
            with np.errstate(all="ignore"):
                if function.definition is None:
                    nodes.values[at[of_code]] = REFERENCE[function.name](*operands)
                else:
                    nodes.values[at[of_code]] = evaluate(function.definition, operands)

    def _powers(self, nodes: _Nodes, at: Indices, arguments: Indices) -> None:
        """Set the dimensions of powers with constant exponents."""
        exponents = nodes.values[arguments[:, 1]]
        constant = np.isfinite(exponents)
        at, exponents, bases = at[constant], exponents[constant], arguments[constant, 0]
        with np.errstate(all="ignore"):
            nodes.dimensions[at] = exponents[:, None] * nodes.dimensions[bases]
        nodes.free[at] = nodes.free[bases] & (exponents != 0)
        nodes.consistent[at] = np.isfinite(nodes.dimensions[at]).all(axis=1)


class _Nodes:
    """All nodes of a population in sequence, and their properties.

    Attributes
    ----------
    codes : ndarray of shape (n_nodes,), int64
    values : ndarray of shape (n_nodes,)
    dimensions : ndarray of shape (n_nodes, 7)
        Meaningless where free.
    free : ndarray of shape (n_nodes,), bool
        Whether the node can have any dimension.
    consistent : ndarray of shape (n_nodes,), bool
        Whether the node's own conditions hold.
    """

    def __init__(self, codes: Indices, values: Floats) -> None:
        self.codes, self.values = codes, values
        self.dimensions = np.zeros((len(codes), len(BASE)))
        self.free = np.zeros(len(codes), np.bool_)
        self.consistent = np.ones(len(codes), np.bool_)


def _dense(form: Form, arity: int) -> Floats:
    return np.array([form.get(i, 0) for i in range(arity)], dtype=np.float64)


Form = dict[int, Fraction]
"""A linear form: coefficient by unknown, without zeros. An unknown is the exponent of a base unit in some value."""


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
    """The rule of a primitive for dimensions; a `ValueError` if the primitive is basic and not in `RULES`.

    The rule of a composite follows from its definition. Numbers in it have no dimension, except 0, which has any.
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
            # Largest denominator of a constant exponent within a definition: 0.3333333333333333 is read as 1/3.
            forms.append(_combined({0: Fraction(exponent).limit_denominator(100)}, inner))
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
