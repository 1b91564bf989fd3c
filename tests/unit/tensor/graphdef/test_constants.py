"""Constants and shapes of graphs, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from shine.base.errors import GraphImportError
from shine.formats.read import protobuf as memory
from shine.formats.read.protobuf import messages
from shine.tensor.graphdef.constants import DTYPES, broadcast, tensor_from_message

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FIELDS = {"float32": "float_val", "float64": "double_val", "int32": "int_val", "int64": "int64_val", "bool": "bool_val"}

arrays = st.sampled_from(sorted(FIELDS)).flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def message_of(array: np.ndarray) -> object:
    """A TensorProto without values."""
    graph = messages().GraphDef()
    message = graph.node.add().attr["value"].tensor
    message.dtype = next(number for number, name in DTYPES.items() if name == array.dtype)
    message.tensor_shape.SetInParent()
    for size in array.shape:
        message.tensor_shape.dim.add(size=size)
    return message


def assert_reads(message: object, array: np.ndarray) -> None:
    """Same bits, type and shape; and the one number it is, where it is one."""
    tensor = tensor_from_message(message)
    assert (tensor.dtype, tensor.shape) == (array.dtype, array.shape)
    assert tensor.array().tobytes() == array.tobytes()
    assert tensor.array().shape == array.shape
    if tensor.number is not None:
        assert np.full(array.shape, tensor.number, array.dtype).tobytes() == array.tobytes()
    if array.shape == ():
        assert tensor.number is not None


@given(arrays)
def test_bytes_are_read(array):
    message = message_of(array)
    message.tensor_content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    assert_reads(message, array)


def half(kind: int, bits: np.ndarray) -> object:
    """A TensorProto of numbers of 16 bits, without values."""
    message = message_of(bits.astype("f4"))
    message.dtype = kind
    return message


def test_all_numbers_of_16_bits_are_read():
    bits = np.arange(1 << 16, dtype=np.uint16)
    exponent, fraction = bits.astype(int) >> 10 & 31, bits.astype(int) & 1023
    normal = np.where(exponent == 0, fraction * 2.0**-24, (1 + fraction / 1024) * 2.0 ** (exponent - 15))
    wanted = {
        19: np.where(bits >> 15, -1, 1) * np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), normal),
        14: np.frombuffer(b"".join(b"\0\0" + n.to_bytes(2, "little") for n in range(1 << 16)), "<f4"),
    }
    types = {14: "float32", 19: "float32"}
    for kind, numbers in wanted.items():
        by_bytes, by_numbers = half(kind, bits), half(kind, bits)
        by_bytes.tensor_content = bits.astype("<u2").tobytes()
        by_numbers.half_val.extend(bits.tolist())
        for message in (by_bytes, by_numbers):
            found = tensor_from_message(message, dtypes=types)
            assert found.dtype == found.values.dtype == "float32"
            np.testing.assert_array_equal(found.array(), numbers.astype("f4"))


def test_integers_that_do_not_fit_are_cut_off_as_tensorflow_does_it():
    message = message_of(np.zeros(4, "f4"))
    message.dtype = 6
    message.int_val.extend([300, -129, 127, -1])
    assert tensor_from_message(message, dtypes={6: "int8"}).values.tolist() == [44, 127, 127, -1]


@given(arrays)
def test_numbers_are_read(array):
    if array.dtype.kind == "f":
        # Protobuf does not promise to keep which NaN it is.
        array = np.where(array != array, np.array(np.nan, array.dtype), array)
    message = message_of(array)
    getattr(message, FIELDS[array.dtype.name]).extend(array.ravel().tolist())
    assert_reads(message, array)


@given(arrays, st.integers(1, 4))
def test_the_last_number_is_repeated(array, given_values):
    flat = array.ravel()
    if array.dtype.kind == "f":
        flat = np.nan_to_num(flat)
    flat = np.concatenate(
        [flat[:given_values], np.repeat(flat[given_values - 1 : given_values], max(0, flat.size - given_values))]
    )
    message = message_of(array)
    getattr(message, FIELDS[array.dtype.name]).extend(flat[:given_values].tolist())
    assert_reads(message, flat.astype(array.dtype).reshape(array.shape))


@given(arrays)
def test_no_numbers_are_zeros(array):
    assert_reads(message_of(array), np.zeros_like(array))


def test_a_large_constant_of_one_number_takes_no_memory():
    array = np.broadcast_to(np.float32(2.5), (1 << 13, 1 << 13))
    message = message_of(array)
    message.float_val.append(2.5)
    tensor = tensor_from_message(message)
    assert tensor.number == 2.5 and tensor.array().strides == (0, 0) and tensor.array().shape == array.shape


@given(st.lists(shapes, min_size=1, max_size=3))
def test_known_shapes_broadcast_as_numpy_does(several):
    try:
        expected = np.broadcast_shapes(*several)
    except ValueError:
        with pytest.raises(GraphImportError, match="do not broadcast"):
            broadcast(several)
    else:
        assert broadcast(several) == expected


partly = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=3)


@given(st.lists(partly, min_size=1, max_size=3))
def test_a_shape_with_unknown_lengths_holds_for_all_lengths(several):
    whole = [tuple(size for size, _ in shape) for shape in several]
    hidden = [tuple(size if known else None for size, known in shape) for shape in several]
    try:
        expected = np.broadcast_shapes(*whole)
    except ValueError:
        return
    found = broadcast(hidden)
    assert len(found) == len(expected)
    assert all(size in (None, actual) for size, actual in zip(found, expected, strict=True))


def test_memory_is_counted_by_what_a_message_holds(monkeypatch):
    monkeypatch.setattr(memory, "MAX_MEMORY", 1 << 20)
    descriptor = messages().GraphDef.DESCRIPTOR
    graph = messages().GraphDef()
    tensor = graph.node.add(name="c", op="Const").attr["value"].tensor
    tensor.tensor_content = bytes(1 << 19)
    content = graph.SerializeToString()
    assert len(content) < memory.parsed_size(content, descriptor) < len(content) + 2000
    # As many bytes of empty nodes would not fit.
    assert memory.parsed_size(b"\x0a\x00" * (1 << 18), descriptor) > 1 << 20
    # A cut or damaged message is counted up to the damage.
    assert memory.parsed_size(content[: len(content) // 2], descriptor) < len(content)
    assert memory.parsed_size(bytes(1 << 19), descriptor) < len(content)
