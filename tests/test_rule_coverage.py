"""Every primitive has a row in every table that needs one, and no table has other rows."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from helpers.exports import CANNOT_WRITE, LIBRARIES
from helpers.markers import mostly_slow

import shine
from shine.base.errors import ExportError
from shine.compiler.arrays import COMPILED
from shine.compiler.codegen.lowering import INTEGER_LOWERINGS
from shine.evaluate.domain.intervals import INTERVALS
from shine.formats.page.mathml import typeset
from shine.formats.read.sympy import from_sympy
from shine.formats.write import EXPORTS, export
from shine.formats.write.sympy import sympy_expression
from shine.lang.derivative import PARTIALS
from shine.lang.forms.facts import FACTS, basic_where
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES, BASIC
from shine.lang.forms.tape import application
from shine.lang.forms.tree import BINARY_OPERATORS, BOOLEAN_OPERATORS, COMPARISONS, CONDITIONAL, UNARY_OPERATORS, Tree
from shine.lang.interpret import INTEGER_REFERENCE, ZERO_DIVISORS, evaluate

FLOAT_ONLY = basic_where(lambda facts: facts.floats_only)

COMPOSITE = [name for name, primitive in STANDARD.items() if primitive.definition is not None]
OPERATORS = [(BINARY_OPERATORS, 2), (UNARY_OPERATORS, 1), (COMPARISONS, 2), (BOOLEAN_OPERATORS, 2)]
PARAMETERS = ("a", "b", "c")

SEVERAL = 5
"""A list of at least this number of primitives should be a fact."""

ROWS_OF_A_TABLE = {"codegen/lowering.py", "domain/intervals.py", "forms/facts.py", "python/known.py"}
NO_FACTS = {"template/solving.py", "problem/__init__.py"}
"""Files that use a list for several rows of a watched table; and files with a list that is no fact of its members: the
default functions of a search, what a method takes apart."""


def call(name: str) -> Tree:
    """The formula that applies a primitive to its parameters."""
    parameters = PARAMETERS[: STANDARD[name].arity]
    return shine.parse(f"{name}({', '.join(parameters)})", parameters)


def samples(name: str) -> list[np.ndarray]:
    """Columns of arguments: unusual numbers in all combinations, and random ones of all magnitudes."""
    unusual = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 1e-310, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.7]
    rng, arity = np.random.default_rng(0), STANDARD[name].arity
    drawn = rng.normal(size=(arity, 2000)) * 10.0 ** rng.uniform(-3, 3, (arity, 2000))
    grid = np.array(list(itertools.product(unusual, repeat=arity))).T
    return list(np.ascontiguousarray(np.concatenate([grid, drawn], axis=1)))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(((a.view(np.uint64) == b.view(np.uint64)) | (np.isnan(a) & np.isnan(b))).all())


def test_every_basic_primitive_has_bounds_and_only_primitives_have_some():
    assert set(BASIC) <= set(INTERVALS) <= set(STANDARD)


def test_every_basic_primitive_has_one_partial_an_argument_and_only_primitives_have_some():
    assert set(BASIC) <= set(PARTIALS) <= set(STANDARD)
    assert {name: len(rows) for name, rows in PARTIALS.items()} == {name: STANDARD[name].arity for name in PARTIALS}


@pytest.mark.parametrize("table", [INTEGER_REFERENCE, INTEGER_LOWERINGS], ids=["reference", "lowering"])
def test_a_table_of_integers_lacks_the_listed_primitives_only(table):
    assert set(BASIC) - set(table) == FLOAT_ONLY
    assert set(table) <= set(BASIC)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["lang", "compiler", "evaluate", "search"])
def test_no_file_keeps_a_list_of_primitives_of_its_own(layer):
    found, paths = set(), list((Path(shine.__file__).parent / layer).rglob("*.py"))
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Set | ast.Tuple | ast.List):
                names = [part.value for part in node.elts if isinstance(part, ast.Constant)]
                if len(names) >= SEVERAL and set(names) <= set(STANDARD):
                    found.add(f"{path.parent.name}/{path.name}")
    assert found <= ROWS_OF_A_TABLE | NO_FACTS, "make it a fact, see shine.lang.forms.facts"


def test_integers_have_a_zero_divisor_for_every_primitive_that_divides():
    assert set(ZERO_DIVISORS) == basic_where(lambda facts: facts.divides)


@pytest.mark.parametrize("name", sorted(basic_where(lambda facts: not facts.floats_only)))
def test_integers_raise_for_a_zero_divisor_and_for_nothing_else(name):
    columns = np.array(list(itertools.product([0, -1, 2], repeat=ARITIES[name])), np.int64).T
    raised = False
    for row in columns.T:
        try:
            evaluate(call(name), [row[i : i + 1] for i in range(len(row))], np.int64)
        except ZeroDivisionError:
            raised = True
    assert raised == FACTS[name].divides


@pytest.mark.parametrize("name", mostly_slow(BASIC, fast=sorted(BASIC)[::8]))
def test_constants_are_folded_to_the_bits_of_compiled_code(name):
    columns = samples(name)
    compiled = shine.jit(call(name))(*columns)
    with np.errstate(all="ignore"):
        assert same_bits(compiled, COMPILED[name](*columns)), f"is {name!r} inexact? see shine.lang.forms.facts"


@pytest.mark.slow
@pytest.mark.parametrize("to", EXPORTS)
def test_an_export_writes_every_basic_primitive_that_is_not_listed_as_absent(to):
    if to in LIBRARIES:
        pytest.importorskip(LIBRARIES[to])
    refused = set()
    for name in BASIC:
        try:
            export(call(name), to)
        except ExportError:
            refused.add(name)
    assert refused == CANNOT_WRITE.get(to, set())


@pytest.mark.parametrize("name", STANDARD)
def test_reports_typeset_every_primitive(name):
    assert typeset(call(name))


@pytest.mark.parametrize("name", BASIC)
def test_a_symbolic_expression_is_read_back(name):
    pytest.importorskip("sympy")
    if name in CANNOT_WRITE.get("sympy", ()):
        return
    tree = from_sympy(sympy_expression(call(name)))
    columns = [np.array([0.3, -0.4, 0.9]), np.array([0.2, 0.5, -0.7]), np.array([-0.6, 0.1, 0.8])]
    given = columns[: ARITIES[name]]
    by_name = dict(zip(PARAMETERS, given, strict=False))
    read = evaluate(tree, [by_name[parameter] for parameter in tree.parameters])
    np.testing.assert_allclose(read, evaluate(call(name), given), rtol=1e-12)


@pytest.mark.parametrize(("table", "arity"), OPERATORS, ids=["binary", "unary", "comparison", "boolean"])
def test_every_operator_stands_for_a_basic_primitive_of_its_arity(table, arity):
    assert {ARITIES[name] for name in table.values()} == {arity}


def test_no_primitive_has_two_operators():
    names = [name for table, _ in OPERATORS for name in table.values()] + [CONDITIONAL]
    assert len(names) == len(set(names))
    assert CONDITIONAL in BASIC


@pytest.mark.parametrize("name", STANDARD)
def test_every_primitive_can_be_written_and_read_back(name):
    parameters = PARAMETERS[: STANDARD[name].arity]
    written = shine.parse(f"{name}({', '.join(parameters)})", parameters)
    assert shine.parse(str(written), parameters) == written
    assert application(name, [written.result] * len(parameters)) is not None


def test_no_composite_has_the_name_of_a_basic_primitive():
    assert not set(COMPOSITE) & set(BASIC)
    assert [STANDARD[name].arity for name in COMPOSITE] == [
        len(STANDARD[name].definition.parameters) for name in COMPOSITE
    ]
