from dataclasses import replace

import numpy as np
import pytest
from helpers.contracts import CHECKS, checked_optimized
from helpers.tensor_modules import STEPS, random_arguments, random_module
from helpers.tensor_passes import lines_of, main_of

from shine.base.errors import FormError
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.operations import ELEMENTWISE, OPERATIONS
from shine.tensor.form.printing import text_of
from shine.tensor.passes.algebra import simplify
from shine.tensor.passes.canonicalize import canonicalize
from shine.tensor.passes.dce import entries_of, remove_dead, share
from shine.tensor.passes.pipeline import CHOOSING, CLEANING, optimized
from shine.tensor.passes.reshaping import choose_layout
from shine.tensor.passes.specialize import inline

ROUNDING = 2e4
"""Bound of differences, in units of rounding: values reach 30, and sums have up to 400 terms that cancel."""

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 80))]

EXACT = [inline, canonicalize, share, remove_dead, choose_layout]
"""Passes that keep every bit."""


def compare(module, found, seed, bound):
    arguments = random_arguments(module, "main", seed)
    for old, new in zip(interpret(module, "main", arguments), interpret(found, "main", arguments), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        if old.dtype.kind == "f" and bound:
            limit = bound * np.finfo(old.dtype).eps
            np.testing.assert_allclose(old, new, rtol=limit, atol=limit)
        elif old.dtype.kind == "f":
            same = (old == new) & (np.signbit(old) == np.signbit(new))
            assert (same | (np.isnan(old) & np.isnan(new))).all()
        else:
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_modules_keep_their_values(seed):
    module = random_module(seed, operations=OPERATIONS.keys() - STEPS)
    compare(module, checked_optimized(module), seed, ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_elementwise_modules_keep_every_bit(seed):
    allowed = ELEMENTWISE | {"reshape", "transpose", "broadcast", "slice", "pad", "concatenate", "gather", "constant"}
    # Constants of f64 are folded with the bits of compiled code, which NumPy's functions lack.
    module = random_module(seed, operations=allowed, floats=["f32"], size=20)
    compare(module, checked_optimized(module), seed, 0)


@pytest.mark.parametrize("seed", SEEDS[:6:2])
@pytest.mark.parametrize("each", EXACT, ids=lambda each: each.__name__)
def test_a_pass_that_promises_it_keeps_every_bit(each, seed):
    module = random_module(seed)
    compare(module, each(module), seed, 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_second_time_changes_nothing(seed):
    found = optimized(random_module(seed))
    assert text_of(optimized(found)) == text_of(found)


@pytest.mark.parametrize("seed", range(5))
def test_entries_keep_their_signatures(seed):
    module = random_module(seed)
    found = optimized(module)
    for name in entries_of(module):
        before, after = module.function(name), found.function(name)
        assert (before.parameters, before.result_types) == (after.parameters, after.result_types)


def test_every_pass_has_a_check():
    assert set(CHECKS) == {*CLEANING, *CHOOSING, remove_dead}


def test_results_keep_their_names():
    text = """%x: f32, %y: f32
        %a = add %x: f32, %y: f32
        %b = add %y: f32, %x: f32
        %out = pow %a: f32, %two: f32
        %out: f32, %b: f32"""
    text = text.replace("%a =", "%two = constant {value = f32 [2]}\n%a =")
    assert lines_of(optimized(main_of(text)))[-1] == "%out: f32, %b: f32"


def test_a_name_that_is_taken_gives_way():
    text = """%x: f32
        %a = exp %x: f32
        %b = neg %a: f32
        %c = neg %b: f32
        %c: f32, %b: f32"""
    assert lines_of(optimized(main_of(text))) == ["%c = exp %x: f32", "%b = neg %c: f32", "%c: f32, %b: f32"]


@pytest.mark.parametrize(
    ("each", "text", "problem"),
    [
        (canonicalize, "%x: f32\n%a = cast %x: f32 {dtype = f32}\n%a: f32", "@main, %a: it only copies"),
        (simplify, "%x: f32\n%a = neg %x: f32\n%b = neg %a: f32\n%b: f32", "@main, %b: it undoes the one before"),
        (share, "%x: f32\n%a = neg %x: f32\n%b = neg %x: f32\n%b: f32", "@main, %b: it is computed twice"),
        (remove_dead, "%x: f32\n%a = neg %x: f32\n%x: f32", "@main, %a: nobody needs it"),
    ],
)
def test_a_check_finds_what_its_pass_would_change(each, text, problem):
    module = main_of(text)
    with pytest.raises(FormError, match=problem):
        CHECKS[each](module)
    CHECKS[each](each(module))


def test_a_module_that_is_not_valid_is_refused():
    module = main_of("%x: f32\n%a = exp %x: f32\n%a: f32")
    function = module.function("main")
    with pytest.raises(FormError, match=r"@main, return: %a of type f32 is not defined"):
        optimized(module.with_functions(replace(function, body=())))
