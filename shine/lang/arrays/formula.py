"""Array formulas: their three own nodes, their indices, and whether these fit the lengths of vectors.

All indices and bounds are linear in the loop variables, so an index is in range for all values of a variable if it is
for the first and the last one. Only variables that bounds of inner loops depend on have to run through all values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shine.base.lazy import cached_property
from shine.lang.forms.printing import ADDITION, ATOM, PRODUCT, Writer
from shine.lang.forms.tree import Primitive, agree
from shine.lang.forms.visitor import Visit


@dataclass(frozen=True)
class Affine:
    """A sum of symbols with whole factors, and a constant.

    Parameters
    ----------
    terms : tuple of (str, int)
        Symbols and their factors, none of them 0, sorted by symbol. A symbol is the name of a loop variable, or
        ``len(x)`` for the length of the vector ``x``.
    constant : int
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @classmethod
    def of(cls, factors: Mapping[str, int], constant: int) -> Affine:
        """The sum of some symbols times their factors, and a constant."""
        return cls(tuple(sorted((symbol, factor) for symbol, factor in factors.items() if factor)), constant)

    @classmethod
    def symbol(cls, name: str) -> Affine:
        """A loop variable, or a length."""
        return cls(((name, 1),))

    def __add__(self, other: Affine) -> Affine:
        factors = dict(self.terms)
        for symbol, factor in other.terms:
            factors[symbol] = factors.get(symbol, 0) + factor
        return Affine.of(factors, self.constant + other.constant)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.times(-1)

    def times(self, factor: int) -> Affine:
        """The product with a whole number."""
        return Affine.of({symbol: factor * each for symbol, each in self.terms}, factor * self.constant)

    def plus(self, number: int) -> Affine:
        """The sum with a whole number."""
        return Affine(self.terms, self.constant + number)

    def value(self, symbols: Mapping[str, Any], one: Any = 1) -> Any:
        """The number for the values of the symbols, which may be of any type that has sums and products.

        Parameters
        ----------
        symbols : mapping of str to value
        one : value
            The 1 of that type.
        """
        total = self.constant * one
        for symbol, factor in self.terms:
            total = total + symbols[symbol] * factor
        return total

    def __str__(self) -> str:
        """The number in Python: loop variables first, ``2*i + len(x) - 1``."""
        parts = [("-" if factor < 0 else "+", _product(abs(factor), symbol)) for symbol, factor in self._in_order()]
        if self.constant or not parts:
            parts.append(("-" if self.constant < 0 else "+", str(abs(self.constant))))
        (sign, first), *rest = parts
        return ("-" if sign == "-" else "") + first + "".join(f" {sign} {text}" for sign, text in rest)

    def _in_order(self) -> list[tuple[str, int]]:
        """Positive terms first, and loop variables before lengths."""
        return sorted(self.terms, key=lambda term: (term[1] < 0, term[0].startswith("len(")))


def length_of(vector: str) -> Affine:
    """The length of a vector."""
    return Affine.symbol(length_symbol(vector))


def length_symbol(vector: str) -> str:
    """The symbol of a vector's length, which is how Python writes it."""
    return f"len({vector})"


def _product(factor: int, symbol: str) -> str:
    return symbol if factor == 1 else f"{factor}*{symbol}"


STARTS: dict[str, float] = {"sum": 0.0, "prod": 1.0, "min": float("inf"), "max": float("-inf")}
"""Value of each reduction before its first term."""

STEPS: dict[str, str] = {"sum": "add", "prod": "mul", "min": "min", "max": "max"}
"""Primitive that takes the value of each reduction so far, and the next term."""


class Element(ast.expr):
    """An element of a vector. As in Python, index -1 is the last one."""

    _fields = ("vector", "index")
    vector: str
    index: Affine
    if TYPE_CHECKING:

        def __init__(self, *, vector: str, index: Affine) -> None: ...


class IntegerValue(ast.expr):
    """A whole number as a value: a loop variable, a length, or a sum of them."""

    _fields = ("number",)
    number: Affine
    if TYPE_CHECKING:

        def __init__(self, *, number: Affine) -> None: ...


class Reduction(ast.expr):
    """A sum, product, minimum or maximum of the values of a term, in the order of a loop variable.

    Attributes
    ----------
    kind : {"sum", "prod", "min", "max"}
    index : str
        The loop variable. No enclosing reduction has one of the same name.
    start : Affine
    stops : tuple of Affine
        The loop ends before the first of them.
    step : int
        Not 0.
    nonempty : bool
        Whether it has no value without a term: `min`, `max`, and `functools.reduce` without a first value.
    body : ast.expr
        The term.
    """

    _fields = ("kind", "index", "start", "stops", "step", "nonempty", "body")
    kind: str
    index: str
    start: Affine
    stops: tuple[Affine, ...]
    step: int
    nonempty: bool
    body: ast.expr
    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            kind: str,
            index: str,
            start: Affine,
            stops: tuple[Affine, ...],
            step: int,
            nonempty: bool,
            body: ast.expr,
        ) -> None: ...


