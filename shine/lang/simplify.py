"""Simplification: an equal formula with fewer nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from shine.lang.parse import natural_order
from shine.lang.primitives import PrimitiveSet
from shine.lang.simplify_algebra import Algebra
from shine.lang.simplify_exact import EVERYTHING, ExactRules, demands_on
from shine.lang.simplify_terms import Terms
from shine.lang.tape import functions_of
from shine.lang.tree import Tree

ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
"""Functions that a simpler formula may always have, unless a primitive set says otherwise."""

_MOST_PASSES = 50


def simplify(tree: Tree, primitives: PrimitiveSet | None = None, *, rounding: bool = True) -> Tree:
    """An equal formula with fewer nodes, or as many.

    Parameters
    ----------
    tree : Tree
        Its constants are those of float64. The value of every assignment is simplified by itself.
    primitives : PrimitiveSet, optional
        The functions that the result may gain; by default those that the tree has, and `ARITHMETIC`.
    rounding : bool
        Whether the result may differ by rounding: sums and products are then reordered, their constants merged, and
        functions that undo each other removed. Otherwise no bit of a finite value changes, save the sign of zero.

    Returns
    -------
    Tree
        Simplifying it once more changes nothing.

    Notes
    -----
    Without rounding, the result has the value of the tree wherever that is finite. With it, it has the tree's value
    up to rounding wherever all intermediate values of the tree are finite and none of them vanishes by underflow.
    Where the tree is not finite the result may be: ``x/x`` is 1 everywhere.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> str(simplify(parse("(a*2 + 4)*0.5 + b/b")))
    'a + 3'
    """
    nodes = [*(value for _, value in tree.assignments), tree.result]
    names = sorted({*tree.parameters, *(name for name, _ in tree.assignments)}, key=natural_order)
    terms = Terms(names, tree.functions, _writes_integers(nodes))
    used = functions_of(tree)
    allowed = frozenset(used | ARITHMETIC) if primitives is None else frozenset(primitives.function_codes)
    step: Callable[[int], int]
    if rounding:
        step = Algebra(terms, allowed).simplified
    else:
        step = _Exact(terms, allowed).simplified
    simple = [terms.node(_settled(terms, terms.term(node), step)) for node in nodes]
    assignments = tuple((name, node) for (name, _), node in zip(tree.assignments, simple, strict=False))
    return replace(tree, assignments=_needed(assignments, simple[-1]), result=simple[-1])


def _settled(terms: Terms, term: int, step: Callable[[int], int]) -> int:
    """What a step makes of a term when repeated until it changes nothing, or would lead back or to more nodes."""
    equal_sized: list[int] = [term]
    for _ in range(_MOST_PASSES):
        following = step(term)
        if following in equal_sized:
            # Of terms that lead to each other, the same one is always chosen.
            cycle = equal_sized[equal_sized.index(following) :]
            return min(cycle, key=terms.keys.__getitem__)
        if terms.sizes[following] > terms.sizes[term]:
            return term
        equal_sized = [*equal_sized, following] if terms.sizes[following] == terms.sizes[term] else [following]
        term = following
    return term


class _Exact:
    """A pass of the exact rules over a formula."""

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


def _writes_integers(nodes: list[ast.expr]) -> bool:
    """Whether whole numbers are written without a point: some are already, or there are no numbers."""
    numbers = [node.value for root in nodes for node in ast.walk(root) if isinstance(node, ast.Constant)]
    return not numbers or any(isinstance(number, int) for number in numbers)


def _needed(assignments: tuple[tuple[str, ast.expr], ...], result: ast.expr) -> tuple[tuple[str, ast.expr], ...]:
    """The assignments that the result uses, directly or by others."""
    needed = _names(result)
    kept = []
    for name, value in reversed(assignments):
        if name in needed:
            kept.append((name, value))
            needed |= _names(value)
    return tuple(reversed(kept))


def _names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
