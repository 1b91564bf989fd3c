"""Trees and tapes convert into each other."""

import ast

import numpy as np
import pytest

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import tape_from_tree, tree_from_tape
from shine.lang.parse import parse

PRIMITIVES = PrimitiveSet(select(STANDARD, ["add", "mul", "sqrt", "lt", "logical_and"]), ("a", "b"))


def test_a_tape_lists_the_nodes_in_postfix_order():
    tape = tape_from_tree(parse("sqrt(a*2 + b)"), PRIMITIVES)
    assert tape.codes.tolist() == [1, 0, 4, 2, 3, 5]
    assert tape.values.tolist() == [0, 2, 0, 0, 0, 0]


def test_an_assignment_is_copied_to_each_use():
    tree = parse("def f(a, b):\n    c = a + b\n    return c*c")
    assert tape_from_tree(tree, PRIMITIVES).codes.tolist() == [1, 2, 3, 1, 2, 3, 4]


def test_a_chained_comparison_becomes_a_conjunction():
    tree = tree_from_tape(*vars(tape_from_tree(parse("a < b < 3"), PRIMITIVES)).values(), PRIMITIVES)
    assert str(tree) == "a < b and b < 3.0"


@pytest.mark.slow
def test_assignments_that_explode_are_refused():
    doubling = "".join(f"    x{i + 1} = x{i} + x{i}\n" for i in range(40))
    tree = parse(f"def f(a):\n    x0 = a\n{doubling}    return x40")
    with pytest.raises(UnsupportedSyntaxError, match="more than 1000000 nodes"):
        tape_from_tree(tree, PRIMITIVES)


def test_a_primitive_outside_the_set_is_named():
    with pytest.raises(UnsupportedSyntaxError, match="'sin' is not in the primitive set; it has add, mul"):
        tape_from_tree(parse("sin(a)"), PRIMITIVES)


def test_a_name_that_is_no_feature_is_named():
    with pytest.raises(UnsupportedSyntaxError, match="'c' is not a feature; the features are a, b"):
        tape_from_tree(parse("c + 1"), PRIMITIVES)


@pytest.mark.parametrize(
    ("codes", "problem"), [([3], "lacks arguments"), ([1, 2], "leaves 2 values"), ([], "leaves 0"), ([99], "code 99")]
)
def test_codes_that_are_no_formula_are_refused(codes, problem):
    with pytest.raises(ValueError, match=problem):
        tree_from_tape(np.array(codes, np.int16), np.zeros(len(codes)), PRIMITIVES)


@pytest.mark.slow
def test_a_tree_100_000_deep_becomes_a_tape_and_a_tree_again():
    node: ast.expr = ast.Name("a", ast.Load())
    for _ in range(100_000):
        node = ast.BinOp(node, ast.Add(), ast.Constant(1.5))
    tree = parse(node, ("a", "b"))
    tape = tape_from_tree(tree, PRIMITIVES)
    assert tree_from_tape(tape.codes, tape.values, PRIMITIVES) == tree


@pytest.mark.parametrize("text", ["neg(0.5)*x", "-0.5*x", "neg(neg(0.5))*x"])
def test_a_negative_number_is_one_node_as_in_the_text_that_it_becomes(text):
    tree = parse(text, ["x"])
    assert tree == parse(str(tree), ["x"]) and tree.size == 3
