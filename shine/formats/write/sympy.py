"""Formulas as SymPy expressions of real numbers, which have neither NaN nor a signed zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from shine.base.errors import ExportError, needing
from shine.formats.write.language import identifiers
from shine.formats.write.python import identifier
from shine.formats.write.sources import Headings, notes, takes_models
from shine.formats.write.translation import Translation
from shine.lang.forms.names import check_variable
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree


@takes_models
def sympy_expression(tree: Tree, *, precision: Precision = None) -> Any:
    """The formula as a SymPy expression of real symbols with the names of the features.

    Whole numbers become integers, numbers with names symbolic (see `shine.lang.forms.named_numbers`), all others floats
    of 53 bits. Comparisons become relations; a comparison used as a number becomes a `Piecewise` of 1 and 0. SymPy
    applies the identities of real numbers, so values can differ by rounding.

    Parameters
    ----------
    tree : Tree or Model
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Returns
    -------
    sympy.Expr

    Raises
    ------
    ExportError, MissingExtraError
        If SymPy cannot hold the formula (a comparison of complex numbers, say), or the formula is nested too deeply
        for it; if it is not installed.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> sympy_expression(parse("x*x*2.5 + sqrt(square(y))"))
    2.5*x**2 + Abs(y)
    """
    sympy, tree = _sympy(), rounded_tree(tree, precision)
    writer = _Sympy(sympy)
    try:
        symbols = [sympy.Symbol(name, real=True) for name in tree.parameters]
        expression = sympy.sympify(writer.numeric(writer.translate(tree, symbols)))
        undefined = expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo)
    except RecursionError:
        raise ExportError("the formula is nested too deeply for SymPy") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ExportError(f"SymPy cannot hold the formula: {' '.join(str(error).split())[:200]}") from None
    if undefined:
        raise ExportError("SymPy cannot hold the formula: a part of it is infinite or undefined, such as 1/0")
    return expression


@takes_models
def sympy_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """Python source that builds the SymPy expression, its numbers to the last bit.

    Parameters
    ----------
    tree, headings, precision
        As of `shine.export`.
    name : str
        Name of the variable that holds the expression.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        As for `sympy_expression`.
    """
    check_variable(name, "variable")
    expression = sympy_expression(tree, precision=precision)
    sympy = _sympy()
    printer: Any = sympy.StrPrinter

    class Printer(printer):
        """SymPy's own text, with numbers that read back exactly."""

        def _print_Float(self, number: Any) -> str:
            return f"Float({float(number)!r})"

        def _print_Rational(self, number: Any) -> str:
            return f"Rational({number.p}, {number.q})"

        def _print_Symbol(self, symbol: Any) -> str:
            return variables[symbol.name]

    try:
        functions = sorted({type(node).__name__ for node in sympy.preorder_traversal(expression)})
        symbols = sorted(expression.free_symbols, key=lambda symbol: tree.parameters.index(symbol.name))
        variables = identifiers(
            identifier, [symbol.name for symbol in symbols], {"sympy", "S", name, *functions, *vars(sympy)}
        )
        text = f"Integer({expression})" if expression.is_Integer else Printer().doprint(expression)
    except RecursionError:
        raise ExportError("the formula is nested too deeply for SymPy to print it") from None
    noted = notes({symbol.name: symbol.name for symbol in symbols}, headings)
    lines = [
        f"{variables[symbol.name]} = Symbol({symbol.name!a}, real=True)"
        + (f"  # {noted[symbol.name]}" if symbol.name in noted else "")
        for symbol in symbols
    ]
    return "\n".join(["from sympy import *", "", *lines, f"{name} = {text}", ""])


def _sympy() -> Any:
    with needing("this", "SymPy", "sympy"):
        import sympy
    return sympy


