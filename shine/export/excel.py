"""Tree -> a formula for a cell of Excel, LibreOffice or Google Sheets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Literal

from shine.errors import ExportError
from shine.export.expressions.corrected import Corrected
from shine.export.expressions.phrases import ATOM, Phrase, phrase, word, written
from shine.export.given import takes_models
from shine.export.headings import Headings, column_headings
from shine.lang.rounding import Precision, rounded_tree
from shine.lang.tree import Tree

LONGEST = 8192
"""Longest formula that Excel takes, in characters."""

DEEPEST = 64
"""Levels of nested functions and parentheses that Excel takes."""

_LARGEST = 9.99999999999999e307
"""The largest number that Excel reads; larger numbers are written as products."""

_COMPARISON = 1


@takes_models
def excel_formula(
    tree: Tree,
    cells: Mapping[str, str] | Literal["table"] | None = None,
    *,
    headings: Headings | None = None,
    precision: Precision = None,
) -> str:
    """The formula for a cell, beginning with ``=``.

    Assigned values and functions are written out at every use.

    Parameters
    ----------
    tree : Tree or Model
    cells : mapping of str to str, or "table", optional
        Place of each feature: a cell (``"B2"``, ``"$B$2"``), a name of the workbook, a column of a table
        (``"[@speed]"``). "table" means the columns of the table that the formula stands in, by their headings. By
        default the cells of the first row, in the order of the features: A1, B1, ...
    headings : mapping of str to str, optional
        Original headings of the columns, by feature; the names of the features by default.
    precision : int, "exact" or None
        Significant digits of constants; all by default. Excel itself reads the first 15.

    Raises
    ------
    ValueError
        If `cells` lacks a feature that the formula uses.
    ExportError
        If a primitive has no definition, the formula is longer or more deeply nested than Excel allows, or a table
        cannot have these headings.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> excel_formula(parse("-a**2 + sqrt(b)"))
    '=-(A1^2) + SQRT(B1)'
    >>> excel_formula(parse("2*a"), "table", headings={"a": "price [€]"})
    "=2*[@[price '[€']]]"
    """
    tree = rounded_tree(tree, precision, named=False)
    if cells is None:
        cells = {name: f"{column_letters(position)}1" for position, name in enumerate(tree.parameters)}
    elif isinstance(cells, str):
        cells = _table_columns(tree, headings, cells)
    missing = next((name for name in tree.used_parameters if name not in cells), None)
    if missing is not None:
        raise ValueError(f"cells lacks the feature {missing!r}; it has {', '.join(cells)}")
    writer = _Excel()
    result = writer.translate(tree, [word(cells.get(name, "#REF!")) for name in tree.parameters])
    text = written(writer.numeric(result), writer.form, LONGEST - 1)
    depth = _nesting(text)
    if depth > DEEPEST:
        raise ExportError(f"the formula is nested {depth} levels deep; Excel allows {DEEPEST}")
    return f"={text}"


def column_letters(position: int) -> str:
    """Letters of the column at a position: A for 0, ..., Z, AA, ..."""
    letters, number = "", position + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _table_columns(tree: Tree, headings: Headings | None, cells: str) -> dict[str, str]:
    """References to the columns of the table that the formula stands in."""
    if cells != "table":
        raise ValueError(f"cells is a mapping of features to cells, or 'table'; it is {cells!r}")
    found = column_headings(tree, headings, "a table in Excel", str.casefold)
    if "" in found.values():
        raise ExportError("a table in Excel has no column without a heading; give the column one")
    # An apostrophe escapes the characters that have a meaning in references.
    escaped = {name: re.sub(r"(['#@\[\]])", r"'\1", heading) for name, heading in found.items()}
    return {name: f"[@[{text}]]" for name, text in escaped.items()}


def _nesting(text: str) -> int:
    depth = deepest = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    return deepest


class _Excel(Corrected):
    """Excel's operators: minus binds more strongly than ``^``, and ``^`` groups to the left."""

    form = "Excel"
    sum, product, power, unary = 3, 4, 5, 6
    pi = word("PI()")

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        functions = {
            "abs": "ABS", "sqrt": "SQRT", "exp": "EXP", "log": "LN", "floor": "INT", "sign": "SIGN",
            "sin": "SIN", "cos": "COS", "tan": "TAN", "asin": "ASIN", "acos": "ACOS", "atan": "ATAN",
            "sinh": "SINH", "cosh": "COSH", "tanh": "TANH", "min": "MIN", "max": "MAX", "mod": "MOD", "log10": "LOG10",
        }  # fmt: skip
        comparisons = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "<>"}
        number = self.number
        return {
            **super().table(),
            **{name: self.calls(function) for name, function in functions.items()},
            **{name: self.comparison(symbol, _COMPARISON) for name, symbol in comparisons.items()},
            "floordiv": lambda a, b: self.call("INT", self.divided(a, b)),
            "ceil": lambda a: self.neg(self.call("INT", self.neg(a))),
            "pow": self._pow,
            "logical_not": self._not,
            "square": lambda a: self._pow(a, number(2)),
            "cube": lambda a: self._pow(a, number(3)),
            "log2": lambda a: self.call("LOG", a, number(2)),
            "log1p": self.log1p,
            "expm1": self.expm1,
            "hypot": self.hypot,
            "cbrt": lambda a: self.mul(self.call("SIGN", a), self._pow(self.call("ABS", a), word("(1/3)"))),
        }

    def positive(self, value: int | float) -> Phrase:
        if not math.isfinite(value):
            return word("#NUM!")
        number = float(value)
        if number > _LARGEST:
            return phrase("(", self.positive(number / 2), "*2)")
        text = repr(number).removesuffix(".0")
        return word(text.upper(), ATOM)

    def numeric(self, operand: Phrase) -> Phrase:
        return phrase("IF(", operand, ", 1, 0)") if operand.condition else operand

    def truth(self, operand: Phrase) -> Phrase:
        """An operand as a condition: whether a number is not 0."""
        if operand.condition:
            return operand
        return phrase(self.enclosed(operand, self.sum), "<>0", strength=_COMPARISON, condition=True)

    def _pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        # All bases except words get parentheses: people, and other languages, read -2^2 and 2^3^2 differently.
        parts = self.operand(base, ATOM), "^", self.operand(exponent, self.unary)
        return phrase(*parts, strength=self.power)

    def both(self, left: Phrase, right: Phrase) -> Phrase:
        return phrase("AND(", left, ", ", right, ")", condition=True)

    def either(self, left: Phrase, right: Phrase) -> Phrase:
        return phrase("OR(", left, ", ", right, ")", condition=True)

    def _not(self, operand: Phrase) -> Phrase:
        if operand.condition:
            return phrase("NOT(", operand, ")", condition=True)
        return phrase(self.enclosed(operand, self.sum), "=0", strength=_COMPARISON, condition=True)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        return phrase("IF(", self.truth(condition), ", ", self.numeric(yes), ", ", self.numeric(no), ")")
