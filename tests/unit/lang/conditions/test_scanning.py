"""Pandas' spellings, and the way back to the user's text."""

from __future__ import annotations

import ast

import pytest

from shine import UnsupportedSyntaxError
from shine.lang.conditions.scanning import Name, scan


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a > 1 & b < 2", "a > 1 and b < 2"),
        ("a > 1 | b < 2 & c", "a > 1 or b < 2 and c"),
        ("  a >\n1\t&\r\nb", "a > 1 and b"),
        ("a > 1 # of all\n& b", "a > 1 and b"),
        ("a == '& | @x `y` = # z' & b", "a == '& | @x `y` = # z' and b"),
        ('a == "it\\"s & b" | b', 'a == "it\\"s & b" or b'),
    ],
)
def test_a_text_is_read_as_python_reads_another(text, same):
    assert ast.dump(scan(text).tree) == ast.dump(ast.parse(same, mode="eval").body)


def test_names_are_columns_and_variables_but_not_functions():
    names = scan("sqrt(a) > @limit & `a column` in @ names & µ > sqrt").names
    assert set(names.values()) == {
        Name("a"), Name("limit", is_variable=True), Name("a column", is_quoted=True), Name("names", is_variable=True),
        Name("μ"), Name("sqrt"),
    }  # fmt: skip


def test_names_that_stand_for_others_are_no_names_of_the_text():
    assert set(scan("q_0 > q__1 & `q`").names.values()) == {Name("q_0"), Name("q__1"), Name("q", is_quoted=True)}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a & b & x + 1", "x"), ("größe > 1 & 東京 & x", "x"), ("`a b c` | @limit > x", "x"), ("a &\n   x", "x"),
        ("a # & x\n & x_", "x_"), ("\n\n  x", "x"),
    ],
)  # fmt: skip
def test_a_node_is_found_in_the_users_text(text, part):
    scanned = scan(text)
    (node,) = [node for node in ast.walk(scanned.tree) if isinstance(node, ast.Name) and node.id == part]
    line, column = scanned.place(node)
    assert text.split("\n")[line - 1][column - 1 :].startswith(part)


@pytest.mark.parametrize(
    "text", ["a +", "(a > 1", "a > 1)", "a b", "if a: b", "a > 'b", "a > `b", "a\0 > 1", "1 = a", "?"]
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(UnsupportedSyntaxError):
        scan(text)


def test_a_long_or_deep_text_is_refused():
    with pytest.raises(UnsupportedSyntaxError, match="at most 100000 are read"):
        scan("a" * 100_001)
    with pytest.raises(UnsupportedSyntaxError, match=r"nested too deeply|not an expression"):
        scan("(" * 5000 + "a" + ")" * 5000)
