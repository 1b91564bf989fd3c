"""Calls with arrays of NumPy: no copy where none is needed, and clear errors."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from helpers.markers import mostly_slow
from unit.tensor.native.programs import copy, idle, matmul, waiting

from shine.tensor.form.types import DTYPES, TensorType
from shine.tensor.native import kernel as kernel_module
from shine.tensor.native.interface import Tensor
from shine.tensor.native.kernel import TensorKernel, argument

X = np.arange(1, 7, dtype="float32").reshape(2, 3)
Y = np.arange(7, 13, dtype="float32").reshape(3, 2)
PRODUCT = [[58, 64], [139, 154]]


@pytest.fixture(scope="module", params=["quick", "slow"])
def product(request):
    """A kernel that reads arrays itself, and one as on a Python whose objects are not known."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "slow":
            patch.setattr(kernel_module, "is_readable", lambda: False)
        return TensorKernel(matmul())


def call(kernel, *arguments, out=None, **named):
    return kernel(arguments, named, out)


def test_the_product_of_tensorflows_example(product):
    found = call(product, X, Y)
    assert found.dtype == "float32" and found.tolist() == PRODUCT


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X.tolist(), Y.tolist()),
        (np.asfortranarray(X), Y[::-1][::-1]),
        (np.stack([X, X], axis=2)[:, :, 1], Y.T.copy().T),
        (np.frombuffer(b"\0" + X.tobytes(), "u1")[1:].view("float32").reshape(2, 3), Y),
        (X.view(np.matrix), Y),
        (np.broadcast_to(X, (2, 3)), Y),
    ],
)
def test_all_that_is_an_array_of_the_type_is_taken(product, x, y):
    assert call(product, x, y).tolist() == PRODUCT


def test_arguments_have_names_and_labels(product):
    assert call(product, y_hold=Y, x_hold=X).tolist() == PRODUCT
    assert call(product, X, **{"scope/y:0": Y}).tolist() == PRODUCT


class Reluctant:
    """An array of another library that NumPy may not read, such as a tensor of torch that requires a gradient."""

    def __array__(self, *_args: object, **_options: object) -> np.ndarray:
        raise RuntimeError("detach it")


@pytest.mark.parametrize(
    ("arguments", "named", "error", "message"),
    [
        ((X,), {}, TypeError, "matmul needs scope/y:0; it takes (x_hold: <2 x 3 x f32>, scope/y:0: <3 x 2 x f32>) -> "),
        ((X, Y, X), {}, TypeError, "matmul takes 2 arguments, not 3"),
        ((X, Y), {"x_hold": X}, TypeError, "matmul has two values for argument 'x_hold'"),
        ((X,), {"z": Y}, TypeError, "matmul has no argument 'z'; it takes"),
        ((X, X), {}, ValueError, "argument 'scope/y:0' has shape (2, 3), not (3, 2)"),
        ((X, [1.0, 2.0]), {}, ValueError, "argument 'scope/y:0' has shape (2,), not (3, 2)"),
        ((X, [[1.0], [2.0, 3.0]]), {}, ValueError, "argument 'scope/y:0' is no array of numbers"),
        (
            (X.astype(float), Y),
            {},
            TypeError,
            "argument 'x_hold' has elements of type float64, not float32; convert it with astype('float32')",
        ),
        ((X.astype(">f4"), Y), {}, TypeError, "has elements of type >f4, not float32"),
        (("text", Y), {}, TypeError, "argument 'x_hold' is no array of numbers that float32 can be"),
        ((None, Y), {}, TypeError, "argument 'x_hold' is no array of numbers that float32 can be"),
        (([[10**400] * 3] * 2, Y), {}, TypeError, "argument 'x_hold' is no array of numbers that float32 can be"),
        (([[1j] * 3] * 2, Y), {}, TypeError, "argument 'x_hold' has elements of type complex128, not float32"),
        ((np.ma.array(X, mask=X > 3), Y), {}, TypeError, "argument 'x_hold' has masked elements; fill them"),
        ((Reluctant(), Y), {}, TypeError, "argument 'x_hold' cannot become an array: detach it"),
    ],
)
def test_wrong_arguments_are_refused(product, arguments, named, error, message):
    with pytest.raises(error) as caught:
        product(arguments, named)
    assert message in str(caught.value)


