"""Gradients that keep to a memory budget."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import FormError
from shine.tensor.adjoint.declarations import gradient
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.form.types import TensorType
from shine.tensor.form.verifier import called_by, verify


def chain(layers: int, rows: int = 64, width: int = 16) -> Module:
    b = FunctionBuilder("chain")
    h = b.parameter("x", TensorType("f64", (rows, width)))
    weights = [b.parameter(f"w{i}", TensorType("f64", (width, width))) for i in range(layers)]
    for weight in weights:
        h = b.tanh(b.dot(h, weight))
    return verify(Module("m", {"chain": b.done(b.reduce_sum(b.mul(h, h)))}))


def bytes_at_once(module: Module, name: str) -> int:
    """Most bytes in use, by running through the function and freeing what no later instruction reads."""
    function = module.function(name)
    used: dict[str, int] = {}
    most = 0
    for place, instruction in enumerate(function.body):
        for result in instruction.results:
            used[result.name] = 0 if instruction.operation == "constant" else result.type.bytes
        inside = [bytes_at_once(module, called) for called in called_by(instruction)]
        most = max(most, sum(used.values()) + max(inside, default=0))
        read = {v.name for later in function.body[place + 1 :] for v in later.operands}
        used = {k: size for k, size in used.items() if k in read | {v.name for v in function.results}}
    return most


def test_a_chain_of_twenty_layers_needs_half_the_memory_and_has_the_same_gradients():
    module = chain(20)
    plain = gradient(module, "chain")
    peak = bytes_at_once(plain, "chain_grad")
    small = gradient(module, "chain", memory=peak // 2)
    assert bytes_at_once(small, "chain_grad") <= peak // 2
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=t.shape) * 0.3 for t in module.function("chain").parameter_types]
    for one, other in zip(
        interpret(plain, "chain_grad", arguments), interpret(small, "chain_grad", arguments), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert text_of(module_of(text_of(small))) == text_of(small)


def test_the_error_says_how_much_the_best_partition_needs():
    with pytest.raises(FormError, match=r"the gradient of @chain needs \d+ bytes for values, and memory is 1000"):
        gradient(chain(5), "chain", memory=1000)