@dataclass(frozen=True, eq=False)
class ArrayFormula:
    """A verified formula of vectors and numbers, made by `shine.lang.arrays.reading.array_formula`.

    Parameters
    ----------
    parameters : tuple of str
        Names of the arguments, in calling order.
    vectors : tuple of str
        Those that are vectors.
    results : tuple of ast.expr
        The values of the formula: several if it returns a tuple.
    assignments : tuple of (str, ast.expr)
        Values that are computed before, each in terms of the earlier ones.
    name : str
    functions : mapping of str to Primitive
        The table that the calls were verified against.
    """

    parameters: tuple[str, ...]
    vectors: tuple[str, ...]
    results: tuple[ast.expr, ...]
    assignments: tuple[tuple[str, ast.expr], ...] = ()
    name: str = "formula"
    functions: Mapping[str, Primitive] = field(default_factory=dict)

    @property
    def scalars(self) -> tuple[str, ...]:
        """The parameters that are numbers."""
        return tuple(name for name in self.parameters if name not in self.vectors)

    @property
    def expressions(self) -> Iterator[ast.expr]:
        """The assigned values and the results, in the order of their evaluation."""
        yield from (value for _, value in self.assignments)
        yield from self.results

    @cached_property
    def text(self) -> str:
        """The formula in Python: an expression, or a function if there are assignments."""
        result = ", ".join(array_source(each) for each in self.results)
        if not self.assignments:
            return result
        lines = [f"def {self.name}({', '.join(self.parameters)}):"]
        lines += [f"    {name} = {array_source(value)}" for name, value in self.assignments]
        return "\n".join([*lines, f"    return {result}"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ArrayFormula({self.text!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayFormula) or self._identity != other._identity:
            return False
        return agree(self.functions, other.functions, self.functions)

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        return self.parameters, self.vectors, self.text


def array_source(node: ast.expr) -> str:
    """An expression of an array formula as text; parsing the text gives the same expression again."""
    writer = _ArrayWriter(readable=False, named=False)
    writer.visit(node)
    return "".join(writer.parts)


class _ArrayWriter(Writer):
    def visit_Element(self, node: Element) -> None:
        self.parts.append(f"{node.vector}[{node.index}]")

    def visit_IntegerValue(self, node: IntegerValue) -> None:
        self.parts.append(str(node.number))

    def visit_Reduction(self, node: Reduction) -> Visit:
        stop = str(node.stops[0]) if len(node.stops) == 1 else f"min({', '.join(map(str, node.stops))})"
        bounds = [str(node.start)] if str(node.start) != "0" or node.step != 1 else []
        bounds += [stop] + ([str(node.step)] if node.step != 1 else [])
        # `reduce` without a first value is a product that has at least one term.
        is_strict = node.nonempty and node.kind in ("sum", "prod")
        opening = f"reduce({STEPS[node.kind]}, (" if is_strict else f"{node.kind}("
        self.parts.append(opening)
        yield node.body
        self.parts.append(f" for {node.index} in range({', '.join(bounds)})" + ("))" if is_strict else ")"))

    def _strength(self, node: ast.expr) -> int:
        if not isinstance(node, IntegerValue):
            return super()._strength(node)
        terms, constant = node.number.terms, node.number.constant
        if len(terms) + (constant != 0) > 1:
            return ADDITION
        return ATOM if terms and terms[0][1] == 1 else PRODUCT


def check_indices(formula: ArrayFormula, lengths: Mapping[str, int]) -> None:
    """Raise an error if a formula cannot be computed for vectors of some lengths.

    Raises
    ------
    IndexError
        If it reads an element that a vector does not have.
    ValueError
        If it has the minimum or maximum of nothing.

    Notes
    -----
    Both sides of a conditional expression count: compiled code computes both, and then chooses.
    """
    symbols = {length_symbol(vector): length for vector, length in lengths.items()}
    for expression in formula.expressions:
        _check(expression, symbols, lengths)


def _check(expression: ast.expr, symbols: dict[str, int], lengths: Mapping[str, int]) -> None:
    reductions: list[Reduction] = []
    for node in _outside_reductions(expression):
        if isinstance(node, Reduction):
            reductions.append(node)
        elif isinstance(node, Element):
            index, length = node.index.value(symbols), lengths[node.vector]
            if not -length <= index < length:
                where = {name: value for name, value in symbols.items() if not name.startswith("len(")}
                at = f" at {', '.join(f'{name} = {value}' for name, value in where.items())}" if where else ""
                raise IndexError(
                    f"{array_source(node)} is element {index}{at}, but {node.vector} has {length} elements; "
                    "every index must be in range, in both sides of a conditional expression too: change the range, or "
                    "the index"
                )
    for reduction in reductions:
        values = loop_values(reduction, symbols)
        if not values and reduction.nonempty:
            text = array_source(reduction)
            sizes = ", ".join(f"len({vector}) = {length}" for vector, length in lengths.items())
            raise ValueError(f"{text} has no terms ({sizes or 'its range is empty'}), and so no value")
        depends = any(
            symbol == reduction.index
            for node in ast.walk(reduction.body)
            if isinstance(node, Reduction)
            for bound in (node.start, *node.stops)
            for symbol, _ in bound.terms
        )
        for value in values if depends else {*values[:1], *values[-1:]}:
            _check(reduction.body, {**symbols, reduction.index: value}, lengths)


def loop_values(reduction: Reduction, symbols: Mapping[str, int]) -> range:
    """The values of the loop variable of a reduction."""
    stop = min(stop.value(symbols) for stop in reduction.stops)
    return range(reduction.start.value(symbols), stop, reduction.step)


def _outside_reductions(expression: ast.expr) -> Iterator[ast.AST]:
    """The nodes of an expression without those inside its reductions."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Reduction):
            waiting += ast.iter_child_nodes(node)
