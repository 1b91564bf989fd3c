"""Names: one normal form, one limit, and distinct names in linear work."""

from __future__ import annotations

import ast
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shine
from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.data.columns.headings import check_features
from shine.data.files.source import Source
from shine.faces.estimators.checks import formula_names
from shine.formats.write.json import from_json, to_json
from shine.lang.forms.names import (
    MOST_CHARACTERS,
    cut,
    distinct_names,
    listed,
    name_problem,
    normalized,
    shown,
    similar,
    symbol,
    value_text,
)
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import Tape
from shine.lang.parse import natural_order, parse
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.settings import EvolutionSettings

CHANGED = ["µ", "ﬁt", "ｘ", "ª", "\u212a", "𝐱", "e\u0301"]
"""Names that Unicode's normal form changes."""


def constant(value):
    """A population with one individual, a constant."""
    tape = Tape(np.array([0], np.int16), np.array([value]))
    return Population.from_tapes([tape], PrimitiveSet((), ("inf", "nan")))


@given(st.text(min_size=1, max_size=4))
def test_names_are_normalized_as_pythons_parser_does(text):
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return
    if isinstance(node, ast.Name) and text.isidentifier():
        assert node.id == normalized(text)


@pytest.mark.parametrize("name", CHANGED)
def test_a_name_that_python_changes_is_one_name_everywhere(name):
    known = unicodedata.normalize("NFKC", name)
    assert known != name
    assert parse(f"2*{name}", [name]) == parse(f"2*{known}", [known])
    assert check_features([name]) == (known,)
    assert formula_names([name], 1) == (known,)
    assert Source(None, (name,), None).names == (known,)
    assert Source(None, (name,), None).index(known) == Source(None, (known,), None).index(name) == 0
    assert Constraints(limits={name: 1}, forbidden=(name,)) == Constraints(limits={known: 1}, forbidden=(known,))
    assert EvolutionSettings(complexity={name: 3}).complexity == {known: 3}
    table, names = primitive_table([f"def {name}(a):\n    return a + 1", name])
    assert names == [known]
    assert str(parse(f"{name}(b)", primitives=table)) == f"{known}(b)"


def test_a_search_over_such_names_reads_back():
    X = np.random.default_rng(0).uniform(1, 5, (30, 2))
    best = shine.evolve(X, 3 * X[:, 0], features=["µ", "ﬁt"], generations=1, constraints={"forbidden": ["ﬁt"]}).best
    assert best.expression == "3*μ"
    assert parse(str(best.tree), ["µ", "ﬁt"]) == best.tree


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["µ", "μ"], r"feature name 'μ' and 'µ' are one name in formulas, .*: 'μ'; rename one"),
        (["ｉｆ"], "feature name 'ｉｆ' is a keyword of Python; rename the column, 'if_' would do"),
        (["a" * 10_000], r"'a+\.\.\.a+' has 10000 characters; names have at most 255"),
        (["x" * 200_000 + " "], r"has 200001 characters"),
    ],
)
def test_features_that_formulas_cannot_have_are_refused(names, message):
    with pytest.raises(DataError, match=message) as caught:
        check_features(names)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("headings", "names"),
    [
        (["µ", "μ"], ("μ_2", "μ")),
        (["μ", "µ"], ("μ", "μ_2")),
        (["µ", "my col", "µ"], ("μ", "my_col", "μ_2")),
        (["m²", "m2"], ("m2_2", "m2")),
        (["a" * 300, "a" * 400], ("a" * 255, "a" * 253 + "_2")),
        (["T [K]", "cat. mass / g", "(a)", "-T", "% clay"], ("T_K", "cat_mass_g", "a", "T", "clay")),
        (["T [K]", "T_K", "T (K)", "T__K"], ("T_K_2", "T_K", "T_K_3", "T__K")),
        (["a_ b", "a _ b", "2nd col.", "Масса, г", "ρ/(kg m⁻³)"], ("a_b", "a_b_2", "x_2nd_col", "Масса_г", "ρ_kg_m_3")),
        (["", "%", "_ ", "for ", "class?"], ("x", "x_2", "x_3", "for_", "class_")),
        (["inf", "nan", "e", "pi", "True", "None"], ("inf", "nan", "e", "pi", "True_", "None_")),
    ],
)
def test_headings_with_the_same_normal_form_get_distinct_names(headings, names):
    assert formula_names(headings, len(names)) == names


@given(st.lists(st.one_of(st.text(max_size=3), st.sampled_from([*CHANGED, "a", "a_2", "a 2", "μ", "a" * 254]))))
def test_headings_always_get_names_that_features_can_have(headings):
    count = len(headings)
    for names in (formula_names(headings, count), Source(None, tuple(headings), None).names):
        assert check_features(names) == names
        assert len(set(names)) == count


