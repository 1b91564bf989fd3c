"""The reference tier: the meaning of formulas, in NumPy. It is the oracle of the tests: compiled code is compared with
it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from shine.base.errors import LoweringError
from shine.base.typing import AnyArray, Codes, Floats
from shine.lang.forms.facts import FACTS, basic_where
from shine.lang.forms.interpretation import Interpretation, computed
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import BOOLEAN_OPERATORS, COMPARISONS, Primitive, Tree
from shine.lang.forms.visitor import Visit


def _number(condition: AnyArray, like: AnyArray) -> AnyArray:
    return condition.astype(like.dtype)


def _where(condition: AnyArray, a: AnyArray, b: AnyArray) -> AnyArray:
    return np.where(condition, a, b)


def _power(base: AnyArray, exponent: AnyArray) -> AnyArray:
    """A power. Squares and cubes are products, even for exponents in columns: x**2 is x*x, and x**3 is x*x*x."""
    square = base * base
    # Where one exponent of 1/2 is for all bases, NumPy takes roots, and those of -inf and -0.0 are other numbers.
    shape = np.broadcast_shapes(np.shape(base), np.shape(exponent))
    exponents = np.array(np.broadcast_to(exponent, shape), ndmin=1)
    power = np.power(np.broadcast_to(base, exponents.shape), exponents).reshape(shape)
    return _where(exponent == 2, square, _where(exponent == 3, square * base, power))


REFERENCE: dict[str, Callable[..., AnyArray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": _power,
    # np.minimum may return either of 0.0 and -0.0; this returns the second. The result is NaN if either is NaN.
    "min": lambda a, b: _where((a < b) | (a != a), a, b),
    "max": lambda a, b: _where((a > b) | (a != a), a, b),
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "sign": np.sign,
    "lt": lambda a, b: _number(a < b, a),
    "le": lambda a, b: _number(a <= b, a),
    "gt": lambda a, b: _number(a > b, a),
    "ge": lambda a, b: _number(a >= b, a),
    "eq": lambda a, b: _number(a == b, a),
    "ne": lambda a, b: _number(a != b, a),
    "logical_and": lambda a, b: _where(a != 0, b, a),
    "logical_or": lambda a, b: _where(a != 0, a, b),
    "logical_not": lambda a: _number(a == 0, a),
    "where": lambda c, a, b: _where(c != 0, a, b),
}
"""Meaning of each basic primitive over floating-point arrays of one dtype."""


def _truncated_quotient(a: AnyArray, b: AnyArray) -> AnyArray:
    floor = a // b
    return floor + _number((a % b != 0) & ((a < 0) != (b < 0)), a)


def _integer_power(base: AnyArray, exponent: AnyArray) -> AnyArray:
    """A power by wrapping products. A negative exponent truncates 1 / base**-exponent."""
    result, square, left = np.ones_like(base), base.copy(), np.maximum(exponent, 0)
    while left.any():
        result = np.where(left & 1, result * square, result)
        square, left = square * square, left >> 1
    inverse = np.where(np.abs(base) == 1, np.where(exponent & 1, base, 1), 0).astype(base.dtype)
    return np.where(exponent < 0, inverse, result)


INTEGER_REFERENCE: dict[str, Callable[..., AnyArray]] = {
    **{name: rule for name, rule in REFERENCE.items() if not FACTS[name].floats_only},
    "div": _truncated_quotient,
    "pow": _integer_power,
    "floor": np.positive,
    "ceil": np.positive,
}
"""Meaning of each primitive over integer arrays. Sums and products wrap around; divisors must not be zero."""


ZERO_DIVISORS: dict[str, tuple[int, Callable[..., AnyArray]]] = {
    "div": (1, lambda a, b: b == 0),
    "floordiv": (1, lambda a, b: b == 0),
    "mod": (1, lambda a, b: b == 0),
    "pow": (0, lambda a, b: (a == 0) & (b < 0)),
}
"""For each primitive that divides integers: position of the divisor, and the rows where it is zero."""


def evaluate(
    tree: Tree,
    columns: Sequence[AnyArray],
    dtype: DTypeLike = np.float64,
    functions: Mapping[str, Callable[..., AnyArray]] | None = None,
) -> AnyArray:
    """Value of a formula for every row, shape (n_rows,).

    Parameters
    ----------
    tree : Tree
    columns : sequence of ndarray of shape (n_rows,)
        One a parameter, in the order of ``tree.parameters``.
    dtype : {"float64", "float32", "int32", "int64"}
    functions : mapping of str to callable, optional
        The basic primitives; by default `REFERENCE`, or `INTEGER_REFERENCE` for integers.

    Raises
    ------
    ZeroDivisionError
        In integer mode, if a row divides by zero on the path that it takes.
    LoweringError
        If a primitive or a number has no meaning for integers.
    """
    arrays = [np.asarray(column, dtype=dtype) for column in columns]
    rows = len(arrays[0]) if arrays else 1
    with np.errstate(all="ignore"):
        return Interpreter(np.dtype(dtype), rows, functions).run(tree, arrays)


class Interpreter(Interpretation):
    """Evaluates trees. `active` marks the rows that reach the current node; only those may not divide by zero."""

    def __init__(
        self, dtype: np.dtype[Any], rows: int, functions: Mapping[str, Callable[..., AnyArray]] | None = None
    ) -> None:
        self.dtype = dtype
        self.rows = rows
        self.integer = dtype.kind == "i"
        self.table = functions or (INTEGER_REFERENCE if self.integer else REFERENCE)
        self.values: dict[str, AnyArray] = {}
        self.functions: Mapping[str, Primitive] = {}
        self.active = np.ones(rows, dtype=bool)

    def run(self, tree: Tree, columns: Sequence[AnyArray]) -> AnyArray:
        """Value of a tree for every row, for the values of its parameters."""
        caller = self.values, self.functions
        if not self.integer:
            # No operand raises an error: all are evaluated on all rows.
            self.functions = tree.functions
            values = dict(zip(tree.parameters, columns, strict=True))
            found: AnyArray = computed(tree, values, self.filled, self._apply)
            self.functions = caller[1]
            return found
        self.values, self.functions = dict(zip(tree.parameters, columns, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.values[name] = self.visit(value)
        result: AnyArray = self.visit(tree.result)
        self.values, self.functions = caller
        return result

    def filled(self, value: float) -> AnyArray:
        """A constant for every row; `numpy.full` takes twice as long for few rows."""
        found = np.empty(self.rows, self.dtype)
        found.fill(value)
        return found

    def _apply(self, name: str, *arguments: AnyArray) -> AnyArray:
        if name not in self.table:
            definition = self.functions[name].definition if name in self.functions else None
            if definition is None:
                raise LoweringError(f"{name!r} has no meaning for {self.dtype} numbers; use float64 or float32")
            return self.run(definition, arguments)
        if self.integer:
            arguments = self._checked(name, *arguments)
        return self.table[name](*arguments)

    def _checked(self, name: str, *arguments: AnyArray) -> tuple[AnyArray, ...]:
        """The arguments with zero divisors replaced; raises if an active row has a zero divisor."""
        if name not in ZERO_DIVISORS:
            return arguments
        position, is_zero = ZERO_DIVISORS[name]
        zero = is_zero(*arguments)
        if (zero & self.active).any():
            raise ZeroDivisionError(f"integer division by zero in {name!r}, row {int(np.argmax(zero & self.active))}")
        return tuple(np.where(zero, 1, a).astype(self.dtype) if i == position else a for i, a in enumerate(arguments))

    def visit_Constant(self, node: ast.Constant) -> AnyArray:
        assert isinstance(node.value, int | float)
        return np.full(self.rows, constant(node.value, self.dtype), dtype=self.dtype)

    def visit_Name(self, node: ast.Name) -> AnyArray:
        return self.values[node.id]

    def visit_Compare(self, node: ast.Compare) -> Visit:
        reached, left = self.active, (yield node.left)
        result = None
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = yield comparator
            holds = self._apply(COMPARISONS[type(operator)], left, right)
            result = holds if result is None else self._apply("logical_and", result, holds)
            self.active, left = self.active & (result != 0), right
        self.active = reached
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        name = BOOLEAN_OPERATORS[type(node.op)]
        reached, left = self.active, (yield node.values[0])
        self.active = reached & ((left != 0) if name == "logical_and" else (left == 0))
        right = yield node.values[1]
        self.active = reached
        return self._apply(name, left, right)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        reached, test = self.active, (yield node.test)
        self.active = reached & (test != 0)
        body = yield node.body
        self.active = reached & (test == 0)
        orelse = yield node.orelse
        self.active = reached
        return self._apply("where", test, body, orelse)


def constant(value: int | float, dtype: np.dtype[Any]) -> int | float:
    """A number of a formula in a number type; a `LoweringError` if an integer type cannot represent it exactly."""
    if dtype.kind != "i":
        return float(value)
    limits = np.iinfo(dtype)
    if value != int(value) or not limits.min <= value <= limits.max:
        raise LoweringError(f"constant {value!r} does not fit {dtype}; use whole numbers within its range, or float64")
    return int(value)


def evaluate_tape(
    codes: Codes,
    values: Floats,
    primitives: PrimitiveSet,
    columns: Sequence[AnyArray],
    functions: Mapping[str, Callable[..., AnyArray]] | None = None,
) -> AnyArray:
    """Value of a tape for every row, in the dtype of the columns, shape (n_rows,).

    Parameters
    ----------
    codes, values : ndarray of shape (size,)
    primitives : PrimitiveSet
    columns : sequence of ndarray of shape (n_rows,)
        One a feature, all of one floating-point dtype.
    functions : mapping of str to callable, optional
        The basic primitives; by default `REFERENCE`.
    """
    dtype, rows = columns[0].dtype, len(columns[0])
    interpreter = Interpreter(dtype, rows, functions)
    stack: list[AnyArray] = []
    with np.errstate(all="ignore"):
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            if code == CONSTANT:
                stack.append(interpreter.filled(value))
            elif code < primitives.first_function:
                stack.append(columns[code - 1])
            else:
                function = primitives.function(code)
                arguments = stack[-function.arity :]
                del stack[-function.arity :]
                stack.append(apply_primitive(interpreter, function, arguments))
    return stack.pop()


def apply_primitive(interpreter: Interpreter, function: Primitive, arguments: Sequence[AnyArray]) -> AnyArray:
    """Value of a primitive for every row."""
    if function.definition is None:
        return interpreter.table[function.name](*arguments)
    return interpreter.run(function.definition, arguments)


Functions = Mapping[str, Callable[..., AnyArray]]
"""Functions on float64 arrays of shape (1,), by primitive. They raise `Inexact` if the bits are not known."""

INEXACT = basic_where(lambda facts: facts.inexact)
"""Primitives whose last bits differ between NumPy, which the reference tier uses, and compiled code."""


class Inexact(Exception):
    """The bits of a function are not known. `folded` and `folded_tree` catch it."""


def _where_exact(name: str, *arguments: AnyArray) -> AnyArray:
    exact_at = FACTS[name].exact_at
    if exact_at is None or len(arguments) != 1 or arguments[0] != exact_at:
        raise Inexact
    return REFERENCE[name](*arguments)


def _product_power(base: AnyArray, exponent: AnyArray) -> AnyArray:
    if exponent not in (2, 3):
        raise Inexact
    return REFERENCE["pow"](base, exponent)


EXACT: Functions = {
    **REFERENCE,
    **{name: partial(_where_exact, name) for name in INEXACT},
    "pow": _product_power,
}
"""The primitives with one correct result, which every tier computes. `shine.compiler.arrays.COMPILED` has all
primitives."""


def folded(name: str, numbers: Sequence[float], functions: Functions = EXACT) -> float | None:
    """The value of a basic primitive of numbers; None if it is not known or not finite."""
    with np.errstate(all="ignore"):
        try:
            value = float(functions[name](*(np.array([number], np.float64) for number in numbers))[0])
        except Inexact:
            return None
    return value if math.isfinite(value) else None


def folded_tree(tree: Tree, functions: Functions = EXACT) -> float | None:
    """The value of a formula without parameters; None if it is not known or not finite."""
    try:
        value = float(evaluate(tree, (), np.float64, functions)[0])
    except Inexact:
        return None
    return value if math.isfinite(value) else None
