"""Tree, tape and text carry the same formula."""

import pickle

import numpy as np
import pytest
from helpers.equality import same_bits
from helpers.rows import random_rows
from hypothesis import given
from hypothesis import strategies as st
from strategies import PARAMETERS, trees

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import tape_from_tree, tree_from_tape
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

PRIMITIVES = PrimitiveSet(tuple(STANDARD.values()), PARAMETERS)


@pytest.mark.slow
@given(trees())
def test_text_gives_the_tree_back(tree):
    assert parse(str(tree), PARAMETERS) == tree


@pytest.mark.slow
@given(trees(), st.integers(0, 2**32))
def test_readable_text_has_the_same_values_wherever_it_is_read(tree, seed):
    rows = random_rows(np.random.default_rng(seed), 20, "float64")[: len(PARAMETERS)]
    values = (evaluate(form, rows, np.float64) for form in (tree, parse(tree.readable, PARAMETERS)))
    assert same_bits(*(np.broadcast_to(value, 20) for value in values)).all()


@given(trees())
def test_a_tape_gives_the_tree_back(tree):
    tape = tape_from_tree(tree, PRIMITIVES)
    again = tree_from_tape(tape.codes, tape.values, PRIMITIVES)
    other = tape_from_tree(again, PRIMITIVES)
    assert (tape.codes == other.codes).all()
    assert tape.values.tobytes() == other.values.tobytes()


@given(trees())
def test_equal_trees_have_equal_hashes(tree):
    assert hash(parse(str(tree), PARAMETERS)) == hash(tree)


@given(trees())
def test_a_pickled_tree_is_the_same(tree):
    assert pickle.loads(pickle.dumps(tree)) == tree


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("2.0*square(x) - 1.0*cube(y)", "2*x**2 - 1*y**3"),
        ("6.283185307179586*x/3.141592653589793", "2*pi*x/pi"),
        ("x/(6.283185307179586*y)", "x/(2*pi*y)"),
        ("x/6.283185307179586", "x/(2*pi)"),
        ("square(square(x + y))", "((x + y)**2)**2"),
        ("square(-x) - -1.5707963267948966", "(-x)**2 - -pi/2"),
        ("-square(x)", "-x**2"),
        ("12340000000000.0*x + 6e+30", "1.234e13*x + 6e30"),
        ("pow(x, 2.0) + x**2.5 + x**0.5", "x**2 + x**2.5 + x**0.5"),
        ("1e-07*x + 123456.0", "1e-07*x + 123456"),
        ("2.0*3.141592653589793*x", "2*pi*x"),
        ("square(3.0) + x", "3**2 + x"),
    ],
)
def test_text_is_as_people_write_it(text, readable):
    tree = parse(text)
    assert tree.readable == readable


def test_a_feature_may_have_the_name_of_a_number():
    tree = parse("3.141592653589793*pi", ("pi",))
    assert tree.readable == "3.141592653589793*pi"
