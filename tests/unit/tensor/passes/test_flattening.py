import numpy as np
from helpers.contracts import checked_optimized
from helpers.tensor_passes import main_of

from shine.tensor.form.interpreter import interpret
from shine.tensor.loops.fusion import fuse
from shine.tensor.passes.pipeline import optimized

LINEAR = """%x: <2 x 3 x 4 x f32>, %w: <4 x 5 x f32>, %b: <5 x f32>, %r: <2 x 3 x 5 x f32>
    %a = dot %x: <2 x 3 x 4 x f32>, %w: <4 x 5 x f32>
    %c = add %a: <2 x 3 x 5 x f32>, %b: <5 x f32>
    %d = tanh %c: <2 x 3 x 5 x f32>
    %e = add %r: <2 x 3 x 5 x f32>, %d: <2 x 3 x 5 x f32>
    %e: <2 x 3 x 5 x f32>"""


def test_a_stack_times_a_matrix_is_one_product_with_its_epilogue():
    body = optimized(main_of(LINEAR)).function("main").body
    assert [(i.operation, i.result.type.shape) for i in body] == [
        ("reshape", (6, 4)),
        ("dot", (6, 5)),
        ("add", (6, 5)),
        ("tanh", (6, 5)),
        ("reshape", (6, 5)),
        ("add", (6, 5)),
        ("reshape", (2, 3, 5)),
    ]


def test_it_is_one_nest_with_the_same_values():
    module = main_of(LINEAR)
    found = checked_optimized(module)
    assert len(fuse(found.function("main"))[1]) == 1
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=t.shape).astype(np.float32) for t in module.function("main").parameter_types]
    np.testing.assert_allclose(
        interpret(module, "main", arguments)[0], interpret(found, "main", arguments)[0], rtol=1e-5
    )
