"""Code outside the language gives one clear error with its place, never another exception."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import ShineError, UnsupportedSyntaxError
from shine.lang.parse import parse

REJECTED = {
    "a.b": "line 1, column 1: attribute access is not part of the language",
    "a + math.gamma(b)": "line 1, column 5: attribute access",
    "a + (lambda x: x)": "line 1, column 6: lambda is not part of a formula",
    "a + (x := 1)": "line 1, column 6: ':=' is not part of the language",
    "f'{x}'": "f-strings are not part of the language",
    "__import__('os')": "'__import__' begins with two underscores",
    "x.__class__": "attribute access",
    "__builtins__": "begins with two underscores",
    "foo(x)": "line 1, column 1: unknown primitive 'foo'; known are abs, acos",
    "open('x')": "unknown primitive 'open'",
    "sin(x, y)": "sin takes 1 argument, not 2",
    "sin(x=1)": "takes no keyword arguments",
    "sin(*x)": r"'\*' arguments",
    "min(a)": "min takes 2 arguments, not 1",
    "x[0]": "subscripts are not part of the language",
    "'abc'": "constant 'abc' is not a number",
    "1j": "is not a number",
    "True": "constant True is not a number",
    "None": "constant None is not a number",
    "...": "is not a number",
    "a @ b": "'@' is not part of the language",
    "a & b": "operator BitAnd is not part of the language",
    "~a": "operator Invert is not part of the language",
    "a is b": "comparison Is is not part of the language",
    "a in b": "comparison In is not part of the language",
    "[a]": "List is not part of the language",
    "(a, b)": "Tuple is not part of the language",
    "{a: b}": "Dict is not part of the language",
    "[x for x in y]": "a list is not part of the language",
    "await x": "'await' is not part of the language",
    "sqrt(2)(3)": "only a primitive can be called",
    "a +": "line 1, column 4: not a Python expression",
    "import os": "not a Python expression",
    "a; b": "not a Python expression",
    "": "the formula is empty",
    "1e999": "must be finite in float64",
    "9" * 400: "must be finite in float64",
    "9" * 5000: "the number is too large; a number must be finite in float64",
    "(" * 300 + "a" + ")" * 300: "too many nested parentheses",
    "-" * 100_000 + "a": "nested too deeply",
    "a+" * 100_000 + "a": "nested too deeply",
    "\ud800": "surrogates not allowed",
    "a\0b": "null bytes",
    "a + " * (1 << 18) + "a": "the formula has 1048577 characters; at most 500000 are read",
    "def f(a, b=1):\n    return a": "parameters are plain names",
    "def f(*a):\n    return 1": "parameters are plain names",
    "def f(a, a):\n    return a": "listed twice|duplicate argument",
    "def f(a):\n    return": "every path|needs|Return",
    "def f(a):\n    b = 1": "can end without 'return'",
    "def f(a):\n    if a:\n        return 1": "can end without 'return'",
    "def f(a):\n    return a\n    b = 1": "line 3, column 5: code after 'return' is never reached",
    "def f(a):\n    if a:\n        b = 1\n    return b": "line 4, column 12: 'b' is not assigned on every path",
    "def f(a):\n    for i in a: pass\n    return a": "line 2, column 5: 'for' is not part of the language",
    "def f(a):\n    a.b = 1\n    return a": "line 2, column 5: this assignment is not part of the language; write",
    "def f(a):\n    a, b = 1, 2, 3\n    return a": "this assignment is not part of the language",
    "def f(a):\n    a, b = a\n    return a": "this assignment is not part of the language",
    "def f(a):\n    b = c = a\n    return a": "this assignment is not part of the language",
    "def f(a):\n    import os\n    return a": "'import' is not part of the language",
    "def f(a):\n    def g(b): return b\n    return g(a)": "FunctionDef is not part of the language",
    "def f(a):\n    return b": "line 2, column 12: unknown name 'b'; known names are a",
    "@cache\ndef f(a):\n    return a": "decorators are not part of the language",
    "def f(a): return a\ndef g(a): return a": "one expression or one function definition",
}


@pytest.mark.parametrize(("source", "message"), REJECTED.items(), ids=lambda text: ascii(text)[:40])
def test_it_is_rejected_with_reason_and_place(source, message):
    with pytest.raises(UnsupportedSyntaxError, match=message):
        parse(source)


@given(st.text(max_size=200))
def test_any_text_is_a_formula_or_one_error(text):
    with contextlib.suppress(ShineError):
        parse(text)


@given(st.text(alphabet="ab0123456789.+-*/%()<>=!, \n\tifelsenotand_:defrturn", max_size=120))
def test_any_almost_formula_is_a_formula_or_one_error(text):
    with contextlib.suppress(ShineError):
        parse(text)


@pytest.mark.parametrize("name", ["a b", "1a", "if", "__x", "", 3])
def test_a_parameter_must_be_a_name(name):
    with pytest.raises(UnsupportedSyntaxError):
        parse("1", (name,))
