"""Comparisons of a query: of columns with each other, with what the text says, and with lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from shine.frames.language.arithmetic import is_number
from shine.frames.language.bounds import float_bound, integer_bound
from shine.frames.language.instants import duration, instant
from shine.frames.language.steps import Adding, Typed
from shine.frames.language.types import INTEGERS
from shine.lang.conditions.reading import HOLDS, Literal
from shine.lang.forms.names import shown, value_text

LONG_LIST = 16
"""Most values of a list that are compared one by one; longer lists are looked up before the query runs."""


class Comparing(Adding):
    """Adds steps that compare."""

    def _unless(self, opposite: bool, found: Typed) -> Typed:
        """A condition, or its opposite."""
        return self._steps.add("not", "bool", (found.index,)) if opposite else found

    def of_literals(self, comparison: str, left: Literal, right: Literal, node: ast.AST) -> Typed:
        """A comparison of two values in the text."""
        try:
            return self._steps.add("constant", "bool", (), bool(HOLDS[comparison](left.value, right.value)))
        except (TypeError, ValueError):
            self._reject(f"{value_text(left.value)} and {value_text(right.value)} cannot be compared", node)

    def of_columns(self, comparison: str, left: Typed, right: Typed, node: ast.AST) -> Typed:
        """A comparison of two columns or values."""
        meanings = [left.meaning.replace("truth", "number"), right.meaning.replace("truth", "number")]
        if meanings[0] != meanings[1]:
            self._reject(f"{left} and {right} cannot be compared", node)
        if meanings[0] == "text":
            if comparison not in ("==", "!="):
                self._reject("texts are compared with ==, != and in", node)
            return self._unless(comparison == "!=", self._steps.same_texts(left, right))
        if left.column is not None and right.column is not None and meanings[0] != "number":
            if (left.column.zone is None) != (right.column.zone is None):
                self._reject(f"{left} and {right} cannot be compared: one has a time zone and one has none", node)
            if left.column.unit != right.column.unit:
                return self._steps.compare_units(comparison, left, right)
        return self._steps.compare(comparison, left, right)

    def with_literal(self, comparison: str, left: Typed, right: Literal, node: ast.AST) -> Typed:
        """A comparison of a column or a value with what the text says."""
        value = right.value
        if left.meaning == "text":
            if not isinstance(value, str) or comparison not in ("==", "!="):
                what = "with a text in quotes" if comparison in ("==", "!=") else "with ==, != and in"
                self._reject(f"column {shown(left.name)} holds texts, which are compared {what}", node)
            return self._unless(comparison == "!=", self._steps.is_text(left, value))
        if left.meaning in ("time", "duration"):
            assert left.column is not None
            try:
                exact = (instant if left.meaning == "time" else duration)(value, left.column)
            except ValueError as error:
                self._reject(f"column {shown(left.name)} is {left.meaning}: {error}", node)
            return self._steps.bounded(left, integer_bound(comparison, exact, left.kind), right.is_variable)
        if not isinstance(value, bool | int | float):
            hint = "; leave out the quotes" if isinstance(value, str) else ""
            hint = "; lists go with in, == and !=" if isinstance(value, tuple) else hint
            self._reject(f"{left} cannot be compared with {value_text(value)}{hint}", node)
        if left.kind == "bool":
            left = self._steps.convert(left, "int8")
        number = int(value) if isinstance(value, bool) else value
        if left.kind in INTEGERS:
            self._check_size(number, node)
            return self._steps.bounded(left, integer_bound(comparison, number, left.kind), right.is_variable)
        return self._steps.bounded(left, float_bound(comparison, number, left.kind), right.is_variable)

    def _check_size(self, number: int | float, node: ast.AST) -> None:
        if isinstance(number, int) and not INTEGERS["int64"][0] <= number <= INTEGERS["uint64"][1]:
            self._reject(f"{value_text(number)} fits neither int64 nor uint64; write a float such as 1e30", node)

    def among(self, left: Typed, right: Literal, node: ast.AST) -> Typed:
        """Whether a value is in a list."""
        assert isinstance(right.value, tuple)
        if len(right.value) > LONG_LIST and left.column is not None and left.meaning in ("number", "text"):
            return self._looked_up(left, right.value, node)
        result = self._steps.add("constant", "bool", (), False)
        for value in dict.fromkeys(right.value):
            found = self.with_literal("==", left, Literal(value, right.is_variable), node)
            result = self._steps.add("or", "bool", (result.index, found.index))
        return result

    def _looked_up(self, column: Typed, values: Sequence[Any], node: ast.AST) -> Typed:
        """A long list: values that the column's type does not hold are left out."""
        if column.meaning == "text":
            if not all(isinstance(value, str) for value in values):
                self._reject(f"column {shown(column.name)} holds texts; the list has others", node)
            return self._steps.member(column, tuple(dict.fromkeys(values)))
        if not all(is_number(value) for value in values):
            self._reject(f"column {shown(column.name)} holds numbers; the list has others", node)
        bound = integer_bound if column.kind in INTEGERS else float_bound
        bounds = [bound("==", value, column.kind) for value in values]
        held = dict.fromkeys(number for comparison, number in bounds if comparison == "==" and number == number)
        return self._steps.member(column, tuple(held))
