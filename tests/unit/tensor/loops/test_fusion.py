from dataclasses import replace

import pytest
from helpers.contracts import check_fusion
from helpers.tensor_modules import random_module
from helpers.tensor_passes import main_of

from shine.base.errors import FormError
from shine.tensor.loops.fusion import computed, fuse
from shine.tensor.passes.pipeline import optimized


def nests_of(text):
    """Names of the operations of each nest; groups of nests in common loops are joined by `|`."""
    function = main_of(text).function("main")
    placed, groups = fuse(function)
    check_fusion(placed, groups)

    def operations(nest):
        inside = {*computed(placed, nest), *nest.reductions, nest.maker}
        return " ".join(made.operation for made in function.body if made in inside)

    return [" | ".join(map(operations, group.nests)) for group in groups]


LAYER = """%x: <4 x 5 x f32>, %w: <5 x 6 x f32>, %b: <6 x f32>
    %a = dot %x: <4 x 5 x f32>, %w: <5 x 6 x f32>
    %c = add %a: <4 x 6 x f32>, %b: <6 x f32>
    %d = tanh %c: <4 x 6 x f32>
    %e = mul %d: <4 x 6 x f32>, %c: <4 x 6 x f32>
    %e: <4 x 6 x f32>"""


def test_what_follows_a_product_is_its_epilogue():
    assert nests_of(LAYER) == ["dot add tanh mul"]


def test_what_a_sum_adds_is_computed_in_its_loop():
    text = """%x: <4 x 5 x f32>
        %a = exp %x: <4 x 5 x f32>
        %b = mul %a: <4 x 5 x f32>, %a: <4 x 5 x f32>
        %c = reduce_sum %b: <4 x 5 x f32> {axes = [1], keep = false}
        %c: <4 x f32>"""
    assert nests_of(text) == ["exp mul reduce_sum"]


def test_softmax_stores_the_exponentials_while_it_sums_them():
    text = """%x: <4 x 5 x f32>
        %m = reduce_max %x: <4 x 5 x f32> {axes = [1], keep = true}
        %a = sub %x: <4 x 5 x f32>, %m: <4 x 1 x f32>
        %b = exp %a: <4 x 5 x f32>
        %s = reduce_sum %b: <4 x 5 x f32> {axes = [1], keep = true}
        %y = div %b: <4 x 5 x f32>, %s: <4 x 1 x f32>
        %y: <4 x 5 x f32>"""
    assert nests_of(text) == ["reduce_max | sub exp reduce_sum | div"]


def test_costly_functions_are_not_computed_again_for_each_row():
    text = """%x: <5 x f32>, %y: <4 x 5 x f32>
        %a = {} %x: <5 x f32>
        %b = mul %a: <5 x f32>, %y: <4 x 5 x f32>
        %b: <4 x 5 x f32>"""
    assert nests_of(text.format("exp")) == ["exp", "mul"]
    assert nests_of(text.format("neg")) == ["neg mul"]


def test_the_check_finds_what_is_wrong():
    def broken(problem, change):
        placed, groups = fuse(main_of(LAYER).function("main"))
        with pytest.raises(FormError, match=problem):
            check_fusion(*change(placed, groups))

    broken("@main, return: no nest writes %e", lambda placed, groups: (placed, []))
    broken("2 nests compute it, and it is not cheap", lambda placed, groups: (placed, groups * 2))
    broken(
        "@main, %e: its nest reads %d, which no nest before it writes",
        lambda placed, groups: (replace(placed, stored=placed.stored | {placed.function.body[2].result}), groups),
    )


@pytest.mark.parametrize("seed", range(4))
def test_nests_compute_random_functions_in_order(seed):
    for module in (random_module(seed), optimized(random_module(seed))):
        for function in module.defined:
            check_fusion(*fuse(function))
