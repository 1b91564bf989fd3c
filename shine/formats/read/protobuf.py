"""Classes of protobuf messages from a table of their fields, without the schema files of other projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from shine.base.errors import GraphImportError


@dataclass(frozen=True)
class Schema:
    """Messages as a table.

    Parameters
    ----------
    package : str
        Name of the schema.
    messages : mapping of str to str
        Fields of each message, separated by commas: number, name and type; ``*`` means repeated, ``map<T>`` maps names
        to T. Types that begin with a capital are enumerations and messages of the schema.
    syntax : {"proto2", "proto3"}
        Version of the language. The second one knows which fields are set.
    enums : mapping of str to mapping of int to str
        Numbers and names of enumerations.
    one_of : mapping of str to str
        Messages with at most one field set, and the name of their `oneof`.
    """

    package: str
    messages: Mapping[str, str]
    syntax: Literal["proto2", "proto3"] = "proto2"
    enums: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    one_of: Mapping[str, str] = field(default_factory=dict)


def message_classes(schema: Schema, what: str, extra: str) -> dict[str, Any]:
    """The classes of messages, in a pool of their own: the project whose messages they are may be imported, too.

    Parameters
    ----------
    schema : Schema
    what : str
        What is read with them, for the error message.
    extra : str
        The extra of Shine that installs protobuf.

    Raises
    ------
    GraphImportError
        If protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise GraphImportError(
            f"reading {what} needs protobuf; install it with: pip install 'shine[{extra}]'"
        ) from None
    package = schema.package
    file = descriptor_pb2.FileDescriptorProto(name=f"shine/{package}.proto", package=package, syntax=schema.syntax)
    for enum, names in schema.enums.items():
        types = file.enum_type.add(name=enum)
        for number, name in names.items():
            types.value.add(name=name, number=number)
    for name, fields in schema.messages.items():
        message = file.message_type.add(name=name)
        if name in schema.one_of:
            message.oneof_decl.add(name=schema.one_of[name])
        for each in fields.split(", "):
            _add_field(descriptor_pb2.FieldDescriptorProto, schema, message, *each.split())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in schema.messages}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _add_field(kinds: Any, schema: Schema, message: Any, number: str, name: str, kind: str) -> None:
    repeated = kind.endswith("*")
    kind = kind.removesuffix("*")
    if kind.startswith("map<"):
        # A map is a repeated message of keys and values; protobuf prescribes its name.
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(kinds, schema, entry, "1", "key", "string")
        _add_field(kinds, schema, entry, "2", "value", kind[4:-1])
        repeated, kind = True, f"{message.name}.{entry.name}"
    added = message.field.add(name=name, number=int(number))
    added.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
    if kind.islower():
        added.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
    else:
        added.type = kinds.TYPE_ENUM if kind in schema.enums else kinds.TYPE_MESSAGE
        added.type_name = f".{schema.package}.{kind}"
    if message.name in schema.one_of:
        added.oneof_index = 0


MAX_MEMORY = 280 << 20
"""Most memory that parsing may take, in bytes."""

_PER_BYTE = 80
"""Most memory for a byte of a file, measured over messages with every kind of field."""

_MESSAGE, _STRING, _NUMBER, _PACKED = 140, 48, 32, 16
"""Memory of a message, a string and a number, each in a growing list, and of a byte of packed numbers; measured and
rounded up."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_GROUP = (3, 4)
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


def parsed_size(content: bytes, descriptor: Any) -> int:
    """An upper bound of the memory of a message.

    Parameters
    ----------
    content : bytes
    descriptor : google.protobuf.descriptor.Descriptor
        Descriptor of the message.

    Returns
    -------
    int
        In bytes; counting stops above `MAX_MEMORY`, and at the first byte that is not part of a message, where
        protobuf stops, too.
    """
    if len(content) * _PER_BYTE <= MAX_MEMORY:
        return len(content) * _PER_BYTE
    total = 0
    position, end, fields = 0, len(content), _fields(descriptor)
    outer: list[tuple[int, Any]] = []
    while total <= MAX_MEMORY:
        while position == end and outer:
            end, fields = outer.pop()
        if position == end:
            break
        tag, position = _varint(content, position, end)
        wire = tag & 7
        if wire in _FIXED_SIZES:
            position += _FIXED_SIZES[wire]
            total += _NUMBER
        elif wire == _VARINT:
            _, position = _varint(content, position, end)
            total += _NUMBER
        elif wire == _LENGTH:
            length, position = _varint(content, position, end)
            kind = fields.get(tag >> 3)
            if position < 0 or position + length > end:
                break
            if isinstance(kind, int):
                total += _STRING + kind * length
                position += length
            elif kind is None:
                total += _STRING + length
                position += length
            else:
                total += _MESSAGE
                outer.append((end, fields))
                end, fields = position + length, _fields(kind)
        elif wire not in _GROUP:
            break
        if tag < 8 or position < 0 or position > end:
            break
    return total


def _varint(content: bytes, position: int, end: int) -> tuple[int, int]:
    """A number in base 128 and its end; the end is -1 if the number is cut off."""
    value = shift = 0
    while 0 <= position < end and shift < 70:
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    return 0, -1


@cache
def _fields(descriptor: Any) -> dict[int, Any]:
    """For each field: the descriptor of its message, or the memory of one of its bytes."""
    return {
        field.number: field.message_type
        if field.message_type is not None
        else 1
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES)
        else _PACKED
        for field in descriptor.fields
    }
