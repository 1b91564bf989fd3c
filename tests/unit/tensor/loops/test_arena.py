import pytest
from helpers.tensor_passes import main_of

from shine.base.errors import FormError
from shine.tensor.form.module import Value
from shine.tensor.form.types import TensorType
from shine.tensor.loops.arena import Step, plan_memory


def value(name, size=64):
    return Value(name, TensorType("u8", (size,)))


def plan(*steps):
    return plan_memory(main_of("%x: f32\n%x: f32").function("main"), steps)


def test_a_value_that_is_needed_no_more_gives_its_bytes_to_another():
    a, b, c = (value(name, 100) for name in "abc")
    found = plan(Step((), (a,)), Step((a,), (b,)), Step((b,), (c,)), Step((c,), ()))
    assert found.places[a] == found.places[c] != found.places[b]
    assert (found.arena_bytes, found.sum_bytes, found.lower_bound) == (256, 384, 256)


def test_a_step_that_reads_what_was_not_written():
    with pytest.raises(FormError, match=r"@main, step 0: reads %a, which no step before it writes"):
        plan(Step((value("a"),), ()))


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
