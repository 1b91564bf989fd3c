"""Every primitive has its row in every table that needs one, and no table has a row for anything else."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from llvmlite import ir

import shine
from shine.codegen.lowering import FLOAT_LOWERINGS, INTEGER_LOWERINGS, Emitter
from shine.codegen.numbers import Numbers
from shine.domain.intervals import INTERVALS
from shine.errors import LoweringError
from shine.lang.derivative import PARTIALS
from shine.lang.interpret import INTEGER_REFERENCE, REFERENCE, evaluate
from shine.lang.library import STANDARD
from shine.lang.primitives import ARITIES, BASIC
from shine.lang.tape import application
from shine.lang.tree import BINARY_OPERATORS, BOOLEAN_OPERATORS, COMPARISONS, CONDITIONAL, UNARY_OPERATORS

FLOAT_ONLY = {"sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"}
"""What integers lack."""

COMPOSITE = [name for name, primitive in STANDARD.items() if primitive.definition is not None]
OPERATORS = [(BINARY_OPERATORS, 2), (UNARY_OPERATORS, 1), (COMPARISONS, 2), (BOOLEAN_OPERATORS, 2)]
LOWERINGS = [(FLOAT_LOWERINGS, "float64"), (FLOAT_LOWERINGS, "float32"), (INTEGER_LOWERINGS, "int32")]


@pytest.mark.parametrize("table", [REFERENCE, FLOAT_LOWERINGS], ids=["reference", "lowering"])
def test_a_table_of_floats_has_every_basic_primitive(table):
    assert set(table) == set(BASIC)


def test_every_basic_primitive_has_bounds_and_only_primitives_have_some():
    assert set(BASIC) <= set(INTERVALS) <= set(STANDARD)


def test_every_basic_primitive_has_one_partial_an_argument_and_only_primitives_have_some():
    assert set(BASIC) <= set(PARTIALS) <= set(STANDARD)
    assert {name: len(rows) for name, rows in PARTIALS.items()} == {name: STANDARD[name].arity for name in PARTIALS}


@pytest.mark.parametrize("table", [INTEGER_REFERENCE, INTEGER_LOWERINGS], ids=["reference", "lowering"])
def test_a_table_of_integers_lacks_the_listed_primitives_only(table):
    assert set(BASIC) - set(table) == FLOAT_ONLY
    assert set(table) <= set(BASIC)


@pytest.mark.parametrize("table", [REFERENCE, INTEGER_REFERENCE], ids=["floats", "integers"])
def test_the_reference_takes_as_many_arguments_as_the_arity_says(table):
    taken = {
        name: rule.nin if isinstance(rule, np.ufunc) else len(inspect.signature(rule).parameters)
        for name, rule in table.items()
    }
    assert taken == {name: ARITIES[name] for name in table}


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize(("table", "dtype"), LOWERINGS, ids=[dtype for _, dtype in LOWERINGS])
def test_a_lowering_takes_as_many_arguments_as_the_arity_says_and_keeps_their_type(table, dtype, width):
    numbers = Numbers(dtype, width)
    for name, rule in table.items():
        kinds = [numbers.type] * ARITIES[name]
        function = ir.Function(ir.Module(), ir.FunctionType(numbers.type, kinds), "f")
        emit = Emitter(ir.IRBuilder(function.append_basic_block()), numbers)
        assert rule(emit, *function.args).type == numbers.type, name
        with pytest.raises((TypeError, ValueError, LoweringError)):
            rule(emit, *function.args[:-1])


@pytest.mark.parametrize(("table", "arity"), OPERATORS, ids=["binary", "unary", "comparison", "boolean"])
def test_every_operator_stands_for_a_basic_primitive_of_its_arity(table, arity):
    assert {ARITIES[name] for name in table.values()} == {arity}


def test_no_primitive_has_two_operators():
    names = [name for table, _ in OPERATORS for name in table.values()] + [CONDITIONAL]
    assert len(names) == len(set(names))
    assert CONDITIONAL in BASIC


@pytest.mark.parametrize("name", STANDARD)
def test_every_primitive_can_be_written_and_read_back(name):
    parameters = ("a", "b", "c")[: STANDARD[name].arity]
    written = shine.parse(f"{name}({', '.join(parameters)})", parameters)
    assert shine.parse(str(written), parameters) == written
    assert application(name, [written.result] * len(parameters)) is not None


def test_no_composite_has_the_name_of_a_basic_primitive():
    assert not set(COMPOSITE) & set(BASIC)
    assert [STANDARD[name].arity for name in COMPOSITE] == [
        len(STANDARD[name].definition.parameters) for name in COMPOSITE
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", COMPOSITE)
def test_every_composite_has_the_same_value_in_both_tiers(name, dtype):
    parameters = ("a", "b")[: STANDARD[name].arity]
    tree = shine.parse(f"{name}({', '.join(parameters)})", parameters)
    columns = [np.array([0.25, 1.0, 3.0, 7.5]), np.array([2.0, 0.5, 4.0, -1.0])][: len(parameters)]
    native, expected = shine.jit(tree, dtype=dtype)(*columns), evaluate(tree, columns, dtype)
    assert native.dtype == expected.dtype == dtype
    assert native == pytest.approx(expected, rel=20 * float(np.finfo(dtype).eps), abs=0)
