"""The protobuf messages that a graph is written in, without TensorFlow.

The table lists the fields that Shine reads of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto,
tensor_shape.proto, function.proto, op_def.proto, versions.proto, meta_graph.proto and saved_model.proto; of the
compiler's tf2xla.proto; and of tensor_bundle.proto, tensor_slice.proto and trackable_object_graph.proto, which
checkpoints are made of. Protobuf skips all other fields as unknown.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from shine.formats.read.protobuf import Schema, message_classes

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

    Raises
    ------
    GraphImportError
        If protobuf is not installed.
    """
    schema = Schema("tensorflow", _MESSAGES, "proto3", {"DataType": TYPE_NAMES}, {"AttrValue": "value"})
    found = message_classes(schema, "a GraphDef", "tensorflow")
    from google.protobuf import message, text_format

    return Messages(
        **{name: found[name] for name in Messages._fields if name in found},
        text_format=text_format,
        pool=found["GraphDef"].DESCRIPTOR.file.pool,
        DecodeError=message.DecodeError,
    )