def test_results_go_to_the_callers_arrays(product):
    out = np.zeros((2, 2), "float32")
    assert call(product, X, Y, out=out) is out
    assert out.tolist() == PRODUCT
    several = (np.zeros((2, 2), "float32"),)
    assert call(product, X, Y, out=several) is several and several[0].tolist() == PRODUCT


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros((2, 2)), TypeError, "out for 'x_y_prod' must be an array of float32, not float64"),
        ([[0.0, 0.0], [0.0, 0.0]], TypeError, "out has 2 arrays, and matmul has 1 results"),
        ([None], TypeError, "out for 'x_y_prod' must be an array of float32, not NoneType"),
        (np.zeros(4, "float32"), ValueError, "out for 'x_y_prod' has shape (4,), not (2, 2)"),
        (
            np.zeros((2, 4), "float32")[:, ::2],
            ValueError,
            "must be writable, and its elements aligned and in row-major",
        ),
        (np.broadcast_to(np.float32(0), (2, 2)), ValueError, "must be writable"),
        (X.reshape(6)[:4].reshape(2, 2), ValueError, "overlaps an argument or another result"),
    ],
)
def test_wrong_arrays_for_results_are_refused(product, out, error, message):
    with pytest.raises(error) as caught:
        call(product, X, Y, out=out)
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", mostly_slow(DTYPES, fast=list(DTYPES)[::4]))
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (1, 2, 1, 3)])
def test_elements_of_every_type_are_passed(dtype, shape):
    kernel = TensorKernel(copy(TensorType(dtype, shape)))
    given = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(DTYPES[dtype])
    found = call(kernel, given)
    assert found.dtype == given.dtype and found.shape == shape and np.array_equal(found, given)
    assert isinstance(found, np.ndarray if shape else np.generic)
    if given.size:
        assert np.array_equal(call(kernel, given.tolist()), given)


def test_numbers_that_do_not_fit_are_refused():
    kernel = TensorKernel(copy(TensorType("i8", (2,))))
    assert call(kernel, [1, -128]).tolist() == [1, -128]
    for numbers in ([1, 128], [0.5, 1]):
        with pytest.raises(TypeError, match="argument 'x' has numbers that int8 has not"):
            call(kernel, numbers)


def test_several_results_are_a_tuple():
    tensors = tuple(Tensor(name, name, TensorType("f32", (2,))) for name in "ab")
    found = call(TensorKernel(idle((), tensors)))
    assert isinstance(found, tuple) and [array.shape for array in found] == [(2,), (2,)]
    with pytest.raises(ValueError, match="out for 'b' overlaps"):
        call(TensorKernel(idle((), tensors)), out=(x := np.zeros(2, "float32"), x))


def test_contiguous_arguments_are_not_copied():
    assert np.shares_memory(argument(matmul().interface.arguments[0], X), X)
    assert not np.shares_memory(argument(matmul().interface.arguments[0], Y.T), Y)


def test_other_threads_run_during_a_call():
    kernel, flag = TensorKernel(waiting(10**10)), np.zeros(1, "int64")
    thread = threading.Timer(0.02, lambda: flag.__setitem__(0, 1))
    thread.start()
    assert call(kernel, flag).tolist() == [1]
    thread.join()


def test_calls_leave_no_references(product):
    def refused(*arguments):
        with pytest.raises((TypeError, ValueError)):
            call(product, *arguments)

    things = [X, Y, X.dtype, None, out := np.zeros((2, 2), "float32")]
    calls = [
        lambda: call(product, X, Y),
        lambda: call(product, X, Y, out=out),
        lambda: call(product, X, Y.tolist()),
        lambda: refused(X, X),
        lambda: refused(X),
    ]
    for each in calls:
        each()
        before = [sys.getrefcount(thing) for thing in things]
        for _ in range(50):
            each()
        assert all(sys.getrefcount(thing) < count + 25 for thing, count in zip(things, before, strict=True))


def test_results_without_room_are_an_error():
    small, huge = TensorType("f32", (2,)), TensorType("f64", (1 << 40, 1 << 8))
    kernel = TensorKernel(idle((), (Tensor("a", "a", small), Tensor("b", "b", huge))))
    before = sys.getrefcount(np.dtype("float32"))
    for _ in range(50):
        with pytest.raises(MemoryError):
            call(kernel)
    assert sys.getrefcount(np.dtype("float32")) < before + 25
