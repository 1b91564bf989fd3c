"""One node of a graph, with its attributes as rules read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.constants import Tensor, Tensors, dtype_name, shape_from_message, tensor_from_message
from shine.tensor.graphdef.order import shown

_NO_SHAPE_BEFORE = 22
"""Before this version of TensorFlow's graphs, the shape of a scalar meant an unknown shape."""


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
        """The value of an attribute.

        Parameters
        ----------
        key : str
        kind : str
            Name of the field of AttrValue that must hold it.

        Raises
        ------
        GraphImportError
            If it is missing, or of another kind.
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
        try:
            return dtype_name(number, self._tensors.dtypes)
        except GraphImportError as error:
            raise GraphImportError(f"attr {key!r}: {error}") from None

    def shape(self, producer: int) -> tuple[int | None, ...] | None:
        """The shape of a placeholder, None if unknown; `producer` is the version that wrote the graph."""
        message = self.optional("shape", "shape")
        if message is None:
            return None
        shape = shape_from_message(message)
        return None if shape == () and producer < _NO_SHAPE_BEFORE else shape

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
    """An AttrValue, or its binding if it is a placeholder.

    Raises
    ------
    GraphImportError
        If the placeholder has no binding.
    """
    if value.WhichOneof("value") != "placeholder":
        return value
    if value.placeholder not in bindings:
        raise GraphImportError(f"the call gives no value for the attr placeholder {shown(value.placeholder)}")
    return bindings[value.placeholder]
