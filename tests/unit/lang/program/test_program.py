"""Programs: their construction, meaning and stages, and conversion from and to trees."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lang.program.programs import calls, expression, in_python, programs, same

import shine
from shine.base.errors import GraphImportError, UnsupportedSyntaxError
from shine.lang.forms.tree import names_in
from shine.lang.interpret import evaluate
from shine.lang.program.builder import ProgramBuilder, number
from shine.lang.program.interpret import converted, interpret, interpret_arrays
from shine.lang.program.program import Program, parameters_read, part
from shine.lang.program.trees import stages, tree_of, tree_program

INT32_MIN, INT64_MIN = -(2**31), -(2**63)


def program_of(dtype: str, *texts: str, inputs: tuple[str, ...] = ("x", "y"), output: str | None = None) -> Program:
    """A program of one number type: each text is a value; later texts call the values v1, v2, ..."""
    build = ProgramBuilder()
    for name in inputs:
        build.parameter(name, dtype)
    names = [build.assign(dtype, expression(text)) for text in texts]
    return build.finish([("out", names[-1], output or dtype)])


def test_labels_become_names_of_the_language_that_are_unique():
    build = ProgramBuilder()
    labels = ["x", "scope/x:0", "scope_x_0", "if", "__init__", "2nd", "", "pi", "v1", "ﬁ", "é"]
    names = [build.parameter(label, "float64") for label in labels]
    assert len(set(names)) == len(names)
    assert names[0] == "x" and names[8] == "v1" and names[10] == "é"
    for name in names:
        assert shine.parse(f"{name} + 1").parameters == (name,)


def test_values_do_not_take_the_names_of_parameters():
    build = ProgramBuilder()
    x = build.parameter("v1", "float64")
    assert build.assign("float64", expression(f"{x} + 1")) != x


def test_the_same_value_has_one_name():
    build = ProgramBuilder()
    x = build.parameter("x", "int32")
    first = build.assign("int32", expression("x*x + 1"))
    assert build.assign("int32", expression("x*x + 1")) == first
    assert build.assign("int32", expression("x*x + 2")) != first
    assert build.convert(x, "int64") == build.convert(x, "int64")
    assert build.assign("int32", expression("x")) == build.convert(x, "int32") == x


def test_numbers_that_are_equal_but_not_the_same_are_different_values():
    build = ProgramBuilder()
    build.parameter("x", "float64")
    assert build.assign("float64", expression("x + 0.0")) != build.assign("float64", expression("x + -0.0"))


def test_arguments_stay_but_statements_that_no_output_needs_are_left_out():
    build = ProgramBuilder()
    x, y = build.parameter("x", "float64"), build.parameter("y", "float64")
    build.parameter("table", "float64", value=np.ones(3))
    build.assign("float64", expression(f"{y} + 1"))
    kept = build.assign("float64", expression(f"{x} + 2"))
    program = build.finish([("out", kept, "float64")])
    assert [statement.name for statement in program.statements] == [kept]
    assert [parameter.name for parameter in program.parameters] == [x, y]


@pytest.mark.slow
@given(programs())
def test_every_name_is_assigned_before_it_is_used(program):
    known = {parameter.name for parameter in program.parameters}
    for statement in program.statements:
        assert set(names_in(statement.value)) <= known
        assert statement.name not in known
        known.add(statement.name)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda b: b.parameter("x", "float64"), ValueError, "two parameters with the label 'x'"),
        (lambda b: b.parameter("y", "float16"), ValueError, "unknown dtype 'float16'; use one of float64"),
        (
            lambda b: b.parameter("y", "int32", value=np.ones(2)),
            ValueError,
            "'y' is int32, but its array is float64",
        ),
        (lambda b: b.assign("bool", expression("x")), ValueError, "unknown number type 'bool'"),
        (
            lambda b: b.assign("float64", expression("x + 1")),
            ValueError,
            "'x' is int32; convert it to float64 first",
        ),
        (lambda b: b.assign("int32", expression("x + z")), UnsupportedSyntaxError, "unknown name 'z'"),
        (lambda b: b.assign("int32", expression("x.y")), UnsupportedSyntaxError, "attribute access"),
        (lambda b: b.convert("z", "int32"), ValueError, "'z' is neither a parameter nor assigned"),
        (lambda b: b.finish([]), ValueError, "at least one output"),
        (lambda b: b.finish([("a", "x", "int32")] * 2), ValueError, "two outputs have the same label"),
        (lambda b: b.finish([("a", "x", "int64")]), ValueError, "output 'a' is int32, or bool; not int64"),
    ],
)
def test_misuse_of_a_builder_is_an_error(use, error, message):
    build = ProgramBuilder()
    build.parameter("x", "int32")
    with pytest.raises(error, match=message):
        use(build)


@pytest.mark.parametrize("value", [1.5, -0.0, math.inf, -math.inf, math.nan, 7])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_number_is_an_expression(value, dtype):
    build = ProgramBuilder()
    name = build.assign(dtype, number(value))
    assert same(interpret(build.finish([("out", name, dtype)]), [])[0], np.array(value, dtype))


@pytest.mark.slow
@settings(max_examples=150)
@given(calls(shapes=((),), bound=False))
def test_interpretation_is_the_arithmetic_of_python(call):
    program, arguments = call
    try:
        expected = in_python(program, [argument.item() for argument in arguments])
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            interpret(program, arguments)
        return
    for output, value, found in zip(program.outputs, expected, interpret(program, arguments), strict=True):
        assert same(found, np.array(value, output.dtype)), output.label


@pytest.mark.parametrize(
    ("value", "dtype", "target", "expected"),
    [
        (2.9, "float64", "int32", 2),
        (-2.9, "float32", "int64", -2),
        (2147483647.0, "float64", "int32", 2147483647),
        (2147483647.9, "float64", "int32", 2147483647),
        (2147483648.0, "float64", "int32", INT32_MIN),
        (-2147483648.9, "float64", "int32", INT32_MIN),
        (-2147483650.0, "float64", "int32", INT32_MIN),
        (math.inf, "float32", "int64", INT64_MIN),
        (-math.inf, "float64", "int32", INT32_MIN),
        (math.nan, "float64", "int64", INT64_MIN),
        (2.0**63, "float64", "int64", INT64_MIN),
        (2**32 + 5, "int64", "int32", 5),
        (2**31, "int64", "int32", INT32_MIN),
        (-5, "int32", "int64", -5),
        (16777217, "int32", "float32", 16777216.0),
        # Slightly more than 2**24 + 1: rounded to float64 first, it would be a tie and be rounded down.
        ((2**24 + 1) * 2**30 + 1, "int64", "float32", float((2**24 + 2) * 2**30)),
        (2**53 + 1, "int64", "float64", float(2**53)),
        (0.1, "float64", "float32", float(np.float32(0.1))),
        (1e300, "float64", "float32", math.inf),
    ],
)
def test_conversions_have_the_meaning_a_statement_gives(value, dtype, target, expected):
    found = converted(np.array([value], dtype), target)
    assert found.dtype == np.dtype(target)
    assert found.tolist() == [expected]


def test_truth_is_one_and_everything_but_zero_is_true():
    build = ProgramBuilder()
    t, x = build.parameter("t", "bool"), build.parameter("x", "float64")
    three = build.assign("int32", expression(f"{t} * 3"))
    program = build.finish([("three", three, "int32"), ("true", three, "bool"), ("x", x, "bool"), ("t", t, "bool")])
    three_, true, x_, t_ = interpret(program, [[True, False], [math.nan, -0.0]])
    assert three_.tolist() == [3, 0]
    assert true.tolist() == x_.tolist() == t_.tolist() == [True, False]
    assert true.dtype == x_.dtype == t_.dtype == np.bool_


def test_an_output_has_the_broadcast_shape_of_its_arguments():
    build = ProgramBuilder()
    x, y = build.parameter("x", "float64"), build.parameter("y", "float64")
    table = build.parameter("table", "float64", value=np.arange(3.0))
    first = build.assign("float64", expression(f"{x} - {x}"))
    second = build.assign("float64", expression(f"{y} * {table}"))
    third = build.assign("float64", expression("2"))
    program = build.finish([(str(i), name, "float64") for i, name in enumerate((first, second, third))])
    assert parameters_read(program) == ((0,), (1, 2), ())
    shapes = [out.shape for out in interpret(program, [np.ones((4, 1)), np.ones((2, 1))])]
    assert shapes == [(4, 1), (2, 3), ()]


def test_a_division_by_zero_is_an_error_even_if_its_value_is_not_chosen():
    program = program_of("int32", "10 // x", "v1 if x != 0 else y")
    with pytest.raises(ZeroDivisionError):
        interpret(program, [0, 5])
    assert interpret(program_of("int32", "10 // x if x != 0 else y"), [0, 5])[0] == 5


def test_arguments_come_in_order_or_by_label_or_name():
    build = ProgramBuilder()
    x, y = build.parameter("in/x", "int32"), build.parameter("y", "int32", default=np.array(4, "int32"))
    program = build.finish([("out", build.assign("int32", expression(f"{x} - {y}")), "int32")])
    for arguments in ([9, 4], [9], {"in/x": 9}, {"in_x": 9.0, "y": 4}):
        assert interpret(program, arguments)[0] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([1], "takes .x: int32, t: bool.: missing 't'"),
        ([1, 0, 0], "too many"),
        ({"x": 1, "z": 2}, "unexpected 'z'"),
        ([1.5, 0], "'x' does not fit int32: it has fractions"),
        ([2**31, 0], "'x' does not fit int32: .* too large"),
        ([math.nan, 0], "'x' does not fit int32"),
        ([1, 2], "'t' does not fit bool: it has other numbers than 0 and 1"),
        (["1", 0], "'x' has dtype <U1; numbers are needed"),
        ([1, 1j], "'t' has dtype complex128; numbers are needed"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, message):
    build = ProgramBuilder()
    x, t = build.parameter("x", "int32"), build.parameter("t", "bool")
    program = build.finish([("out", build.assign("int32", expression(f"{x} + {t}")), "int32")])
    with pytest.raises(TypeError, match=message):
        interpret(program, arguments)


@pytest.mark.slow
@given(calls(statements=20), st.integers(1, 12))
def test_the_stages_one_after_the_other_are_the_program(call, most):
    program, arguments = call
    values = dict(zip((p.name for p in program.arguments), arguments, strict=True))
    values |= {p.name: p.value for p in program.parameters if p.value is not None}
    try:
        expected = interpret(program, arguments)
    except ZeroDivisionError:
        return
    found = {}
    for stage in stages(program, most):
        assert stage.program.size <= most or len(stage.program.statements) == 1
        results = interpret_arrays(stage.program, [values[p.name] for p in stage.program.parameters])
        for target, result in zip(stage.targets, results, strict=True):
            (found if isinstance(target, int) else values)[target] = result
    assert sorted(found) == list(range(len(expected)))
    assert all(same(found[position], value) for position, value in enumerate(expected))


@pytest.mark.slow
@given(calls())
def test_a_part_of_a_program_has_the_chosen_outputs(call):
    program, arguments = call
    chosen = part(program, [len(program.outputs) - 1])
    values = dict(zip((p.name for p in program.arguments), arguments, strict=True))
    try:
        expected = interpret(program, arguments)[-1]
    except ZeroDivisionError:
        return
    assert same(interpret(chosen, [values[p.name] for p in chosen.arguments])[0], expected)
    used = {name for statement in chosen.statements for name in names_in(statement.value)}
    used.add(chosen.outputs[0].name)
    assert {statement.name for statement in chosen.statements} <= used


def test_the_classic_graph_is_its_formula():
    program = program_of("int32", "x - 2", "v1 + 5", "v2 + 100", inputs=("x",))
    assert str(tree_of(program)) == "x - 2 + 5 + 100"


@pytest.mark.parametrize(
    "text",
    ["x / y", "x // y", "x % y", "x ** y", "inv(x)", "square(x) - y", "floor(x) / 7", "(x < y) + (not x)"],
)
def test_integers_are_truncated_reals(text):
    program = program_of("int64", text)
    tree = tree_of(program)
    for x in (-9, -3, -1, 1, 2, 10):
        for y in (-4, -2, -1, 1, 3):
            expected = interpret(program, [x, y])[0]
            columns = {"x": x, "y": y}
            assert evaluate(tree, [np.array([columns[n]], float) for n in tree.parameters])[0] == expected, (x, y)


@pytest.mark.parametrize("value", [-2.5, -0.5, 0.0, 0.5, 3.7])
def test_conversions_to_integers_truncate_and_others_are_left_out(value):
    build = ProgramBuilder()
    x = build.parameter("x", "float32")
    whole = build.convert(build.convert(x, "int32"), "float64")
    half = build.assign("float64", expression(f"{whole} / 2"))
    program = build.finish([("half", half, "float64")])
    assert evaluate(tree_of(program), [np.array([value])])[0] == math.trunc(value) / 2


def test_truth_is_one_and_zero():
    program = program_of("float64", "x * y", output="bool")
    assert str(tree_of(program)) == "x*y != 0"
    assert str(tree_of(program_of("float64", "x < y", output="bool"))) == "x < y"


def test_shared_values_are_assigned_not_copied():
    texts = ["x + y", *(f"v{i} * v{i}" for i in range(1, 200))]
    assert tree_of(program_of("float64", *texts)).size < 1000


def test_a_tree_has_the_parameters_its_output_depends_on():
    build = ProgramBuilder()
    for label in ("a", "b", "c"):
        build.parameter(label, "float64")
    outputs = [(text, build.assign("float64", expression(text)), "float64") for text in ("c - a", "b + 1")]
    program = build.finish(outputs)
    assert tree_of(program, "c - a").parameters == ("a", "c")
    assert tree_of(program, "b + 1").parameters == ("b",)
    with pytest.raises(ValueError, match="several outputs; choose one of c - a, b"):
        tree_of(program)
    with pytest.raises(ValueError, match="no output 'd'"):
        tree_of(program, "d")


def test_a_formula_has_no_arrays():
    build = ProgramBuilder()
    table = build.parameter("bias", "float64", value=np.ones(3))
    with pytest.raises(GraphImportError, match=r"'out' depends on the constant array 'bias' of shape \(3,\)"):
        tree_of(build.finish([("out", table, "float64")]))


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("source", ["(a*b + a) * (a*b - 1)", "def f(a, b):\n    c = a*b\n    return c + b", "a"])
def test_a_formula_becomes_a_program_and_a_formula_again(source, dtype):
    tree = shine.parse(source)
    program = tree_program(tree, dtype)
    columns = [np.array([3, -4]), np.array([7, 2])][: len(tree.parameters)]
    expected = evaluate(tree, columns, dtype)
    assert same(interpret(program, columns)[0], expected)
    assert evaluate(tree_of(program), columns).tolist() == expected.tolist()


def test_a_formula_needs_a_number_type():
    with pytest.raises(ValueError, match="unknown number type 'bool'"):
        tree_program(shine.parse("a"), "bool")


@pytest.mark.slow
def test_a_chain_of_5_000_statements_is_built_evaluated_and_read_as_a_formula():
    build = ProgramBuilder()
    name = build.parameter("x", "int32")
    for _ in range(5_000):
        name = build.assign("int32", ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), ast.Constant(3)))
    program = build.finish([("out", name, "int32")])
    assert interpret(program, [1])[0] == 15_001
    assert evaluate(tree_of(program), [np.array([1.0])])[0] == 15_001
