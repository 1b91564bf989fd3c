"""A graph, its configuration and its checkpoint -> a module whose function `main` computes the fetches of the feeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shine.base.errors import FormError, GraphImportError, placed
from shine.base.typing import AnyArray
from shine.lang.forms.names import listed, shown, value_text
from shine.tensor.form.module import Module, Value
from shine.tensor.form.verifier import verify
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, Output
from shine.tensor.frontend.naming import free_name, sanitized, with_results
from shine.tensor.graphdef.checkpoint_bundle import Checkpoint
from shine.tensor.graphdef.config import Feed, Fetch, Signature, named, read_config, sizes_of
from shine.tensor.graphdef.constants import ELEMENTS, Shape, Tensors, same, shape_text
from shine.tensor.graphdef.control import CALLS, with_choices
from shine.tensor.graphdef.evaluation import Evaluation
from shine.tensor.graphdef.files import Source, read_message
from shine.tensor.graphdef.node import Library, Node
from shine.tensor.graphdef.order import PLACEHOLDERS, Outputs, Reference, Step, chosen, named_nodes, wanted_steps
from shine.tensor.graphdef.rules.language import FUNCTIONS
from shine.tensor.graphdef.rules.variables import WRITES

MAIN = "main"
"""Name of the function that computes the fetches."""

_TYPES_OF_OUTPUT = ("dtype", "DstT", "out_type", "output_type", "T")
"""Attributes that give the element type of a node's outputs, in this order, for nodes that are fed."""

_FEED = "Placeholder"
"""Op of the nodes that are fed by default, and of those that stand in the place of fed ones."""


