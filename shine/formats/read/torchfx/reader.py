"""The nodes of a torch.fx graph -> the statements of a program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError, ShineError
from shine.formats.read.torchfx.operations import ALIASES, METHODS, MODULES, OPERATIONS
from shine.formats.read.torchfx.rules import Rule
from shine.formats.read.torchfx.values import Value, Values, refuse
from shine.lang.program.program import Program

COPIES = frozenset({"clone", "lift_fresh_copy", "_to_copy"})
"""Operations that change no number and return a copy."""

IMMEDIATE = frozenset({"placeholder", "get_attr", "output"})
"""Kinds of nodes that are not operations."""


class Reader:
    """Turns the nodes of one graph into values, in their order.

    Parameters
    ----------
    torch : module
    module : torch.fx.GraphModule
    lifted : mapping of str to Tensor
        Tensors of the inputs that are parameters, buffers or constants.
    dtype : str or torch.dtype
        Type of the inputs, unless the graph or `dtypes` says otherwise.
    dtypes : mapping of str to (str or torch.dtype)
        Type of each input by its name.
    """

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
        """Nodes that an output depends on; assertions are not among them."""
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
        # `inplace` does not change the numbers; `_check_changes` looks at it.
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
                refuse(f"the default {str(node.args[0])[:40]!r} of an input is not a number")
            default = np.asarray(node.args[0], dtype)
        name = self.values.builder.parameter(label, dtype, shape, default=default)
        return Value(dtype, name, scalar=shape == ())

    def _held(self, target: str, tensor: Any) -> Value:
        """A parameter, buffer or constant: one value, however many nodes read it."""
        if target not in self.tensors:
            # "self." because an input may have the same name; tensors that an export lifts to inputs have unique names.
            label = target if target in self.lifted else f"self.{target}"
            self.tensors[target] = self.values.tensor(label, tensor)
        return self.tensors[target]

    def _noted(self, node: Any) -> tuple[str, tuple[int | None, ...]] | None:
        """Type and shape of a node's tensor; None if the graph does not state them."""
        meta = node.meta.get("val")
        meta = node.meta.get("tensor_meta") if meta is None else meta
        if not hasattr(meta, "dtype") or not hasattr(meta, "shape"):
            return None
        shape = tuple(size if type(size) is int else None for size in meta.shape)
        return self.values.storage_type(meta.dtype), shape

    def _argument(self, argument: Any) -> Any:
        return self.known[argument] if isinstance(argument, self.torch.fx.Node) else argument

    def _rule(self, node: Any) -> tuple[Rule, dict[str, Any]]:
        """The rule of an operation, and the arguments that come from its module."""
        if node.op == "call_module":
            module = self.module.get_submodule(node.target)
            kind = type(module).__name__
            # A derived class outside torch.nn may compute something else.
            if kind not in MODULES or not type(module).__module__.startswith("torch.nn."):
                refuse(f"the module is not supported; supported are {', '.join(sorted(MODULES))}")
            operation, attributes = MODULES[kind]
            return OPERATIONS[operation], {attribute: getattr(module, attribute) for attribute in attributes}
        operation = _operation(node)
        own = METHODS.get(operation) if node.op == "call_method" else None
        if own is None and operation.removesuffix("_") in self._in_place_names(node):
            operation = operation.removesuffix("_")
        rule = own or OPERATIONS.get(ALIASES.get(operation, operation))
        if rule is None or not self._is_torch(node):
            refuse(f"the operation is not supported; supported are {', '.join(sorted(OPERATIONS))}")
        return rule, {}

    def _in_place_names(self, node: Any) -> set[str]:
        return {*OPERATIONS, *ALIASES} if node.op == "call_method" or hasattr(node.target, "_schema") else set()

    def _is_torch(self, node: Any) -> bool:
        """Whether torch or Python's operators define the function: another function may have the same name."""
        home = str(getattr(node.target, "__module__", None) or "torch")
        return node.op == "call_method" or home.split(".")[0] in ("torch", "_operator", "builtins")

    def _check_changes(self, node: Any) -> None:
        """Refuse a node that changes a value in place if other nodes read it."""
        if node.op in IMMEDIATE or not self._changes(node):
            return
        changed = node.args[0] if node.args else None
        if not isinstance(changed, self.torch.fx.Node) or len(changed.users) > 1 or self._may_share(changed):
            refuse("it changes a value in place that others may read; make a new value, or call run_decompositions()")

    def _changes(self, node: Any) -> bool:
        if node.op == "call_module":
            return bool(getattr(self.module.get_submodule(node.target), "inplace", False))
        operation = _operation(node)
        in_place = operation.endswith("_") and not operation.endswith("__") and operation not in ALIASES
        return in_place or bool(node.kwargs.get("inplace")) or operation == "setitem"

    def _may_share(self, node: Any) -> bool:
        """Whether another node may have the same value."""
        if node.op in IMMEDIATE:
            return node.op == "get_attr"
        if node.op == "call_module":
            return type(self.module.get_submodule(node.target)).__name__ in ("Identity", "Dropout")
        operation = _operation(node)
        return ALIASES.get(operation, operation) in ("clone", "to", "dropout") and operation not in COPIES

    def _called(self, node: Any) -> str:
        """The function that a node calls, for messages."""
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
    """The name of the called function, without the overload of an ATen operator."""
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet))


def _labelled(result: Any, label: str) -> Iterator[tuple[str, Any]]:
    """The results of a graph, each with a label."""
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
