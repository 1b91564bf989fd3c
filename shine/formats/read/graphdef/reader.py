"""Message -> program: evaluates the nodes in order, and calls of functions with an explicit stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.constants import Tensors
from shine.formats.read.graphdef.definitions import FUNCTIONS
from shine.formats.read.graphdef.files import Source, read_message
from shine.formats.read.graphdef.functions import Function, Library, check_arguments
from shine.formats.read.graphdef.node import Node
from shine.formats.read.graphdef.operations import rule
from shine.formats.read.graphdef.order import MAX_NODES, PLACEHOLDERS, Step, named_nodes, ordered_steps, shown
from shine.formats.read.graphdef.outputs import Outputs, chosen, wanted_steps
from shine.formats.read.graphdef.values import Building, Value
from shine.lang.program.program import Program


def load_graph(source: Source, outputs: Sequence[str] | None = None, inputs: Sequence[str] | None = None) -> Program:
    """Read a TensorFlow graph as a program.

    Parameters
    ----------
    source : str, path or bytes
        A file with a GraphDef, as text or binary, or its content.
    outputs : sequence of str, optional
        Results of the program: ``"name"`` or ``"name:1"``. Nodes that they do not need may be of any kind. By default
        all nodes that no other node reads, in their order.
    inputs : sequence of str, optional
        Names of the placeholders in calling order; by default the ones that the outputs need, in the graph's order.

    Returns
    -------
    Program
        It computes shared parts of the graph once. Constants that are not a single number, or change the shape of a
        result, become parameters with a value.

    Raises
    ------
    GraphImportError
        If there is no graph, or a part of it is not supported. The message names the node and what is supported.

    Notes
    -----
    Every operation computes what TensorFlow's kernel for the CPU computes: integers wrap; dividing them by zero or
    raising them to a negative power is an error. CheckNumerics checks nothing, and control inputs affect only the
    order.

    Examples
    --------
    >>> text = b'''
    ... node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    ... node { name: "y" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ... '''
    >>> program = load_graph(text)
    >>> [parameter.label for parameter in program.parameters], [output.label for output in program.outputs]
    (['x'], ['y'])
    """
    for given, what in ((outputs, "outputs"), (inputs, "inputs")):
        if isinstance(given, str):
            raise TypeError(f"{what} is a sequence of names, not one string")
    if isinstance(source, bytes):
        return _program(read_message(source), outputs, inputs, "graph")
    path = Path(source)
    try:
        return _program(read_message(path), outputs, inputs, path.stem)
    except GraphImportError as error:
        raise GraphImportError(f"{path}: {error}") from None


def _program(message: Any, outputs: Sequence[str] | None, inputs: Sequence[str] | None, name: str) -> Program:
    nodes = named_nodes(message.node)
    if not nodes:
        raise GraphImportError("the graph has no nodes")
    results, steps = wanted_steps(nodes, outputs)
    arguments, steps = _arguments(nodes, steps, inputs)
    building = Building(FUNCTIONS, message.versions.producer, arguments)
    values = _Evaluation(Library(message.library), building).run(steps)
    labelled: list[tuple[str, Value]] = []
    for label, reference in results:
        found = values[reference.node].values
        if outputs is None and len(found) != 1:
            labelled += [(f"{label}:{index}", value) for index, value in enumerate(found)]
        else:
            labelled.append((label, chosen(values, reference)))
    if not labelled:
        raise GraphImportError("the graph has no results: its last nodes have no outputs; name some with outputs=")
    program = building.builder.finish([(label, building.name(value), value.dtype) for label, value in labelled], name)
    # Parameters were made in the order of the steps; callers expect the order of the graph.
    order = {label: position for position, label in enumerate(arguments)}
    parameters = sorted(program.parameters, key=lambda parameter: order.get(parameter.label, len(order)))
    return replace(program, parameters=tuple(parameters))


def _arguments(
    nodes: Mapping[str, Any], steps: list[Step], inputs: Sequence[str] | None
) -> tuple[list[str], list[Step]]:
    """Names of the placeholders in calling order, and all steps, including placeholders that no result needs."""
    needed = {step.node.name for step in steps if step.node.op in PLACEHOLDERS}
    if inputs is None:
        return [name for name in nodes if name in needed], steps
    if len(set(inputs)) < len(inputs):
        raise GraphImportError("an input is listed twice")
    for name in inputs:
        if name not in nodes or nodes[name].op not in PLACEHOLDERS:
            raise GraphImportError(f"there is no placeholder {shown(name)}")
    missing = needed.difference(inputs)
    if missing:
        raise GraphImportError(f"the outputs need placeholder {shown(min(missing))}, which is not among the inputs")
    present = {step.node.name for step in steps}
    others = ordered_steps(nodes, [name for name in inputs if name not in needed])
    return list(inputs), [*(step for step in others if step.node.name not in present), *steps]


@dataclass
class _Frame:
    """A graph or a function while it is evaluated."""

    steps: Iterator[Step]
    values: dict[str, Outputs[Value]]
    bindings: Mapping[str, Any]
    function: Function | None = None
    call: Node | None = None


class _Evaluation:
    """Applies the rules to the nodes of a graph and of the functions it calls."""

    def __init__(self, library: Library, building: Building) -> None:
        self.library = library
        self.building = building
        self._tensors = Tensors()
        self._active: set[str] = set()
        self._count = 0

    def run(self, steps: Sequence[Step]) -> dict[str, Outputs[Value]]:
        """The outputs of every node by its name."""
        outermost = _Frame(iter(steps), {}, {})
        stack = [outermost]
        while stack:
            frame = stack[-1]
            step = next(frame.steps, None)
            node = frame.call if step is None else Node(step.node, frame.bindings, self._tensors)
            if step is None:
                stack.pop()
            if node is None:
                break
            try:
                if step is None:
                    stack[-1].values[node.name] = self._returned(frame)
                else:
                    inner = self._advance(frame, node, step)
                    if inner is not None:
                        stack.append(inner)
            except GraphImportError as error:
                inside = stack[-1].function
                place = f"{node} in function {shown(inside.name)}" if inside else str(node)
                raise GraphImportError(f"{place}: {error}") from None
        return outermost.values

    def _advance(self, frame: _Frame, node: Node, step: Step) -> _Frame | None:
        """Evaluate a node; if it calls a function, return the frame to evaluate first."""
        self._count += 1
        if self._count > MAX_NODES:
            raise GraphImportError(f"the graph has more than {MAX_NODES} nodes, with those of each called function")
        if frame.function is not None and node.op in PLACEHOLDERS:
            raise GraphImportError("a function cannot have placeholders, only arguments")
        inputs = [chosen(frame.values, reference) for reference in step.inputs]
        called = self.library.called(node)
        if called is None:
            frame.values[node.name] = Outputs(rule(node.op)(self.building, node, inputs))
            return None
        function, bindings = called
        if function.name in self._active:
            raise GraphImportError(f"function {shown(function.name)} calls itself, which is not supported")
        check_arguments(function.arguments, inputs, bindings)
        self._active.add(function.name)
        arguments = {each.name: Outputs([value]) for each, value in zip(function.arguments, inputs, strict=True)}
        return _Frame(iter(function.steps), arguments, bindings, function, node)

    def _returned(self, frame: _Frame) -> Outputs[Value]:
        function = frame.function
        assert function is not None and frame.call is not None
        self._active.discard(function.name)
        values = [chosen(frame.values, reference) for reference in function.references]
        check_arguments(function.results, values, frame.bindings, "result")
        by_name = frame.call.op == function.name
        return Outputs(values, [each.name for each in function.results] if by_name else ())