def load_module(
    source: Source,
    feeds: Sequence[str] | Mapping[str, Sequence[int] | None] | None = None,
    fetches: Sequence[str] | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    config: Source | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Module:
    """Read a TensorFlow graph as a module of tensor functions.

    Parameters
    ----------
    source : str, path or bytes
        A file with a GraphDef, as text or binary, or its content.
    feeds : sequence of str or mapping of str to shape, optional
        Arguments, in order: outputs of nodes, at which the graph is cut; `"name"` or `"name:1"`. A mapping gives shapes
        where the graph does not. By default the placeholders that the fetches need, in the graph's order.
    fetches : sequence of str, optional
        Results, in order. By default all nodes that no other node reads.
    shapes : mapping of str to shape, optional
        Shapes of some feeds, where the graph leaves them open; the others are fed all the same.
    config : str, path or bytes, optional
        Feeds and fetches as a tf2xla `Config`, as text or binary, in their place.
    checkpoint : str or path, optional
        Prefix of the checkpoint (TensorFlow's bundle format) that variables are frozen from; or a folder, for the last
        one in it.
    name : str, optional
        Of the module; by default that of the file.

    Returns
    -------
    Module
        Verified. Its function `main` has a parameter for each feed and a result for each fetch, with their names as far
        as names allow; `labels` has the graph's names.

    Raises
    ------
    GraphImportError
        If a file is damaged, or something in it is not supported. The message names the node.
    TypeError
        If options exclude each other, or are of another kind.

    Notes
    -----
    Calls are written out. Branches and loops become functions of the module. Assertions are dropped. What depends on
    shapes and constants only is computed here.
    """
    if config is not None and (feeds is not None or fetches is not None):
        raise TypeError("give either config or feeds and fetches")
    for what, given in (("config", config), ("checkpoint", checkpoint)):
        if not (given is None or isinstance(given, str | os.PathLike) or (what == "config" and type(given) is bytes)):
            raise TypeError(f"{what}={value_text(given)} is no path; give the path of a file")
    label = "graph" if isinstance(source, bytes) else Path(source).stem
    signature = named(feeds, fetches) if config is None else read_config(config)
    variables = None if checkpoint is None else Checkpoint(checkpoint)
    with placed("" if isinstance(source, bytes) else os.fspath(source), GraphImportError, FormError):
        return _module(
            read_message(source), signature, dict(shapes or {}), variables, sanitized(name or label, "graph")
        )


def _module(
    message: Any, signature: Signature, shapes: Mapping[str, Sequence[int]], checkpoint: Checkpoint | None, name: str
) -> Module:
    nodes = named_nodes(message.node)
    if not nodes:
        raise GraphImportError("the graph has no nodes")
    nodes = with_choices(nodes)
    feeds = _shaped(_feeds(nodes, signature), shapes)
    for feed in feeds:
        if feed.node not in nodes:
            raise GraphImportError(f"feed {shown(feed.node)} is no node of the graph")
    fed = {feed.node for feed in feeds}
    cut = {
        each: SimpleNamespace(name=each, op=_FEED, input=()) if each in fed else node for each, node in nodes.items()
    }
    wanted = None if signature.fetches is None else [each.text for each in signature.fetches]
    results, steps = wanted_steps(cut, wanted)
    _check_fed(steps, results, feeds)
    _check_writes(cut, [reference.node for _, reference in results])
    given: dict[str, Value] = {}
    evaluation = Evaluation(Library(message.library), _variables(checkpoint, given), CALLS)
    b = evaluation.building(MAIN)
    labels: dict[str, str] = {}
    values = _parameters(b, nodes, feeds, message.versions.producer, labels)
    for variable in signature.variables if checkpoint is None else ():
        given[variable.node] = _variable_parameter(b, variable, labels)
    evaluation.run(b, steps, values, {})
    operands = _results(values, results, signature.fetches)
    function, names = with_results(b.builder, [(label, each.value) for label, each in operands], labels)
    functions = {MAIN: function, **evaluation.functions}
    return verify(Module(name, functions, {**labels, **names}))


def _feeds(nodes: Mapping[str, Any], signature: Signature) -> tuple[Feed, ...]:
    """The feeds of a signature, or the placeholders that its fetches need."""
    if signature.feeds is not None:
        return signature.feeds
    _, steps = wanted_steps(nodes, None if signature.fetches is None else [each.text for each in signature.fetches])
    needed = {step.node.name for step in steps if step.node.op == _FEED}
    return tuple(Feed(name) for name in nodes if name in needed)


def _shaped(feeds: Sequence[Feed], shapes: Mapping[str, Sequence[int]]) -> tuple[Feed, ...]:
    """Feeds with the shapes that are given for some of them."""
    known = [feed.label for feed in feeds]
    for name in shapes:
        if name not in known:
            raise GraphImportError(
                f"there is no feed {shown(name)} to give a shape; there are {listed(known) or 'none'}"
            )
    return tuple(
        replace(feed, shape=sizes_of(feed.label, shapes[feed.label])) if feed.label in shapes else feed
        for feed in feeds
    )


def _check_writes(nodes: Mapping[str, Any], results: Iterable[str]) -> None:
    """Refuse a graph in which the results come after changes of variables."""
    waiting = [name for name in results if name in nodes]
    seen = set(waiting)
    while waiting:
        node = nodes[waiting.pop()]
        if node.op in WRITES:
            raise GraphImportError(
                f"node {shown(node.name)} (op {shown(node.op)}): a result waits for this change of a variable; "
                "variables are frozen"
            )
        for text in node.input:
            name = text.removeprefix("^").partition(":")[0]
            if name in nodes and name not in seen:
                seen.add(name)
                waiting.append(name)


def _variables(checkpoint: Checkpoint | None, given: Mapping[str, Value]) -> Callable[[str], AnyArray | Value]:
    def value(name: str) -> AnyArray | Value:
        if name in given:
            return given[name]
        if checkpoint is None:
            raise GraphImportError(
                f"the value of variable {shown(name)} is not known; give a checkpoint, or feed the node that reads it"
            )
        return checkpoint.tensor(name)

    return value


def _parameters(
    b: GraphBuilder, nodes: Mapping[str, Any], feeds: Sequence[Feed], producer: int, labels: dict[str, str]
) -> dict[str, Outputs[Output]]:
    """A parameter for each feed, as the outputs of the nodes."""
    tensors = Tensors(ELEMENTS)
    found: dict[str, dict[int, Operand]] = {}
    for feed in feeds:
        node = Node(nodes[feed.node], {}, tensors)
        with placed(f"feed {node}", GraphImportError, FormError):
            dtype, shape = _feed_type(node, feed, producer)
            operand = b.parameter(free_name(labels, feed.label), dtype, shape)
        labels[operand.value.name] = feed.label
        found.setdefault(feed.node, {})[feed.index] = operand
    return {
        # Outputs that are not fed are not read, either.
        name: Outputs([outputs.get(place, next(iter(outputs.values()))) for place in range(max(outputs) + 1)])
        for name, outputs in found.items()
    }


def _feed_type(node: Node, feed: Feed, producer: int) -> tuple[str, tuple[int, ...]]:
    """Element type and shape of a feed, from the signature and the graph."""
    dtype = feed.dtype
    if not dtype:
        keys = [key for key in _TYPES_OF_OUTPUT if node.optional(key, "type") is not None]
        if not keys:
            raise GraphImportError("the graph does not say its element type; give it, as the feed's 'type' in a config")
        dtype = node.dtype(keys[0])
        dtype = (FUNCTIONS[node.op].result if node.op in FUNCTIONS else None) or dtype
    shape = same([feed.shape, node.shape(producer) if node.op in PLACEHOLDERS else None])
    return dtype, _static(shape)


def _static(shape: Shape) -> tuple[int, ...]:
    if shape is None or None in shape:
        raise GraphImportError(
            f"its shape is {shape_text(shape)}; give a static one, in the config or as feeds={{name: shape}}, on the "
            "command line --shape name=1,..."
        )
    return tuple(size for size in shape if size is not None)


def _variable_parameter(b: GraphBuilder, variable: Feed, labels: dict[str, str]) -> Value:
    """A parameter for a variable that is given when the function is called."""
    if not variable.dtype:
        raise GraphImportError(f"variable {shown(variable.node)} has no type in the config")
    with placed(f"variable {shown(variable.node)}", GraphImportError, FormError):
        operand = b.parameter(free_name(labels, variable.label), variable.dtype, _static(variable.shape))
    labels[operand.value.name] = variable.label
    return operand.value


def _check_fed(steps: Sequence[Step], results: Sequence[tuple[str, Reference]], feeds: Sequence[Feed]) -> None:
    """Refuse outputs of fed nodes that are needed, but not fed themselves."""
    fed = {(feed.node, feed.index) for feed in feeds}
    nodes = {feed.node for feed in feeds}
    for reference in (*(each for step in steps for each in step.inputs), *(each for _, each in results)):
        if reference.node in nodes and (reference.node, reference.number) not in fed:
            raise GraphImportError(
                f"node {shown(reference.node)} is fed, and its output {reference.number} is needed; feed that, too"
            )


def _results(
    values: Mapping[str, Outputs[Output]],
    results: Sequence[tuple[str, Reference]],
    fetches: Sequence[Fetch] | None,
) -> list[tuple[str, Operand]]:
    """The results with their names."""
    found: list[tuple[str, Operand]] = []
    for place, (label, reference) in enumerate(results):
        outputs = values[reference.node]
        if fetches is None and len(outputs.values) != 1:
            chosen_ones = [(f"{label}:{index}", output) for index, output in enumerate(outputs.values)]
        else:
            chosen_ones = [(label, chosen(values, reference))]
        for name, output in chosen_ones:
            if not isinstance(output, Operand):
                raise GraphImportError(f"fetch {shown(name)} is a variable; fetch what reads it")
            fetch = None if fetches is None else fetches[place]
            if fetch is not None:
                name = fetch.label
                _check_fetch(fetch, output)
            found.append((name, output))
    if not found:
        raise GraphImportError("the graph has no results: its last nodes have no outputs; name some with fetches=")
    return found


def _check_fetch(fetch: Fetch, output: Operand) -> None:
    if fetch.dtype not in ("", output.dtype):
        raise GraphImportError(f"fetch {shown(fetch.text)} must be {fetch.dtype}, but is {output.dtype}")
    with placed(f"fetch {shown(fetch.text)}", GraphImportError):
        same([fetch.shape, output.shape])
