"""A model -> a module: its graph is `@main`; branches and loops are functions of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import FormError, GraphImportError, placed
from shine.lang.forms.names import choices
from shine.tensor.form.module import Function, Module, Value
from shine.tensor.form.types import TensorType
from shine.tensor.form.verifier import verify, without_dead
from shine.tensor.frontend.graph_builder import Budget, GraphBuilder, Operand, OverBudgetError
from shine.tensor.frontend.naming import fetched, free_name, sanitized, with_results
from shine.tensor.onnx.files import array_of, damaged, dtype_name, read_model
from shine.tensor.onnx.node import Node, attributes_of
from shine.tensor.onnx.rules import RULES

OLDEST = 13
"""Oldest operator set that is read."""

_OWN = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""

Scope = dict[str, "Operand | Value"]


def load_onnx(
    source: str | os.PathLike[str] | bytes,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fetches: Sequence[str] | None = None,
) -> Module:
    """Read an ONNX model; a `GraphImportError` if it cannot be read; the message names the node.

    Parameters
    ----------
    source : str, path or bytes
        The path of a file, or its content. Data in other files are found beside the path.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs by name, for those that have sizes with names, or none.
    fetches : sequence of str, optional
        Values of the graph that are the results, by name, in place of its outputs.

    Returns
    -------
    Module
        With one function, `@main`, and those that its branches and loops need. Its labels are the model's own names.
    """
    where = "the model" if isinstance(source, bytes) else os.fspath(source)
    # Protobuf gives names that are no UTF-8 as bytes.
    names = damaged("its names or types are damaged", TypeError, AttributeError)
    deep = placed("", RecursionError, kind=GraphImportError, told=lambda error: "its graphs are nested too deeply")
    with placed(where, GraphImportError, FormError), deep, names:
        model, folder = read_model(source)
        return _Reader(model, folder, dict(shapes or {})).module(fetches)


_DO_NOT_FIT: Any = (
    "its attributes or inputs do not fit",
    *(ValueError, TypeError, ArithmeticError, LookupError, AttributeError, MemoryError),
)
"""What numbers of a damaged file lead to, in a place where no rule expects them."""


class _Reader:
    """Reads one model."""

    def __init__(self, model: Any, folder: Path | None, shapes: dict[str, Sequence[int]]) -> None:
        self.model, self.folder, self.shapes = model, folder, shapes
        if any(node.op_type.startswith("TreeEnsemble") for node in model.graph.node):
            raise GraphImportError(
                'an ensemble of trees is no tensor program; compile it as trees: shine.trees.compile("model.onnx")'
            )
        self.version = _version(model.opset_import)
        self.local = {(f.domain, f.name): f for f in model.functions}
        self.functions: dict[str, Function] = {}
        self.labels: dict[str, str] = {}
        self.budget = Budget(model.ByteSize())

    def signature(self, name: str) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
        function = self.functions[name]
        return function.parameter_types, function.result_types

    def module(self, fetches: Sequence[str] | None) -> Module:
        graph = self.model.graph
        b = GraphBuilder("main", self.signature, _no_variables, self.budget)
        constants = {tensor.name for tensor in graph.initializer}
        names = [value.name for value in graph.input]
        unknown = sorted(set(self.shapes) - set(names))
        if unknown:
            raise GraphImportError(f"it has no input {unknown[0]!r}; its inputs are {', '.join(names)}")
        scope: Scope = {}
        for given in graph.input:
            if given.name not in constants:
                dtype, shape = self._input_type(given)
                made = free_name(self.labels, given.name)
                self.labels[made] = given.name
                scope[given.name] = b.parameter(made, dtype, shape)
        results = self._graph(graph, scope, b, 0)
        if not results:
            raise GraphImportError("its graph has no outputs")
        named = [(value.name, result.value) for value, result in zip(graph.output, results, strict=True)]
        if fetches is not None:
            named = fetched(fetches, _computed(scope))
        main, labels = with_results(b.builder, named, self.labels)
        return verify(
            Module(sanitized(graph.name, "model"), {**self.functions, "main": main}, {**self.labels, **labels})
        )

    def _input_type(self, given: Any) -> tuple[str, tuple[int, ...]]:
        kind = given.type.tensor_type
        if not given.type.HasField("tensor_type"):
            raise GraphImportError(f"its input {given.name!r} is no tensor")
        with placed(f"input {given.name!r}", GraphImportError):
            dtype = dtype_name(kind.elem_type)
        if given.name in self.shapes:
            shape = tuple(int(size) for size in self.shapes[given.name])
            fixed = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
            if kind.HasField("shape") and (
                len(fixed) != len(shape) or any(a not in (None, n) for a, n in zip(fixed, shape, strict=True))
            ):
                raise GraphImportError(f"its input {given.name!r} has the shape {fixed}, and not {list(shape)}")
            return dtype, shape
        sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
        if not kind.HasField("shape") or min(sizes, default=0) < 0:
            names = [d.dim_param or "?" if size < 0 else size for d, size in zip(kind.shape.dim, sizes, strict=True)]
            raise GraphImportError(
                f"its input {given.name!r} has the sizes {names if kind.HasField('shape') else 'unknown'}; "
                f'give them: shapes={{"{given.name}": (1, ...)}}, on the command line --shape {given.name}=1,...'
            )
        return dtype, tuple(sizes)

    def _graph(self, graph: Any, scope: Scope, b: GraphBuilder, depth: int) -> list[Operand]:
        """The outputs of a graph whose inputs are in scope."""
        if graph.sparse_initializer:
            raise GraphImportError("its sparse constants are not supported")
        for tensor in graph.initializer:
            scope[tensor.name] = b.constant(array_of(tensor, self.folder), is_parameter=not depth)
        self._nodes(graph.node, scope, b, depth, self.version)
        missing = [value.name for value in graph.output if value.name not in scope]
        if missing:
            raise GraphImportError(f"no node gives its output {missing[0]!r}")
        return [_operand(scope[value.name]) for value in graph.output]

    def _nodes(self, nodes: Any, scope: Scope, b: GraphBuilder, depth: int, version: int) -> None:
        if depth > 100:  # deepest nesting of graphs and functions
            raise GraphImportError("its graphs or functions are nested too deeply")
        for place, message in enumerate(nodes):
            where = f"node {message.name or place!r} ({message.op_type})"
            self.budget.node()
            with placed(where, GraphImportError, FormError, but=OverBudgetError), damaged(*_DO_NOT_FIT):
                outputs = self._node(message, scope, b, depth, version)
            if len(outputs) < len([name for name in message.output if name]):
                raise GraphImportError(f"{where}: it has {len(outputs)} outputs, and {len(message.output)} are named")
            scope.update((name, found) for name, found in zip(message.output, outputs, strict=False) if name)

    def _node(self, message: Any, scope: Scope, b: GraphBuilder, depth: int, version: int) -> Sequence[Operand]:
        inputs = tuple(self._found(name, scope) if name else None for name in message.input)
        local = self.local.get((message.domain, message.op_type))
        if local is not None:
            return self._called(local, message, inputs, b, depth)
        if message.domain not in _OWN:
            raise GraphImportError(f"operators of the domain {message.domain!r} are not supported")
        outputs = len([name for name in message.output if name])
        node = Node(message.op_type, inputs, attributes_of(message), version, outputs, b)
        if message.op_type == "If":
            return self._if(node, scope, depth)
        if message.op_type == "Loop":
            return self._loop(node, scope, depth)
        rule = RULES.get(message.op_type)
        if rule is None:
            raise GraphImportError(f"the operator is not supported; {choices(message.op_type, [*RULES, 'If', 'Loop'])}")
        found = rule(node)
        return [found] if isinstance(found, Operand) else list(found)

    def _found(self, name: str, scope: Scope) -> Operand:
        if name not in scope:
            raise GraphImportError(f"its input {name!r} is not computed before")
        return _operand(scope[name])

    def _called(
        self, function: Any, message: Any, inputs: Sequence[Operand | None], b: GraphBuilder, depth: int
    ) -> list[Operand]:
        """A function of the model, written out with this node's inputs and attributes."""
        if len(inputs) > len(function.input):
            raise GraphImportError(f"it has {len(inputs)} inputs, and the function takes {len(function.input)}")
        scope: Scope = {name: x for name, x in zip(function.input, inputs, strict=False) if x is not None}
        given = {a.name: a for a in (*function.attribute_proto, *message.attribute)}
        nodes = []
        for inner in function.node:
            if not any(attribute.ref_attr_name for attribute in inner.attribute):
                nodes.append(inner)
                continue
            copied = type(inner)()
            copied.CopyFrom(inner)
            for attribute in list(copied.attribute):
                if attribute.ref_attr_name:
                    name, reference = attribute.name, attribute.ref_attr_name
                    copied.attribute.remove(attribute)
                    if reference in given:
                        copied.attribute.add().CopyFrom(given[reference])
                        copied.attribute[-1].name = name
            self.budget.elements(copied.ByteSize())
            nodes.append(copied)
        self._nodes(nodes, scope, b, depth + 1, _version(function.opset_import))
        return [self._found(name, scope) for name in function.output]

    def _if(self, node: Node, scope: Scope, depth: int) -> Sequence[Operand]:
        condition = node.input(0)
        if condition.rank:
            condition = node.b.reshape(condition, shape=())
        branches = [node.get(name) for name in ("then_branch", "else_branch")]
        if condition.known is not None:
            return self._graph(branches[0 if condition.known else 1], dict(scope), node.b, depth + 1)
        captured = self._captured(branches, scope)
        names = {
            word: self._function(branch, captured, [], scope, depth).name
            for word, branch in zip(("true", "false"), branches, strict=True)
        }
        operands = [condition, *(_operand(scope[name]) for name in captured)]
        return node.b.emit("cond", operands, **names)

    def _loop(self, node: Node, scope: Scope, depth: int) -> Sequence[Operand]:
        """A `while` over the number of the round, whether to go on, and the state."""
        b, body = node.b, node.get("body")
        limit, go_on = node.optional(0), node.optional(1)
        state = [_operand_of(x) for x in node.inputs[2:]]
        if len(body.input) != 2 + len(state) or len(body.output) != 1 + len(state):
            raise GraphImportError("its body collects a result of each round; that is not supported")
        most = b.constant(np.int64(np.iinfo(np.int64).max)) if limit is None else b.reshape(limit, shape=())
        first = b.constant(np.True_) if go_on is None else b.reshape(go_on, shape=())
        captured = self._captured([body], scope)
        outside = [_operand(scope[name]) for name in captured]
        operands = [b.constant(np.int64(0)), most, first, *state, *outside]
        types = [x.value.type for x in operands]
        condition = GraphBuilder(self._unused("while"), self.signature, _no_variables, self.budget)
        given = [condition.builder.parameter(f"p{i}", t) for i, t in enumerate(types)]
        more = condition.builder.lt(given[0], given[1])
        function = condition.builder.done(condition.builder.emit("and", [more, given[2]])[0])
        self.functions[function.name] = function
        done = self._body(body, captured, types, scope, depth)
        found = b.emit("while", operands, condition=function.name, body=done.name)
        return found[3 : 3 + len(state)]

    def _body(self, body: Any, captured: list[str], types: list[TensorType], scope: Scope, depth: int) -> Function:
        b = GraphBuilder(self._unused("body"), self.signature, _no_variables, self.budget)
        given = [Operand(b.builder.parameter(f"p{i}", t)) for i, t in enumerate(types)]
        states = len(types) - 3 - len(captured)
        inner: Scope = {**dict(zip(captured, given[3 + states :], strict=True))}
        inner.update(
            zip((value.name for value in body.input), [given[0], given[2], *given[3 : 3 + states]], strict=True)
        )
        go_on, *state = self._graph(body, inner, b, depth + 1)
        if go_on.rank:
            go_on = b.reshape(go_on, shape=())
        following = b.add(given[0], b.constant(np.int64(1)))
        results = [following, given[1], go_on, *state, *given[3 + states :]]
        function = without_dead(b.builder.done(*(result.value for result in results)))
        self.functions[function.name] = function
        return function

    def _function(
        self, graph: Any, captured: list[str], inputs: list[TensorType], scope: Scope, depth: int
    ) -> Function:
        """A graph as a function of the outer values that it uses."""
        b = GraphBuilder(self._unused("branch"), self.signature, _no_variables, self.budget)
        types = [_operand(scope[name]).value.type for name in captured]
        inner: Scope = {
            name: b.parameter(f"p{i}", str(t.numpy), t.shape)
            for i, (name, t) in enumerate(zip(captured, types, strict=True))
        }
        for name in captured:
            known = _operand(scope[name]).known
            if known is not None:
                # Shapes are constants inside as well.
                inner[name] = Operand(_operand(inner[name]).value, known)
        results = self._graph(graph, inner, b, depth + 1)
        function = without_dead(b.builder.done(*(result.value for result in results)))
        self.functions[function.name] = function
        return function

    def _captured(self, graphs: Sequence[Any], scope: Scope) -> list[str]:
        """Names that graphs use from outside, in order."""
        found: dict[str, None] = {}
        waiting = list(graphs)
        while waiting:
            graph = waiting.pop(0)
            own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            own |= {name for node in graph.node for name in node.output}
            used = [name for node in graph.node for name in node.input] + [v.name for v in graph.output]
            found.update(dict.fromkeys(name for name in used if name not in own and name in scope))
            waiting += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
        return list(found)

    def _unused(self, word: str) -> str:
        return f"{word}{len(self.functions)}"


def _version(imports: Any) -> int:
    for entry in imports:
        if entry.domain in _OWN:
            if entry.version < OLDEST:
                raise GraphImportError(f"it uses operator set {entry.version}; {OLDEST} and later are read")
            return int(entry.version)
    return OLDEST


def _computed(scope: Scope) -> dict[str, Value]:
    """Values that depend on the inputs, by name."""
    operands = {name: _operand(found) for name, found in scope.items()}
    return {name: operand.value for name, operand in operands.items() if operand.known is None}


def _operand(found: Operand | Value) -> Operand:
    return found if isinstance(found, Operand) else Operand(found)


def _operand_of(found: Operand | None) -> Operand:
    if found is None:
        raise GraphImportError("a state of its loop is missing")
    return found


def _no_variables(name: str) -> Any:
    raise GraphImportError(f"there is no variable {name!r}")
