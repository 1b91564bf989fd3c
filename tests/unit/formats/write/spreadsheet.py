"""Evaluates formulas for cells with Excel's own precedence, without the code under test."""

from __future__ import annotations

from typing import Any

import numpy as np
from unit.formats.write.oracles import Reader, tokens

from shine.formats.write.excel import column_letters

FUNCTIONS: dict[str, Any] = {
    "ABS": np.abs, "SQRT": np.sqrt, "EXP": np.exp, "LN": np.log, "LOG10": np.log10, "INT": np.floor, "SIGN": np.sign,
    "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
    "SINH": np.sinh, "COSH": np.cosh, "TANH": np.tanh, "ATANH": np.arctanh,
    "LOG": lambda x, base: np.log(x) / np.log(base),
    "MOD": np.remainder,
    "MIN": lambda a, b: np.where((a < b) | (a != a), a, b),
    "MAX": lambda a, b: np.where((a > b) | (a != a), a, b),
    "IF": lambda condition, a, b: np.where(boolean(condition), a, b),
    "AND": lambda *conditions: np.logical_and.reduce([boolean(c) for c in conditions]),
    "OR": lambda *conditions: np.logical_or.reduce([boolean(c) for c in conditions]),
    "NOT": lambda condition: ~boolean(condition),
    "EXACT": lambda cells, text: np.array([cell == text for cell in cells]),
    "IFS": lambda *parts: np.select([boolean(c) for c in parts[::2]], parts[1::2], np.nan),
    "N": lambda cells: np.asarray(cells, np.float64),
}  # fmt: skip
COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "=": lambda a, b: empty(a) if isinstance(b, str) else np.equal(a, b),
    "<>": np.not_equal,
}  # fmt: skip
BINARY: dict[str, tuple[int, Any]] = {
    **{symbol: (1, rule) for symbol, rule in COMPARISONS.items()},
    "+": (3, np.add),
    "-": (3, np.subtract),
    "*": (4, np.multiply),
    "/": (4, np.divide),
    "^": (5, lambda a, b: a * a if np.ndim(b) == 0 and b == 2 else a * a * a if np.ndim(b) == 0 and b == 3 else a**b),
}
"""Strength and meaning of Excel's operators; all group to the left, and a minus sign binds more strongly than any."""

TEXT = r"\"(?:[^\"]|\"\")*\"|"
TOKEN = TEXT + r"[A-Z]+[0-9]+(?![0-9(])|[A-Z]+[0-9]*(?=\()|[0-9.]+(?:E[+-][0-9]+)?|#NUM!|<>|<=|>=|[-+*/^=<>(),]| +"


def boolean(condition: Any) -> Any:
    assert np.asarray(condition).dtype == bool, "a number where Excel's text says a condition"
    return condition


def empty(cells: Any) -> Any:
    return np.array([each is None or each != each for each in cells])


class ExcelReader(Reader):
    def expression(self, minimum: int = 0) -> Any:
        left = self.prefix()
        while self.token in BINARY and BINARY[self.token][0] > minimum:
            strength, rule = BINARY[self.next()]
            left = rule(left, self.expression(strength))
        return left

    def prefix(self) -> Any:
        return -self.prefix() if self.accept("-") else self.atom()

    def atom(self) -> Any:
        token = self.next()
        if token == "(":
            value = self.expression()
            self.expect(")")
            return value
        if token == "PI":
            self.expect("(")
            self.expect(")")
            return np.float64(np.pi)
        if token in FUNCTIONS:
            self.expect("(")
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
            return FUNCTIONS[token](*arguments)
        if token == "#NUM!":
            return np.float64(np.nan)
        if token[0] == '"':
            return token[1:-1].replace('""', '"')
        return self.values[token] if token in self.values else np.float64(token)


def evaluated(formula: str, columns: Any) -> Any:
    assert formula[0] == "="
    values = {f"{column_letters(i)}1": column for i, column in enumerate(columns)}
    reader = ExcelReader(tokens(TOKEN, formula[1:]), values)
    with np.errstate(all="ignore"):
        return np.broadcast_to(reader.whole(reader.expression), columns[0].shape)
