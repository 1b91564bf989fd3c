"""Right-hand sides as native code: the value of a tree, and its derivatives by states and constants.

They share elementary functions that are compiled once, so that a right-hand side is compiled fast.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from llvmlite import ir

from shine.base.typing import Floats
from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, declare, load, number, store
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import Numbers, lanes_number, source_digest
from shine.compiler.codegen.vecmath.functions import FUNCTIONS, call
from shine.compiler.llvm import Engine
from shine.lang.derivative import unused_name, value_and_gradient
from shine.lang.forms.interpretation import Rebuilding
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit

VALUE, SLOPES = "value", "slopes"
"""Names of the compiled functions: the value; the value with its derivatives."""

KEPT = 256
"""Most right-hand sides whose code is kept in a process."""


@dataclass(frozen=True, eq=False)
class Rate:
    """The compiled right-hand side of one state.

    Parameters
    ----------
    tree : Tree
        Its parameters are the inputs and then the constants.
    values : ndarray of shape (n_constants,)
        The constants as written.
    value, slopes : int
        Addresses of ``double value(inputs, constants, out)`` and ``double slopes(inputs, constants, out)``. The second
        also writes the derivatives by the states, and those by the constants.
    engine : Engine
        Owns the code.
    """

    tree: Tree
    values: Floats
    value: int
    slopes: int
    engine: Engine


def rate_of(tree: Tree, inputs: Sequence[str], states: int) -> Rate:
    """The right-hand side that a tree describes.

    Parameters
    ----------
    tree : Tree
    inputs : sequence of str
        All names that it may use: the states first.
    states : int
        Number of states.
    """
    named, values = with_named_constants(replace(tree, parameters=tuple(inputs)))
    value, slopes, engine = _compiled(named, len(inputs), states)
    return Rate(named, values, value, slopes, engine)


def with_named_constants(tree: Tree) -> tuple[Tree, Floats]:
    """A tree whose last parameters are its constants, and their values, in the order of the text.

    Whole and half exponents stay: the 2 in ``x**2`` is structure. So do numbers that something is compared with, as
    rollouts have no derivative by them.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> tree, values = with_named_constants(parse("2.5*x**2 + 0.5"))
    >>> print(tree, values)
    c0*x**2 + c1 [2.5 0.5]
    """
    taken = [*tree.parameters, *(name for name, _ in tree.assignments)]
    naming = _Naming(taken)
    assignments = tuple((name, naming.visit(value)) for name, value in tree.assignments)
    result = naming.visit(tree.result)
    parameters = (*tree.parameters, *naming.names)
    return replace(tree, parameters=parameters, result=result, assignments=assignments), np.array(naming.values, float)


def with_numbers(tree: Tree, values: Sequence[float] | Floats) -> Tree:
    """A tree with other values of its constants, in the order of `with_named_constants`."""
    renewing = _Renewing(values)
    assignments = tuple((name, renewing.visit(value)) for name, value in tree.assignments)
    return replace(tree, assignments=assignments, result=renewing.visit(tree.result))


class _Constants(Rebuilding):
    """Visits the constants that are no exponents of structure and no borders, in the order of the text."""

    def visit_Compare(self, node: ast.Compare) -> Visit:
        sides = []
        for side in (node.left, *node.comparators):
            number = side.operand if isinstance(side, ast.UnaryOp) else side
            sides.append(side if isinstance(number, ast.Constant) else (yield side))
        return ast.Compare(sides[0], node.ops, sides[1:])

    def keeps(self, exponent: ast.expr) -> bool:
        node = exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent
        return isinstance(node, ast.Constant) and (2 * float(node.value)).is_integer()  # type: ignore[arg-type]


class _Naming(_Constants):
    def __init__(self, taken: Sequence[str]) -> None:
        self.taken = list(taken)
        self.names: list[str] = []
        self.values: list[float] = []

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        name = unused_name(f"c{len(self.names)}", [*self.taken, *self.names])
        self.names.append(name)
        self.values.append(float(node.value))  # type: ignore[arg-type]
        return ast.Name(name, ast.Load())


class _Renewing(_Constants):
    def __init__(self, values: Sequence[float] | Floats) -> None:
        self.values = iter(values)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(float(next(self.values)))


@lru_cache(maxsize=KEPT)
def _compiled(tree: Tree, inputs: int, states: int) -> tuple[int, int, Engine]:
    """Addresses of the functions of a tree, and their code."""
    module = ir.Module(name="rate")
    wanted = (*tree.parameters[:states], *tree.parameters[inputs:])
    _emit(module, VALUE, [tree], inputs)
    _emit(module, SLOPES, value_and_gradient(tree, wanted), inputs)
    # Fast instruction selection saves a third of the time to compile and costs a tenth of the speed.
    engine = Engine(str(module), "O1", 0)
    return engine.address(VALUE), engine.address(SLOPES), engine


def _emit(module: ir.Module, name: str, trees: Sequence[Tree], inputs: int) -> None:
    """Emit ``double name(inputs, constants, out)`` of trees that share their assignments: the value of the first."""
    function = declare(module, name, _DOUBLE, [POINTER] * 3, ("inputs", "constants", "out"))
    build = ir.IRBuilder(function.append_basic_block("entry"))
    given, constants, out = function.args
    places = [(given, place) for place in range(inputs)]
    places += [(constants, place) for place in range(len(trees[0].parameters) - inputs)]
    arguments = [load(build, array, number(place), _DOUBLE, _DOUBLE) for array, place in places]
    first, *others = Calling(build, Numbers("float64")).lower_all(trees, arguments)
    for place, value in enumerate(others):
        store(build, value, out, number(place), _DOUBLE)
    build.ret(first)


_DOUBLE = ir.DoubleType()
_PRODUCTS = (2, 3)
"""Exponents of powers that are products."""


class Calling(AstJit):
    """Lowers trees of float64 scalars to calls of the functions of `addresses`; the bits are those of `AstJit`."""

    def _apply(self, name: str, *arguments: ir.Value) -> ir.Value:
        known = addresses().get(name)
        if known is None or (name == "pow" and lanes_number(arguments[1]) in _PRODUCTS):
            return super()._apply(name, *arguments)
        pointer = self.emit.builder.inttoptr(ir.Constant(I64, known), POINTER)
        pointer.type = FunctionPointer(_signature(name))
        return self.emit.builder.call(pointer, arguments)


def _signature(name: str) -> ir.FunctionType:
    return ir.FunctionType(_DOUBLE, [_DOUBLE] * FUNCTIONS[name].arity)


def _emit_function() -> ir.Module:
    """A function of doubles for each elementary function."""
    module = ir.Module(name="elementary")
    for name, rule in FUNCTIONS.items():
        function = declare(module, name, _DOUBLE, [_DOUBLE] * rule.arity, "xy"[: rule.arity])
        build = ir.IRBuilder(function.append_basic_block("entry"))
        build.ret(call(build, name, *function.args))
    return module


@cache
def _engine() -> Engine:
    return Engine.kept(FUNCTIONS, ("scalar functions", source_digest("evaluate")), _emit_function, "O1")


@cache
def addresses() -> dict[str, int]:
    """Address of each function; valid as long as the process lives."""
    return {name: _engine().address(name) for name in FUNCTIONS}
