"""Facts that hold for every module, on drawn ones."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_modules import random_arguments, random_module

from shine.tensor.form.interpreter import interpret
from shine.tensor.form.operations import OPERATIONS
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.form.verifier import verify

FEW = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 40))]


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
    for seed in range(40):
        drawn |= {i.operation for f in random_module(seed).defined for i in f.body}
    assert drawn == OPERATIONS.keys()
