"""Source text, functions and syntax trees become verified trees."""

import ast
import math

import numpy as np
import pytest

from shine.base.errors import ShineError, UnsupportedSyntaxError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table


def test_parameters_of_an_expression_come_in_natural_order():
    assert parse("x10 + x2*b - a").parameters == ("a", "b", "x2", "x10")


def test_given_parameters_keep_their_order_and_may_be_unused():
    assert parse("a + b", ("b", "z", "a")).parameters == ("b", "z", "a")


def test_a_function_keeps_the_order_of_its_signature():
    assert parse("def f(b, a):\n    return a - b").parameters == ("b", "a")


def test_calls_that_have_an_operator_become_the_operator():
    assert parse("add(a, mul(b, neg(c)))") == parse("a + b*-c")
    assert parse("where(lt(a, b), a, b)") == parse("a if a < b else b")


def test_min_and_max_take_any_number_of_arguments():
    assert parse("min(a, b, c)") == parse("min(min(a, b), c)")


def test_pi_is_a_number_unless_it_is_a_parameter():
    assert parse("pi").result.value == math.pi
    assert parse("pi", ("pi",)).result.id == "pi"


def test_negative_numbers_are_constants():
    assert isinstance(parse("-2").result, ast.Constant)
    assert parse("-(-2)") == parse("2")


def test_a_python_function_is_read_from_its_source():
    def hypotenuse(a: float, b: float) -> float:
        """Docstrings and annotations are not part of the formula."""
        squares = a * a
        squares += b * b
        return sqrt(squares)  # noqa: F821

    tree = parse(hypotenuse)
    assert tree.name == "hypotenuse"
    assert str(tree) == (
        "def hypotenuse(a, b):\n    squares = a*a\n    squares_1 = squares + b*b\n    return sqrt(squares_1)"
    )


def test_an_ast_node_is_verified_like_text():
    assert parse(ast.parse("a + b", mode="eval")) == parse("a + b")
    assert parse(ast.parse("a + b", mode="eval").body) == parse("a + b")


def test_a_tree_may_get_other_parameters():
    assert parse(parse("a + b"), ("c", "b", "a")).parameters == ("c", "b", "a")
    with pytest.raises(UnsupportedSyntaxError, match="needs a parameter 'a'"):
        parse(parse("a + b"), ("b",))


def test_the_verified_tree_shares_no_node_with_its_input():
    node = ast.parse("a + 1", mode="eval").body
    tree = parse(node)
    node.right.value = 2
    assert str(tree) == "a + 1"


def test_the_error_of_a_function_names_the_line_in_its_file():
    def loops(a):
        while a:
            a = a - 1
        return a

    line = loops.__code__.co_firstlineno + 1
    with pytest.raises(
        UnsupportedSyntaxError, match=rf"test_parse\.py, line {line}, column 9: 'while' is not part of the language"
    ):
        parse(loops)


def test_a_lambda_is_a_function_of_its_arguments():
    for given in (lambda b, a: 1 + 2 * 3, "lambda b, a: 1 + 2 * 3"):
        assert parse(given).parameters == ("b", "a")
        assert str(parse(given)) == "1 + 2*3"
    assert (lambda: str(parse(lambda a: a if a > 0 else -a)))() == "a if a > 0 else -a"


AROUND = np.int64(3)


def test_a_function_may_read_numbers_around_it():
    inside = 0.5
    assert str(parse(lambda x: inside * x**AROUND)) == "0.5*x**3"


def test_a_function_without_source_is_rejected():
    namespace = {}
    exec("def f(a):\n    return a", namespace)
    with pytest.raises(UnsupportedSyntaxError, match="function 'f': its source is not at hand"):
        parse(namespace["f"])


@pytest.mark.slow
def test_a_syntax_tree_that_contains_itself_is_rejected():
    node = ast.BinOp(ast.Name("a", ast.Load()), ast.Add(), ast.Constant(1))
    node.right = node
    with pytest.raises(UnsupportedSyntaxError, match="more than 1000000 nodes"):
        parse(node)


@pytest.mark.parametrize("kind", [ast.BinOp, ast.Name, ast.Call, ast.Constant, ast.Compare, ast.BoolOp])
def test_a_malformed_syntax_tree_is_rejected(kind):
    with pytest.raises(ShineError):
        parse(kind.__new__(kind))


def test_other_objects_than_formulas_are_a_type_error():
    with pytest.raises(TypeError, match="not int"):
        parse(3)


def _deep(depth: int) -> Tree:
    node: ast.expr = ast.Name("a", ast.Load())
    for level in range(depth):
        node = ast.UnaryOp(ast.USub(), node) if level % 2 else ast.BinOp(node, ast.Add(), ast.Constant(1.5))
    return parse(node)


@pytest.mark.slow
def test_a_tree_100_000_deep_is_verified_hashed_compared_and_printed():
    tree, other = _deep(100_000), _deep(100_000)
    assert hash(tree) == hash(other) and tree == other
    assert str(tree) == "-(" * 50_000 + "a" + " + 1.5)" * 50_000
    assert tree.size == 150_001


def test_trees_that_call_different_functions_of_one_name_are_different():
    square, again, more = (
        parse("h(x) + 1", ["x"], primitive_table([*STANDARD, f"def g(a): return {body}", "def h(a): return g(a)*2"])[0])
        for body in ("a*a", "a*a", "a + 1")
    )
    assert square == again != more
