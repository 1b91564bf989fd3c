"""An elementwise graph -> a program, whose placeholders may have open shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shine.base.errors import FormError, GraphImportError, placed
from shine.base.typing import AnyArray
from shine.lang.forms.names import shown
from shine.lang.program.program import Program
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, Output
from shine.tensor.frontend.naming import free_name
from shine.tensor.graphdef.constants import DTYPES, Shape, Tensors
from shine.tensor.graphdef.evaluation import Evaluation
from shine.tensor.graphdef.files import Source, read_message
from shine.tensor.graphdef.node import Library, Node
from shine.tensor.graphdef.order import (
    PLACEHOLDERS,
    Outputs,
    Step,
    chosen,
    named_nodes,
    ordered_steps,
    wanted_steps,
)
from shine.tensor.graphdef.rules.language import check_elementwise
from shine.tensor.programs import function_program


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
    place, name = ("", "graph") if isinstance(source, bytes) else (Path(source), Path(source).stem)
    with placed(place, GraphImportError, FormError):
        return _program(read_message(source), outputs, inputs, name)


def _program(message: Any, outputs: Sequence[str] | None, inputs: Sequence[str] | None, name: str) -> Program:
    nodes = named_nodes(message.node)
    if not nodes:
        raise GraphImportError("the graph has no nodes")
    results, steps = wanted_steps(nodes, outputs)
    arguments, steps = _arguments(nodes, steps, inputs)
    evaluation = Evaluation(Library(message.library), _no_variables, {}, check_elementwise, DTYPES)
    b = evaluation.building("main")
    values, shapes = _parameters(b, nodes, arguments, message.versions.producer)
    b.has_open_shapes = any(shape is None or None in shape for shape in shapes.values())
    labels = {outputs.values[0].value.name: label for label, outputs in values.items()}
    evaluation.run(b, steps, values, {})
    for label, made in values.items():
        for value in made.values:
            labels.setdefault(value.value.name, label)
    found: list[tuple[str, Operand]] = []
    for label, reference in results:
        made = values[reference.node]
        if outputs is None and len(made.values) != 1:
            found += [(f"{label}:{index}", value) for index, value in enumerate(made.values)]
        else:
            found.append((label, chosen(values, reference)))
    if not found:
        raise GraphImportError("the graph has no results: its last nodes have no outputs; name some with outputs=")
    function = b.builder.done(*(value.value for _, value in found))
    program = function_program(
        function, [label for label, _ in found], labels, composites=b.builder.composites, name=name
    )
    defaults = {
        step.node.name: _default(step, values)
        for step in steps
        if step.node.op == "PlaceholderWithDefault" and step.node.name in shapes
    }
    parameters = [
        replace(each, shape=shapes[each.label], default=defaults.get(each.label)) if each.value is None else each
        for each in program.parameters
    ]
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


def _parameters(
    b: GraphBuilder, nodes: Mapping[str, Any], names: Sequence[str], producer: int
) -> tuple[dict[str, Outputs[Any]], dict[str, Shape]]:
    """A parameter for each placeholder, and the shapes in the graph.

    An open length is 1 in the module: it can be broadcast to any other, and no elementwise operation asks for it.
    """
    tensors = Tensors()
    values: dict[str, Outputs[Any]] = {}
    shapes: dict[str, Shape] = {}
    taken: dict[str, str] = {}
    for name in names:
        node = Node(nodes[name], {}, tensors)
        with placed(node, GraphImportError, FormError):
            dtype, shape = node.dtype("dtype"), node.shape(producer)
            operand = b.parameter(free_name(taken, name), dtype, [1 if size is None else size for size in shape or ()])
        taken[operand.value.name] = name
        values[name], shapes[name] = Outputs([operand]), shape
    return values, shapes


def _default(step: Step, values: Mapping[str, Outputs[Output]]) -> AnyArray:
    """The value of a placeholder that a call may leave out."""
    found = chosen(values, step.inputs[0]) if len(step.inputs) == 1 else None
    if not isinstance(found, Operand) or found.known is None:
        place = f"node {shown(step.node.name)} (op {shown(step.node.op)})"
        raise GraphImportError(f"{place}: its default is computed; only a Const is supported")
    return found.known


def _no_variables(name: str) -> AnyArray:
    raise GraphImportError(f"the value of variable {shown(name)} is not known; freeze the graph first")
