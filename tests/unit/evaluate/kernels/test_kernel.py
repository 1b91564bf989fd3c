"""`shine.jit`: scalars, arrays, fitness, number types, and the code behind them."""

import ast

import numpy as np
import pytest

import shine
from shine.base.errors import CompilationError, DataError, LoweringError
from shine.evaluate.kernels.kernel import Kernel

CLASSIC = "(2+3*b+33*(10/2)+1+3/3+a)/2"


def test_a_formula_takes_scalars_arrays_and_names():
    k = shine.jit("sqrt(a*a + b*b)")
    assert k(3.0, 4.0) == k(a=3, b=4) == k(3, b=4) == 5.0
    assert k(np.array([3.0, 5.0]), np.array([4.0, 12.0])).tolist() == [5.0, 13.0]


def test_arrays_broadcast_and_keep_their_shape():
    k = shine.jit("a - b")
    assert k(np.arange(6.0).reshape(2, 3), 1.0).tolist() == [[-1, 0, 1], [2, 3, 4]]
    assert k(np.arange(2.0)[:, None], np.arange(3.0)).shape == (2, 3)
    assert k(np.empty(0), 1.0).shape == (0,)


def test_strided_and_foreign_arrays_are_read_right():
    k = shine.jit("a + b")
    wide = np.arange(40.0).reshape(10, 4)
    assert k(wide[::2, 1], wide[::2, 3]).tolist() == (wide[::2, 1] + wide[::2, 3]).tolist()
    assert k(np.arange(3, dtype=">f4"), [1, 2, 3]).tolist() == [1, 3, 5]


@pytest.mark.parametrize(("dtype", "value"), [("int32", 434), ("int64", 434), ("float64", 434.5), ("float32", 434.5)])
def test_the_classic_formula_truncates_in_integers_only(dtype, value):
    k = shine.jit(CLASSIC, dtype=dtype)
    assert k(a=100, b=200) == value
    assert k(np.full(11, 100), np.full(11, 200)).tolist() == [value] * 11


def test_constants_are_folded_in_the_optimized_ir():
    assert "add i32 %a, 169" in shine.jit(CLASSIC, dtype="int32").optimized_ir


@pytest.mark.parametrize(
    ("target", "instructions"),
    [
        ("x86_64-linux-gnu", {"leal\t103(%rdi), %eax", "addl\t$103, %eax"}),
        ("aarch64-linux-gnu", {"add\tw0, w0, #103"}),
        ("armv7-linux-gnueabihf", {"add\tr0, r0, #103"}),
        ("powerpc64le-linux-gnu", {"addi 3, 3, 103"}),
    ],
)
def test_a_chain_of_additions_is_one_instruction_on_every_target(target, instructions):
    lines = [line.strip() for line in shine.jit("a - 2 + 5 + 100", dtype="int32").assembly(target).splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("formula:"))
    code = [line for line in lines[start + 1 :] if line and not line.startswith(".") and not line.endswith(":")]
    assert code[0] in instructions
    assert code[1].split()[0] in {"retq", "ret", "bx", "blr"}


def test_code_is_emitted_for_the_host_too():
    k = shine.jit("a + b")
    assert "formula:" in k.assembly()
    assert k.object_code().startswith(b"\x7fELF") or len(k.object_code()) > 100


def test_a_decorated_function_becomes_a_kernel():
    @shine.jit
    def f(a, b):
        if b == 0:
            return 7
        return a // b

    @shine.jit(dtype="int64")
    def g(a, b):
        return a % b

    assert (f(7, 2), f(7, 0), g(-7, 4)) == (3.0, 7.0, 1)


def test_params_give_the_order_of_the_arguments():
    assert shine.jit("a - b", params=("b", "a"))(1, 5) == 4


def test_a_formula_without_parameters_is_a_constant():
    assert shine.jit("2*3")() == 6.0


def test_names_outside_ascii_work():
    assert shine.jit("é + ß")(1, 2) == 3


