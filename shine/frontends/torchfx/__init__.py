"""torch.fx and torch.export -> program: elementwise graphs of PyTorch, with torch's own number types."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from shine.errors import GraphImportError, ShineError
from shine.frontends.torchfx.operations import ALIASES, METHODS, MODULES, OPERATIONS, Rule
from shine.frontends.torchfx.values import Value, Values, refuse
from shine.lang.program.program import Program

COPIES = frozenset({"clone", "lift_fresh_copy", "_to_copy"})
"""Operations that change no number and never return their own input."""

IMMEDIATE = frozenset({"placeholder", "get_attr", "output"})
"""Kinds of nodes that are no operation."""


def from_fx(graph_module: Any, dtype: Any = "float32", name: str = "graph") -> Program:
    """The program of an elementwise graph that `torch.fx.symbolic_trace` recorded.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        Its parameters, buffers and constants become part of the program: numbers where they have no dimensions, else
        arrays. Modules must be in the mode they will be used in (``eval()``, say).
    dtype : str or torch.dtype, or mapping of str to them
        Type of the inputs, or of each by its name, as far as the graph does not say (`torch.fx` by itself does not,
        its ``ShapeProp`` notes it): float64, float32, int64, int32 or bool.
    name : str
        What the program is called.

    Returns
    -------
    Program
        Its arguments are called like the inputs; the outputs ``output``, or ``output_0, output_1, ...``, or as the keys
        of a dictionary. Types of results are those of torch; an input of which nothing else is known is taken for an
        array, which decides with which type numbers and arrays are combined.

    Raises
    ------
    GraphImportError
        If torch is missing, or an operation or a number type is not supported, or something is changed in place that
        other nodes read: the node and what it calls.
    TypeError
        If it is no graph module.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> program = from_fx(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1))  # doctest: +SKIP
    """
    torch = _torch()
    if not isinstance(graph_module, torch.fx.GraphModule):
        raise TypeError(f"a torch.fx.GraphModule is needed, not {type(graph_module).__name__}")
    given = dtype if isinstance(dtype, Mapping) else {}
    reader = _Reader(torch, graph_module, {}, "float32" if isinstance(dtype, Mapping) else dtype, given)
    return reader.program(name, None)


def from_export(exported_program: Any, name: str = "graph") -> Program:
    """The program of an elementwise graph that `torch.export.export` recorded.

    Parameters
    ----------
    exported_program : torch.export.ExportedProgram
        Of ATen operators, before or after ``run_decompositions()``. Its parameters, buffers and constants become part
        of the program.
    name : str
        What the program is called.

    Returns
    -------
    Program
        As from `from_fx`.

    Raises
    ------
    GraphImportError
        As from `from_fx`; also if the program writes to its buffers or inputs.
    TypeError
        If it is no exported program.
    """
    torch = _torch()
    if not isinstance(exported_program, torch.export.ExportedProgram):
        raise TypeError(f"a torch.export.ExportedProgram is needed, not {type(exported_program).__name__}")
    signature = exported_program.graph_signature
    lifted = {}
    for spec in signature.input_specs:
        kind = spec.kind.name
        if kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            held = exported_program.constants if spec.target in exported_program.constants else None
            lifted[spec.arg.name] = (exported_program.state_dict if held is None else held)[spec.target]
        elif kind != "USER_INPUT":
            raise GraphImportError(
                f"input {spec.arg.name!r} is a {kind.lower()}; only tensors and numbers are supported"
            )
    labels = []
    for spec in signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise GraphImportError(
                f"output {spec.arg.name!r} is a {spec.kind.name.lower()}; a program returns values and changes nothing"
            )
        labels.append(spec.arg.name)
    reader = _Reader(torch, exported_program.graph_module, lifted, "float32", {})
    return reader.program(name, len(labels))


def _torch() -> Any:
    try:
        importlib.import_module("torch.export")
        return importlib.import_module("torch")
    except ImportError:
        raise GraphImportError("this needs torch: pip install 'shine[torch]'") from None


class _Reader:
    """Turns the nodes of one graph into values, in their order."""

    def __init__(
        self, torch: Any, module: Any, lifted: Mapping[str, Any], dtype: Any, dtypes: Mapping[str, Any]
    ) -> None:
        self.torch, self.module = torch, module
        self.lifted, self.dtype, self.dtypes = lifted, dtype, dtypes
        self.values = Values(torch)
        self.known: dict[Any, Value] = {}
        self.tensors: dict[str, Value] = {}

    def program(self, name: str, outputs: int | None) -> Program:
        """The program of the whole graph."""
        nodes = list(self.module.graph.nodes)
        needed = self._needed(nodes)
        results: list[tuple[str, Any]] = []
        for node in nodes:
            try:
                self._check_changes(node)
                if node.op == "output":
                    results = list(_labelled(node.args[0], "output"))
                elif node.op == "placeholder" or node in needed:
                    self.known[node] = self._value(node)
            except ShineError as error:
                raise GraphImportError(f"node {node.name!r} ({self._called(node)}): {error}") from None
        found = [(label, self._argument(result)) for label, result in results]
        if not found or not all(isinstance(value, Value | bool | int | float) for _, value in found):
            raise GraphImportError("the graph has to return tensors, or tuples, lists or dictionaries of them")
        values = [(label, self.values.of(value)) for label, value in found]
        return self.values.builder.finish([(label, self.values.named(v), v.dtype) for label, v in values], name)

    def _needed(self, nodes: list[Any]) -> set[Any]:
        """Nodes that an output depends on; assertions and what only they use are none of them."""
        waiting = [node for node in nodes if node.op == "output"]
        found: set[Any] = set()
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += node.all_input_nodes
        return found

    def _value(self, node: Any) -> Value:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            held = self.module
            for part in node.target.split("."):
                held = getattr(held, part)
            if not isinstance(held, self.torch.Tensor):
                return self.values.of(held)
            return self._held(node.target, held)
        rule, extra = self._rule(node)
        arguments = [self._argument(argument) for argument in node.args]
        # Whether something happens in place is looked at elsewhere; it is no other number.
        options = {key: part for key, part in node.kwargs.items() if key != "inplace"}
        named = {"input" if key == "self" else key: self._argument(part) for key, part in options.items()}
        try:
            bound = _signature(rule).bind(self.values, *arguments, **named, **extra)
        except TypeError as error:
            refuse(f"its arguments are not supported: {error}")
        value = rule(*bound.args, **bound.kwargs)
        noted = self._noted(node)
        return value if noted is None or noted[0] == value.dtype else self.values.converted(value, noted[0])

    def _input(self, node: Any) -> Value:
        if node.name in self.lifted:
            return self._held(node.name, self.lifted[node.name])
        meta = node.meta.get("val")
        if isinstance(meta, bool | int | float):
            return self.values.of(meta)
        label = str(node.target)
        noted = self._noted(node)
        dtype, shape = noted or (self.values.storage_type(self.dtypes.get(label, self.dtype)), None)
        default = None
        if node.args and node.args[0] is not None:
            if not isinstance(node.args[0], bool | int | float):
                refuse(f"the default {str(node.args[0])[:40]!r} of an input is no number")
            default = np.asarray(node.args[0], dtype)
        name = self.values.builder.parameter(label, dtype, shape, default=default)
        return Value(dtype, name, scalar=shape == ())

    def _held(self, target: str, tensor: Any) -> Value:
        """A parameter, buffer or constant, which is one value however many nodes get it."""
        if target not in self.tensors:
            # An input may be called alike; the tensors that an export lifts to inputs have names of their own.
            label = target if target in self.lifted else f"self.{target}"
            self.tensors[target] = self.values.tensor(label, tensor)
        return self.tensors[target]

    def _noted(self, node: Any) -> tuple[str, tuple[int | None, ...]] | None:
        """Type and shape of a node's tensor, where the graph says."""
        meta = node.meta.get("val")
        meta = node.meta.get("tensor_meta") if meta is None else meta
        if not hasattr(meta, "dtype") or not hasattr(meta, "shape"):
            return None
        shape = tuple(size if type(size) is int else None for size in meta.shape)
        return self.values.storage_type(meta.dtype), shape

    def _argument(self, argument: Any) -> Any:
        return self.known[argument] if isinstance(argument, self.torch.fx.Node) else argument

    def _rule(self, node: Any) -> tuple[Rule, dict[str, Any]]:
        """The rule of an operation, and the arguments that its module has for it."""
        if node.op == "call_module":
            module = self.module.get_submodule(node.target)
            kind = type(module).__name__
            # Whoever derives a class of his own may compute something else.
            if kind not in MODULES or not type(module).__module__.startswith("torch.nn."):
                refuse(f"the module is not supported; those that are: {', '.join(sorted(MODULES))}")
            operation, attributes = MODULES[kind]
            return OPERATIONS[operation], {attribute: getattr(module, attribute) for attribute in attributes}
        operation = _operation(node)
        own = METHODS.get(operation) if node.op == "call_method" else None
        if own is None and operation.removesuffix("_") in self._in_place_names(node):
            operation = operation.removesuffix("_")
        rule = own or OPERATIONS.get(ALIASES.get(operation, operation))
        if rule is None or not self._is_torch(node):
            refuse(f"the operation is not supported; those that are: {', '.join(sorted(OPERATIONS))}")
        return rule, {}

    def _in_place_names(self, node: Any) -> set[str]:
        return {*OPERATIONS, *ALIASES} if node.op == "call_method" or hasattr(node.target, "_schema") else set()

    def _is_torch(self, node: Any) -> bool:
        """Whether what is called is torch's own, or an operator of Python's: a function may be called like one."""
        home = str(getattr(node.target, "__module__", None) or "torch")
        return node.op == "call_method" or home.split(".")[0] in ("torch", "_operator", "builtins")

    def _check_changes(self, node: Any) -> None:
        """Refuse what changes a value in place that something else reads."""
        if node.op in IMMEDIATE or not self._changes(node):
            return
        changed = node.args[0] if node.args else None
        if not isinstance(changed, self.torch.fx.Node) or len(changed.users) > 1 or self._may_share(changed):
            refuse("it changes a value in place that others may read; write it without, or call run_decompositions()")

    def _changes(self, node: Any) -> bool:
        if node.op == "call_module":
            return bool(getattr(self.module.get_submodule(node.target), "inplace", False))
        operation = _operation(node)
        in_place = operation.endswith("_") and not operation.endswith("__") and operation not in ALIASES
        return in_place or bool(node.kwargs.get("inplace")) or operation == "setitem"

    def _may_share(self, node: Any) -> bool:
        """Whether a value may be one that has another node as well."""
        if node.op in IMMEDIATE:
            return node.op == "get_attr"
        if node.op == "call_module":
            return type(self.module.get_submodule(node.target)).__name__ in ("Identity", "Dropout")
        operation = _operation(node)
        return ALIASES.get(operation, operation) in ("clone", "to", "dropout") and operation not in COPIES

    def _called(self, node: Any) -> str:
        """What a node calls, for messages."""
        if node.op == "call_module":
            return f"module {node.target}, a {type(self.module.get_submodule(node.target)).__name__}"
        if node.op == "call_function":
            home = str(getattr(node.target, "__module__", None) or "torch").lstrip("_")
            return str(node.target) if hasattr(node.target, "_schema") else f"{home}.{_operation(node)}"
        return f"{node.op} {node.target}"


@cache
def _signature(rule: Rule) -> inspect.Signature:
    return inspect.signature(rule)


def _operation(node: Any) -> str:
    """The name of what is called, without the overload of an ATen operator."""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet))


def _labelled(result: Any, label: str) -> Iterator[tuple[str, Any]]:
    """What a graph returns, one label a value."""
    if isinstance(result, dict):
        for key, part in result.items():
            yield from _labelled(part, str(key))
    elif isinstance(result, tuple | list) and len(result) == 1:
        yield from _labelled(result[0], label)
    elif isinstance(result, tuple | list):
        for index, part in enumerate(result):
            yield from _labelled(part, f"{label}_{index}")
    else:
        yield label, result
