"""Simplification: an equal formula with fewer nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shine.lang.forms.names import shown, value_text
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree, names_in
from shine.lang.interpret import EXACT, Functions
from shine.lang.parse import natural_order
from shine.lang.simplify.algebra import Algebra
from shine.lang.simplify.exact import ExactRules, demands_on
from shine.lang.simplify.terms import NO_RANGES, Range, Terms

ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
"""Functions that a simplified formula may use, unless a primitive set is given."""

_MOST_WORK, _FREE_WORK = 30, 500
"""Most work of all passes, for each node of the formula and besides, after which no other pass begins (see
`Terms.work`)."""


def simplify(
    tree: Tree,
    primitives: PrimitiveSet | None = None,
    *,
    rounding: bool = True,
    functions: Functions = EXACT,
    ranges: Mapping[str, Range] = NO_RANGES,
) -> Tree:
    """An equal formula with fewer nodes, or the same number.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers. The value of every assignment is simplified by itself.
    primitives : PrimitiveSet, optional
        The functions that the result may use; by default those of the tree, and `ARITHMETIC`.
    rounding : bool
        Whether the result may differ by rounding. If so, sums and products are reordered, their constants merged, and
        functions that undo each other removed. Otherwise no bit of a finite value changes, except the sign of zero.
    functions : mapping of str to callable
        The functions that fold constants: `shine.compiler.arrays.COMPILED`, or by default `EXACT`. `EXACT` leaves
        ``exp(2)`` as it is, because only compiled code knows its bits.
    ranges : mapping of str to (float, float)
        The least and the greatest value of parameters, such as those of all rows of some data (`Dataset.ranges`). With
        rounding, the result is equal for values within them: ``sqrt(x**2)`` is x if x is never negative.

    Returns
    -------
    Tree
        Simplifying it again changes nothing.

    Raises
    ------
    ValueError
        If a range is not a pair of the least and the greatest value.

    Notes
    -----
    Without rounding, the result has the value of the tree wherever that value is finite. With rounding, the values
    agree up to rounding wherever all intermediate values of the tree are finite and none of them underflows to zero.
    The result may be finite where the tree is not: ``x/x`` is 1 everywhere.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> str(simplify(parse("(a*2 + 4)*0.5 + b/b")))
    'a + 3'
    >>> str(simplify(parse("sqrt(a*a*b)"), ranges={"a": (0.1, 5.0)}))
    'a*sqrt(b)'
    """

    for name, given in ranges.items():
        if not (isinstance(given, Sequence) and len(given) == 2 and given[0] <= given[1]):
            raise ValueError(
                f"the range of {shown(name)} is {value_text(given)}; give its least and its greatest value, such as "
                "(0.5, 20)"
            )

    def step(terms: Terms) -> Callable[[int], int]:
        allowed = ARITHMETIC.union(terms.operations) if primitives is None else frozenset(primitives.function_codes)
        return Algebra(terms, allowed).simplified if rounding else _Exact(terms, allowed).simplified

    return settled(tree, step, functions, ranges)


def settled(
    tree: Tree,
    step: Callable[[Terms], Callable[[int], int]],
    functions: Functions,
    ranges: Mapping[str, Range],
    length: Callable[[Tree], int] = lambda tree: tree.size,
) -> Tree:
    """A formula after as many passes as change it.

    Parameters
    ----------
    tree : Tree
    step : callable
        Makes the function that simplifies one term once, given all terms of a formula.
    functions : mapping of str to callable
        The functions that fold constants.
    ranges : mapping of str to (float, float)
        The least and the greatest value of parameters.
    length : callable
        What no pass may increase.
    """
    assigned = {name for name, _ in tree.assignments}
    ranges = {name: ranges[name] for name in tree.parameters if name in ranges and name not in assigned}
    equal_sized, left = [tree], _MOST_WORK * tree.size + _FREE_WORK
    for _ in range(50):  # formulas settle after a few passes
        if left <= 0:
            break
        following, work = _pass(tree, step, functions, ranges)
        left -= work
        if following in equal_sized:
            # If passes turn formulas into each other in a circle, always choose the same one.
            return min(equal_sized[equal_sized.index(following) :], key=lambda tree: tree.tokens)
        if length(following) > length(tree):
            return tree
        equal_sized = [*equal_sized, following] if length(following) == length(tree) else [following]
        tree = following
    return tree


def _pass(
    tree: Tree, step: Callable[[Terms], Callable[[int], int]], functions: Functions, ranges: Mapping[str, Range]
) -> tuple[Tree, int]:
    """The formula with every subformula simplified once, and the work that it took."""
    # Only names in the formula: a table may have many thousand columns.
    names = sorted({detail for kind, detail in tree.tokens[1:] if kind == "name"}, key=natural_order)
    terms = Terms(names, tree.functions, functions, ranges)
    given = terms.terms_of(tree)
    simplified = step(terms)
    *values, result = [terms.node(simplified(term)) for term in given]
    assignments = tuple((name, value) for (name, _), value in zip(tree.assignments, values, strict=True))
    return replace(tree, assignments=_needed(assignments, result), result=result), terms.work


class _Exact:
    """One pass of the exact rules over a formula."""

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        self.terms = terms
        self.rules = ExactRules(terms, allowed)

    def simplified(self, root: int) -> int:
        operations, arguments = self.terms.operations, self.terms.arguments
        order = self.terms.reachable([root])
        demands = dict.fromkeys(order, 0)
        for term in reversed(order):
            for position, argument in enumerate(arguments[term]):
                demands[argument] |= demands_on(operations[term], position, demands[term])
        result: dict[int, int] = {}
        for term in order:
            if arguments[term]:
                simple = tuple(result[argument] for argument in arguments[term])
                result[term] = self.rules.apply(operations[term], simple, demands[term])
            else:
                result[term] = term
        return result[root]


def _needed(assignments: tuple[tuple[str, ast.expr], ...], result: ast.expr) -> tuple[tuple[str, ast.expr], ...]:
    """The assignments that the result needs, directly or through others."""
    if not assignments:
        return ()
    needed = set(names_in(result))
    kept = []
    for name, value in reversed(assignments):
        if name in needed:
            kept.append((name, value))
            needed.update(names_in(value))
    return tuple(reversed(kept))
