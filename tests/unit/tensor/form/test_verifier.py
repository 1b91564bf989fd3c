"""What is wrong with a module, and where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.damaged_forms import damaged_module
from helpers.tensor_modules import random_module

from shine.base.errors import FormError
from shine.tensor.form.module import Function, GradientDeclaration, Instruction, Module, Value
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.form.types import TensorType
from shine.tensor.form.verifier import MOST_NESTED, verify

F32, PAIR, TRUTH = TensorType("f32"), TensorType("f32", (2,)), TensorType("bool")
X, Y = Value("x", PAIR), Value("y", PAIR)
NEG = Instruction((Y,), "neg", (X,))


def function(*body, parameters=(X,), results=(), name="f"):
    return Function(name, parameters, body, results)


def module(*functions, **fields):
    return Module("m", {f.name: f for f in functions}, **fields)


def declaration(**fields):
    usual = {
        "name": "g", "of": "f", "wrt": (0,), "keeping": (), "seedable": True,
        "parameter_types": (PAIR, PAIR), "result_types": (PAIR,),
    }  # fmt: skip
    return GradientDeclaration(**{**usual, **fields})


GOOD = function(NEG, results=(Y,))
CALL = Instruction((), "call", (X,), {"function": "f"})

REJECTED = [
    (replace(module(), name="a b"), "module: 'a b' is no name"),
    (replace(module(), name=3), "module: name is a int, and must be str"),
    (module(labels={"a b": "x"}), "module: there is a label for 'a b', which is no name"),
    (module(labels={"x": 1}), "module: the label of %x is a int, and must be text"),
    (Module("m", {"h": GOOD}), "@h: the function is called 'f' itself"),
    (Module("m", {"f": NEG}), "@f is a Instruction, and must be a Function or a GradientDeclaration"),
    (module(function(name="2x")), "@2x: '2x' is no name"),
    (module(function(parameters=(X, X))), "@f: %x is defined twice"),
    (module(function(NEG, NEG)), "@f, %y: %y is defined twice"),
    (module(function(parameters=(Value("", PAIR),))), "@f: '' is no name"),
    (module(function(replace(NEG, operands=(Y,)))), "@f, %y: %y of type <2 x f32> is not defined before"),
    (module(function(replace(NEG, operands=(Value("x", F32),)))), "@f, %y: %x of type f32 is not defined before, or"),
    (module(function(replace(NEG, operands=[X]))), "@f, instruction 0: operands is a list, and must be tuple"),
    (module(function(replace(NEG, operands=("x",)))), "@f, instruction 0: an item of operands is a str"),
    (module(function(Instruction((Value(3, PAIR),), "neg", (X,)))), "@f, instruction 0: name is a int"),
    (module(function(replace(NEG, operation="sub"))), "@f, %y: sub takes 2 operands, and is given 1"),
    (module(function(replace(NEG, operation="swish"))), "@f, %y: there is no operation 'swish'"),
    (module(function(replace(NEG, results=(Value("y", F32),)))), "@f, %y: neg gives (<2 x f32>), and not (f32)"),
    (module(function(replace(NEG, attributes={"axis": 0}))), "@f, %y: neg has no axis; its attributes are none"),
    (
        module(function(replace(NEG, operation="reshape", attributes={"shape": [2]}))),
        "@f, %y: reshape: shape = [2] must be a tuple of integers",
    ),
    (
        module(function(replace(NEG, operation="reshape", attributes={"shape": np.zeros(99)}))),
        "@f, %y: reshape: shape = an array float64 must be a tuple of integers",
    ),
    (module(function(results=(Y,))), "@f, return: %y of type <2 x f32> is not defined, or has another type"),
    (module(function(CALL)), "functions call each other in a circle: @f -> @f"),
    (module(function(replace(CALL, attributes={"function": "g"}))), "@f, call: there is no function @g; there are @f"),
    (module(GOOD, declaration(of="h")), "@g: there is no function @h; there are @f, @g"),
    (module(GOOD, declaration(of="g", wrt=(0,))), "@g"),
    (module(GOOD, declaration(wrt=(1,))), "@g: wrt [1]: @f has 1 parameters, counted from 0"),
    (module(GOOD, declaration(wrt=())), "@g: wrt names no parameter"),
    (module(GOOD, declaration(keeping=(-1,))), "@g: keeping [-1]: @f has 1 results, counted from 0"),
    (module(GOOD, declaration(wrt=("x",))), "@g: an item of wrt is a str, and must be int"),
    (module(GOOD, declaration(seedable=False)), "@g: @f does not return one scalar, so its gradient must be seedable"),
    (module(GOOD, declaration(result_types=())), "@g returns (<2 x f32>), and not ()"),
    (module(GOOD, declaration(parameter_types=(PAIR,))), "@g takes (<2 x f32>, <2 x f32>), and not (<2 x f32>)"),
    (
        module(function(parameters=(Value("x", TRUTH),)), declaration(parameter_types=(TRUTH,), result_types=(TRUTH,))),
        "@g: wrt 0: bool has no derivative; only f32 and f64 have one",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), REJECTED, ids=[message[:60] for _, message in REJECTED])
def test_what_is_wrong_and_where(wrong, message):
    with pytest.raises(FormError) as caught:
        verify(wrong)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_circles_and_depths_of_calls():
    def chain(length, last=None):
        body = [replace(CALL, attributes={"function": f"f{i + 1}"}) for i in range(length - 1)]
        ends = () if last is None else (replace(CALL, attributes={"function": last}),)
        return module(*(function(*each, name=f"f{i}") for i, each in enumerate([*([b] for b in body), ends])))

    verify(chain(MOST_NESTED))
    with pytest.raises(FormError, match=r"@f0: calls are nested 101 deep, and 100 is the most"):
        verify(chain(MOST_NESTED + 1))
    with pytest.raises(FormError, match=r"functions call each other in a circle: @f"):
        verify(chain(5000, last="f2"))


def check_damaged(seed, modules):
    rng = np.random.default_rng(seed)
    damaged = damaged_module(modules[rng.integers(len(modules))], rng)
    try:
        text = text_of(verify(damaged))
    except FormError as error:
        assert "\n" not in str(error), seed
    else:
        assert text_of(module_of(text)) == text, seed


@pytest.fixture(scope="module")
def modules():
    return [
        random_module(seed, size=6).with_functions(*module(GOOD, declaration()).functions.values())
        for seed in range(12)
    ]


def test_damaged_forms_give_form_errors_or_print_and_read_back(modules):
    for seed in range(100):
        check_damaged(seed, modules)


def test_sizes_may_be_numpys():
    found = TensorType("f32", (np.int64(2), np.int32(3)))
    assert found.shape == (2, 3) and all(type(size) is int for size in found.shape)
    assert TensorType("f32", [2, 3]) == found
    for shape in ((2.0,), ("2",), 3, (None,)):
        with pytest.raises(FormError, match="the sizes of a shape must be integers"):
            TensorType("f32", shape)
    for dtype in (["f32"], "f16", None):
        with pytest.raises(FormError, match="there is no element type"):
            TensorType(dtype)
