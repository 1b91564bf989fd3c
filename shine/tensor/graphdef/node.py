"""Nodes of a graph, with their attributes as rules read them, and the functions that a graph defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from shine.base.errors import GraphImportError, placed
from shine.lang.forms.names import shown
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, Output, numbers
from shine.tensor.graphdef.constants import DTYPES, Tensor, Tensors, dtype_name, shape_from_message, tensor_from_message
from shine.tensor.graphdef.order import Reference, Step, named_nodes, ordered_steps, parse_reference


class Node:
    """A NodeDef; a call of its function fills the placeholders among its attributes.

    Parameters
    ----------
    message : NodeDef
    bindings : mapping of str to AttrValue
    tensors : Tensors
        Constants that have been read already.
    """

    __slots__ = ("_bindings", "_message", "_tensors", "name", "op")

    def __init__(self, message: Any, bindings: Mapping[str, Any], tensors: Tensors) -> None:
        self.name: str = message.name
        self.op: str = message.op
        self._message = message
        self._bindings = bindings
        self._tensors = tensors

    def __str__(self) -> str:
        return f"node {shown(self.name)} (op {shown(self.op)})"

    def attribute(self, key: str, kind: str) -> Any:
        """The value of an attribute; a `GraphImportError` if it is missing, or of another kind.

        Parameters
        ----------
        key : str
        kind : str
            Name of the field of AttrValue that must hold it.
        """
        value = self.optional(key, kind)
        if value is None:
            raise GraphImportError(f"attr {key!r} is missing")
        return value

    def optional(self, key: str, kind: str) -> Any:
        """As `attribute`; None if it is missing."""
        attributes = self._message.attr
        if key not in attributes:
            return None
        value = bound(attributes[key], self._bindings)
        if value.WhichOneof("value") != kind:
            raise GraphImportError(f"attr {key!r} must be of the kind {kind!r}, is {value.WhichOneof('value')!r}")
        return getattr(value, kind)

    def dtype(self, key: str) -> str:
        """The storage type named by an attribute."""
        number = self.attribute(key, "type")
        with placed(f"attr {key!r}", GraphImportError):
            return dtype_name(number, self._tensors.dtypes)

    def shape(self, producer: int) -> tuple[int | None, ...] | None:
        """The shape of a placeholder, None if unknown; `producer` is the version that wrote the graph."""
        message = self.optional("shape", "shape")
        if message is None:
            return None
        shape = shape_from_message(message)
        # Before this version of TensorFlow's graphs, the shape of a scalar meant an unknown shape.
        return None if shape == () and producer < 22 else shape

    def tensor(self) -> Tensor:
        """The value of a constant."""
        attributes = self._message.attr
        if "value" in attributes and attributes["value"].WhichOneof("value") == "placeholder":
            # Each call has its own constant.
            return tensor_from_message(self.attribute("value", "tensor"), room=0, dtypes=self._tensors.dtypes)
        return self._tensors.read(id(self._message), lambda: self.attribute("value", "tensor"))

    def function(self, key: str = "f") -> tuple[str, Mapping[str, Any]]:
        """The name of the function in an attribute, and the attributes of the call."""
        message = self.attribute(key, "func")
        return message.name, {key: bound(value, self._bindings) for key, value in message.attr.items()}

    def attributes(self) -> Mapping[str, Any]:
        """All attributes of a node whose op is a function."""
        return {key: bound(value, self._bindings) for key, value in self._message.attr.items()}


def bound(value: Any, bindings: Mapping[str, Any]) -> Any:
    """An AttrValue, or its binding if it is a placeholder; a `GraphImportError` if the placeholder has no binding."""
    if value.WhichOneof("value") != "placeholder":
        return value
    if value.placeholder not in bindings:
        raise GraphImportError(f"the call gives no value for the attr placeholder {shown(value.placeholder)}")
    return bindings[value.placeholder]


_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


@dataclass(frozen=True, eq=False)
class Function:
    """A FunctionDef, ready to be called.

    Parameters
    ----------
    name : str
    arguments, results : tuple of ArgDef
    references : tuple of Reference
        Each result in the body.
    steps : list of Step
    defaults : mapping of str to AttrValue
    operations : frozenset of str
        Ops of all nodes, including those that no result needs.
    """

    name: str
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]
    references: tuple[Reference, ...]
    steps: list[Step]
    defaults: Mapping[str, Any]
    operations: frozenset[str] = frozenset()


class Library:
    """The functions of a graph; each is verified at its first call.

    Raises
    ------
    GraphImportError
        If two have the same name.
    """

    def __init__(self, message: Any) -> None:
        self._messages: dict[str, Any] = {}
        self._functions: dict[str, Function] = {}
        for each in message.function:
            if each.signature.name in self._messages:
                raise GraphImportError(f"there are two functions with the name {shown(each.signature.name)}")
            self._messages[each.signature.name] = each

    def called(self, node: Node) -> tuple[Function, Mapping[str, Any]] | None:
        """The function that a node calls, with the attributes of the call; None if it calls none.

        A `GraphImportError` if the function does not exist or is malformed.
        """
        if node.op in _CALLS:
            return self.named(*node.function())
        return self.named(node.op, node.attributes()) if node.op in self._messages else None

    def named(self, name: str, bindings: Mapping[str, Any]) -> tuple[Function, Mapping[str, Any]]:
        """A function, with the attributes of its call; a `GraphImportError` if it does not exist or is malformed."""
        if name not in self._messages:
            raise GraphImportError(f"calls {shown(name)}, but the graph has no such function")
        if name not in self._functions:
            with placed(f"function {shown(name)}", GraphImportError):
                self._functions[name] = self._function(name, self._messages[name])
        function = self._functions[name]
        return function, {**function.defaults, **bindings}

    def _function(self, name: str, message: Any) -> Function:
        signature = message.signature
        for each in (*signature.input_arg, *signature.output_arg):
            if each.number_attr or each.type_list_attr:
                raise GraphImportError(f"argument {shown(each.name)} is a list, which is not supported")
        arguments = [each.name for each in signature.input_arg]
        if len(set(arguments)) < len(arguments):
            raise GraphImportError("two arguments have the same name")
        nodes = named_nodes(message.node_def, arguments)
        references = []
        for each in signature.output_arg:
            if each.name not in message.ret:
                raise GraphImportError(f"'ret' lacks result {shown(each.name)}")
            reference = parse_reference(message.ret[each.name])
            if reference.node not in nodes and reference.node not in arguments:
                raise GraphImportError(f"result {shown(each.name)} is {shown(reference.node)}; there is no such node")
            references.append(reference)
        steps = ordered_steps(nodes, [reference.node for reference in references], arguments)
        defaults = {each.name: each.default_value for each in signature.attr if each.HasField("default_value")}
        operations = frozenset(node.op for node in nodes.values())
        results = tuple(signature.output_arg)
        return Function(name, tuple(signature.input_arg), results, tuple(references), steps, defaults, operations)


class Typed(Protocol):
    """A value with an element type."""

    @property
    def dtype(self) -> str:
        """NumPy's name of the type."""


