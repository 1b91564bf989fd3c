import pytest
from helpers.tensor_modules import random_module
from helpers.tensor_passes import main_of

from shine.errors import FormError
from shine.tensor.passes.fusion import check_fusion, fuse
from shine.tensor.passes.pipeline import optimized


def groups_of(text):
    """Names of the operations of each group."""
    function = main_of(text).function("main")
    groups = fuse(function)
    check_fusion(function, groups)
    return [" ".join(member.operation for member in group.members) for group in groups]


LAYER = """%x: <4 x 5 x f32>, %w: <5 x 6 x f32>, %b: <6 x f32>
    %a = dot %x: <4 x 5 x f32>, %w: <5 x 6 x f32>
    %c = add %a: <4 x 6 x f32>, %b: <6 x f32>
    %d = tanh %c: <4 x 6 x f32>
    %e = mul %d: <4 x 6 x f32>, %c: <4 x 6 x f32>
    %e: <4 x 6 x f32>"""


def test_what_follows_a_product_is_its_epilogue():
    assert groups_of(LAYER) == ["dot add tanh mul"]
    (group,) = fuse(main_of(LAYER).function("main"))
    assert group.anchor is group.members[0]
    assert [value.name for value in group.reads] == ["x", "w", "b"]


def test_what_a_sum_adds_is_computed_in_its_loop():
    text = """%x: <4 x 5 x f32>
        %a = exp %x: <4 x 5 x f32>
        %b = mul %a: <4 x 5 x f32>, %a: <4 x 5 x f32>
        %c = reduce_sum %b: <4 x 5 x f32> {axes = [1], keep = false}
        %d = sqrt %c: <4 x f32>
        %d: <4 x f32>"""
    assert groups_of(text) == ["exp mul reduce_sum sqrt"]


def test_softmax_stores_the_exponentials():
    text = """%x: <4 x 5 x f32>
        %m = reduce_max %x: <4 x 5 x f32> {axes = [1], keep = true}
        %a = sub %x: <4 x 5 x f32>, %m: <4 x 1 x f32>
        %b = exp %a: <4 x 5 x f32>
        %s = reduce_sum %b: <4 x 5 x f32> {axes = [1], keep = true}
        %y = div %b: <4 x 5 x f32>, %s: <4 x 1 x f32>
        %y: <4 x 5 x f32>"""
    assert groups_of(text) == ["reduce_max", "sub exp", "reduce_sum", "div"]


def test_what_two_groups_need_is_stored():
    text = LAYER.replace("%e: <4 x 6 x f32>", "%e: <4 x 6 x f32>, %a: <4 x 6 x f32>", 1)
    text = text[: text.rindex("\n")] + "\n%e: <4 x 6 x f32>, %a: <4 x 6 x f32>"
    text = text.replace("%e: <4 x 6 x f32>, %a: <4 x 6 x f32>\n    %e: ", "%e: ")
    assert groups_of(text)[0] == "dot"


def test_views_are_part_of_all_groups_that_read_them():
    text = """%x: <4 x 5 x f32>
        %a = transpose %x: <4 x 5 x f32> {permutation = [1, 0]}
        %b = exp %a: <5 x 4 x f32>
        %c = log %a: <5 x 4 x f32>
        %b: <5 x 4 x f32>, %c: <5 x 4 x f32>"""
    assert groups_of(text) == ["transpose exp", "transpose log"]


def test_views_that_a_sort_reads_are_stored():
    text = """%x: <4 x 5 x f32>
        %a = transpose %x: <4 x 5 x f32> {permutation = [1, 0]}
        %b, %i = sort %a: <5 x 4 x f32> {axis = 0, descending = false}
        %b: <5 x 4 x f32>"""
    assert groups_of(text) == ["transpose", "sort"]


def test_costly_functions_are_not_computed_again_for_each_row():
    text = """%x: <5 x f32>, %y: <4 x 5 x f32>
        %a = {} %x: <5 x f32>
        %b = mul %a: <5 x f32>, %y: <4 x 5 x f32>
        %b: <4 x 5 x f32>"""
    assert groups_of(text.format("exp")) == ["exp", "mul"]
    assert groups_of(text.format("neg")) == ["neg mul"]


def test_a_group_has_one_product():
    text = """%x: <4 x 4 x f32>
        %a = dot %x: <4 x 4 x f32>, %x: <4 x 4 x f32>
        %b = dot %a: <4 x 4 x f32>, %x: <4 x 4 x f32>
        %c = add %a: <4 x 4 x f32>, %b: <4 x 4 x f32>
        %c: <4 x 4 x f32>"""
    assert groups_of(text) == ["dot", "dot add"]


def test_a_group_that_reads_what_is_not_stored_is_found():
    function = main_of(LAYER).function("main")
    (group,) = fuse(function)
    broken = type(group)(group.members[1:], None)
    with pytest.raises(FormError, match=r"@main, %e: its group reads %a, which no group stores"):
        check_fusion(function, (broken,))
    with pytest.raises(FormError, match=r"@main, return: no group stores %e"):
        check_fusion(function, ())


@pytest.mark.parametrize("seed", range(8))
def test_groups_compute_random_functions_in_order(seed):
    for module in (random_module(seed), optimized(random_module(seed))):
        for function in module.defined:
            check_fusion(function, fuse(function))
