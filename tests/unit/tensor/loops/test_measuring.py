import itertools

import numpy as np
import pytest

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.loops.emission import emit
from shine.tensor.loops.measuring import measured, multiply_adds


def network() -> Module:
    b = FunctionBuilder("main")
    x = b.parameter("x", TensorType("f32", (2, 6, 6, 3)))
    k = b.constant(np.linspace(-1, 1, 108, dtype=np.float32).reshape(3, 3, 3, 4))
    sums = b.reshape(b.convolve(x, k), shape=(2, 64))
    w = b.constant(np.linspace(-1, 1, 320, dtype=np.float32).reshape(64, 5))
    return Module("m", {"main": b.done(b.exp(b.dot(sums, w)), x)})


def test_multiply_adds_are_counted():
    counts = [count for _, count in multiply_adds(network().function("main"))]
    assert [count for count in counts if count] == [2 * 4 * 4 * 4 * 27, 2 * 64 * 5]


@pytest.mark.slow
def test_each_group_has_a_line():
    x = np.ones((2, 6, 6, 3), np.float32)
    ticks = itertools.count()
    lines = measured(network(), [x], clock=lambda: next(ticks) * 0.1)
    assert tuple(line.text for line in lines) == emit(network())[1].report
    assert all(line.seconds > 0 for line in lines)
    assert [line.share > 0 for line in lines] == [True, True, False]


def test_parts_one_by_one_are_the_whole():
    text, interface = emit(network(), has_parts=True)
    assert text.count("define void") - text.count("define void ()") >= 1 + len(interface.report)
