"""Each operand of an equation is left out once."""

from shine.lang.forms.library import STANDARD
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.dynamics.fields.run import without_an_operand


def test_each_operand_is_left_out_once():
    tree = parse("-0.5*(x*y + z) - 3", ["x", "y", "z"])
    found = {each.readable for each in without_an_operand(tree)}
    assert "-0.5*(x*y + z)" in found and "-3 - x*y - z" in found
    for shorter in without_an_operand(tree):
        assert shorter.size < tree.size
    assert without_an_operand(parse("x", ["x"])) == []


def test_an_operand_is_left_out_beside_a_function_of_the_user():
    table, _ = primitive_table([*STANDARD, "def raised(a): return a*a + 1"])
    found = without_an_operand(parse("raised(x) + y", ["x", "y"], table))
    assert {str(each) for each in found} == {"raised(x)", "y"}