def check_arguments(
    declared: Sequence[Any],
    values: Sequence[Typed],
    bindings: Mapping[str, Any],
    what: str = "argument",
    dtypes: Mapping[int, str] = DTYPES,
) -> None:
    """Check the arguments or the results of a call; `dtypes` has the element types that are read.

    A `GraphImportError` if their number or an element type differs from the function's declaration.
    """
    if len(values) != len(declared):
        raise GraphImportError(f"gives {len(values)} {what}s, but its function declares {len(declared)}")
    for each, value in zip(declared, values, strict=True):
        number = each.type
        if each.type_attr:
            if each.type_attr not in bindings:
                raise GraphImportError(f"attr {shown(each.type_attr)}, the type of {shown(each.name)}, is missing")
            number = bound(bindings[each.type_attr], bindings).type
        expected = dtype_name(number, dtypes)
        if value.dtype != expected:
            raise GraphImportError(f"{what} {shown(each.name)} is {value.dtype}, but must be {expected}")


class Operation(Node):
    """A node with its inputs, as the rules see it.

    Parameters
    ----------
    node : Node
    b : GraphBuilder
        The function in the making.
    inputs : sequence of Operand
        Variables only of operations on them.
    """

    __slots__ = ("b", "inputs")

    def __init__(self, node: Node, b: GraphBuilder, inputs: Sequence[Operand]) -> None:
        super().__init__(node._message, node._bindings, node._tensors)
        self.b, self.inputs = b, inputs

    def __getitem__(self, place: int) -> Operand:
        return self.inputs[place]

    def numbers(self, place: int, what: str) -> tuple[int, ...]:
        """The integers of an input that is a constant of at most one axis."""
        return numbers(self.inputs[place], what)

    def number(self, place: int, what: str) -> int:
        """The only integer of an input that is a constant."""
        found = self.numbers(place, what)
        if len(found) != 1:
            raise GraphImportError(f"its {what} must be one integer, but is {len(found)}")
        return found[0]

    def axis(self, place: int, rank: int) -> int:
        """The axis that an input names."""
        return axis_of(self.number(place, "axis"), rank)

    def dtype_or(self, default: str, key: str) -> str:
        """The storage type named by an attribute that may be missing."""
        return default if self.optional(key, "type") is None else self.dtype(key)

    def flag(self, key: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        given = self.optional(key, "b")
        return default if given is None else bool(given)

    def word(self, key: str, default: str | None = None) -> str:
        """An attribute that is a word; required if there is no default."""
        given = self.attribute(key, "s") if default is None else self.optional(key, "s")
        return str(default) if given is None else given.decode(errors="replace")

    def one_of(self, key: str, default: str | None, allowed: Sequence[str]) -> str:
        """An attribute that is one of some words."""
        given = self.word(key, default)
        if given not in allowed:
            raise GraphImportError(f"attr {key!r} must be {' or '.join(allowed)}, is {shown(given)}")
        return given

    def listed(self, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers; required if there is no default."""
        given = self.attribute(key, "list") if default is None else self.optional(key, "list")
        found = () if given is None else tuple(given.i)
        return found or tuple(default or ())


Rule: TypeAlias = Callable[[Operation], Output | Sequence[Output]]
"""Takes a node with its inputs; returns its outputs."""


def takes(least: int, rule: Rule, most: int | None = None) -> Rule:
    """A rule of nodes that read `least` to `most` inputs; `most` is `least` by default, -1 for any."""

    def checked(n: Operation) -> Output | Sequence[Output]:
        check_count(n.inputs, least, most)
        return rule(n)

    return checked


def check_count(inputs: Sequence[object], least: int, most: int | None = None) -> None:
    """Raise GraphImportError unless a node reads `least` to `most` values; `most` is `least` by default, -1 for any."""
    most = least if most is None else most
    if len(inputs) < least or 0 <= most < len(inputs):
        wanted = str(least) if most == least else f"at least {least}" if most < 0 else f"{least} to {most}"
        raise GraphImportError(f"reads {len(inputs)} values, but takes {wanted}")


def check_types(inputs: Sequence[Operand], dtype: str) -> None:
    """Raise GraphImportError unless all inputs have an element type."""
    for position, operand in enumerate(inputs):
        if operand.dtype != dtype:
            raise GraphImportError(f"input {position} is {operand.dtype}, but must be {dtype}")


def axis_of(number: int, rank: int, what: str = "axis") -> int:
    """An axis, counted from the end if it is negative."""
    if not -rank <= number < rank:
        raise GraphImportError(f"its {what} {number} is beyond the {rank} axes")
    return number % rank
