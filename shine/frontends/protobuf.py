"""Classes of protobuf messages from a table of their fields, without the schema files of other projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shine.errors import GraphImportError


def message_classes(package: str, table: Mapping[str, str], extra: str) -> dict[str, Any]:
    """The classes of messages, in a pool of their own.

    Parameters
    ----------
    package : str
        Name of the schema.
    table : mapping of str to str
        Fields of each message, separated by commas: number, name and type; ``*`` means repeated. Types that begin with
        a capital are messages of the table.
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
            f"reading this file needs protobuf; install it with: pip install 'shine[{extra}]'"
        ) from None
    # The second version of the language knows which fields are set.
    file = descriptor_pb2.FileDescriptorProto(name=f"shine/{package}.proto", package=package, syntax="proto2")
    for name, fields in table.items():
        message = file.message_type.add(name=name)
        for field in fields.split(", "):
            _add_field(descriptor_pb2.FieldDescriptorProto, package, message, *field.split())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in table}


def _add_field(kinds: Any, package: str, message: Any, number: str, name: str, kind: str) -> None:
    field = message.field.add(name=name, number=int(number))
    field.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
    kind = kind.removesuffix("*")
    if kind.islower():
        field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
