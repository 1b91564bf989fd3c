"""Each adjoint rule against finite differences of the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shine.tensor.adjoint.adjoints import RULES
from shine.tensor.adjoint.declarations import gradient
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module, Value
from shine.tensor.form.operations import CALLS, FROM_THE_LANGUAGE, OPERATIONS
from shine.tensor.form.types import FLOATS, TensorType
from shine.tensor.form.verifier import verify

STEP = 1e-6
CLOSE = 2e-7
"""Error of a central difference of functions of moderate size, with that step."""

Write = Callable[..., Value | tuple[Value, ...]]


def check(write: Write, *shapes: tuple[int, ...], low: float = 0.3, high: float = 0.9, seed: int = 0) -> None:
    """Compare the gradient of a weighted sum of all results with differences, for some parameters f64."""
    b = FunctionBuilder("f")
    values = [b.parameter(f"p{i}", TensorType("f64", shape)) for i, shape in enumerate(shapes)]
    found = write(b, *values)
    results = [r for r in (found if isinstance(found, tuple) else (found,)) if r.type.dtype in FLOATS]
    module = verify(Module("m", {"f": b.done(*results)}))
    rng = np.random.default_rng(seed)
    arguments = [np.asarray(rng.uniform(low, high, shape)) for shape in shapes]
    seeds = [rng.uniform(-1, 1, result.type.shape) for result in results]
    complete = gradient(module, "f", seedable=True)
    gradients = interpret(complete, "f_grad", [*arguments, *seeds])

    def total(given: list[np.ndarray]) -> float:
        return sum(float((a * s).sum()) for a, s in zip(interpret(module, "f", given), seeds, strict=True))

    for place, argument in enumerate(arguments):
        for index in np.ndindex(argument.shape):
            moved = []
            for sign in (1, -1):
                changed = [a.copy() for a in arguments]
                changed[place][index] += sign * STEP
                moved.append(total(changed))
            difference = (moved[0] - moved[1]) / (2 * STEP)
            assert gradients[place][index] == pytest.approx(difference, abs=CLOSE * (1 + abs(difference)))


@pytest.mark.parametrize("name", [n for n in FROM_THE_LANGUAGE if OPERATIONS[n].infer.__name__ == "elementwise"])
def test_primitives_of_the_language_have_the_derivatives_of_differences_with_broadcasting(name):
    count = OPERATIONS[name].operands
    shapes = [(2, 3), (3,), (2, 1)][: count or 0]
    check(lambda b, *v: b.emit(name, v)[0], *shapes)


CASES: dict[str, tuple[Write, list[tuple[int, ...]]]] = {
    "select": (lambda b, x, y: b.select(b.lt(x, b.constant(0.6)), x, y), [(2, 3), (3,)]),
    "cast": (lambda b, x: b.cast(b.mul(x, x), dtype="f64"), [(3,)]),
    "broadcast": (lambda b, x: b.broadcast(x, shape=(4, 2, 3)), [(2, 1)]),
    "reshape": (lambda b, x: b.mul(b.reshape(x, shape=(6,)), b.constant(np.arange(6.0))), [(2, 3)]),
    "transpose": (lambda b, x: b.transpose(x, permutation=(2, 0, 1)), [(2, 3, 4)]),
    "slice": (lambda b, x: b.slice(x, start=(1, 0), stop=(6, 3), step=(2, 2)), [(7, 3)]),
    "pad": (lambda b, x, y: b.pad(x, y, low=(1, 0), high=(0, 2), interior=(2, 1)), [(2, 3), ()]),
    "concatenate": (lambda b, x, y: b.concatenate(x, y, x, axis=1), [(2, 3), (2, 1)]),
    "gather": (lambda b, x: b.gather(x, b.constant(np.array([[2, 0], [9, -4]])), axis=1), [(2, 3)]),
    "scatter_add": (
        lambda b, x, y: b.scatter_add(x, b.constant(np.array([[2, 0], [9, 2]])), y, axis=1),
        [(2, 3), (2, 2, 2)],
    ),
    "reduce_sum": (lambda b, x: b.reduce_sum(x, axes=(0, 2)), [(2, 3, 2)]),
    "reduce_sum, kept": (lambda b, x: b.reduce_sum(x, axes=(1,), keep=True), [(2, 3)]),
    "reduce_prod": (lambda b, x: b.reduce_prod(x, axes=(0, 2)), [(2, 3, 5)]),
    "reduce_max": (lambda b, x: b.reduce_max(x, axes=(1,)), [(3, 4)]),
    "reduce_min": (lambda b, x: b.reduce_min(x, axes=(0,), keep=True), [(3, 4)]),
    "sort": (lambda b, x: b.sort(x, axis=0, descending=True), [(4, 3)]),
    "top_k": (lambda b, x: b.top_k(x, k=2), [(3, 4)]),
    "dot": (lambda b, x, y: b.dot(x, y), [(2, 3), (3, 4)]),
    "dot of vectors": (lambda b, x, y: b.dot(x, y), [(3,), (3,)]),
    "dot, vector first": (lambda b, x, y: b.dot(x, y), [(3,), (2, 3, 4)]),
    "dot, vector second": (lambda b, x, y: b.dot(x, y), [(2, 4, 3), (3,)]),
    "dot of stacks": (lambda b, x, y: b.dot(x, y), [(2, 1, 2, 3), (5, 3, 2)]),
    "dot, one matrix for a stack": (lambda b, x, y: b.dot(x, y), [(2, 2, 3), (3, 2)]),
    "convolve": (lambda b, x, y: b.convolve(x, y), [(2, 5, 4, 2), (3, 2, 2, 3)]),
    "convolve, padded": (lambda b, x, y: b.convolve(x, y, low=(2, 0), high=(1, 3)), [(1, 4, 4, 1), (2, 3, 1, 2)]),
    "convolve, much padding": (lambda b, x, y: b.convolve(x, y, low=(3,), high=(4,)), [(1, 3, 1), (2, 1, 1)]),
    "convolve, strides": (
        lambda b, x, y: b.convolve(x, y, strides=(2, 3), dilation=(2, 1), low=(1, 0), high=(0, 1)),
        [(2, 8, 7, 2), (3, 2, 2, 2)],
    ),
    "convolve, groups": (
        lambda b, x, y: b.convolve(x, y, groups=2, strides=(2,), low=(1,), high=(1,)),
        [(2, 6, 4), (3, 2, 6)],
    ),
    "convolve, a dropped end": (lambda b, x, y: b.convolve(x, y, strides=(3,)), [(1, 9, 1), (2, 1, 1)]),
}


@pytest.mark.parametrize("case", CASES)
def test_rules_agree_with_differences(case):
    write, shapes = CASES[case]
    check(write, *shapes)


def test_every_operation_has_a_rule_and_is_tried():
    tried = {case.split(",")[0].split(" of ")[0] for case in CASES}
    assert set(OPERATIONS) == set(RULES) | CALLS
    without_derivative = {"round", "and", "or", "not", "constant", "argmax", "argmin"}
    assert set(RULES) - set(FROM_THE_LANGUAGE) - without_derivative == tried


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_have_derivatives_at_zeros_too(zeros):
    b = FunctionBuilder("f")
    x = b.parameter("x", TensorType("f64", (4,)))
    module = Module("m", {"f": b.done(b.reduce_prod(x))})
    point = np.array([2.0, 3.0, 5.0, 7.0])
    point[:zeros] = 0
    expected = [np.prod(np.delete(point, i)) for i in range(4)]
    assert interpret(gradient(module, "f"), "f_grad", [point])[0].tolist() == expected


def test_equal_extrema_share_the_derivative():
    b = FunctionBuilder("f")
    x = b.parameter("x", TensorType("f64", (4,)))
    module = gradient(Module("m", {"f": b.done(b.reduce_max(x))}), "f")
    assert interpret(module, "f_grad", [np.array([1.0, 3.0, 3.0, 0.0])])[0].tolist() == [0, 0.5, 0.5, 0]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_tensors_have_empty_gradients(shape: tuple[int, ...]):
    def write(b: FunctionBuilder, x: Value) -> Any:
        axes = tuple(range(len(shape)))
        return b.reduce_sum(x), b.reduce_prod(x, axes=axes), b.sort(x, axis=0)[0], b.dot(x, b.transpose(x))

    check(write, shape)
