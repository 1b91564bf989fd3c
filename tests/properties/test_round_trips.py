"""Tree, tape and text carry the same formula."""

import pickle

from hypothesis import given
from strategies import PARAMETERS, trees

from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.primitives import PrimitiveSet
from shine.lang.tape import tape_from_tree, tree_from_tape

PRIMITIVES = PrimitiveSet(tuple(STANDARD.values()), PARAMETERS)


@given(trees())
def test_text_gives_the_tree_back(tree):
    assert parse(str(tree), PARAMETERS) == tree


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
