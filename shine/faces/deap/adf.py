"""Automatically defined functions: calls are replaced by the trees that evolve along with the main tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shine.faces.deap.vocabulary import Names, Vocabulary
from shine.lang.forms.primitives import CONSTANT
from shine.lang.forms.tape import MAX_NODES

Written = tuple[list[int], list[float]]
"""Codes and values of nodes in prefix order."""


def expanded(individual: Sequence[Any], vocabulary: Vocabulary, number: Callable[[Any], float]) -> Written:
    """One expression made of a list of trees: the first tree calls the others.

    Parameters
    ----------
    individual : sequence of deap.gp.PrimitiveTree
        One tree for each primitive set, in order; each may call the later ones.
    vocabulary : Vocabulary
    number : callable
        The value of a node that is in no primitive set.

    Raises
    ------
    ValueError
        If there are not as many trees as primitive sets, one is not complete, or the expression becomes too long.
    """
    if len(individual) != len(vocabulary.names):
        needed = len(vocabulary.names)
        raise ValueError(f"an individual needs {needed} trees, one for each set; this one has {len(individual)}")
    return _Expansion(individual, vocabulary, number).tree(0, [])


class _Expansion:
    def __init__(self, individual: Sequence[Any], vocabulary: Vocabulary, number: Callable[[Any], float]) -> None:
        self._individual, self._vocabulary, self._number = individual, vocabulary, number

    def tree(self, position: int, arguments: Sequence[Written]) -> Written:
        """One tree, written out for given arguments.

        Prefix order is read backwards with a stack, so that the operands of a node are on the stack before the node.
        """
        names, stack = self._vocabulary.names[position], list[Written]()
        for node in reversed(self._individual[position]):
            arity = node.arity
            if arity > len(stack):
                raise ValueError(f"tree {position} of an individual is not complete: {node.name!r} lacks arguments")
            operands = stack[len(stack) - arity :][::-1]
            del stack[len(stack) - arity :]
            stack.append(self._node(node, names, operands, arguments))
            if len(stack[-1][0]) > MAX_NODES:
                raise ValueError(f"an individual has more than {MAX_NODES} nodes with its functions written out")
        if len(stack) != 1:
            raise ValueError(f"tree {position} of an individual is not one complete tree in prefix order")
        return stack[0]

    def _node(self, node: Any, names: Names, operands: Sequence[Written], arguments: Sequence[Written]) -> Written:
        name = node.name
        if name in names.definitions:
            return self.tree(names.definitions[name], operands)
        if name in names.arguments:
            return arguments[names.arguments[name]]
        code = names.codes[name]
        if code < 0:
            return [CONSTANT], [float(self._vocabulary.constants[-1 - code])]
        if code == CONSTANT:
            return [CONSTANT], [self._number(node)]
        codes, values = [code], [0.0]
        for operand in operands:
            codes += operand[0]
            values += operand[1]
        return codes, values
