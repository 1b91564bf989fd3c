"""Writes functions instruction by instruction: names made, types inferred and checked; formulas as instructions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import FormError
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree
from shine.tensor.form.module import Attribute, Function, Instruction, Value
from shine.tensor.form.operations import FROM_THE_LANGUAGE, OPERATIONS, no_functions, result_types
from shine.tensor.form.shapes import SignatureOf
from shine.tensor.form.types import TensorType, type_of

DEFAULTS: dict[str, Callable[[TensorType], Attribute]] = {
    "keep": lambda operand: False,
    "axes": lambda operand: tuple(range(operand.rank)),
    "step": lambda operand: (1,) * operand.rank,
    "interior": lambda operand: (0,) * operand.rank,
    "strides": lambda operand: (1,) * (operand.rank - 2),
    "dilation": lambda operand: (1,) * (operand.rank - 2),
    "groups": lambda operand: 1,
    "descending": lambda operand: False,
    "permutation": lambda operand: tuple(reversed(range(operand.rank))),
}
"""Attributes that `FunctionBuilder` completes, by the first operand's type. `low` and `high` have defaults too, but of
another length for `pad` and `convolve`."""


T = TypeVar("T")
"""What operations take and make."""


def _plain(value: Any) -> Attribute:
    """An attribute with Python's own integers, and a tuple for a list."""
    if isinstance(value, list | tuple):
        return tuple(int(item) if isinstance(item, np.integer) else item for item in value)
    return value.item() if isinstance(value, np.integer | np.bool_) else value


class OperationMethods(Generic[T]):
    """A builder with a method for each operation."""

    emit: Callable[..., Sequence[T]]

    def __getattr__(self, operation: str) -> Callable[..., T]:
        """`b.add(x, y)`: the result of an operation, or a tuple of several; `b.and_(x, y)` for Python's keywords.

        Type checkers are told of one result; `emit` has the type of several.
        """
        known = operation.rstrip("_")
        if known not in OPERATIONS:
            raise AttributeError(f"there is no operation {operation!r}")

        def emit(*operands: T, **attributes: Attribute) -> Any:
            results = self.emit(known, operands, **attributes)
            return results[0] if len(results) == 1 else results

        return emit


class FunctionBuilder(OperationMethods[Value]):
    """A function in the making.

    Parameters
    ----------
    name : str
    signature_of : callable, optional
        Types of the functions that it may call.

    Examples
    --------
    >>> b = FunctionBuilder("double")
    >>> x = b.parameter("x", TensorType("f32", (3,)))
    >>> print(b.done(b.add(x, x)).result_types[0])
    <3 x f32>
    """

    def __init__(self, name: str, signature_of: SignatureOf = no_functions) -> None:
        self.name, self.signature_of = name, signature_of
        self._parameters: list[Value] = []
        self._body: list[Instruction] = []
        self._names: set[str] = set()
        self.composites: dict[str, tuple[Primitive, tuple[Value, ...]]] = {}
        """The origin of a value, by its name: a function of the language that was applied to others."""

    def parameter(self, name: str, type: TensorType) -> Value:
        """Add a parameter; a `FormError` if the name is used."""
        if name in self._names:
            raise FormError(f"@{self.name} has two values %{name}")
        self._names.add(name)
        self._parameters.append(Value(name, type))
        return self._parameters[-1]

    def emit(self, operation: str, operands: Sequence[Value], **attributes: Attribute) -> tuple[Value, ...]:
        """Add an instruction; attributes with a usual value may be left out.

        Returns
        -------
        tuple of Value
            Its results.

        Raises
        ------
        FormError
            If the operation does not take these operands or attributes.
        """
        complete = {name: _plain(value) for name, value in attributes.items()}
        for name in OPERATIONS[operation].attributes if operation in OPERATIONS else ():
            if name not in complete and operands and name in DEFAULTS:
                complete[name] = DEFAULTS[name](operands[0].type)
            elif name not in complete and operands and name in ("low", "high"):
                complete[name] = (0,) * (operands[0].type.rank - (2 if operation == "convolve" else 0))
        types = result_types(operation, tuple(v.type for v in operands), complete, self.signature_of)
        results = tuple(Value(self._new_name(), type) for type in types)
        self._body.append(Instruction(results, operation, tuple(operands), complete))
        return results

    def constant(self, value: ArrayLike, dtype: str | None = None) -> Value:
        """Add a constant; numbers of Python need an element type.

        A `FormError` if there is no such element type, or an integer type cannot represent a number.
        """
        given = np.asarray(value)
        wanted = type_of(given).numpy if dtype is None else TensorType(dtype).numpy
        array, fits = given, given.dtype.kind != "c"
        try:
            if fits:
                with np.errstate(invalid="ignore", over="ignore"):
                    array = given.astype(wanted, order="C")
                fits = wanted.kind == "f" or np.array_equal(array, given)
        except (ValueError, TypeError, OverflowError):
            fits = False
        if not fits:
            raise FormError(f"{given.ravel()[:4].tolist()} cannot be a constant of elements {dtype}")
        array.flags.writeable = False
        return self.emit("constant", (), value=array)[0]

    def like(self, other: Value, number: float) -> Value:
        """A scalar with the elements of a value, for elementwise operations with it."""
        return self.constant(number, other.type.dtype)

    def done(self, *results: Value) -> Function:
        """The function, with its results."""
        return Function(self.name, tuple(self._parameters), tuple(self._body), results)

    def _new_name(self) -> str:
        number = len(self._names)
        while f"v{number}" in self._names:
            number += 1
        self._names.add(f"v{number}")
        return f"v{number}"


