"""From DEAP's trees, lists of nodes in prefix order, to a population of tapes, or to one formula and its kernel."""

from __future__ import annotations

import ast
import ctypes
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.arrays import COMPILED
from shine.evaluate.kernels.kernel import Kernel
from shine.faces.deap.arguments import float_name
from shine.faces.deap.vocabulary import Names, Vocabulary, as_sets, vocabulary_of
from shine.lang.forms.grammar import LARGEST_EXACT
from shine.lang.forms.primitives import CONSTANT
from shine.lang.forms.tape import MAX_NODES
from shine.lang.forms.tree import Tree
from shine.lang.interpret import Interpreter, apply_primitive
from shine.lang.population import Population
from shine.lang.python.expressions import described, number_of

_name = attrgetter("name")
_value = attrgetter("value")

_PLAIN = frozenset({float, int, bool})
"""Types of constants that need no check one by one."""


MOST_WRITTEN = 1000
"""Most nodes of an individual whose functions are written out; of a longer one each value is computed once."""


def population_of(individuals: Sequence[Any], vocabulary: Vocabulary) -> Population:
    """The tapes of DEAP's individuals.

    Parameters
    ----------
    individuals : sequence of deap.gp.PrimitiveTree, or of sequences of them
        Trees; or lists of trees, one for each primitive set, if there are several, or their `Expansion`.
    vocabulary : Vocabulary

    Raises
    ------
    ValueError
        If a tree is not complete, an expansion has more than `MAX_NODES` nodes, or a node is neither in the primitive
        set nor a number.
    """
    if vocabulary.evolves_functions:
        expansions = [e if isinstance(e, Expansion) else Expansion(e, vocabulary) for e in individuals]
        if any(len(each) > MAX_NODES for each in expansions):
            raise ValueError(f"an individual has more than {MAX_NODES} nodes with its functions written out")
        written = [each.written() for each in expansions]
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
    """The value of a node whose name is in no primitive set; a `ValueError` if it is not a number."""
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


class Expansion:
    """One expression made of a list of trees, of which the first calls the others: each value once, operands first.

    Parameters
    ----------
    individual : sequence of deap.gp.PrimitiveTree
        One tree for each primitive set, in order; each may call the later ones.
    vocabulary : Vocabulary

    Raises
    ------
    ValueError
        If there are not as many trees as primitive sets, or one is not complete.
    """

    def __init__(self, individual: Sequence[Any], vocabulary: Vocabulary) -> None:
        if len(individual) != len(vocabulary.names):
            needed = len(vocabulary.names)
            raise ValueError(f"an individual needs {needed} trees, one for each set; this one has {len(individual)}")
        self._individual, self._vocabulary = individual, vocabulary
        self._known: dict[tuple[Any, ...], int] = {}
        self._values: list[tuple[int, float, tuple[int, ...]]] = []
        self._sizes: list[int] = []
        self._root = self._tree(0, ())

    def __len__(self) -> int:
        """Number of nodes of the expression, written out; `MAX_NODES` + 1 if there are more."""
        return self._sizes[self._root]

    def written(self) -> tuple[list[int], list[float]]:
        """Codes and values of the nodes in prefix order."""
        codes, numbers, stack = list[int](), list[float](), [self._root]
        while stack:
            code, number, operands = self._values[stack.pop()]
            codes.append(code)
            numbers.append(number)
            stack.extend(operands[::-1])
        return codes, numbers

    def predictions(self, columns: Floats, dtype: str, tier: str) -> AnyArray:
        """Value for every row, shape (n_rows,), with the bits of the tier in float64."""
        last = {operand: value for value, (_, _, operands) in enumerate(self._values) for operand in operands}
        last[self._root] = len(self._values)
        found: dict[int, AnyArray] = {}
        features = columns.astype(dtype)
        functions = COMPILED if dtype == "float64" and tier != "reference" else None
        interpreter, primitives = Interpreter(np.dtype(dtype), columns.shape[1], functions), self._vocabulary.primitives
        with np.errstate(all="ignore"):
            for value, (code, number, operands) in enumerate(self._values):
                if code == CONSTANT:
                    found[value] = interpreter.filled(number)
                elif code < primitives.first_function:
                    found[value] = features[code - 1]
                else:
                    arguments = [found[operand] for operand in operands]
                    found[value] = apply_primitive(interpreter, primitives.function(code), arguments)
                for operand in {*operands, value}:
                    if last.get(operand, value) == value:
                        del found[operand]
        return found[self._root]

    def _tree(self, position: int, arguments: tuple[int, ...]) -> int:
        """One tree for given arguments.

        Prefix order is read backwards with a stack, so that the operands of a node are on the stack before the node.
        """
        key = position, arguments, None
        if key in self._known:
            return self._known[key]
        names, stack = self._vocabulary.names[position], list[int]()
        for node in reversed(self._individual[position]):
            arity, operands = node.arity, tuple[int, ...]()
            if arity > len(stack):
                raise ValueError(f"tree {position} of an individual is not complete: {node.name!r} lacks arguments")
            if arity:
                operands = tuple(stack[: -arity - 1 : -1])
                del stack[-arity:]
            stack.append(self._node(node, names, operands, arguments))
        if len(stack) != 1:
            raise ValueError(f"tree {position} of an individual is not one complete tree in prefix order")
        return self._known.setdefault(key, stack[0])

    def _node(self, node: Any, names: Names, operands: tuple[int, ...], arguments: tuple[int, ...]) -> int:
        name = node.name
        if name in names.definitions:
            return self._tree(names.definitions[name], operands)
        if name in names.arguments:
            return arguments[names.arguments[name]]
        code, value = names.codes[name], 0.0
        if code <= CONSTANT:
            value = float(self._vocabulary.constants[-1 - code]) if code < CONSTANT else number(node)
            code = CONSTANT
        key = (code, operands) if code != CONSTANT else (code, repr(value))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._values)
            self._values.append((code, value, operands))
            self._sizes.append(min(1 + sum([self._sizes[each] for each in operands]), MAX_NODES + 1))
        return found


