"""Derivatives of formulas as formulas: the adjoint (reverse-mode) transform.

The transform walks the values of a formula backwards. It adds to the adjoint of each operand the adjoint of the value
times a partial derivative (Linnainmaa 1976; Griewank and Walther, *Evaluating Derivatives*, 2008, chapter 3). The
results are trees: a derivative can be differentiated, printed and compiled like any formula.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import CONDITIONAL, Primitive, Tree
from shine.lang.parse import parse
from shine.lang.values import ValueGraph

ARGUMENTS = ("a", "b", "c")
"""Names of a primitive's arguments in its partials."""

VALUE = "y"
"""Name of a primitive's value in its partials."""

_LESS, _NOT_LESS = "1 if a < b else 0", "0 if a < b else 1"
_GREATER, _NOT_GREATER = "1 if a > b else 0", "0 if a > b else 1"
_IF, _IF_NOT = "1 if a else 0", "0 if a else 1"

PARTIALS: dict[str, tuple[str | None, ...]] = {
    "add": ("1", "1"),
    "sub": ("1", "-1"),
    "mul": ("b", "a"),
    "div": ("1 / b", "-(y / b)"),
    "floordiv": (None, None),
    "mod": ("1", "-(a // b)"),
    # The first is 0 for the exponent 0, even if the base is 0; the second is 0 for the base 0 and any exponent. The
    # condition of the first fails only for 0**0: where it fails, it cuts off further derivatives.
    "pow": ("b * a ** (b - 1) if b != 0 or a != 0 else 0", "y * log(a) if a != 0 and y != 0 else 0"),
    # If the operands are equal, the second is the result and gets the derivative.
    "min": (_LESS, _NOT_LESS),
    "max": (_GREATER, _NOT_GREATER),
    "neg": ("-1",),
    "abs": ("sign(a)",),
    "sqrt": ("0.5 / y",),
    "exp": ("y",),
    "log": ("1 / a",),
    "floor": (None,),
    "ceil": (None,),
    "sign": (None,),
    "sin": ("cos(a)",),
    "cos": ("-sin(a)",),
    "tan": ("1 + y * y",),
    # 1 - a is exact near 1, and 1 + a near -1; a * a is exact near neither.
    "asin": ("1 / sqrt((1 - a) * (1 + a))",),
    "acos": ("-1 / sqrt((1 - a) * (1 + a))",),
    "atan": ("1 / (1 + a * a)",),
    "sinh": ("cosh(a)",),
    "cosh": ("sinh(a)",),
    # 1 - y * y cancels where y is near 1, and the square of cosh overflows.
    "tanh": ("4 * (sigmoid(2 * a) * sigmoid(-(2 * a)))",),
    "lt": (None, None),
    "le": (None, None),
    "gt": (None, None),
    "ge": (None, None),
    "eq": (None, None),
    "ne": (None, None),
    # These yield one of their operands: `a and b` is b unless a is 0, `a or b` is a unless a is 0.
    "logical_and": (None, _IF),
    "logical_or": (_IF, _IF_NOT),
    "logical_not": (None,),
    "where": (None, _IF, _IF_NOT),
    # Composites: these are shorter or more accurate than the derivative of the definition.
    "square": ("2 * a",),
    "cube": ("3 * (a * a)",),
    "inv": ("-(y * y)",),
    "sigmoid": ("y * sigmoid(-a)",),
    "relu": ("1 if a > 0 else 0",),
    "hypot": ("a / y if y != 0 else 0", "b / y if y != 0 else 0"),
    "log1p": ("1 / (1 + a)",),
    "expm1": ("exp(a)",),
    "cbrt": ("1 / (3 * (y * y))",),
    "protected_sqrt": ("0.5 * sign(a) / y if a != 0 else 0",),
}
"""Partial derivatives of primitives by argument, in the language itself: in the arguments a, b, c and the value y.

None is a derivative that is zero wherever it exists. At a step, a kink or a cusp, the derivative is that of one side,
or 0. Every basic primitive has a row; the partials of a composite without a row are derived from its definition. At
points where the function is NaN, its partials have no meaning.
"""


@cache
def table_partials(name: str) -> tuple[Tree | None, ...]:
    """The row of a primitive as trees in the arguments and the value, used or not."""
    parameters = (*ARGUMENTS[: STANDARD[name].arity], VALUE)
    return tuple(None if text is None else parse(text, parameters) for text in PARTIALS[name])


