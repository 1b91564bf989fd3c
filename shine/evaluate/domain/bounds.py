"""Bounds of a formula's value for parameters within boxes.

Keijzer, *Improving symbolic regression with interval arithmetic and linear scaling* (2003), uses such bounds to find
formulas with poles.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import numpy as np

from shine.evaluate.domain.interval import Interval
from shine.evaluate.domain.intervals import INTERVALS
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.tree import Primitive, Tree


def bounds(tree: Tree, boxes: Mapping[str, Interval]) -> Interval:
    """Bounds of a formula's value.

    Parameters
    ----------
    tree : Tree
    boxes : mapping of str to Interval
        Bounds of each parameter that the formula reads, in every box.

    Returns
    -------
    Interval
        The bounds are correct, but not always tight: two uses of one value count as two values, unless they are the
        factors of a product. Small boxes have tighter bounds.
    """
    with np.errstate(all="ignore"):
        return _Bounds().run(tree, boxes)


class _Bounds(Interpretation):
    """Bounds of a tree, bottom-up. Equal applications give the same object, so that squares are recognized."""

    def __init__(self) -> None:
        self.values: Mapping[str, Interval] = {}
        self.functions: Mapping[str, Primitive] = {}
        self.known: dict[tuple[str, tuple[int, ...]], Interval] = {}
        # Intervals are compared by identity, so they must not be freed.
        self.kept: list[tuple[Interval, ...]] = []
        self.constants: dict[float, Interval] = {}

    def run(self, tree: Tree, arguments: Mapping[str, Interval]) -> Interval:
        caller = self.values, self.functions
        values = dict(arguments)
        self.values, self.functions = values, tree.functions
        for name, value in tree.assignments:
            values[name] = self.visit(value)
        result: Interval = self.visit(tree.result)
        self.values, self.functions = caller
        return result

    def _apply(self, name: str, *arguments: Interval) -> Interval:
        key = name, tuple(map(id, arguments))
        if key not in self.known:
            self.kept.append(arguments)
            self.known[key] = self._applied(name, arguments)
        return self.known[key]

    def _applied(self, name: str, arguments: Sequence[Interval]) -> Interval:
        if name in INTERVALS:
            return INTERVALS[name](*arguments)
        definition = self.functions[name].definition
        assert definition is not None, f"the basic primitive {name!r} lacks a row in INTERVALS"
        return self.run(definition, dict(zip(definition.parameters, arguments, strict=True)))

    def visit_Constant(self, node: ast.Constant) -> Interval:
        assert isinstance(node.value, int | float)
        return self.constants.setdefault(node.value, Interval.of(node.value, node.value))

    def visit_Name(self, node: ast.Name) -> Interval:
        return self.values[node.id]
