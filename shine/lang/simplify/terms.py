"""Formulas during simplification: every distinct subformula once, with a number (hash-consing, Ershov 1958).

Equal subformulas have equal numbers, so one comparison tells. Arguments have smaller numbers than the terms that use
them, so no walk needs recursion. Coefficients of sums and products are quotients of two floats, so that ``x/3`` stays
a division by 3.
"""

from __future__ import annotations

import ast
import math
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from shine.lang.forms.grammar import LARGEST_EXACT
from shine.lang.forms.primitives import ARITIES
from shine.lang.forms.tape import application
from shine.lang.forms.tree import COMPARISON_NODES, Primitive, Tree
from shine.lang.interpret import EXACT, Functions, folded, folded_tree

CONSTANT, NAME = "constant", "name"
"""Operations of the leaves. All others are names of primitives or chains of comparisons."""

_CHAIN = "compare "
"""Prefix of the operation of a chain such as ``a < b <= c``, which has more than two operands."""


Range = tuple[float, float]
"""The least and the greatest value of something."""

Key = tuple[int, int, int]
"""Sorting key of formulas: first feature, size, and a digest that is the same in all processes."""

NO_RANGES: Mapping[str, Range] = MappingProxyType({})


@cache
def _digest(operation: str) -> int:
    """A number of an operation that is the same in all processes."""
    return zlib.crc32(operation.encode())


class Terms:
    """The table of all subformulas.

    Parameters
    ----------
    names : sequence of str
        Features and assigned names, in the order in which formulas list them.
    functions : mapping of str to Primitive
        Definitions of composite primitives.
    values_of : mapping of str to callable
        The functions that fold constants.
    ranges : mapping of str to (float, float)
        The least and the greatest value of features, where they are known.
    """

    def __init__(
        self,
        names: Sequence[str],
        functions: Mapping[str, Primitive],
        values_of: Functions = EXACT,
        ranges: Mapping[str, Range] = NO_RANGES,
    ) -> None:
        self.operations: list[str] = []
        self.arguments: list[tuple[int, ...]] = []
        self.values: list[float] = []
        self.sizes: list[int] = []
        self.keys: list[Key] = []
        self._names = list(names)
        self._ranks = {name: rank for rank, name in enumerate(self._names)}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._functions = functions
        self._values_of = values_of
        self._ranges = ranges
        # The largest size of ordinary values is 2^128.
        self.are_ordinary = all(max(map(abs, ranges.get(name, (math.inf,)))) <= 2.0**128 for name in self._names)
        """Whether all names are known to have values of ordinary size: of a few, products are finite."""
        self._number_types: set[type] = set()
        self.work = 0
        """Work so far: a count of small steps, which bounds simplification alike on all machines."""

    def constant(self, value: float) -> int:
        """The term of a finite number."""
        # 0.0 and -0.0 are equal: the sign distinguishes them.
        sign = math.copysign(1.0, value)
        known = self._numbers.get((CONSTANT, value, sign))
        if known is not None:
            return known
        return self._new((CONSTANT, value, sign), CONSTANT, (), value, 1, (len(self._names), 1, hash((value, sign))))

    def name(self, name: str) -> int:
        """The term of a feature or an assigned name."""
        known = self._numbers.get((NAME, name))
        if known is not None:
            return known
        rank = self._ranks[name]
        return self._new((NAME, name), NAME, (), float(rank), 1, (rank, 1, rank))

    def make(self, operation: str, *arguments: int) -> int:
        """The term that applies an operation, without simplification."""
        self.work += 1
        number = (operation, *arguments)
        known = self._numbers.get(number)
        if known is not None:
            return known
        first, size, digests = len(self._names), 1, [_digest(operation)]
        for argument in arguments:
            own, nodes, digest = self.keys[argument]
            first, size = min(first, own), size + nodes
            digests.append(digest)
        return self._new(number, operation, arguments, 0.0, size, (first, size, hash(tuple(digests))))

    def _new(
        self, number: tuple[object, ...], operation: str, arguments: tuple[int, ...], value: float, size: int, key: Key
    ) -> int:
        term = self._numbers[number] = len(self.operations)
        self.operations.append(operation)
        self.arguments.append(arguments)
        self.values.append(value)
        self.sizes.append(size)
        self.keys.append(key)
        return term

    def number(self, term: int) -> float | None:
        """The value of a constant; None for every other term."""
        return self.values[term] if self.operations[term] == CONSTANT else None

    def range_of_name(self, term: int) -> Range:
        """The range of a feature or an assigned name; infinite if it is not known."""
        return self._ranges.get(self._names[int(self.values[term])], (-math.inf, math.inf))

    def is_application(self, term: int, operation: str, arguments: tuple[int, ...]) -> bool:
        """Whether a term applies an operation to these arguments."""
        return self.operations[term] == operation and self.arguments[term] == arguments

    def fold(self, operation: str, arguments: Sequence[int]) -> int | None:
        """The value of an operation on constants; None if it is not finite, or its bits are not known."""
        if len(arguments) == ARITIES.get(operation):
            value = folded(operation, [self.values[argument] for argument in arguments], self._values_of)
        elif not operation.startswith(_CHAIN) and self._functions[operation].definition is None:
            return None
        else:
            node = self.node(self.make(operation, *arguments))
            value = folded_tree(Tree((), node, functions=self._functions), self._values_of)
        return None if value is None else self.constant(value)

    def reachable(self, roots: Sequence[int]) -> list[int]:
        """All subterms of some terms, themselves included; arguments come first."""
        seen, stack = set(roots), list(roots)
        while stack:
            for argument in self.arguments[stack.pop()]:
                if argument not in seen:
                    seen.add(argument)
                    stack.append(argument)
        return sorted(seen)

    def terms_of(self, tree: Tree) -> list[int]:
        """The terms of the values that a formula assigns, and of its result."""
        found: list[int] = []
        stack: list[int] = []
        for kind, detail in tree.tokens[1:]:
            if isinstance(detail, int):
                operands = stack[-detail:]
                del stack[-detail:]
                stack.append(self.make(kind, *operands))
            elif kind == CONSTANT:
                self._number_types.add(int if detail.removeprefix("-").isdigit() else float)
                stack.append(self.constant(float(detail)))
            elif kind == NAME:
                stack.append(self.name(detail))
            elif kind == "assign":
                found.append(stack.pop())
            else:
                operands = stack[-1 - len(detail) :]
                del stack[-1 - len(detail) :]
                stack.append(self.make(detail[0] if len(detail) == 1 else _CHAIN + " ".join(detail), *operands))
        return [*found, *stack]

    def node(self, root: int) -> ast.expr:
        """The expression of a term: a new tree, in which no node occurs twice."""
        results: list[ast.expr] = []
        stack = [(root, False)]
        while stack:
            term, complete = stack.pop()
            arguments = self.arguments[term]
            if arguments and not complete:
                stack.append((term, True))
                stack += [(argument, False) for argument in reversed(arguments)]
                continue
            first = len(results) - len(arguments)
            nodes = results[first:]
            del results[first:]
            results.append(self._node(term, nodes))
        return results.pop()

    def _node(self, term: int, arguments: list[ast.expr]) -> ast.expr:
        operation = self.operations[term]
        if operation == CONSTANT:
            return ast.Constant(self._literal(self.values[term]))
        if operation == NAME:
            return ast.Name(self._names[int(self.values[term])], ast.Load())
        if operation.startswith(_CHAIN):
            operators: list[ast.cmpop] = [COMPARISON_NODES[name]() for name in operation.split()[1:]]
            return ast.Compare(arguments[0], operators, arguments[1:])
        return application(operation, arguments)

    def _literal(self, value: float) -> int | float:
        # Written like the numbers in the formula; if it has none, in the short form.
        integers = not self._number_types or int in self._number_types
        negative_zero = value == 0 and math.copysign(1.0, value) < 0
        return (
            int(value)
            if integers and abs(value) < LARGEST_EXACT and value.is_integer() and not negative_zero
            else value
        )