def partials(primitive: Primitive) -> tuple[Tree | None, ...]:
    """Partial derivatives of a primitive, one for each argument.

    Parameters
    ----------
    primitive : Primitive
        Basic, or a composite: Shine's own or the user's.

    Returns
    -------
    tuple of (Tree or None)
        The parameters of each tree are the arguments and then the primitive's value, whether used or not. None is a
        derivative that is zero everywhere. If a derivative is the same everywhere, its result is a constant.
    """
    if primitive.name in PARTIALS and primitive == STANDARD.get(primitive.name):
        return table_partials(primitive.name)
    definition = primitive.definition
    assert definition is not None, f"the basic primitive {primitive.name!r} lacks a row in PARTIALS"
    value = unused_name(VALUE, definition.parameters)
    found = (derivative(definition, name) for name in definition.parameters)
    return tuple(
        None if is_constant(tree, 0) else replace(tree, parameters=(*tree.parameters, value)) for tree in found
    )


def is_constant(tree: Tree, number: float) -> bool:
    """Whether the result of a tree is a given constant: ``is_constant(partial, 1)`` holds for a partial of a sum."""
    return isinstance(tree.result, ast.Constant) and tree.result.value == number


def unused_name(wanted: str, names: Sequence[str]) -> str:
    """A name, with a number appended if it is taken."""
    candidates = itertools.chain([wanted], (f"{wanted}_{number}" for number in itertools.count(1)))
    return next(name for name in candidates if name not in names)


def derivative(tree: Tree, parameter: str) -> Tree:
    """The derivative of a formula with respect to one parameter; a `ValueError` if the formula has no such parameter.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(derivative(parse("sin(a)*b"), "a"))
    b*cos(a)
    """
    return gradient(tree, [parameter])[0]


def gradient(tree: Tree, wrt: Sequence[str] | None = None, *, cotangent: str | None = None) -> tuple[Tree, ...]:
    """The partial derivatives of a formula with respect to its parameters.

    Parameters
    ----------
    tree : Tree
        A formula of floating-point numbers; integers have no derivatives.
    wrt : sequence of str, optional
        Parameters to differentiate with respect to, in the order of the results; all by default.
    cotangent : str, optional
        Name of an additional first parameter of the results, which multiplies the derivatives.

    Returns
    -------
    tuple of Tree
        One for each parameter in `wrt`. All share the assignments: the values and adjoints of the formula that are
        used more than once.

    Raises
    ------
    ValueError
        If a parameter in `wrt` is unknown, or the cotangent has the name of a parameter.

    Notes
    -----
    The size of the result is linear in that of the formula, where functions count at every call. A branch that is not
    taken contributes nothing, even if its derivatives are infinite or NaN. If one factor of the chain rule is 0 and
    another infinite, as in ``sqrt(x*x)`` at 0, the derivative is NaN.
    """
    return _transform(tree, wrt, cotangent, keep_value=False)


def value_and_gradient(
    tree: Tree, wrt: Sequence[str] | None = None, *, cotangent: str | None = None
) -> tuple[Tree, ...]:
    """The formula itself, then its partial derivatives as in `gradient`. All share the assignments."""
    return _transform(tree, wrt, cotangent, keep_value=True)


def _transform(tree: Tree, wrt: Sequence[str] | None, cotangent: str | None, *, keep_value: bool) -> tuple[Tree, ...]:
    wanted = tree.parameters if wrt is None else tuple(wrt)
    unknown = [name for name in wanted if name not in tree.parameters]
    if unknown:
        known = ", ".join(tree.parameters) or "none"
        raise ValueError(f"the formula has no parameter {unknown[0]!r} to differentiate by; its parameters are {known}")
    if cotangent in tree.parameters:
        raise ValueError(
            f"the cotangent cannot be called {cotangent!r} like a parameter of the formula; choose another name"
        )
    graph = ValueGraph()
    arguments = {name: graph.parameter(name) for name in tree.parameters}
    result = graph.read(tree, list(arguments.values()), kept=PARTIALS)
    start = graph.constant(1) if cotangent is None else graph.parameter(cotangent)
    adjoints = _adjoints(graph, result, {arguments[name] for name in wanted}, start)
    results = [result] * keep_value + [adjoints[arguments[name]] for name in wanted]
    parameters = tree.parameters if cotangent is None else (cotangent, *tree.parameters)
    return graph.write(results, parameters, tree.name)


