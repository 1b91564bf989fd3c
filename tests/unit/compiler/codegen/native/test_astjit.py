"""AstJit: what it refuses, and the shape of the code it emits."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from llvmlite import ir

import shine
from shine.base.errors import LoweringError
from shine.compiler.codegen.native.astjit import BLOCK_NODES, AstJit
from shine.compiler.codegen.numbers import Numbers
from shine.lang.forms.tree import Tree

A, B = ast.Name("a", ast.Load()), ast.Name("b", ast.Load())


def lowered(tree: Tree, dtype: str = "float64", width: int = 1) -> ir.Function:
    """A function that returns a formula of its arguments."""
    numbers = Numbers(dtype, width)
    kinds = [numbers.type] * len(tree.parameters)
    function = ir.Function(ir.Module(), ir.FunctionType(numbers.type, kinds), "f")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.ret(AstJit(builder, numbers).lower(tree, function.args))
    return function


@pytest.mark.parametrize(
    "node",
    [
        ast.Lambda(ast.arguments([], [], None, [], [], None, []), A),
        ast.Subscript(A, ast.Constant(0), ast.Load()),
        ast.Attribute(A, "real", ast.Load()),
        ast.List([A], ast.Load()),
        ast.NamedExpr(ast.Name("c", ast.Store()), A),
        ast.Starred(A, ast.Load()),
    ],
    ids=lambda node: type(node).__name__,
)
def test_a_node_that_is_no_formula_is_refused_by_name(node):
    with pytest.raises(LoweringError, match=f"{type(node).__name__} has no lowering; verify the tree"):
        lowered(Tree(("a", "b"), ast.BinOp(B, ast.Add(), node)))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", ["sin", "sqrt", "hypot", "sigmoid"])
def test_primitives_that_integers_lack_are_refused_by_name_also_within_composites(name, dtype):
    parameters = ("a", "b")[: 1 + (name == "hypot")]
    with pytest.raises(LoweringError, match=f"no meaning for {dtype} numbers; use float64 or float32"):
        lowered(shine.parse(f"{name}({', '.join(parameters)})"), dtype)


@pytest.mark.parametrize(
    ("number", "dtype"), [(0.5, "int32"), (2**31, "int32"), (-(2**31) - 1, "int32"), (2.0**63, "int64")]
)
def test_a_constant_that_an_integer_cannot_hold_is_refused(number, dtype):
    with pytest.raises(LoweringError, match=f"does not fit {dtype}; use whole numbers within its range"):
        lowered(Tree(("a",), ast.BinOp(A, ast.Add(), ast.Constant(number))), dtype)


def test_a_formula_needs_one_argument_a_parameter():
    function = ir.Function(ir.Module(), ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]), "f")
    with pytest.raises(ValueError, match="shorter"):
        AstJit(ir.IRBuilder(function.append_basic_block()), Numbers("float64")).lower(
            shine.parse("a + b"), function.args
        )


def test_which_lanes_are_active_is_known_across_blocks():
    # 1 // (b - i) counts where b > i alone: never for a divisor of zero.
    terms = BLOCK_NODES // 4
    node: ast.expr = A
    for i in range(terms):
        at = ast.Constant(i % 7)
        share = ast.BinOp(ast.Constant(1), ast.FloorDiv(), ast.BinOp(B, ast.Sub(), at))
        node = ast.BinOp(node, ast.Add(), ast.IfExp(ast.Compare(B, [ast.Gt()], [at]), share, ast.Constant(0)))
    tree, b = Tree(("a", "b"), node), np.arange(9)
    kernel = shine.jit(tree, dtype="int32", opt_level="O0")
    assert kernel(0, b).tolist() == [sum(1 // (v - i % 7) for i in range(terms) if v > i % 7) for v in b.tolist()]


def test_a_composite_sees_its_own_parameters_only():
    # Both have a parameter called x, and square is called with an expression in the outer one.
    assert shine.jit("square(x + 1) + x", params=("x",))(2.0) == 11.0


@pytest.mark.parametrize(
    ("text", "fails"), [("a + b", False), ("a // b", True), ("a // 2", False), ("a % 0", True), ("a**b", True)]
)
def test_only_integer_code_with_a_divisor_that_may_be_zero_can_fail(text, fails):
    numbers = Numbers("int32")
    tree = shine.parse(text, ("a", "b"))
    function = ir.Function(ir.Module(), ir.FunctionType(numbers.type, [numbers.type] * 2), "f")
    jit = AstJit(ir.IRBuilder(function.append_basic_block()), numbers)
    jit.lower(tree, function.args)
    assert (jit.failed is not None) is fails
