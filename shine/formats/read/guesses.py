"""Guesses (text, graphs, SymPy expressions, trees) -> trees over the features of a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.compiler.arrays import COMPILED
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import normalized, shown, value_text
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import folded
from shine.lang.parse import Source, parse
from shine.lang.presentation import LARGEST_POWER
from shine.lang.program.builder import number
from shine.lang.program.program import STORAGE_TYPES, Parameter, Program, Statement
from shine.lang.program.trees import tree_of
from shine.lang.values import ValueGraph, written

ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "neg": ("-1*a", "0 - a"),
    "sub": ("a + -1*b", "a + -b"),
    "div": ("a*inv(b)", "a*b**-1"),
    "sqrt": ("a**0.5",),
    "abs": ("max(a, -1*a)", "max(a, 0 - a)", "sqrt(square(a))", "sqrt(a*a)"),
    "tan": ("sin(a)/cos(a)",),
    "max": ("a if a > b else b", "(a + b + abs(a - b))/2"),
    "min": ("a if a < b else b", "(a + b - abs(a - b))/2"),
}
"""Expressions that equal a primitive for real numbers; the first with only known primitives is used."""

ROOT = 0.25
"""Least exponent of a root that becomes square roots; other exponents that become products are multiples of it."""


class Rewriting(ValueGraph):
    """A value graph that uses only some primitives, if possible.

    Other composite primitives are replaced by their definitions, other basic ones by `ALTERNATIVES`, and primitives
    applied to constants by their value. A primitive without an alternative stays; the caller reports it.

    Parameters
    ----------
    names : collection of str
        The primitives to use.
    table : mapping of str to Primitive
        Their meanings.
    """

    def __init__(self, names: Collection[str], table: Mapping[str, Primitive] = STANDARD) -> None:
        super().__init__()
        self.known_names = frozenset(names)
        self.table = table

    def apply(self, name: str, *operands: int) -> int:
        """The value of a primitive, or of an equal expression."""
        numbers = [self.number(operand) for operand in operands]
        known = [number for number in numbers if number is not None]
        value = folded(name, known, COMPILED) if len(known) == len(numbers) and name in COMPILED else None
        if value is not None:
            return self.constant(value)
        if name in self.known_names or name not in BASIC:
            return super().apply(name, *operands)
        if name == "mul" and operands[0] == operands[1] and "square" in self.known_names:
            return super().apply("square", operands[0])
        if name == "div" and numbers[0] == 1 and "inv" in self.known_names:
            return super().apply("inv", operands[1])
        if name == "div" and numbers[1] and isfinite(1 / numbers[1]):
            return self.apply("mul", operands[0], self.constant(1 / numbers[1]))
        if name == "pow" and numbers[1] is not None:
            power = self._power(operands[0], numbers[1])
            if power is not None:
                return power
        for tree in _alternatives(name):
            if functions_of(tree) <= self.known_names:
                return self.read(tree, operands, self.known_names)
        return super().apply(name, *operands)

    def _power(self, base: int, exponent: float) -> int | None:
        """A power with a number as its exponent, by products and square roots; None if it is no such power."""
        share = exponent % 1
        if exponent == 0 or not abs(exponent) <= LARGEST_POWER or exponent % ROOT:
            return None
        if share and "sqrt" not in self.known_names:
            return None
        if exponent < 0:
            return self.apply("div", self.constant(1), self.apply("pow", base, self.constant(-exponent)))
        factors = [self._product(base, int(exponent))] if exponent >= 1 else []
        if share:
            root = super().apply("sqrt", base)
            factors += [root] if share >= 2 * ROOT else []
            factors += [super().apply("sqrt", root)] if share % (2 * ROOT) else []
        return reduce(partial(self.apply, "mul"), factors)

    def _product(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        if exponent == 3 and "cube" in self.known_names:
            return super().apply("cube", base)
        half = self._product(base, exponent // 2)
        is_square = "square" in self.known_names
        whole = super().apply("square", half) if is_square else self.apply("mul", half, half)
        return self.apply("mul", whole, base) if exponent % 2 else whole


@cache
def _alternatives(name: str) -> tuple[Tree, ...]:
    return tuple(parse(text) for text in ALTERNATIVES.get(name, ()))


GRAPH_FILES = (".pb", ".pbtxt")
"""Endings of the names of graph files."""

GRAPH_KEYS = ("graph", "output", "features")
"""Keys of a mapping that gives a graph."""

Guess = Source | Program | Path | Mapping[str, Any]
"""The forms a guess can be given in."""


class GraphGuessError(GraphImportError):
    """A graph cannot be read as a formula over the features.

    Parameters
    ----------
    message : str
    keys : tuple of str
        Place of the mistake in the mapping that was given, such as ``("features", "x")``; empty if it has none.
    """

    def __init__(self, message: str, keys: tuple[str, ...] = ()) -> None:
        self.keys = keys
        super().__init__(message)


def is_graph_file(source: object) -> bool:
    """Whether something is the path of a graph file. No formula ends in ``.pb`` or ``.pbtxt``."""
    return isinstance(source, Path) or (isinstance(source, str) and source.strip().lower().endswith(GRAPH_FILES))


def guess_tree(source: Guess, features: Sequence[str], table: Mapping[str, Primitive], names: Collection[str]) -> Tree:
    """A guess as a tree whose parameters are the features.

    Parameters
    ----------
    source : formula, Program, path or mapping
        A formula as `shine.parse` takes it; a graph, if its inputs are named like features; or a mapping with
        ``graph`` and, optionally, ``output`` and ``features``: see `graph_tree`. Paths have been read.
    features : sequence of str
    table : mapping of str to Primitive
        The functions that formulas may call.
    names : collection of str
        The primitives of the search. A formula with others is translated into them where possible.

    Raises
    ------
    UnsupportedSyntaxError
        If a formula is not part of the language.
    GraphImportError
        If a graph, or a part of a SymPy expression, has no counterpart in the language.
    """
    if isinstance(source, Mapping):
        return _mapped_tree(source, features, names)
    program = getattr(source, "program", source)
    if isinstance(program, Program):
        return graph_tree(program, features, names)
    assert not isinstance(source, Program | Path)
    return formula_tree(source, features, table, names)


def formula_tree(
    source: Source, features: Sequence[str], table: Mapping[str, Primitive], names: Collection[str]
) -> Tree:
    """A formula as a tree, in the primitives of the search where possible (see `guess_tree`).

    What a result prints is such a formula: ``x0**2`` for what the search calls ``square(x0)``.
    """
    tree = parse(source, features, table)
    if functions_of(tree) <= set(names):
        return tree
    terms = Rewriting(names, table)
    value = terms.read(tree, [terms.parameter(name) for name in tree.parameters], names)
    return written(terms, value, tree.parameters)


def _mapped_tree(given: Mapping[str, Any], features: Sequence[str], names: Collection[str]) -> Tree:
    unknown = [key for key in given if key not in GRAPH_KEYS]
    if unknown or "graph" not in given:
        problem = f"unknown key {value_text(unknown[0])}" if unknown else "no 'graph'"
        raise ValueError(f"a graph to start from has {problem}; its keys are {', '.join(GRAPH_KEYS)}")
    graph, output = given["graph"], given.get("output")
    program = getattr(graph, "program", graph)
    if not isinstance(program, Program):
        raise GraphImportError(
            f"{value_text(graph)} is no graph; give the path of a file, with the ending {' or '.join(GRAPH_FILES)}, or "
            "what shine.load_graph returns"
        )
    return graph_tree(program, features, names, output, given.get("features"))


def graph_tree(
    program: Program,
    features: Sequence[str],
    names: Collection[str] = tuple(STANDARD),
    output: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Tree:
    """One output of a graph as a formula over features.

    Numbers of the graph become constants. So do arrays of one element, and defaults of inputs that are not features.

    Parameters
    ----------
    program : Program
    features : sequence of str
    names : collection of str
        Primitives to translate the graph into, where possible.
    output : str, optional
        Name of the output; needed only if there are several.
    mapping : mapping of str to str, optional
        Feature of each input, by its name in the graph. An input that is not listed is the feature of the same name.

    Raises
    ------
    GraphGuessError
        If an input or an output is unknown, or an input is not a feature.
    GraphImportError
        If the output depends on an array.
    """
    labels = [each.label for each in program.outputs]
    listed = ", ".join(labels)
    if output is not None and output not in labels:
        raise GraphGuessError(f"the graph has no output {value_text(output)}; it has {listed}", ("output",))
    if output is None and len(labels) > 1:
        raise GraphGuessError(f"the graph has several outputs; choose one: {listed}", ("output",))
    chosen = _features_of_inputs(program, features, mapping or {})
    tree = tree_of(_with_numbers(program, chosen), output)
    for name in tree.parameters:
        if name not in chosen:
            label = next(each.label for each in program.arguments if each.name == name)
            raise GraphGuessError(
                f"the graph's input {label!r} is not a feature; the features are {_few(features)}; "
                f"say which it is: features: {{{label}: {features[0]}}}",
            )
    terms = Rewriting(names)
    value = terms.read(tree, [terms.parameter(chosen[name]) for name in tree.parameters], names)
    return written(terms, value, features)


def _features_of_inputs(program: Program, features: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """The feature of each input of a graph, by the input's name; inputs without a feature are left out."""
    mapping = {key: normalized(feature) for key, feature in mapping.items()}
    inputs = {key: each for each in program.arguments for key in (each.name, each.label)}
    for key, feature in mapping.items():
        if key not in inputs:
            known = ", ".join(each.label for each in program.arguments) or "none"
            raise GraphGuessError(f"the graph has no input {key!r}; its inputs are {known}", ("features", key))
        if feature not in features:
            raise GraphGuessError(
                f"{shown(feature)} is not a feature; the features are {_few(features)}", ("features", key)
            )
    chosen = {inputs[key].name: feature for key, feature in mapping.items()}
    for each in program.arguments:
        called = [name for name in (normalized(each.label), each.name) if name in features]
        if each.name not in chosen and called:
            chosen[each.name] = called[0]
    return chosen


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _with_numbers(program: Program, chosen: Collection[str]) -> Program:
    """The program, with each parameter that is a single number replaced by that number."""
    numbers = {}
    for each in program.parameters:
        array = each.default if each.value is None and each.name not in chosen else each.value
        if array is not None and np.size(array) == 1:
            numbers[each.name] = _number_statement(each, array)
    if not numbers:
        return program
    parameters = tuple(each for each in program.parameters if each.name not in numbers)
    return replace(program, parameters=parameters, statements=(*numbers.values(), *program.statements))


def _number_statement(parameter: Parameter, array: Any) -> Statement:
    dtype = STORAGE_TYPES[parameter.dtype]
    return Statement(parameter.name, dtype, number(np.asarray(array).astype(dtype).item()))
