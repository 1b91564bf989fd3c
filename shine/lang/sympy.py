"""SymPy's expressions as formulas."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any, NoReturn, Protocol, TypeGuard

from shine.base.errors import GraphImportError, UnsupportedSyntaxError, placed
from shine.lang.forms.grammar import LARGEST_EXACT, check_name, check_number
from shine.lang.forms.tree import CONDITIONAL, Primitive, Tree
from shine.lang.forms.visitor import TreeVisitor
from shine.lang.values import ValueGraph, written

Steps = Generator[Any, int, int]
"""A rule in progress: yields SymPy's expressions, receives their values, returns its own value."""


class SymbolReader(TreeVisitor):
    """Turns expressions into values. A subexpression that is used in several places is one value.

    Parameters
    ----------
    names : mapping of sympy.Symbol to str
        Names of symbols in the language. Other symbols keep their own names.
    primitives : mapping of str to Primitive
        Primitives that undefined functions may stand for, by name.
    rules : mapping of str to callable
        Rule of each of SymPy's classes by its name; a subclass has the rule of its base.
    functions : sequence of str
        SymPy's functions with a rule, for messages.
    """

    def __init__(
        self,
        names: Mapping[Any, str],
        primitives: Mapping[str, Primitive],
        rules: Mapping[str, Callable[[SymbolReader, Any], Any]],
        functions: Sequence[str],
    ) -> None:
        self.rules, self.functions = rules, functions
        self.graph = ValueGraph()
        self.names, self.primitives = names, primitives
        self.symbols: dict[str, Any] = {}
        self.values: dict[int, int] = {}

    def visit(self, node: Any) -> int:
        """The value of an expression."""
        value: int = super().visit(node)
        return value

    def generic_visit(self, node: Any) -> Any:
        """The value of a node, computed at its first visit."""
        # By identity: SymPy compares equal expressions node by node, with Python's own stack.
        known = self.values.get(id(node))
        return self._new(node) if known is None else known

    def _new(self, node: Any) -> Steps:
        rule = next((self.rules[kind.__name__] for kind in type(node).__mro__ if kind.__name__ in self.rules), None)
        if rule is None:
            self.reject(node)
        value = rule(self, node)
        if isinstance(value, GeneratorType):
            value = yield from value
        self.values[id(node)] = value
        return value

    def reject(self, node: Any) -> NoReturn:
        """Raise the error for a node that has no counterpart."""
        kind = type(node).__name__
        unevaluated = "; evaluate it with doit() first" if kind in ("Derivative", "Integral", "Sum", "Product") else ""
        functions = ", ".join(self.functions)
        raise GraphImportError(
            f"SymPy's {kind} has no counterpart in the language{unevaluated} (supported are sums, products, powers, "
            f"real numbers, symbols, {functions}, and undefined functions that are called like primitives)"
        )

    def number(self, number: int | float, node: Any) -> int:
        """The value of a number that float64 can hold."""
        with placed(f"SymPy's {type(node).__name__}", UnsupportedSyntaxError, kind=GraphImportError):
            return self.graph.constant(check_number(number))

    def symbol(self, node: Any) -> int:
        """The value of a symbol."""
        name = check_name(self.names.get(node, node.name))
        if self.symbols.setdefault(name, node) != node:
            raise GraphImportError(
                f"two different symbols are called {name!r}; use one of them, or give them names of their own"
            )
        return self.graph.parameter(name)

    def power(self, base: int, exponent: int) -> int:
        """A whole power, by squaring."""
        name = {2: "square", 3: "cube"}.get(exponent)
        if exponent == 1:
            return base
        if name and not self.graph.is_parameter(base):
            return self.graph.apply(name, base)
        if exponent % 2 or exponent == 2:
            return self.graph.apply("mul", self.power(base, exponent - 1), base)
        return self.power(self.power(base, exponent // 2), 2)

    def truth(self, value: int, node: Any) -> int:
        """A value as 1 or 0, unless it is a condition already."""
        is_number = isinstance(node, sys.modules["sympy"].Expr)
        return self.graph.apply("ne", value, self.graph.constant(0)) if is_number else value


FUNCTIONS: dict[str, str] = {
    "Abs": "abs", "sign": "sign", "floor": "floor", "ceiling": "ceil", "exp": "exp", "log": "log",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "Mod": "mod",
    "StrictLessThan": "lt", "LessThan": "le", "StrictGreaterThan": "gt", "GreaterThan": "ge",
    "Equality": "eq", "Unequality": "ne",
}  # fmt: skip
"""Primitive for each SymPy function that is one."""

RECIPROCALS: dict[str, str] = {
    "sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh", "coth": "tanh"
}  # fmt: skip
"""Primitive for each SymPy function that is its reciprocal."""

FOLDED: dict[str, str] = {"Min": "min", "Max": "max"}
"""Primitive of two arguments for each function of any number of arguments."""


def _integer(reader: SymbolReader, node: Any) -> int:
    return reader.number(int(node), node)


def _rational(reader: SymbolReader, node: Any) -> int:
    try:
        return reader.number(int(node.p) / int(node.q), node)
    except OverflowError:
        return reader.number(int(node), node)  # raises: the number is too large


def _float(reader: SymbolReader, node: Any) -> int:
    return reader.number(float(node), node)


def _symbol(reader: SymbolReader, node: Any) -> int:
    return reader.symbol(node)


def _is_negative(node: Any) -> bool:
    """Whether a term begins with a minus: a negative number, or a product that begins with one."""
    first = node.args[0] if type(node).__name__ == "Mul" and node.args else node
    return bool(first.is_Number and first.is_negative)


def _sum(reader: SymbolReader, node: Any) -> Steps:
    # Added terms come first, then subtracted terms, then numbers: x - y - 1.
    terms = sorted(node.args, key=lambda term: (_is_negative(term), term.is_Number or term.is_NumberSymbol))
    total = None
    for term in terms:
        negative = total is not None and _is_negative(term)
        value = yield from _product(reader, term, flipped=negative)
        total = value if total is None else reader.graph.apply("sub" if negative else "add", total, value)
    return reader.graph.constant(0) if total is None else total


def _product(reader: SymbolReader, node: Any, flipped: bool = False) -> Steps:
    """A product as a fraction; its sign is changed if it is subtracted."""
    graph = reader.graph
    above: list[int] = []
    below: list[int] = []
    negative = flipped
    for factor in node.args if type(node).__name__ == "Mul" else [node]:
        if factor.is_Rational and max(abs(factor.p), factor.q) <= LARGEST_EXACT:
            # In integers, x/3 is rounded once and x*0.333... twice.
            negative ^= bool(factor.p < 0)
            above += [graph.constant(abs(int(factor.p)))] if abs(factor.p) != 1 else []
            below += [graph.constant(int(factor.q))] if factor.q != 1 else []
        elif factor.is_Float and factor < 0:
            negative = not negative
            above.append(reader.number(-float(factor), factor))
        elif type(factor).__name__ == "Pow" and factor.exp.is_Number and factor.exp.is_negative:
            below.append((yield from _power_of(reader, factor, -factor.exp)))
        else:
            above.append((yield factor))
    numerator, denominator = _multiplied(graph, above), _multiplied(graph, below)
    if negative and above and graph.number(above[0]) is not None:
        numerator = _multiplied(graph, [graph.constant(-_number(graph, above[0])), *above[1:]])
        negative = False
    if numerator is None:
        numerator, negative = graph.constant(-1 if negative else 1), False
    value = numerator if denominator is None else graph.apply("div", numerator, denominator)
    return graph.apply("neg", value) if negative else value


def _number(graph: ValueGraph, value: int) -> int | float:
    number = graph.number(value)
    assert number is not None
    return number


def _multiplied(graph: ValueGraph, values: list[int]) -> int | None:
    product = None
    for value in values:
        product = value if product is None else graph.apply("mul", product, value)
    return product


def _power(reader: SymbolReader, node: Any) -> Steps:
    if node.exp.is_Number and node.exp.is_negative:
        return (yield from _product(reader, node))
    return (yield from _power_of(reader, node, node.exp))


def _power_of(reader: SymbolReader, node: Any, exponent: Any) -> Steps:
    """The base of a power, raised to another exponent."""
    if node.base.is_Number and node.base.is_negative and exponent.is_Number and not exponent.is_Integer:
        raise GraphImportError(f"SymPy's {node} is not a real number; the language has only real numbers")
    base = yield node.base
    if exponent.is_Integer and 1 <= exponent <= 8:  # largest whole exponent that is written as products
        return reader.power(base, int(exponent))
    if exponent.is_Rational and (exponent.p, exponent.q) == (1, 2):
        return reader.graph.apply("sqrt", base)
    return reader.graph.apply("pow", base, (yield exponent))


def _primitive(name: str) -> Callable[[SymbolReader, Any], Steps]:
    def rule(reader: SymbolReader, node: Any) -> Steps:
        operands = []
        for argument in node.args:
            operands.append((yield argument))
        if name == "log" and len(operands) == 2:
            logarithms = [reader.graph.apply("log", operand) for operand in operands]
            return reader.graph.apply("div", *logarithms)
        return reader.graph.apply(name, *operands)

    return rule


def _reciprocal(name: str) -> Callable[[SymbolReader, Any], Steps]:
    def rule(reader: SymbolReader, node: Any) -> Steps:
        value = reader.graph.apply(name, (yield node.args[0]))
        return reader.graph.apply("div", reader.graph.constant(1), value)

    return rule


def _folded(name: str) -> Callable[[SymbolReader, Any], Steps]:
    def rule(reader: SymbolReader, node: Any) -> Steps:
        if not node.args:
            reader.reject(node)
        total = yield node.args[0]
        for argument in node.args[1:]:
            total = reader.graph.apply(name, total, (yield argument))
        return total

    return rule


def _connective(name: str, negated: bool = False) -> Callable[[SymbolReader, Any], Steps]:
    """And, Or and similar functions of truth values, which are 1 or 0."""

    def rule(reader: SymbolReader, node: Any) -> Steps:
        total = None
        for argument in node.args:
            value = reader.truth((yield argument), argument)
            total = value if total is None else reader.graph.apply(name, total, value)
        if total is None:
            reader.reject(node)
        return reader.graph.apply("logical_not", total) if negated else total

    return rule


def _piecewise(reader: SymbolReader, node: Any) -> Steps:
    *cases, (last, always) = node.args
    if always != True:  # noqa: E712 - SymPy's true is equal to it, and nothing else is
        raise GraphImportError("SymPy's Piecewise has no value for all other cases; add one with the condition True")
    value = yield last
    for case, condition in reversed(cases):
        test = yield condition
        value = reader.graph.apply(CONDITIONAL, test, (yield case), value)
    return value


def _choice(reader: SymbolReader, node: Any) -> Steps:
    operands = []
    for argument in node.args:
        operands.append((yield argument))
    return reader.graph.apply(CONDITIONAL, *operands)


def _step(reader: SymbolReader, node: Any) -> Steps:
    """Heaviside's function: 0, the value at zero, or 1; NaN stays NaN."""
    graph, zero = reader.graph, reader.graph.constant(0)
    x = yield node.args[0]
    at_zero = yield node.args[1]
    value = graph.apply(CONDITIONAL, graph.apply("eq", x, zero), at_zero, x)
    value = graph.apply(CONDITIONAL, graph.apply("lt", x, zero), zero, value)
    return graph.apply(CONDITIONAL, graph.apply("gt", x, zero), graph.constant(1), value)


def _undefined(reader: SymbolReader, node: Any) -> Steps:
    """An undefined function: it means the primitive of the same name."""
    name = type(node).__name__
    primitive = reader.primitives.get(name)
    if primitive is None or primitive.arity != len(node.args):
        known = f"the primitive takes {primitive.arity}" if primitive else "there is no such primitive"
        raise GraphImportError(f"SymPy's undefined function {name} of {len(node.args)} arguments: {known}")
    return (yield from _primitive(name)(reader, node))


OTHERS: dict[str, Callable[[SymbolReader, Any], Any]] = {
    "And": _connective("logical_and"),
    "Or": _connective("logical_or"),
    "Not": _connective("logical_not", negated=True),
    "Xor": _connective("ne"),
    "Nand": _connective("logical_and", negated=True),
    "Nor": _connective("logical_or", negated=True),
    "Piecewise": _piecewise,
    "ITE": _choice,
    "Heaviside": _step,
}
"""Rules of functions that are not single primitives."""

RULES: dict[str, Callable[[SymbolReader, Any], Any]] = {
    "Integer": _integer,
    "Rational": _rational,
    "Float": _float,
    "NumberSymbol": _float,
    "Symbol": _symbol,
    "BooleanTrue": lambda reader, node: reader.graph.constant(1),
    "BooleanFalse": lambda reader, node: reader.graph.constant(0),
    "Add": _sum,
    "Mul": _product,
    "Pow": _power,
    "AppliedUndef": _undefined,
    **{name: _primitive(primitive) for name, primitive in FUNCTIONS.items()},
    **{name: _reciprocal(primitive) for name, primitive in RECIPROCALS.items()},
    **{name: _folded(primitive) for name, primitive in FOLDED.items()},
    **OTHERS,
}
"""Rule of each of SymPy's classes by its name; a subclass has the rule of its base."""


class Symbolic(Protocol):
    """SymPy's expressions, for type checkers."""

    @property
    def free_symbols(self) -> set[Any]:
        """Symbols whose values it depends on."""


def is_symbolic(value: object) -> TypeGuard[Symbolic]:
    """Whether something is an expression of SymPy."""
    basic = getattr(sys.modules.get("sympy"), "Basic", None)
    return basic is not None and isinstance(value, basic)


def symbolic_tree(expression: Any, names: Mapping[Any, str], primitives: Mapping[str, Primitive]) -> Tree:
    """The tree of one of SymPy's expressions.

    Parameters
    ----------
    expression : sympy.Basic
        An expression of real numbers. A `sympy.Lambda` defines the order of its arguments.
    names : mapping of sympy.Symbol to str
        Names of symbols in the language. Other symbols keep their own names.
    primitives : mapping of str to Primitive
        Primitives that undefined functions may stand for, by name.

    Returns
    -------
    Tree
        Its parameters are the arguments of a `Lambda`, or else the symbols in the order of their first use.

    Raises
    ------
    GraphImportError
        If part of it has no counterpart; the message names the part.
    UnsupportedSyntaxError
        If the name of a symbol is not a name of the language.
    """
    reader = SymbolReader(names, primitives, RULES, sorted({*FUNCTIONS, *RECIPROCALS, *FOLDED, *OTHERS}))
    if type(expression).__name__ == "Lambda":
        for symbol in expression.signature:
            reader.visit(symbol)
        expression = expression.expr
    value = reader.visit(expression)
    return replace(written(reader.graph, value, tuple(reader.symbols)), functions=primitives)
