"""Values of formulas, computed without the code under test: in long arithmetic, and from the exported text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mpmath
import numpy as np

from shine.lang.forms.tree import Tree
from shine.lang.interpret import REFERENCE, evaluate

mp = mpmath.mp.clone()
mp.dps = 60


class Undefined(Exception):
    """A value that is not real, or too large or too small to be of interest."""


def _real(value: Any) -> Any:
    number = mp.mpf(value) if not isinstance(value, mp.mpc) else value
    if isinstance(number, mp.mpc) or not mp.isfinite(number) or (number != 0 and not 1e-9 < abs(number) < 1e9):
        raise Undefined
    return number


def _pow(base: Any, exponent: Any) -> Any:
    if base == 0 and exponent <= 0:
        raise Undefined
    return mp.power(base, exponent)


EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: mp.floor(a / b),
    "mod": lambda a, b: a - b * mp.floor(a / b),
    "pow": _pow,
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": lambda a: mp.sqrt(a),
    "exp": lambda a: mp.exp(a),
    "log": lambda a: mp.log(a),
    "floor": lambda a: mp.floor(a),
    "ceil": lambda a: mp.ceil(a),
    "sign": lambda a: mp.sign(a),
    "sin": lambda a: mp.sin(a),
    "cos": lambda a: mp.cos(a),
    "tan": lambda a: mp.tan(a),
    "asin": lambda a: mp.asin(a),
    "acos": lambda a: mp.acos(a),
    "atan": lambda a: mp.atan(a),
    "sinh": lambda a: mp.sinh(a),
    "cosh": lambda a: mp.cosh(a),
    "tanh": lambda a: mp.tanh(a),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "logical_and": lambda a, b: b if a != 0 else a,
    "logical_or": lambda a, b: a if a != 0 else b,
    "logical_not": lambda a: int(a == 0),
    "where": lambda c, a, b: a if c != 0 else b,
    # The library defines these with rounded constants.
    "cbrt": lambda a: mp.sign(a) * mp.cbrt(abs(a)),
    "log2": lambda a: mp.log(a, 2),
    "log10": lambda a: mp.log10(a),
}
"""Meaning of primitives among real numbers; all others follow from their definitions."""


def exact(tree: Tree, values: Sequence[float]) -> Any:
    """The value of a formula in 60 digits; branches that are not taken count as well.

    Raises
    ------
    Undefined
        If a value in it is not real, or far too large or small.
    """
    known: dict[str, Any] = {name: mp.mpf(value) for name, value in zip(tree.parameters, values, strict=True)}
    stack: list[Any] = []
    for kind, detail in tree.tokens[1:]:
        if kind == "constant":
            stack.append(mp.mpf(float(detail)))
        elif kind == "name":
            stack.append(known[detail])
        elif kind == "assign":
            known[detail] = stack.pop()
        elif kind == "compare":
            operands = stack[-len(detail) - 1 :]
            del stack[-len(detail) - 1 :]
            pairs = zip(detail, operands, operands[1:], strict=False)
            stack.append(mp.mpf(all(EXACT[name](a, b) for name, a, b in pairs)))
        else:
            operands = stack[len(stack) - detail :]
            del stack[len(stack) - detail :]
            definition = tree.functions[kind].definition if kind not in EXACT else None
            try:
                value = EXACT[kind](*operands) if definition is None else exact(definition, operands)
            except ZeroDivisionError:
                raise Undefined from None
            stack.append(_real(value))
    return stack.pop()


@contextmanager
def watched(note: Callable[[Any], None]) -> Iterator[None]:
    """Within the context, a function receives every value that the reference tier computes."""
    original = dict(REFERENCE)

    def watching(rule: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Any) -> Any:
            result = rule(*operands)
            note(result)
            return result

        return call

    REFERENCE.update({name: watching(rule) for name, rule in original.items()})
    try:
        yield
    finally:
        REFERENCE.update(original)


def expected_where(tree: Tree, columns: Sequence[Any], ordinary: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The reference tier's predictions, and the rows where every value in the formula is ordinary."""
    kept = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        kept &= ordinary(column)

    def note(values: Any) -> None:
        np.logical_and(kept, ordinary(values), out=kept)

    with watched(note):
        predicted = evaluate(tree, columns)
    return predicted, kept


class Reader:
    """Evaluates infix text by precedence climbing.

    Parameters
    ----------
    tokens : sequence of str
    values : mapping of str to value
    """

    def __init__(self, tokens: Sequence[str], values: Mapping[str, Any]) -> None:
        self.tokens = [*tokens, ""]
        self.values = values
        self.position = 0

    @property
    def token(self) -> str:
        return self.tokens[self.position]

    def next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def accept(self, *tokens: str) -> str:
        return self.next() if self.token in tokens else ""

    def expect(self, token: str) -> None:
        assert self.token == token, f"expected {token!r}, found {self.tokens[self.position :][:8]}"
        self.position += 1

    def whole(self, value: Callable[[], Any]) -> Any:
        """The value of all of the text."""
        result = value()
        self.expect("")
        return result


def tokens(pattern: str, text: str) -> list[str]:
    """All of a text in pieces that match a pattern."""
    found = [match[0] for match in re.finditer(pattern, text)]
    assert "".join(found).replace(" ", "") == text.replace(" ", ""), f"what is this: {text!r}"
    return [token for token in found if token.strip()]


def close(value: Any, wanted: Any, tolerance: float = 1e-30) -> bool:
    """Whether two numbers of long arithmetic are equal up to rounding."""
    return bool(abs(mp.mpf(value) - wanted) <= tolerance * max(1, abs(wanted)))


def run(source: str, name: str = "f") -> Callable[..., Any]:
    """A function out of Python source."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), namespace)
    function = namespace[name]
    assert callable(function)
    return function


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, 0.5]
