"""Reads formulas of any engine, counts their nodes, and evaluates them in float64 or in any precision.

Every engine's result goes through this reader, so that all are evaluated by the same arithmetic and their sizes are
counted in the same way. Text is parsed, never run.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Operation = Callable[..., Any]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
}  # fmt: skip

_SYNONYMS = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}

_NAMED_CONSTANTS = {"pi": math.pi}


def _harmonic(x: Array) -> Array:
    """Sum of 1/i for i from 1 to x; x holds whole numbers."""
    sums = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, max(x.max(initial=0), 1) + 1))])
    return sums[np.round(x).astype(np.int64)]


NUMPY: dict[str, Operation] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "square": np.square, "exp": np.exp, "log": np.log,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "harmonic": _harmonic,
    "cube": lambda a: a * a * a, "cbrt": np.cbrt, "inv": np.reciprocal, "log10": np.log10, "log2": np.log2,
    "log1p": np.log1p, "expm1": np.expm1,
    # gplearn's own, and the exponential that is added to it.
    "protected_div": lambda a, b: np.where(np.abs(b) > 0.001, np.divide(a, b), 1.0),
    "protected_log": lambda a: np.where(np.abs(a) > 0.001, np.log(np.abs(a)), 0.0),
    "protected_sqrt": lambda a: np.sqrt(np.abs(a)),
    "capped_exp": lambda a: np.exp(np.minimum(a, 100.0)),
}  # fmt: skip
"""Functions a formula may call, for arrays."""

_OF_TWO = frozenset({"add", "sub", "mul", "div", "pow", "protected_div"})


@dataclass(frozen=True)
class Step:
    """One node of a formula in postfix order: a leaf, or a function of the values before it."""

    kind: str
    index: int = 0
    arity: int = 0


@dataclass(frozen=True)
class Formula:
    """A formula in postfix order.

    Parameters
    ----------
    steps : tuple of Step
        ``kind`` is "feature" (``index`` is its column), "constant" (``index`` into `constants`), "exponent" (``index``
        is a whole number; it is not a constant to be fitted), or a function's name.
    constants : tuple of str
        Numbers as they are written, so that no precision is lost; "pi" stands for itself.
    """

    steps: tuple[Step, ...]
    constants: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of nodes; a square is a function of one argument, however it is written."""
        return len(self.steps)

    @property
    def values(self) -> Array:
        """The constants as numbers, shape (n_constants,)."""
        return np.array([_NAMED_CONSTANTS.get(text) or float(text) for text in self.constants], dtype=np.float64)

    def evaluate(self, columns: Sequence[Any], constants: Sequence[Any], operations: Mapping[str, Operation]) -> Any:
        """The value in any arithmetic, given features, constants and the functions."""
        stack: list[Any] = []
        for step in self.steps:
            if step.kind == "feature":
                stack.append(columns[step.index])
            elif step.kind == "exponent":
                stack.append(step.index)
            elif step.kind == "constant":
                stack.append(constants[step.index])
            else:
                arguments = stack[len(stack) - step.arity :]
                del stack[len(stack) - step.arity :]
                stack.append(operations[step.kind](*arguments))
        return stack.pop()

    def predict(self, X: Array, constants: Array | None = None) -> Array:
        """Values in float64, shape (n_rows,), with other constants if they are given; not finite where undefined."""
        given = self.values if constants is None else constants
        with np.errstate(all="ignore"):
            value = self.evaluate(list(X.T), list(given), NUMPY)
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(X),)).copy()


def parse_formula(text: str, features: Sequence[str]) -> Formula:
    """Read a formula.

    Parameters
    ----------
    text : str
        Python's notation; ``^`` is a power as well.
    features : sequence of str
        Names of the columns; they come before functions and constants of the same name.

    Raises
    ------
    ValueError
        If the text is not a formula over these features; the message names the unknown part.
    """
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"not a formula: {text[:80]!r}: {error}") from None
    reader = _Reader({name: position for position, name in enumerate(features)})
    steps = tuple(reader.read(tree.body))
    return Formula(steps, tuple(reader.constants))


def _whole(node: ast.expr) -> int | None:
    """The whole number that a node is; None if it is none."""
    sign, number = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    match number:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and _is_whole(value):
            return sign * int(value)
    return None


def _is_whole(value: float) -> bool:
    return abs(value) <= 1000 and value == int(value)


class _Reader:
    """Turns Python's tree into steps, and collects the constants."""

    def __init__(self, features: Mapping[str, int]) -> None:
        self._features = features
        self.constants: list[str] = []

    def read(self, node: ast.expr) -> Iterator[Step]:
        match node:
            case ast.Name(id=name) if name in self._features:
                yield Step("feature", self._features[name])
            case ast.Name(id=name) if name in _NAMED_CONSTANTS:
                yield self._constant(name)
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                yield self._constant(repr(value))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                yield from self.read(operand)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                yield self._constant(repr(-value))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield from self._applied("neg", [operand])
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=2 | 2.0)):
                yield from self._applied("square", [base])
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent) if (whole := _whole(exponent)) is not None:
                yield from self.read(base)
                yield Step("exponent", whole)
                yield Step("pow", arity=2)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                yield from self._applied(_OPERATORS[type(operator)], [left, right])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                yield from self._applied(_SYNONYMS.get(name, name), arguments)
            case _:
                raise ValueError(f"unknown syntax in a formula: {ast.unparse(node)[:80]}")

    def _constant(self, text: str) -> Step:
        self.constants.append(text)
        return Step("constant", len(self.constants) - 1)

    def _applied(self, name: str, arguments: Sequence[ast.expr]) -> Iterator[Step]:
        if name not in NUMPY:
            raise ValueError(f"unknown function {name!r} in a formula; use one of {', '.join(sorted(NUMPY))}")
        arity = 2 if name in _OF_TWO else 1
        if len(arguments) != arity:
            raise ValueError(f"not a formula: {name} takes {arity} arguments, not {len(arguments)}")
        for argument in arguments:
            yield from self.read(argument)
        yield Step(name, arity=len(arguments))
