"""Functions written instruction by instruction."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import module_with

from shine.base.errors import FormError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.types import TensorType

X = np.arange(6.0).reshape(2, 3)


def last(write, *arrays):
    """The last instruction."""
    return module_with(write, *arrays).function("f").body[-1]


@pytest.mark.parametrize(
    ("operation", "operands", "attributes"),
    [
        ("reduce_sum", (X,), {"axes": (0, 1), "keep": False}),
        ("transpose", (X,), {"permutation": (1, 0)}),
        ("convolve", (np.zeros((1, 5, 5, 2)), np.zeros((3, 3, 2, 4))),
         {"strides": (1, 1), "low": (0, 0), "high": (0, 0), "dilation": (1, 1), "groups": 1}),
        ("pad", (X, np.zeros(())), {"low": (0, 0), "high": (0, 0), "interior": (0, 0)}),
    ],
)  # fmt: skip
def test_usual_attributes_may_be_left_out(operation, operands, attributes):
    assert last(lambda b, *values: b.emit(operation, values), *operands).attributes == attributes


def test_attributes_may_be_lists_and_numpys_integers():
    found = last(lambda b, x: b.reshape(x, shape=[np.int64(3), 2]), X).attributes["shape"]
    assert found == (3, 2) and type(found[0]) is int
    found = last(lambda b, x: b.reduce_sum(x, axes=[0], keep=np.bool_(True)), X).attributes
    assert found == {"axes": (0,), "keep": True} and found["keep"] is True
    assert last(lambda b, x: b.argmax(x, axis=np.int32(1)), X).attributes == {"axis": 1}


def test_constants_are_copies_in_order_of_rows():
    array = np.asfortranarray(X)
    constant = last(lambda b: b.constant(array)).attributes["value"]
    array[:] = -1
    assert constant.tolist() == X.tolist()
    assert constant.flags.c_contiguous and not constant.flags.writeable
    big = last(lambda b: b.constant(X.astype(">f4"))).attributes["value"]
    assert big.dtype == np.dtype("f4") and big.dtype.isnative


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (1.5, "i32", r"\[1.5\] cannot be a constant of elements i32"),
        (300, "u8", r"\[300\] cannot be a constant of elements u8"),
        (np.nan, "i8", r"\[nan\] cannot be a constant of elements i8"),
        ("a", "f32", r"\['a'\] cannot be a constant of elements f32"),
        (1j, "f32", "cannot be a constant of elements f32"),
        (10**30, None, "elements of type object are not supported"),
        (np.float16(1), None, "elements of type float16 are not supported; there are f32, f64"),
        (1, "f16", "there is no element type 'f16'"),
    ],
)
def test_constants_that_an_element_type_cannot_represent(value, dtype, message):
    with pytest.raises(FormError, match=message):
        FunctionBuilder("f").constant(value, dtype)


def test_what_does_not_fit_is_rejected_at_once():
    b = FunctionBuilder("f")
    x = b.parameter("x", TensorType("f32", (2,)))
    with pytest.raises(FormError, match="@f has two values %x"):
        b.parameter("x", TensorType("f32"))
    with pytest.raises(FormError, match="elements f32 and f64 are mixed; cast them first"):
        b.add(x, b.constant(1.0))
    with pytest.raises(FormError, match="neg has no axis"):
        b.neg(x, axis=0)
    with pytest.raises(FormError, match="there is no operation 'swish'"):
        b.emit("swish", [x])
    with pytest.raises(FormError, match="there is no function @g"):
        b.call(x, function="g")