def tree(individual: Any, pset: Any, sources: Mapping[str, str] | None = None) -> Tree:
    """The formula of an individual, as Shine's exports and simplification take it.

    Parameters
    ----------
    individual : deap.gp.PrimitiveTree, or sequence of them
        A tree; or a list of trees, one for each primitive set, if there are several.
    pset : deap.gp.PrimitiveSetTyped, or sequence of them
        As `gp.compile` and `gp.compileADF` take them.
    sources : mapping of str to str, optional
        Texts of the definitions of functions that have no file; see `CompiledEvaluator`.

    Returns
    -------
    Tree
        Its parameters are the arguments of the primitive set.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive of the set that cannot be compiled, with the reason.
    ValueError
        If the individual is not complete, or has a node that the primitive set lacks.
    """
    return with_integers(population_of([individual], vocabulary_of(pset, sources)).tree(0))


def with_integers(formula: Tree) -> Tree:
    """A new tree with 3 for 3.0, and 0 for False; changed in place."""
    for node in ast.walk(formula.result):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            is_negative_zero = node.value == 0 and math.copysign(1.0, node.value) < 0
            if node.value.is_integer() and abs(node.value) <= LARGEST_EXACT and not is_negative_zero:
                node.value = int(node.value)
    return formula


class CompiledIndividual(Kernel):
    """An individual as native code; `compile` makes it. See `shine.evaluate.kernels.kernel.Kernel`."""

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Value for numbers, or arrays that broadcast, by position or by name."""
        if not named and len(arguments) == len(self.parameters):
            try:
                return self.one_row(*arguments)
            except ctypes.ArgumentError:
                pass  # an argument is no number
        return super().__call__(*arguments, **named)


def compile(
    individual: Any,
    pset: Any,
    dtype: DTypeLike = "float64",
    opt_level: str | int = "O2",
    sources: Mapping[str, str] | None = None,
) -> Any:
    """A faster `gp.compile`: the individual as native code.

    Parameters
    ----------
    individual : deap.gp.PrimitiveTree, or sequence of them
        A tree; or a list of trees, one for each primitive set, as `gp.compileADF` takes them.
    pset : deap.gp.PrimitiveSetTyped, or sequence of them
    dtype : {"float64", "float32"}
        Type of arguments and result, as a name or NumPy's.
    opt_level : {"O0", "O1", "O2", "O3"} or int
    sources : mapping of str to str, optional
        Texts of the definitions of functions that have no file; see `CompiledEvaluator`.

    Returns
    -------
    CompiledIndividual or float
        A callable of the set's arguments, by position or name: it returns a float for numbers, and an array for arrays
        that broadcast. For a set without arguments the value itself, as in DEAP. Where Python's functions would raise
        an error, the result is infinite or NaN.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive of the set that cannot be compiled, with the reason.
    ValueError
        If the individual is not complete, or has a node that the primitive set lacks.

    Notes
    -----
    Compiling takes about 15 ms, a hundred times as long as `gp.compile`, and pays for a formula that is called for many
    rows. `CompiledEvaluator` evaluates many formulas once each without compiling them.
    """
    formula, kind = tree(individual, pset, sources), float_name(dtype)
    if as_sets(pset)[0].arguments:
        return CompiledIndividual(formula, kind, opt_level)
    return float(Kernel(formula, kind, opt_level)())
