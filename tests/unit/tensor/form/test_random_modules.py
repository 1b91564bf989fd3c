"""Facts that hold for every module, on drawn ones."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_modules import random_arguments, random_module

from shine.tensor.form.interpreter import interpret
from shine.tensor.form.operations import CALLS, OPERATIONS
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.form.verifier import verify

FEW = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 100))]


@pytest.mark.parametrize("seed", FEW)
def test_modules_verify_print_read_back_and_run(seed):
    module = verify(random_module(seed))
    text = text_of(module)
    again = module_of(text)
    assert text_of(again) == text
    assert again.labels == module.labels
    arguments = random_arguments(module, "main", seed)
    first, second = interpret(module, "main", arguments), interpret(again, "main", arguments)
    for one, other, type in zip(first, second, module.functions["main"].result_types, strict=True):
        assert (one.shape, one.dtype) == (type.shape, type.numpy)
        assert one.tobytes() == other.tobytes()
        assert np.isfinite(one).all()
        assert one.dtype.kind != "f" or np.abs(one).max(initial=0) < 100


def test_every_operation_is_drawn():
    drawn = set()
    for seed in range(60):
        drawn |= {i.operation for f in random_module(seed).defined for i in f.body}
    assert drawn == OPERATIONS.keys()


def test_the_same_seed_draws_the_same_module():
    assert text_of(random_module(7)) == text_of(random_module(7))


@pytest.mark.parametrize("seed", range(2))
def test_operations_and_elements_may_be_chosen(seed):
    module = random_module(seed, operations={"dot", "tanh", "gather"}, floats={"f64"}, functions=False)
    names = {i.operation for f in module.defined for i in f.body}
    assert names <= {"dot", "tanh", "gather", "constant", "mul", "add"} and not names & CALLS
    assert {type.dtype for type in module.functions["main"].parameter_types} <= {"f64", "bool"}
