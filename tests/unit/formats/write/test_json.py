"""Exported formulas are read back as the same tree; any other text is refused with one clear error."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees

from shine.base.errors import ExportError, GraphImportError
from shine.formats.write.json import from_json, to_json
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse


@given(trees())
def test_any_tree_comes_back(tree):
    for indent in (None, 2):
        again = from_json(to_json(tree, indent=indent))
        assert again == tree and again.name == tree.name


def test_a_document_has_everything_in_the_open():
    tree = parse("def area(r):\n    d = 2.5*r\n    return d*d if 0 < r <= 1e3 else square(r)")
    assert json.loads(to_json(tree)) == {
        "schema": "shine-formula",
        "schema_version": 1,
        "name": "area",
        "features": ["r"],
        "functions": [
            {"name": "square", "parameters": ["x"], "assignments": [], "result": ["x", "x", {"apply": "mul", "to": 2}]}
        ],
        "assignments": [{"name": "d", "value": [2.5, "r", {"apply": "mul", "to": 2}]}],
        "result": [
            0, "r", 1000.0, {"compare": ["lt", "le"], "to": 3},
            "d", "d", {"apply": "mul", "to": 2},
            "r", {"apply": "square", "to": 1},
            {"apply": "where", "to": 3},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("value", [0.1 + 0.2, -0.0, 0, 5e-324, 1.7976931348623157e308, 10**300, -7, 1.0])
def test_constants_come_back_to_the_last_bit(value):
    again = from_json(to_json(Tree(("x",), ast.Constant(value)))).result
    assert isinstance(again, ast.Constant) and repr(again.value) == repr(value)


def test_functions_of_the_user_come_back():
    first = parse("def one(x):\n    return x + 1")
    table = {**STANDARD, "one": Primitive("one", 1, first)}
    second = parse("def two(x, y):\n    t = one(x)\n    return hypot(t, y)", primitives=dict(table))
    table["two"] = Primitive("two", 2, second)
    tree = parse("two(a, one(b))", primitives=table)
    again = from_json(to_json(tree))
    assert again == tree
    assert again.functions["two"].definition == second
    assert again.functions["two"].definition.functions["one"].definition == first
    assert evaluate(again, [[2.0], [3.0]]) == 5


def test_formulas_of_ten_thousand_levels_come_back():
    node = ast.Name("x", ast.Load())
    for _ in range(10_000):
        node = application("add", [ast.Constant(1), node])
    tree = Tree(("x",), node)
    assert from_json(to_json(tree)) == tree


def test_two_functions_of_one_name_are_refused():
    first = parse("def g(x):\n    return x + 1")
    caller = parse("def h(x):\n    return 2*g(x)", primitives={**STANDARD, "g": Primitive("g", 1, first)})
    second = parse("def g(x):\n    return x*10")
    table = {**STANDARD, "g": Primitive("g", 1, second), "h": Primitive("h", 1, caller)}
    with pytest.raises(ExportError, match="primitive 'g' cannot be exported to JSON: another function has that name"):
        to_json(parse("g(x) + h(x)", primitives=table))


def document(**changes):
    base = json.loads(to_json(parse("a*b + 1")))
    return json.dumps({key: value for key, value in (base | changes).items() if value is not ...})


FUNCTION = {"name": "g", "parameters": ["x"], "assignments": [], "result": ["x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("[1, 2]", "the document is list, not an object"),
        ("{" * 5, "it is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": 1, "a": 2}', "the entry 'a' is there twice"),
        (b"\xff\xfe\x00", "it is not JSON"),
        (document(schema="other"), "its schema is 'other', not 'shine-formula'"),
        (document(schema_version=2), "schema_version is 2; this version of Shine reads up to 1"),
        (document(schema_version=True), "schema_version is True; it is a whole number from 1 on"),
        (document(schema_version="1"), "schema_version is '1'; it is a whole number"),
        (document(features=...), "the document lacks 'features'"),
        (document(extra=1), "the document has an unknown entry 'extra'"),
        (document(features="ab"), "features is not a list"),
        (document(features=["a", "a"]), r"features\[1\]: 'a' is there already"),
        (document(features=["a", "__class__"]), r"features\[1\]: name '__class__' begins with two underscores"),
        (document(features=["a", "b c"]), r"features\[1\]: 'b c' is not a name"),
        (document(features=["a"]), r"result\[1\]: 'b' is neither a feature nor assigned before"),
        (document(name="import"), "name: 'import' is not a name"),
        (document(name=5), "name: 5 is not a name"),
        (document(result=[]), "result leaves 0 values, not 1"),
        (document(result=["a", "b"]), "result leaves 2 values, not 1"),
        (document(result={}), "result is not a list"),
        (document(result=[None]), r"result\[0\] is None; an item is a number, a name or an object"),
        (document(result=[True]), r"result\[0\] is True; an item is"),
        (document(result=[["a"]]), r"result\[0\] is list; an item is"),
        (document(result=["eval('1')"]), r"result\[0\]: \"eval\('1'\)\" is neither a feature"),
        (document(result=["a", {"apply": "gamma", "to": 1}]), r"result\[1\]: unknown primitive 'gamma'"),
        (document(result=["a", {"apply": "sin", "to": 2}]), r"result\[1\]: 'sin' applies to 1 values, not 2"),
        (document(result=["a", {"apply": "add", "to": 2}]), r"result\[1\]: 'add' applies to 2 values; there are 1"),
        (document(result=["a", {"apply": ["sin"], "to": 1}]), r"result\[1\]: unknown primitive list"),
        (document(result=["a", {"apply": "sin"}]), r"result\[1\] lacks 'to'"),
        (document(result=["a", {"apply": "sin", "to": 1, "x": 1}]), r"result\[1\] has an unknown entry 'x'"),
        (document(result=["a", {"compare": [], "to": 1}]), r"result\[1\]: compare is a list of lt, le"),
        (document(result=["a", "b", {"compare": ["lt", "add"], "to": 3}]), r"result\[2\]: compare is a list of"),
        (document(result=[10**400]), r"result\[0\]: the number is too large"),
        (document(result=["a"]).replace('"a"]', "NaN]"), "NaN is not a number of JSON"),
        (document(result=["a"]).replace('["a"]', "[1e999]"), r"result\[0\]: the number is too large"),
        (document(result=["a"]).replace('["a"]', f"[{'9' * 5000}]"), "it is not JSON"),
        (document(assignments=[{"name": "a", "value": [1]}]), r"assignments\[0\].name: 'a' is there already"),
        (document(assignments=[{"name": "t", "value": ["t"]}]), r"assignments\[0\].value\[0\]: 't' is neither"),
        (document(assignments=[1]), r"assignments\[0\] is 1, not an object"),
        (document(functions={}), "functions is not a list"),
        (document(functions=[{**FUNCTION, "name": "sin"}]), r"functions\[0\]: there is already a function 'sin'"),
        (document(functions=[FUNCTION, FUNCTION]), r"functions\[1\]: there is already a function 'g'"),
        (document(functions=[{**FUNCTION, "result": ["y"]}]), r"functions\[0\].result\[0\]: 'y' is neither"),
        (document(functions=[{**FUNCTION, "result": ["x", {"apply": "g", "to": 1}]}]), "unknown primitive 'g'"),
    ],
)
def test_a_text_that_is_not_a_formula_is_refused(text, message):
    with pytest.raises(GraphImportError, match=f"not a formula in JSON: .*{message}"):
        from_json(text)


@settings(max_examples=200)
@given(st.data())
def test_a_document_with_any_one_character_changed_is_read_or_refused(data):
    text = document(functions=[FUNCTION], assignments=[{"name": "t", "value": ["a", 2.5, {"apply": "pow", "to": 2}]}])
    position = data.draw(st.integers(0, len(text) - 1))
    changed = text[:position] + data.draw(st.sampled_from(["", '"', "0", "-", "[", "}", "x", "\x00", "\ud800"]))
    try:
        tree = from_json(changed + text[position + 1 :])
    except GraphImportError as error:
        assert len(str(error)) < 400
    else:
        evaluate(tree, [[1.0]] * len(tree.parameters))
