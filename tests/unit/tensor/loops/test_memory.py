from dataclasses import replace

import numpy as np
import pytest
from helpers.contracts import check_plan
from helpers.tensor_modules import random_arguments, random_module
from helpers.tensor_parts import run_in_parts
from helpers.tensor_passes import main_of

from shine.base.errors import FormError
from shine.compiler.processor import Machine
from shine.tensor.loops.arena import Allocation
from shine.tensor.loops.memory import plan_module
from shine.tensor.passes.pipeline import optimized

MACHINES = (Machine(16, 16, False), Machine(32, 16, True), Machine(64, 32, True, (1 << 10, 1 << 12, 1 << 14)))
"""The last one has caches so small that every product is packed, which takes scratch memory."""

CHAIN = """%x: <100 x f32>
    %a, %i = sort %x: <100 x f32> {axis = 0, descending = false}
    %b, %j = sort %a: <100 x f32> {axis = 0, descending = true}
    %c, %k = sort %b: <100 x f32> {axis = 0, descending = false}
    %c: <100 x f32>"""


def plans_of(text, others=""):
    found = plan_module(main_of(text, others), MACHINES[1])
    for plan in found.values():
        check_plan(plan)
    return found


def test_results_that_are_no_values_of_their_own_are_copied():
    text = """%x: f32
        %c = constant {value = <2 x f32> [2, 3]}
        %a = exp %x: f32
        %a: f32, %a: f32, %x: f32, %c: <2 x f32>"""
    memory = plans_of(text)["main"].memory
    assert [(v.name, index) for v, index in memory.copies] == [("a", 1), ("x", 2), ("c", 3)]


@pytest.mark.parametrize("seed", range(4))
def test_no_two_values_have_a_byte_while_both_are_needed(seed):
    operations = ["sort", "exp", "add", "reduce_sum", "dot", "transpose", "reshape", "concatenate", "top_k"]
    many = random_module(seed, operations=operations, floats=["f32"], size=50)
    for module in (many, random_module(seed), optimized(random_module(seed))):
        for plan in plan_module(module, MACHINES[seed % 3]).values():
            check_plan(plan)
            assert plan.memory.lower_bound <= plan.memory.arena_bytes <= plan.memory.sum_bytes
            assert plan.memory.arena_bytes % 64 == 0


def test_the_check_finds_what_is_wrong():
    plan = plans_of(CHAIN)["main"]
    values = {value.name: value for value in plan.memory.places}

    def broken(problem, **places):
        moved = {**plan.memory.places, **{values[name]: place for name, place in places.items()}}
        with pytest.raises(FormError, match=problem):
            check_plan(replace(plan, memory=replace(plan.memory, places=moved)))

    broken("it shares bytes with %., and both are needed at once", b=plan.memory.places[values["a"]])
    broken("@main, %a: 400 bytes at 8 are not aligned, or not in the arena", a=Allocation("arena", 8))
    broken("@main, %a: 400 bytes at 64000 are not aligned, or not in the arena", a=Allocation("arena", 64000))
    broken("@main, return: result 0 is not written", c=Allocation("result", 1))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 16))])
def test_code_uses_the_plan_and_values_survive_where_dead_bytes_are_spoilt(seed):
    module = random_module(seed) if seed % 2 else optimized(random_module(seed))
    for function in module.defined:
        arguments = random_arguments(module, function.name, seed)
        at_once, in_parts = run_in_parts(module, function.name, arguments, MACHINES[seed % 3])
        for one, other in zip(at_once, in_parts, strict=True):
            np.testing.assert_array_equal(one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8))