def test_an_integer_division_that_a_condition_guards_never_fails():
    k = shine.jit("7//b if b != 0 else -1", dtype="int64")
    assert [k(0), k(2)] == [-1, 3]
    assert k([0, 2, -2]).tolist() == [-1, 3, -4]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: k(1), TypeError, "takes .a, b.: missing 'b'"),
        (lambda k: k(1, 2, 3), TypeError, "too many"),
        (lambda k: k(1, c=2), TypeError, "unexpected 'c'"),
        (lambda k: k(1, 2, a=1), TypeError, "unexpected 'a'"),
        (lambda k: k("x", 1), TypeError, "numbers are needed"),
        (lambda k: k(1j, 1), TypeError, "numbers are needed"),
        (lambda k: k.fitness([[1.0]], [1.0]), DataError, r"1 columns; the formula needs 2: "),
        (lambda k: k.fitness([[1.0, 2.0]], [1.0, 2.0]), DataError, "y has 2"),
        (lambda k: k.fitness([[1.0, np.nan]], [1.0]), DataError, "NaN or infinite"),
        (lambda k: k.fitness([[1.0, 2.0]], [1.0], loss="x"), ValueError, "unknown loss 'x'; use one of mse"),
        (lambda k: k.assembly("nonsense"), CompilationError, "no target 'nonsense'"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(shine.jit("a + b"))


@pytest.mark.parametrize(
    ("keywords", "error"),
    [({"dtype": "int8"}, ValueError), ({"opt_level": "O9"}, ValueError), ({"params": "ab"}, TypeError)],
)
def test_bad_options_are_errors(keywords, error):
    with pytest.raises(error):
        shine.jit("a + b", **keywords)


@pytest.mark.parametrize("text", ["sin(a)", "a + 0.5", "a*99999999999"])
def test_a_primitive_or_number_without_integer_meaning_is_a_lowering_error(text):
    with pytest.raises(LoweringError):
        shine.jit(text, dtype="int32")


def test_fractions_are_refused_by_integer_kernels():
    with pytest.raises(TypeError, match="'a' does not fit int64"):
        shine.jit("a", dtype="int64")(1.5)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_every_pipeline_gives_the_same_bits(level):
    x = np.random.default_rng(1).normal(size=1001)
    expected = shine.jit("exp(sin(x)*3) + x/(1 + x*x)")(x)
    assert shine.jit("exp(sin(x)*3) + x/(1 + x*x)", opt_level=level)(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_row_gets_the_same_bits_wherever_it_stands(dtype):
    x = np.random.default_rng(2).normal(size=67).astype(dtype)
    k = shine.jit("tanh(x)*exp(-x*x) + log(x*x + 1)/cos(x)", dtype=dtype)
    whole = k(x)
    for start in (0, 1, 7, 13):
        for stop in (start + 1, start + 8, 66, 67):
            assert k(x[start:stop]).tobytes() == whole[start:stop].tobytes()
    assert [k(v) for v in x.tolist()] == whole.tolist()


def _chain(nodes: int) -> ast.expr:
    node: ast.expr = ast.Name("a", ast.Load())
    for i in range(nodes // 2):
        node = ast.BinOp(node, (ast.Add(), ast.Mult(), ast.Sub())[i % 3], ast.Constant(0.5 + i % 2))
    return node


@pytest.mark.slow
def test_a_tree_of_20_000_nodes_compiles():
    k = shine.jit(_chain(20_000))
    from shine.lang.interpret import evaluate

    x = np.linspace(-1, 1, 19)
    assert k(x).tobytes() == evaluate(k.tree, [x]).tobytes()
    assert k(0.25) == k(np.array([0.25]))[0]


def test_results_have_the_shape_of_all_arguments_even_unused_ones():
    assert shine.jit("a", params=("a", "b"))(1.0, np.zeros(3)).tolist() == [1.0] * 3
    kernel = Kernel((shine.parse("a + 1", ("a", "b")), shine.parse("b*b", ("a", "b"))))
    assert kernel(1.0, 3.0) == (2.0, 9.0)
    assert [value.tolist() for value in kernel(1.0, [2.0, 3.0])] == [[2.0, 2.0], [4.0, 9.0]]
    assert Kernel((shine.parse("a"),))(1.0) == (1.0,)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"arguments 'a', \(3,\), and 'b', \(4,\), do not fit each other"):
        shine.jit("a + b")(np.ones(3), np.ones(4))


def test_a_kernel_is_compiled_anew_from_its_formula():
    assert shine.jit(shine.jit("a / b"), dtype="int32")(7, 2) == 3


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20,), (30_000,), (700, 200)])
def test_few_and_many_rows_get_the_same_bits(shape):
    kernel = shine.jit("exp(sin(a)*b) + a/b")
    a, b = np.random.default_rng(3).uniform(0.5, 2, (2, *shape))
    whole = kernel(a, b)
    assert whole.shape == shape
    assert whole.ravel()[:9].tobytes() == kernel(a.ravel()[:9], b.ravel()[:9]).tobytes()
    assert kernel(a[..., ::-1], b[..., ::-1])[..., ::-1].tobytes() == whole.tobytes()


def test_a_long_formula_is_compiled_without_optimization_even_in_many_statements():
    terms = "\n".join(f"    a += sin(a*{i})" for i in range(600))
    assert shine.jit(shine.parse(f"def f(a):\n{terms}\n    return a")).opt_level == 0
    assert shine.jit("a + 1").opt_level == 2
