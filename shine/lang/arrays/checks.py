"""Whether the indices of an array formula fit the lengths of its vectors: once a call, before any loop runs.

All indices and bounds are linear in the loop variables, so an index is in range for all values of a variable if it is
for the first and the last one. Only variables that bounds of inner loops depend on have to run through all values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from shine.lang.arrays.affine import length_symbol
from shine.lang.arrays.formula import ArrayFormula, Element, Reduction, array_source


def check_indices(formula: ArrayFormula, lengths: Mapping[str, int]) -> None:
    """Raise an error if a formula cannot be computed for vectors of some lengths.

    Parameters
    ----------
    formula : ArrayFormula
    lengths : mapping of str to int
        Length of each vector.

    Raises
    ------
    IndexError
        If it reads an element that a vector does not have.
    ValueError
        If it has the minimum or maximum of nothing.

    Notes
    -----
    Both sides of a conditional expression count: compiled code computes both, and then chooses.
    """
    symbols = {length_symbol(vector): length for vector, length in lengths.items()}
    for expression in formula.expressions:
        _check(expression, symbols, lengths)


def _check(expression: ast.expr, symbols: dict[str, int], lengths: Mapping[str, int]) -> None:
    reductions: list[Reduction] = []
    for node in _outside_reductions(expression):
        if isinstance(node, Reduction):
            reductions.append(node)
        elif isinstance(node, Element):
            index, length = node.index.value(symbols), lengths[node.vector]
            if not -length <= index < length:
                where = {name: value for name, value in symbols.items() if not name.startswith("len(")}
                at = f" at {', '.join(f'{name} = {value}' for name, value in where.items())}" if where else ""
                raise IndexError(
                    f"{array_source(node)} is element {index}{at}, but {node.vector} has {length} elements; "
                    "every index must be in range, in both sides of a conditional expression too: change the range, or "
                    "the index"
                )
    for reduction in reductions:
        values = loop_values(reduction, symbols)
        if not values and reduction.nonempty:
            text = array_source(reduction)
            sizes = ", ".join(f"len({vector}) = {length}" for vector, length in lengths.items())
            raise ValueError(f"{text} has no terms ({sizes or 'its range is empty'}), and so no value")
        depends = any(
            symbol == reduction.index
            for node in ast.walk(reduction.body)
            if isinstance(node, Reduction)
            for bound in (node.start, *node.stops)
            for symbol, _ in bound.terms
        )
        for value in values if depends else {*values[:1], *values[-1:]}:
            _check(reduction.body, {**symbols, reduction.index: value}, lengths)


def loop_values(reduction: Reduction, symbols: Mapping[str, int]) -> range:
    """The values of the loop variable of a reduction."""
    stop = min(stop.value(symbols) for stop in reduction.stops)
    return range(reduction.start.value(symbols), stop, reduction.step)


def _outside_reductions(expression: ast.expr) -> Iterator[ast.AST]:
    """The nodes of an expression without those inside its reductions."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Reduction):
            waiting += ast.iter_child_nodes(node)
