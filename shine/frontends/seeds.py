"""Formulas to start from, in the features and the primitives of a search: from text, graphs, SymPy or trees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shine.errors import GraphImportError
from shine.frontends.rewriting import Rewriting
from shine.lang.library import STANDARD
from shine.lang.names import normalized, shown
from shine.lang.parse import Source, parse
from shine.lang.program.builder import number
from shine.lang.program.program import STORAGE_TYPES, Parameter, Program, Statement
from shine.lang.program.trees import tree_of
from shine.lang.symbolic import is_symbolic
from shine.lang.tape import functions_of
from shine.lang.tree import Primitive, Tree
from shine.lang.writing import written

GRAPH_FILES = (".pb", ".pbtxt")
"""How the names of files with graphs end."""

GRAPH_KEYS = ("graph", "output", "features")
"""What a mapping that stands for a graph may have."""

Seed = Source | Program | Path | Mapping[str, Any]
"""What a formula to start from can be given as."""


class GraphSeedError(GraphImportError):
    """A graph is no formula over the features.

    Parameters
    ----------
    message : str
    keys : tuple of str
        Where what is wrong was given: ``("features", "x")``; empty if nowhere.
    """

    def __init__(self, message: str, keys: tuple[str, ...] = ()) -> None:
        self.keys = keys
        super().__init__(message)


def is_graph_file(source: object) -> bool:
    """Whether something is the path of a file with a graph: no formula ends as such names do."""
    return isinstance(source, Path) or (isinstance(source, str) and source.strip().lower().endswith(GRAPH_FILES))


def seed_tree(source: Seed, features: Sequence[str], table: Mapping[str, Primitive], names: Collection[str]) -> Tree:
    """A formula to start from as a tree.

    Parameters
    ----------
    source : formula, Program, path or mapping
        A formula as `shine.parse` takes it; a graph, or the path of a file with one, whose inputs are called like
        features; or a mapping with ``graph``, and perhaps ``output`` and ``features`` as `graph_tree` takes them.
    features : sequence of str
    table : mapping of str to Primitive
        What formulas may call.
    names : collection of str
        The primitives of the search. Graphs and SymPy's expressions are put into their terms as far as that goes, for
        they could not have been written in them; other formulas stay as they are.

    Returns
    -------
    Tree
        Its parameters are the features.

    Raises
    ------
    UnsupportedSyntaxError
        If a formula is not part of the language.
    GraphImportError
        If a graph, or part of a SymPy expression, has no counterpart.
    """
    if isinstance(source, Mapping):
        return _mapped_tree(source, features, names)
    if isinstance(source, Path) or is_graph_file(source):
        return graph_tree(read_program(Path(str(source))), features, names)
    program = getattr(source, "program", source)
    if isinstance(program, Program):
        return graph_tree(program, features, names)
    assert not isinstance(source, Program)
    tree = parse(source, features, table)
    if not is_symbolic(source) or functions_of(tree) <= set(names):
        return tree
    terms = Rewriting(names)
    value = terms.read(tree, [terms.parameter(name) for name in tree.parameters], names)
    return replace(written(terms, value, tree.parameters), functions=table)


def _mapped_tree(given: Mapping[str, Any], features: Sequence[str], names: Collection[str]) -> Tree:
    unknown = [key for key in given if key not in GRAPH_KEYS]
    if unknown or "graph" not in given:
        problem = f"unknown key {unknown[0]!r}" if unknown else "no 'graph'"
        raise ValueError(f"a graph to start from has {problem}; its keys are {', '.join(GRAPH_KEYS)}")
    graph, output = given["graph"], given.get("output")
    program = getattr(graph, "program", graph)
    if not isinstance(program, Program):
        program = read_program(Path(str(graph)), output)
    return graph_tree(program, features, names, output, given.get("features"))


def read_program(path: Path, output: str | None = None) -> Program:
    """The graph in a file.

    Raises
    ------
    GraphImportError
        If it cannot be read, or is no graph, or has no such output.
    """
    from shine.frontends.graphdef import load_graph  # the messages of its format take a while to define

    try:
        return load_graph(path, None if output is None else [output])
    except OSError as error:
        raise GraphImportError(f"{path}: cannot be read: {error.strerror}") from None


def graph_tree(
    program: Program,
    features: Sequence[str],
    names: Collection[str] = tuple(STANDARD),
    output: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Tree:
    """One output of a graph as a formula over features.

    Numbers of the graph become constants: also arrays with one element, and the default of an input that is no feature.

    Parameters
    ----------
    program : Program
    features : sequence of str
    names : collection of str
        Primitives to put it into terms of, as far as that goes.
    output : str, optional
        Needed only if there are several.
    mapping : mapping of str to str, optional
        Feature of each input by the graph's name for it; inputs that are not listed are called like features.

    Returns
    -------
    Tree
        Its parameters are the features.

    Raises
    ------
    GraphSeedError
        If an input or an output is unknown, or an input is no feature.
    GraphImportError
        If the output depends on an array.
    """
    mapping = {key: normalized(feature) for key, feature in (mapping or {}).items()}
    labels = [each.label for each in program.outputs]
    listed = ", ".join(labels)
    if output is not None and output not in labels:
        raise GraphSeedError(f"the graph has no output {output!r}; it has {listed}", ("output",))
    if output is None and len(labels) > 1:
        raise GraphSeedError(f"the graph has several outputs; choose one: {listed}", ("output",))
    inputs = {key: each for each in program.arguments for key in (each.name, each.label)}
    for key, feature in mapping.items():
        if key not in inputs:
            known = ", ".join(each.label for each in program.arguments) or "none"
            raise GraphSeedError(f"the graph has no input {key!r}; its inputs are {known}", ("features", key))
        if feature not in features:
            raise GraphSeedError(
                f"{shown(feature)} is no feature; the features are {_few(features)}", ("features", key)
            )
    chosen = {inputs[key].name: feature for key, feature in mapping.items()}
    for each in program.arguments:
        called = [name for name in (normalized(each.label), each.name) if name in features]
        if each.name not in chosen and called:
            chosen[each.name] = called[0]
    tree = tree_of(_with_numbers(program, chosen), output)
    for name in tree.parameters:
        if name not in chosen:
            raise GraphSeedError(
                f"the graph's input {inputs[name].label!r} is no feature; the features are {_few(features)}; "
                f"say which it is: features: {{{inputs[name].label}: {features[0]}}}",
            )
    terms = Rewriting(names)
    value = terms.read(tree, [terms.parameter(chosen[name]) for name in tree.parameters], names)
    return written(terms, value, features)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _with_numbers(program: Program, chosen: Collection[str]) -> Program:
    """The program with numbers in the place of parameters that are a single one."""
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