DIFFERENTIABLE: Mapping[str, Primitive] = with_definitions(
    STANDARD,
    """
def log1p(x):
    # Kahan's correction. Where 1 + x is 1 it would divide by 0, and where it is x itself, infinity by infinity.
    u = 1 + x
    gap = u - 1
    return x if gap == 0 else log(u) if u == x else log(u) * (x / (1 if gap == 0 else gap))

def expm1(x):
    # By the hyperbolic tangent of half of it, which keeps the digits near 0.
    half = tanh(0.5 * min(1, x))
    return exp(x) - 1 if x > 1 else 2 * half / (1 - half)
""",
)
"""The language's functions; of some, whose definitions divide 0 by 0 in branches that are not taken, others are here.
In formulas these have derivatives of their own, but in a module a formula is differentiated as it is written."""


def definition_of(function: Primitive) -> Tree:
    """The definition of a composite that modules have: that of `DIFFERENTIABLE` for a function of the language."""
    definition = (DIFFERENTIABLE[function.name] if STANDARD.get(function.name) == function else function).definition
    assert definition is not None, f"{function.name!r} is neither a basic primitive nor a composite"
    return definition


def write_composite(builder: FunctionBuilder, function: Primitive, operands: Sequence[Value]) -> Value:
    """Add the instructions of a composite, as `write_formula` does, and note whose they are."""
    result = write_formula(builder, definition_of(function), operands)
    if result not in operands:
        builder.composites.setdefault(result.name, (function, tuple(operands)))
    return result


def write_formula(builder: FunctionBuilder, tree: Tree, operands: Sequence[Value]) -> Value:
    """Add the instructions of a formula.

    Parameters
    ----------
    builder : FunctionBuilder
    tree : Tree
    operands : sequence of Value
        The parameters' values: floats of one element type, whose shapes can be broadcast together.

    Returns
    -------
    Value
        Floats of the same element type. Its shape is that of the operands that the formula uses, broadcast.
    """
    return _Writer(builder, operands[0].type.dtype).run(tree, operands)


class _Writer(Interpretation):
    """Comparisons and logic give truth, which becomes a number where a number is needed, and the other way round."""

    def __init__(self, builder: FunctionBuilder, dtype: str) -> None:
        self.builder, self.dtype = builder, dtype
        self.values: dict[str, Value] = {}
        self.functions: Mapping[str, Primitive] = {}

    def run(self, tree: Tree, operands: Sequence[Value]) -> Value:
        caller = self.values, self.functions
        self.values, self.functions = dict(zip(tree.parameters, operands, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.values[name] = self._number(self.visit(value))
        result = self._number(self.visit(tree.result))
        self.values, self.functions = caller
        return result

    def _apply(self, name: str, *operands: Value) -> Value:
        if name in ("logical_and", "logical_or"):
            return self._logic(name, *operands)
        if name == "logical_not":
            return self.builder.emit("not", [self._truth(operands[0])])[0]
        if name == "where":
            condition, *branches = operands
            return self.builder.emit("select", [self._truth(condition), *map(self._number, branches)])[0]
        if name in FROM_THE_LANGUAGE:
            return self.builder.emit(name, [self._number(operand) for operand in operands])[0]
        return self.run(definition_of(self.functions[name]), [self._number(operand) for operand in operands])

    def _logic(self, name: str, left: Value, right: Value) -> Value:
        """`and` and `or` of truth; of numbers, they give one of them."""
        if left.type.dtype == right.type.dtype == "bool":
            return self.builder.emit(name.removeprefix("logical_"), [left, right])[0]
        first, second = (right, left) if name == "logical_and" else (left, right)
        return self.builder.emit("select", [self._truth(left), self._number(first), self._number(second)])[0]

    def _truth(self, value: Value) -> Value:
        if value.type.dtype == "bool":
            return value
        return self.builder.emit("ne", [value, self.builder.like(value, 0)])[0]

    def _number(self, value: Value) -> Value:
        return value if value.type.dtype != "bool" else self.builder.emit("cast", [value], dtype=self.dtype)[0]

    def visit_Constant(self, node: ast.Constant) -> Value:
        assert isinstance(node.value, int | float)
        return self.builder.constant(node.value, self.dtype)

    def visit_Name(self, node: ast.Name) -> Value:
        return self.values[node.id]
