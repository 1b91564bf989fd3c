"""The text form: it prints and reads back exactly, and damaged text gives no other error than FormError."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.damaged_forms import damaged_text
from helpers.tensor_functions import module_with
from helpers.tensor_modules import random_module

from shine.base.errors import FormError
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.operations import OPERATIONS
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.form.types import DTYPES

EVERYTHING = (Path(__file__).parents[3] / "fixtures" / "tensor" / "everything.txt").read_text(encoding="utf-8")
"""A module with all operations and special numbers, as it is printed."""


def test_everything_reads_and_prints_as_before():
    module = module_of(EVERYTHING)
    assert text_of(module) == EVERYTHING
    assert {i.operation for f in module.defined for i in f.body} == OPERATIONS.keys()
    assert module.labels == {"x": 'dense/MatMul:0 "q" \\ é 😀\n', "s.0": ""}


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("size", [0, 1, 64, 65, 200])
def test_constants_keep_all_bits(dtype, size):
    rng = np.random.default_rng(size)
    # Random bits: among floats there are NaNs of all kinds.
    found = rng.integers(0, 256, size * DTYPES[dtype].itemsize, np.uint8)
    array = (found % 2 == 0) if dtype == "bool" else found.view(DTYPES[dtype])
    for shape in ((size,), (1, size, 1)):
        module = module_with(lambda b, shape=shape: b.constant(array.reshape(shape)))
        (again,) = interpret(module_of(text_of(module)), "f", [])
        assert again.shape == shape and again.dtype == DTYPES[dtype]
        assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7F800001, 0xFFC00000, 0xFFFFFFFF, 0x7FC01234])
def test_nan_keeps_its_payload_and_shows_it(bits):
    text = text_of(module_with(lambda b: b.constant(np.array([bits], "u4").view("f4"))))
    assert f"[0x{bits:08x}]" in text
    assert text_of(module_of(text)) == text


@pytest.mark.parametrize(
    "label", ["", "a b", '"', "\\", "\\n", "\n\t\r\0\x7f", "é😀\u2028", "\ud800", '\\"//', "x\\x41"]
)
def test_labels_are_any_text(label):
    module = module_of("module @m")
    text = text_of(type(module)("m", {}, {"x": label, "y": "other"}))
    assert text.isascii() and text.isprintable() == ("\n" not in text)
    assert module_of(text).labels == {"x": label, "y": "other"}


def test_spaces_comments_and_order_are_free():
    text = (
        "// begin\nmodule@m func@g:(f32)->f32{'entry(%x:f32):%y=call%x:f32{function=@f}return%y:f32}//\n"
        "func @f\t:\r\n( f32 )->f32 { 'entry ( %x : f32 ) : // neg\n %1 = neg %x:f32 return %1 : f32 }"
    )
    assert interpret(module_of(text), "g", [np.float32(2)])[0] == -2


def check_damaged(seed, texts):
    rng = np.random.default_rng(seed)
    damaged = damaged_text(*(texts[i] for i in rng.integers(len(texts), size=2)), rng)
    try:
        text = text_of(module_of(damaged))
    except FormError as error:
        assert "\n" not in str(error), json.dumps(damaged)
    else:
        assert text_of(module_of(text)) == text


@pytest.fixture(scope="module")
def texts():
    drawn = [text_of(random_module(seed, size=6)) for seed in range(12)]
    return [*(text for text in drawn if len(text) < 3000), EVERYTHING]


def test_damaged_texts_give_form_errors_only(texts):
    for seed in range(50):
        check_damaged(seed, texts)