class _Sympy(Translation[Any]):
    """Builds SymPy's objects; conditions are SymPy Booleans."""

    form = "SymPy"

    def __init__(self, sympy: Any) -> None:
        super().__init__()
        self.sympy = sympy
        self.pi = sympy.pi
        self._rules = self._table(sympy)

    def rules(self) -> Mapping[str, Callable[..., Any]]:
        return self._rules

    def _table(self, sympy: Any) -> dict[str, Callable[..., Any]]:
        functions = {
            "abs": sympy.Abs, "sqrt": sympy.sqrt, "exp": sympy.exp, "log": sympy.log, "floor": sympy.floor,
            "ceil": sympy.ceiling, "sign": sympy.sign, "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan,
            "asin": sympy.asin, "acos": sympy.acos, "atan": sympy.atan, "sinh": sympy.sinh, "cosh": sympy.cosh,
            "tanh": sympy.tanh, "min": sympy.Min, "max": sympy.Max, "mod": sympy.Mod, "pow": sympy.Pow,
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "floordiv": lambda a, b: sympy.floor(a / b),
            "neg": lambda a: -a,
            "square": lambda a: a**2,
            "cube": lambda a: a**3,
            "inv": lambda a: 1 / a,
            "sigmoid": lambda a: 1 / (1 + sympy.exp(-a)),
            "relu": lambda a: sympy.Max(a, 0),
            "hypot": lambda a, b: sympy.sqrt(a**2 + b**2),
            "aq": lambda a, b: a / sympy.sqrt(1 + b**2),
            "log1p": lambda a: sympy.log(1 + a),
            "expm1": lambda a: sympy.exp(a) - 1,
            "log2": lambda a: sympy.log(a, 2),
            "log10": lambda a: sympy.log(a, 10),
            "cbrt": lambda a: sympy.sign(a) * sympy.Abs(a) ** sympy.Rational(1, 3),
        }  # fmt: skip
        relations = {"lt": sympy.Lt, "le": sympy.Le, "gt": sympy.Gt, "ge": sympy.Ge, "eq": sympy.Eq, "ne": sympy.Ne}
        return {
            **{name: self._of_numbers(function) for name, function in {**functions, **relations}.items()},
            "logical_and": self._and,
            "logical_or": self._or,
            "logical_not": lambda a: sympy.Not(self._truth(a)),
            "where": lambda condition, a, b: self._choice(self._truth(condition), a, b),
        }

    def number(self, value: int | float) -> Any:
        if math.isnan(value):
            return self.sympy.nan
        return self.sympy.Integer(int(value)) if float(value).is_integer() else self.sympy.Float(value)

    def numeric(self, value: Any) -> Any:
        """A value as a number: a condition becomes 1 or 0."""
        return self._choice(value, 1, 0) if self._is_condition(value) else value

    def _is_condition(self, value: Any) -> bool:
        # A symbol is both a Boolean and an Expr.
        return isinstance(value, self.sympy.logic.boolalg.Boolean) and not isinstance(value, self.sympy.Expr)

    def _truth(self, value: Any) -> Any:
        return value if self._is_condition(value) else self.sympy.Ne(value, 0)

    def _of_numbers(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *operands: function(*(self.numeric(operand) for operand in operands))

    def _choice(self, condition: Any, yes: Any, no: Any) -> Any:
        if condition in (self.sympy.true, self.sympy.false):
            return self.numeric(yes if condition == self.sympy.true else no)
        # Unevaluated, because SymPy takes exponential time to merge nested cases.
        pairs = [(self.numeric(yes), condition), (self.numeric(no), True)]
        # A case that is missing is NaN.
        return self.sympy.Piecewise(*pairs[: 1 if no == self.sympy.nan else 2], evaluate=False)

    def _and(self, left: Any, right: Any) -> Any:
        if self._is_condition(left) and self._is_condition(right):
            return self.sympy.And(left, right)
        return self._choice(self._truth(left), right, 0 if self._is_condition(left) else left)

    def _or(self, left: Any, right: Any) -> Any:
        if self._is_condition(left) and self._is_condition(right):
            return self.sympy.Or(left, right)
        return self._choice(self._truth(left), 1 if self._is_condition(left) else left, right)
