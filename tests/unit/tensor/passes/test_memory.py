import numpy as np
import pytest
from helpers.equality import same_bits
from helpers.tensor_modules import random_arguments, random_module
from helpers.tensor_passes import main_of
from helpers.tensor_plans import run_planned

from shine.errors import FormError
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Value
from shine.tensor.form.types import TensorType
from shine.tensor.passes.dce import remove_dead
from shine.tensor.passes.memory import Step, plan_memory, plan_module
from shine.tensor.passes.pipeline import optimized

CHAIN = """%x: <100 x f32>
    %a, %i = sort %x: <100 x f32> {axis = 0, descending = false}
    %b, %j = sort %a: <100 x f32> {axis = 0, descending = true}
    %c, %k = sort %b: <100 x f32> {axis = 0, descending = false}
    %c: <100 x f32>"""


def value(name, size=64):
    return Value(name, TensorType("u8", (size,)))


def plan(*steps):
    return plan_memory(main_of("%x: f32\n%x: f32").function("main"), steps)


def test_a_value_that_is_needed_no_more_gives_its_bytes_to_another():
    a, b, c = (value(name, 100) for name in "abc")
    found = plan(Step((), (a,)), Step((a,), (b,)), Step((b,), (c,)), Step((c,), ()))
    assert found.places[a] == found.places[c] != found.places[b]
    assert (found.arena_bytes, found.sum_bytes, found.lower_bound) == (256, 384, 256)


def test_a_result_may_be_written_over_an_operand_that_dies():
    a, b = value("a"), value("b")
    steps = Step((), (a,)), Step((a,), (b,), ((b, a),)), Step((b,), ())
    assert plan(*steps).arena_bytes == 64
    assert plan(*steps, Step((a,), ())).arena_bytes == 128


def test_only_one_of_two_is_written_over_an_operand():
    a, b, c = (value(name) for name in "abc")
    found = plan(Step((), (a,)), Step((a,), (b, c), ((b, a), (c, a))), Step((b, c), ()))
    assert found.places[b] == found.places[a] != found.places[c]


def test_scratch_memory_lives_for_a_step():
    a = value("a")
    found = plan(Step((), (a,), scratch=10), Step((a,), (), scratch=70), Step((), (), scratch=200))
    assert found.arena_bytes == 256
    assert found.places[a].at not in (found.scratch[0], found.scratch[1])


def test_a_gap_is_filled():
    long, short, late = value("long", 64), value("short", 128), value("late", 128)
    found = plan(Step((), (short, long)), Step((short, long), ()), Step((long,), (late,)), Step((late, long), ()))
    assert found.arena_bytes == found.lower_bound == 192


def test_a_step_that_reads_what_was_not_written():
    with pytest.raises(FormError, match=r"@main, step 0: reads %a, which no step before it writes"):
        plan(Step((value("a"),), ()))


def test_results_are_written_to_their_own_memory():
    module = main_of(CHAIN)
    found, function = plan_module(module)["main"], module.function("main")
    assert found.places[function.results[0]].kind == "result"
    assert found.copies == ()


def test_results_that_are_no_values_of_their_own_are_copied():
    text = """%x: f32
        %c = constant {value = f32 [2]}
        %a = exp %x: f32
        %a: f32, %a: f32, %x: f32, %c: f32"""
    found = plan_module(main_of(text))["main"]
    assert [(v.name, index) for v, index in found.copies] == [("a", 1), ("x", 2), ("c", 3)]


def test_a_reshape_is_another_name():
    text = """%x: <6 x f32>
        %a = exp %x: <6 x f32>
        %b = reshape %a: <6 x f32> {shape = [2, 3]}
        %b: <2 x 3 x f32>"""
    module = main_of(text)
    found = plan_module(module)["main"]
    assert found.places[module.function("main").body[0].result].kind == "result"
    assert found.arena_bytes == 0


def test_the_arena_of_a_call_is_inside_that_of_its_caller():
    inner = """func @f: (<100 x f32>) -> <100 x f32> {
        'entry(%x: <100 x f32>):
        %a, %i = sort %x: <100 x f32> {axis = 0, descending = false}
        return %a: <100 x f32>
        }"""
    text = "%x: <100 x f32>\n%a = call %x: <100 x f32> {function = @f}\n%a: <100 x f32>"
    plans = plan_module(main_of(text, inner))
    assert plans["f"].arena_bytes == plans["main"].arena_bytes == 832


def ranges(module):
    """First and last step, and first and last byte, of what each value in the arena needs; from the text alone."""
    found = plan_module(module)["main"]
    function = module.function("main")
    names = {i.result: i.operands[0] for i in function.body if i.operation == "reshape"}
    for at, instruction in enumerate(function.body):
        for result in instruction.results:
            if result not in found.places or found.places[result].kind != "arena" or not result.type.bytes:
                continue
            alive = {result}
            for later in function.body[at:]:
                alive |= {r for r in later.results if names.get(r) in alive}
            reads = [n for n, i in enumerate(function.body) if i.operation != "reshape" and alive & {*i.operands}]
            start = found.places[result].at
            yield at, max([at, *reads]), start, start + result.type.bytes


@pytest.mark.parametrize("seed", range(10))
def test_no_two_values_have_a_byte_while_both_are_needed(seed):
    operations = ["sort", "exp", "add", "reduce_sum", "dot", "transpose", "reshape", "concatenate", "top_k"]
    module = remove_dead(random_module(seed, operations=operations, floats=["f32"], size=50))
    found = list(ranges(module))
    for number, (first, last, start, stop) in enumerate(found):
        for first_, last_, start_, stop_ in found[:number]:
            if first < last_ and first_ < last:
                assert stop <= start_ or stop_ <= start


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 400))])
def test_values_survive_in_an_arena_whose_dead_bytes_are_spoilt(seed):
    module = random_module(seed)
    arguments = random_arguments(module, "main", seed)
    for each in (module, optimized(module)):
        expected = interpret(each, "main", arguments)
        for old, new in zip(expected, run_planned(each, "main", arguments), strict=True):
            assert np.asarray(same_bits(old, new)).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_arena_is_between_the_bound_and_the_sum(seed):
    for found in plan_module(random_module(seed)).values():
        assert found.lower_bound <= found.arena_bytes <= found.sum_bytes
        assert found.arena_bytes % 64 == 0


def test_an_order_that_fits_badly_is_changed():
    # By size, or by time, one of these blocks is placed above a gap.
    blocks = [(3, 0, 2), (2, 1, 4), (3, 3, 5), (1, 0, 6), (2, 5, 7), (4, 6, 7)]
    values = [value(f"v{i}", 64 * size) for i, (size, _, _) in enumerate(blocks)]
    steps = [
        Step(
            tuple(v for v, (_, first, last) in zip(values, blocks, strict=True) if first < now <= last),
            tuple(v for v, (_, first, _) in zip(values, blocks, strict=True) if first == now),
        )
        for now in range(8)
    ]
    found = plan(*steps)
    assert found.arena_bytes == found.lower_bound