Coefficient = tuple[float, float]
"""Numerator and positive denominator. The denominator is 1 if the quotient is exact."""

ZERO: Coefficient = (0.0, 1.0)
ONE: Coefficient = (1.0, 1.0)
MINUS_ONE: Coefficient = (-1.0, 1.0)

_LARGEST = 2.0**500
"""Coefficients beyond this, or below its inverse, are not merged: their products could overflow or underflow."""


class Unfit(Exception):
    """No such formula exists: a constant leaves its range, or a function is not allowed. Never escapes this package."""


def coefficient(numerator: float, denominator: float = 1.0) -> Coefficient:
    """A quotient in lowest terms, within the precision of floats.

    Raises
    ------
    Unfit
        If it leaves the range in which coefficients are merged.
    """
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    if not (1 / _LARGEST < denominator < _LARGEST and abs(numerator) < _LARGEST):
        raise Unfit
    if numerator != 0 and abs(numerator) < 1 / _LARGEST:
        raise Unfit
    if denominator == 1.0:
        return numerator, denominator
    if math.frexp(denominator)[0] == 0.5 or math.fmod(numerator, denominator) == 0:
        return numerator / denominator, 1.0
    if numerator.is_integer() and denominator.is_integer() and max(abs(numerator), denominator) < LARGEST_EXACT:
        common = math.gcd(int(numerator), int(denominator))
        return numerator / common, denominator / common
    return numerator, denominator


def times(a: Coefficient, b: Coefficient) -> Coefficient:
    """The product of two coefficients."""
    if a == ONE:
        return b
    return a if b == ONE else coefficient(a[0] * b[0], a[1] * b[1])


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """The sum of two coefficients."""
    if a[1] == b[1]:
        return coefficient(a[0] + b[0], a[1])
    exact = coefficient(a[0] * b[1] + b[0] * a[1], a[1] * b[1])
    whole = all(part.is_integer() for part in (*a, *b)) and max(map(abs, exact)) < LARGEST_EXACT
    return exact if whole else coefficient(value(a) + value(b))


def to_the_power(a: Coefficient, exponent: int) -> Coefficient:
    """A coefficient to an integer power."""
    if a == ONE:
        return a
    if exponent < 0:
        if a[0] == 0:
            raise Unfit
        a = a[1], a[0]
    numerator, denominator = a
    for _ in range(abs(exponent) - 1):
        # The last bits of Python's power depend on the processor.
        numerator, denominator = numerator * a[0], denominator * a[1]
    return coefficient(numerator, denominator)


def negative(a: Coefficient) -> Coefficient:
    """The negative of a coefficient."""
    return -a[0], a[1]


def value(a: Coefficient) -> float:
    """A coefficient as one number."""
    return a[0] / a[1]
