"""The table of exports: every form, by name."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from helpers.exports import CANNOT_WRITE, LIBRARIES, TEXTS
from helpers.formulas import FEATURES
from hypothesis import given, settings
from strategies import trees

from shine.base.errors import ExportError
from shine.formats.write import EXPORTS, export
from shine.formats.write.json import from_json
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse


@pytest.mark.parametrize("form", TEXTS)
def test_every_primitive_has_a_text_in_every_form(form):
    for name in STANDARD.keys() - CANNOT_WRITE.get(form, set()):
        names = FEATURES[: STANDARD[name].arity]
        text = export(parse(f"{name}({', '.join(names)})", names), form)
        assert isinstance(text, str) and text.endswith("\n"), name


@settings(max_examples=40)
@given(trees())
def test_any_tree_is_exported_or_refused_in_every_form(tree):
    for form in TEXTS:
        try:
            assert export(tree, form)
        except ExportError as error:
            assert "\n" not in str(error)


def test_the_forms_are_what_they_say():
    tree = parse("2.5*speed**2")
    assert export(tree, "sql") == "2.5 * POWER(speed, 2.0)\n"
    assert export(tree, "excel") == "=2.5*A1^2\n"
    assert export(tree, "latex", "E") == "E = 2.5 \\mathrm{speed}^{2}\n"
    assert "def E(speed):" in str(export(tree, "python", "E"))
    assert from_json(export(tree, "json", "E")).name == "E"


def test_sympy_is_exported_as_source():
    pytest.importorskip("sympy")
    assert export(parse("x/3"), "sympy", "g").endswith("x = Symbol('x', real=True)\ng = x/3\n")


@pytest.mark.parametrize("form", EXPORTS)
def test_every_form_is_written(form):
    if form in LIBRARIES:
        pytest.importorskip(LIBRARIES[form])
    assert isinstance(export(parse("a*sin(b) + 1"), form), bytes if form == "onnx" else str)


@pytest.mark.parametrize("form", EXPORTS)
def test_a_function_without_a_definition_is_refused(form):
    if form in LIBRARIES:
        pytest.importorskip(LIBRARIES[form])
    unknown = Tree(("x",), ast.Call(ast.Name("gamma", ast.Load()), [ast.Name("x", ast.Load())], []))
    names = {"pandas": "python", "torch": "torch"}
    with pytest.raises(ExportError, match=f"(?i)'gamma' cannot be exported to {names.get(form, form)}: it has no def"):
        export(unknown, form)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "function", "told", "extra"),
    [
        ("sympy", "sympy.sympy_expression", "this needs SymPy", "sympy"),
        ("torch", "torch.torch_function", "the export to torch needs torch", "torch"),
        ("jax", "jax.jax_function", "the export to JAX needs jax", "jax"),
        ("onnx", "onnx.onnx_model", "the export to ONNX needs onnx", "onnx"),
        ("google.protobuf", "graphdef.graphdef", "a GraphDef needs protobuf", "tensor"),
    ],
)
def test_without_the_library_the_error_says_what_to_install(package, function, told, extra):
    module, name = function.split(".")
    code = f"""
import sys
sys.modules["{package}"] = None
import shine
from shine.formats.write.{module} import {name}
try:
    {name}(shine.parse("a + b"))
except shine.ShineError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{told}; install it with: pip install 'shine-gp[{extra}]'\n"


def test_an_unknown_form_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(ValueError, match=f"unknown export 'word'; use one of {', '.join(EXPORTS)}"):
        export(parse("x"), "word")


def test_the_basic_primitives_have_rules_of_their_own():
    from shine.formats.write.excel import _EXCEL, _Excel
    from shine.formats.write.latex import _Latex
    from shine.formats.write.polars import _POLARS, _Polars
    from shine.formats.write.python import Expression
    from shine.formats.write.sql import _Sql

    for writer in (Expression(), _Latex({}), _Excel(_EXCEL), _Sql("standard"), _Polars(_POLARS, set())):
        assert writer.rules().keys() >= BASIC.keys()
