"""Protobuf messages that a graph is written in, made from a table of their fields, without TensorFlow and its schemas.

The table lists the fields that Shine reads of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto,
tensor_shape.proto, function.proto, op_def.proto, versions.proto, meta_graph.proto and saved_model.proto; of the
compiler's tf2xla.proto; and of tensor_bundle.proto, tensor_slice.proto and trackable_object_graph.proto, which
checkpoints are made of. Protobuf skips all other fields as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

from shine.base.errors import needing


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


def message_classes(schema: Schema, what: str) -> dict[str, Any]:
    """The classes of messages, in a pool of their own: the project whose messages they are may be imported, too.

    Parameters
    ----------
    schema : Schema
    what : str
        What they make up, for the error message.

    Raises
    ------
    MissingExtraError
        If protobuf is not installed.
    """
    with needing(what, "protobuf", "tensor"):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
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


_MESSAGES: dict[str, str] = {
    "GraphDef": "1 node NodeDef*, 2 library FunctionDefLibrary, 4 versions VersionDef",
    "NodeDef": "1 name string, 2 op string, 3 input string*, 4 device string, 5 attr map<AttrValue>",
    "AttrValue": (
        "1 list AttrList, 2 s bytes, 3 i int64, 4 f float, 5 b bool, 6 type DataType, 7 shape TensorShapeProto, "
        "8 tensor TensorProto, 9 placeholder string, 10 func NameAttrList"
    ),
    "AttrList": (
        "2 s bytes*, 3 i int64*, 4 f float*, 5 b bool*, 6 type DataType*, 7 shape TensorShapeProto*, "
        "8 tensor TensorProto*, 9 func NameAttrList*"
    ),
    "NameAttrList": "1 name string, 2 attr map<AttrValue>",
    "TensorShapeProto": "2 dim Dim*, 3 unknown_rank bool",
    "Dim": "1 size int64, 2 name string",
    "TensorProto": (
        "1 dtype DataType, 2 tensor_shape TensorShapeProto, 3 version_number int32, 4 tensor_content bytes, "
        "5 float_val float*, 6 double_val double*, 7 int_val int32*, 8 string_val bytes*, 10 int64_val int64*, "
        "11 bool_val bool*, 13 half_val int32*, 16 uint32_val uint32*, 17 uint64_val uint64*"
    ),
    "FunctionDefLibrary": "1 function FunctionDef*",
    "FunctionDef": (
        "1 signature OpDef, 3 node_def NodeDef*, 4 ret map<string>, 5 attr map<AttrValue>, 6 control_ret map<string>"
    ),
    "OpDef": "1 name string, 2 input_arg ArgDef*, 3 output_arg ArgDef*, 4 attr AttrDef*, 20 control_output string*",
    "ArgDef": "1 name string, 3 type DataType, 4 type_attr string, 5 number_attr string, 6 type_list_attr string",
    "AttrDef": "1 name string, 2 type string, 3 default_value AttrValue",
    "VersionDef": "1 producer int32, 2 min_consumer int32, 3 bad_consumers int32*",
    "MetaGraphDef": "2 graph_def GraphDef",
    "SavedModel": "1 saved_model_schema_version int64, 2 meta_graphs MetaGraphDef*",
    "Config": "1 feed Feed*, 2 fetch Fetch*, 3 variable Variable*, 4 conversion_options ConversionOptions",
    "TensorId": "1 node_name string, 2 output_index int64",
    "Feed": "1 id TensorId, 2 shape TensorShapeProto, 3 name string, 4 type DataType",
    "Fetch": "1 id TensorId, 2 name string, 3 shape TensorShapeProto, 4 type DataType",
    "Variable": "1 node_name string, 2 name string, 3 shape TensorShapeProto, 4 type DataType, 5 readonly bool",
    "ConversionOptions": "1 custom_fake_quant_op_calls bool",
    "BundleHeaderProto": "1 num_shards int32, 2 endianness int32, 3 version VersionDef",
    "BundleEntryProto": (
        "1 dtype DataType, 2 shape TensorShapeProto, 3 shard_id int32, 4 offset int64, 5 size int64, "
        "6 crc32c fixed32, 7 slices TensorSliceProto*"
    ),
    "TensorSliceProto": "1 extent Extent*",
    "Extent": "1 start int64, 2 length int64",
    "TrackableObjectGraph": "1 nodes TrackableObject*",
    "TrackableObject": "2 attributes SerializedTensor*",
    "SerializedTensor": "1 name string, 2 full_name string, 3 checkpoint_key string",
}
"""Fields of each message. TensorFlow's nested messages have names of their own here; neither binary nor text contains
these names."""

_TYPES = (
    "INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 QINT32 BFLOAT16 QINT16 "
    "QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ "
    "FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN"
)
_REFERENCE = 100
"""Added to the number of a type for references to variables of the type."""

TYPE_NAMES: dict[int, str] = {
    **{number: f"DT_{name}" for number, name in enumerate(_TYPES.split())},
    **{number + _REFERENCE: f"DT_{name}_REF" for number, name in enumerate(_TYPES.split()) if number},
}
"""Name of each element type of TensorFlow by its number in types.proto."""


class Messages(NamedTuple):
    """The classes of messages, and the parts of protobuf that read files of them."""

    GraphDef: Any
    MetaGraphDef: Any
    SavedModel: Any
    Config: Any
    BundleHeaderProto: Any
    BundleEntryProto: Any
    TrackableObjectGraph: Any
    text_format: Any
    pool: Any
    DecodeError: type[Exception]


@cache
def messages() -> Messages:
    """The message classes, made at first use in their own pool, because TensorFlow may be imported, too.

    A `MissingExtraError` if protobuf is not installed.
    """
    schema = Schema("tensorflow", _MESSAGES, "proto3", {"DataType": TYPE_NAMES}, {"AttrValue": "value"})
    found = message_classes(schema, "a GraphDef")
    from google.protobuf import message, text_format

    return Messages(
        **{name: found[name] for name in Messages._fields if name in found},
        text_format=text_format,
        pool=found["GraphDef"].DESCRIPTOR.file.pool,
        DecodeError=message.DecodeError,
    )