def _adjoints(graph: ValueGraph, result: int, wrt: set[int], cotangent: int) -> dict[int, int]:
    """The adjoint of each parameter: the cotangent times the derivative of the result."""
    varies = _varying(graph, wrt)
    regions = _Regions(graph)
    contributions: dict[int, list[tuple[int, int]]] = {result: [(cotangent, _EVERYWHERE)]}
    adjoints = {value: graph.constant(0) for value in wrt}
    # Values come after their operands. So, in reverse order, an adjoint is complete before it is passed on.
    for value in range(result, -1, -1):
        if value not in contributions or not varies[value]:
            continue
        adjoint, region = regions.total(contributions.pop(value))
        if graph.is_parameter(value):
            adjoints[value] = regions.confined(adjoint, region)
            continue
        operands = graph.operands[value]
        for operand, tree in zip(operands, table_partials(graph.names[value]), strict=True):
            if tree is not None and varies[operand]:
                partial = graph.read(tree, [*operands, value], kept=PARTIALS, simplify=True)
                partial, inner = regions.split(partial, region)
                product = graph.simplified("mul", adjoint, partial)
                if graph.number(product) != 0:
                    contributions.setdefault(operand, []).append((product, inner))
    return adjoints


def _varying(graph: ValueGraph, wrt: set[int]) -> list[bool]:
    """Whether each value varies with the parameters, apart from steps."""
    varies: list[bool] = []
    for value, (name, operands) in enumerate(zip(graph.names, graph.operands, strict=True)):
        varies.append(
            value in wrt
            if not operands
            else any(
                tree is not None and varies[operand]
                for operand, tree in zip(operands, table_partials(name), strict=True)
            )
        )
    return varies


_EVERYWHERE = 0
"""The region of all points."""


@dataclass(frozen=True)
class _Region:
    """The points of another region for which a condition holds.

    `jump` leads to a distant ancestor, so that common ancestors are found in a logarithmic number of steps (Myers, An
    applicative random-access stack, 1983).
    """

    parent: int
    jump: int
    depth: int
    condition: int


class _Regions:
    """Nested regions of points, each with the condition that its points fulfil.

    A branch that is not taken must not contribute to an adjoint. Multiplying by 0 is not enough, because derivatives
    in the branch may be infinite. So adjoints within a branch are computed as if it were taken everywhere. When one
    leaves the branch, `confined` replaces it by 0 at the points that do not take the branch.
    """

    def __init__(self, graph: ValueGraph) -> None:
        self.graph = graph
        self.regions = [_Region(_EVERYWHERE, _EVERYWHERE, 0, graph.constant(1))]
        self.known: dict[tuple[int, int], int] = {}

    def split(self, partial: int, region: int) -> tuple[int, int]:
        """A partial derivative without the conditions outside which it is 0, and the region where they hold."""
        simplified, number = self.graph.simplified, self.graph.number
        while self.graph.names[partial] == CONDITIONAL:
            test, body, orelse = self.graph.operands[partial]
            if number(orelse) == 0:
                partial, region = body, self._within(region, test)
            elif number(body) == 0:
                partial, region = orelse, self._within(region, simplified("logical_not", test))
            else:
                break
        return partial, region

    def total(self, contributions: Iterable[tuple[int, int]]) -> tuple[int, int]:
        """Sum of (value, region) pairs, and the smallest region that contains all their regions."""
        sums: dict[int, int] = {}
        for value, region in contributions:
            sums[region] = self.graph.simplified("add", sums[region], value) if region in sums else value
        common = next(iter(sums))
        for region in sums:
            common = self._common(common, region)
        total = None
        for region, value in sums.items():
            confined = value if region == common else self.confined(value, region)
            total = confined if total is None else self.graph.simplified("add", total, confined)
        assert total is not None
        return total, common

    def confined(self, value: int, region: int) -> int:
        """A value within a region, 0 elsewhere."""
        return self.graph.simplified(CONDITIONAL, self.regions[region].condition, value, self.graph.constant(0))

    def _within(self, parent: int, test: int) -> int:
        key = parent, test
        if key not in self.known:
            regions, outer = self.regions, self.regions[parent]
            further = regions[outer.jump]
            balanced = outer.depth - further.depth == further.depth - regions[further.jump].depth
            condition = self.graph.simplified("logical_and", outer.condition, test)
            self.known[key] = len(regions)
            regions.append(_Region(parent, further.jump if balanced else parent, outer.depth + 1, condition))
        return self.known[key]

    def _common(self, a: int, b: int) -> int:
        """The smallest region that contains two regions."""
        regions = self.regions
        while a != b:
            if regions[a].depth < regions[b].depth:
                a, b = b, a
            first, second = regions[a], regions[b]
            if first.depth > second.depth:
                a = first.jump if regions[first.jump].depth >= second.depth else first.parent
            elif first.jump != second.jump:
                a, b = first.jump, second.jump
            else:
                a, b = first.parent, second.parent
        return a
