"""From DEAP's trees, lists of nodes in prefix order, to a population of tapes, in postfix order.

This is the only part of an evaluation that runs in Python, so it is written for speed: names are looked up by compiled
functions, and all trees are reordered at once. If the depth of a node is the number of its ancestors, then

    postfix place = prefix place - depth + length of the subtree - 1

because the ancestors of a node precede it in prefix order only, and its descendants in postfix order only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from shine.base.typing import Floats, Indices
from shine.faces.deap.vocabulary import Names, Vocabulary
from shine.lang.forms.primitives import CONSTANT
from shine.lang.forms.tape import MAX_NODES
from shine.lang.population import Population
from shine.lang.python.expressions import described, number_of

_name = attrgetter("name")
_value = attrgetter("value")

_PLAIN = frozenset({float, int, bool})
"""Types of constants that need no check one by one."""


def population_of(individuals: Sequence[Any], vocabulary: Vocabulary) -> Population:
    """The tapes of DEAP's individuals.

    Parameters
    ----------
    individuals : sequence of deap.gp.PrimitiveTree, or of sequences of them
        Trees; or lists of trees, one for each primitive set, if there are several.
    vocabulary : Vocabulary

    Raises
    ------
    ValueError
        If a tree is not complete, or a node is neither in the primitive set nor a number.
    """
    if vocabulary.evolves_functions:
        written = [expanded(individual, vocabulary, number) for individual in individuals]
        sizes = np.array([len(codes) for codes, _ in written], dtype=np.int64)
        codes = np.fromiter(chain.from_iterable(codes for codes, _ in written), np.int64, int(sizes.sum()))
        values = np.fromiter(chain.from_iterable(values for _, values in written), np.float64, len(codes))
    else:
        sizes = np.fromiter(map(len, individuals), np.int64, len(individuals))
        codes, values = _written(list(chain.from_iterable(individuals)), vocabulary)
    return _postfix(codes, values, sizes, vocabulary)


def _written(nodes: list[Any], vocabulary: Vocabulary) -> tuple[Indices, Floats]:
    """Codes and values of nodes, in their order."""
    code_of = vocabulary.names[0].codes.__getitem__
    codes = np.fromiter(map(code_of, map(_name, nodes)), np.int64, len(nodes))
    values = np.zeros(len(nodes))
    at = np.flatnonzero(codes == CONSTANT)
    constants = [nodes[i] for i in at.tolist()]
    try:
        numbers = list(map(_value, constants))
    except AttributeError:
        _reject(next(node for node in constants if not hasattr(node, "value")))
    if not _PLAIN.issuperset(map(type, numbers)):
        numbers = [number(node) for node in constants]
    try:
        values[at] = np.fromiter(numbers, np.float64, len(numbers))
    except OverflowError:
        values[at] = [number(node) for node in constants]
    named = np.flatnonzero(codes < 0)
    if len(named):
        values[named] = vocabulary.constants[-1 - codes[named]]
        codes[named] = CONSTANT
    return codes, values


def number(node: Any) -> float:
    """The value of a node whose name is in no primitive set.

    Raises
    ------
    ValueError
        If it is not a number.
    """
    value = number_of(getattr(node, "value", None))
    if value is None:
        _reject(node)
    return value


def _reject(node: Any) -> NoReturn:
    if hasattr(node, "value"):
        raise ValueError(f"terminal {node.name!r} is {described(node.value)}: no number, and not in the primitive set")
    raise ValueError(f"primitive {node.name!r} is not in the primitive set the evaluator was made of")


def _postfix(codes: Indices, values: Floats, sizes: Indices, vocabulary: Vocabulary) -> Population:
    """Tapes of trees that follow each other in prefix order."""
    count, nodes = len(sizes), np.arange(len(codes))
    starts = np.cumsum(sizes) - sizes
    ends = _subtree_ends(vocabulary.primitives.arities[codes])
    complete = sizes > 0
    complete[complete] = ends[starts[complete]] == (starts + sizes)[complete] - 1
    if not complete.all():
        raise ValueError(f"individual {int(np.argmin(complete))} is not one complete tree in prefix order")
    ended = np.cumsum(np.bincount(ends, minlength=len(codes)))
    depths = nodes - (ended - np.bincount(ends, minlength=len(codes)))
    tree = np.repeat(np.arange(count), sizes)
    places = ends - depths - starts[tree]
    width = int(sizes.max(initial=1))
    tape_codes, tape_values = np.zeros((count, width), np.int16), np.zeros((count, width))
    tape_codes[tree, places] = codes
    tape_values[tree, places] = values
    return Population(tape_codes, tape_values, sizes, vocabulary.primitives)


def _subtree_ends(arities: Indices) -> Indices:
    """Place of the last node of each node's subtree; -1 if the subtree is not complete.

    Each node changes the number of open arguments by arity - 1. A subtree ends at the first node after which there is
    one open argument less than before the subtree. The number falls in steps of one, so it meets this value.
    """
    count = len(arities)
    after = np.cumsum(arities - 1)
    keys = np.sort((after + count) * count + np.arange(count))
    before = np.concatenate([[0], after[:-1]])[:count]
    wanted = (before - 1 + count) * count + np.arange(count)
    at = np.searchsorted(keys, wanted)
    found = keys[np.minimum(at, count - 1)]
    same = (at < count) & (found // count == before - 1 + count)
    ends: Indices = np.where(same, found % count, -1)
    return ends


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