@pytest.mark.slow
def test_the_work_is_linear_in_the_number_of_names():
    many = [f"c{i}" for i in range(200_000)]
    assert check_features(many) == tuple(many)
    assert formula_names(["a b"] * 200_000, 200_000)[-1] == "a_b_200000"
    assert Source(None, ("a b",) * 200_000, None).names[-1] == "a_b_200000"
    with pytest.raises(ValueError, match="fewer than 32767"):
        PrimitiveSet((), tuple(many))


@pytest.mark.parametrize("length", [MOST_CHARACTERS, MOST_CHARACTERS + 1])
def test_the_longest_name(length):
    name = "a" * length
    for door in (lambda: parse(f"1 + {name}"), lambda: parse("1", [name]), lambda: parse(f"def {name}(b): return b")):
        if length <= MOST_CHARACTERS:
            assert str(door()) is not None
        else:
            with pytest.raises(UnsupportedSyntaxError, match="has 256 characters; names have at most 255") as caught:
                door()
            assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["été", "größe", "密度", "µ", "inf", "nan", "pi", "e"])
def test_functions_and_features_can_have_any_identifier(name):
    function = shine.jit(f"def {name}({name}, b):\n    return {name}*2 + b")
    assert function(3.0, 1.0) == 7.0
    assert function([3.0], [1.0]).tolist() == [7.0]
    table, _ = primitive_table([f"def {name}(a):\n    return a + 1"])
    tree = parse(f"{name}({name}) - {name}", [name], table)
    assert parse(str(tree), [name], table) == tree
    assert shine.jit(tree)(5.0) == 1.0


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.5])
def test_constants_never_print_as_names(value):
    text = str(constant(value).tree(0))
    assert "inf" not in text and "nan" not in text
    read = parse(f"2 - {text}*1", ["inf", "nan"])
    with np.errstate(all="ignore"):
        assert shine.jit(read)(7.0, 8.0) == pytest.approx(2 - value, nan_ok=True)


@pytest.mark.parametrize("digits", [309, 4300, 4301, 50_000])
def test_integers_of_any_length_are_one_error(digits):
    for text in ("9" * digits, "x + 0x" + "f" * digits, f"def f(x): return x*{'9' * digits}"):
        with pytest.raises(UnsupportedSyntaxError, match="the number is too large; a number must be finite") as caught:
            parse(text)
        assert len(str(caught.value)) < 200


def test_digits_of_other_scripts_are_letters_of_a_name():
    # isdigit() accepts U+1369, but int() does not.
    assert parse("x1፩ + x2 + x10 + x٣").parameters == ("x1፩", "x2", "x10", "x٣")
    assert natural_order("x2") < natural_order("x10")


def test_machine_code_has_ascii_names():
    assert symbol("étÉ_1") == "u00e9tu00c9_1"
    assert symbol("密度").isascii()


def test_messages_cut_long_names():
    assert shown("ab") == "'ab'"
    assert len(shown("a" * 10_000)) == 62
    assert cut("one\ntwo") == "one two"
    assert len(cut("a" * 10_000)) == 300
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(200_000))).endswith("19 and 199980 more")
    assert similar("speeed", ["speed", "mass"]) == "speed"
    assert similar("a" * 10_000, ["a" * 255]) is None
    assert sys.getsizeof(listed(["b" * 10_000] * 20)) < 2000


def test_a_variable_can_be_assigned_any_number_of_times():
    tree = parse("def f(x):\n" + "    x = x + 1\n" * 5_000 + "    return x")
    assert tree.assignments[-1][0] == "x_5000"
    longest = "a" * MOST_CHARACTERS
    again = parse(str(parse(f"def f({longest}):\n    {longest} = {longest} + 1\n    return {longest}*2")))
    assert shine.jit(again)(3.0) == 8.0


def test_a_syntax_tree_made_by_hand_has_normalized_names():
    node = ast.parse("def f(a):\n    b = a\n    return b").body[0]
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id == "b":
            each.id = "µ"
    assert str(parse(node)) == "def f(a):\n    μ = a\n    return μ"


def test_formulas_in_json_have_normalized_names():
    text = to_json(parse("µ*2 + 1", ["µ"]))
    assert from_json(text.replace("\\u03bc", "\\u00b5")) == parse("μ*2 + 1", ["μ"])


def test_values_of_any_size_can_be_shown():
    assert value_text("é\u202e") == r"'é\u202e'"
    assert value_text(10**5000) == "a whole number of 16610 bits"
    assert value_text((10**5000,)) == "a tuple"
    assert len(value_text("a" * 10_000)) == 60
    with pytest.raises(UnsupportedSyntaxError, match="constant a tuple is not a number"):
        parse(ast.Constant((10**5000,)))


@given(st.lists(st.text(max_size=4)))
def test_headings_get_distinct_names_and_names_keep_theirs(headings):
    names = distinct_names(headings)
    assert len(set(names)) == len(names) == len(headings)
    assert distinct_names(names) == names
    assert all(name_problem(name) is None for name in names)
