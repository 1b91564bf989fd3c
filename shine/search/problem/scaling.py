"""Scaling of data near the ends of float64's range, and slopes and intercepts written into formulas.

Squares and products of scaled data stay within the range. Columns and target are divided by powers of two, which
changes no bit of their mantissas, and formulas get the factors back. Numbers of ordinary size, such as those of physics
in SI units, stay as they are: otherwise constants of nature that cancel in a formula would no longer cancel.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import ORDINARY, Dataset
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import application, functions_of, tape_from_tree, tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.simplify.simplifier import simplify

_AT_ONCE = 1 << 20
"""Numbers read at a time, to bound memory."""


@dataclass(frozen=True)
class Scaling:
    """Exponents of the powers of two that a data set is divided by.

    Parameters
    ----------
    columns : mapping of str to int
        By feature; features that are not divided are left out.
    target : int
    """

    columns: Mapping[str, int]
    target: int

    @classmethod
    def of(cls, dataset: Dataset, *, target: bool = True) -> Scaling:
        """The scaling that a data set needs; an empty one in most cases.

        Parameters
        ----------
        dataset : Dataset
        target : bool
            Whether the target may be scaled.
        """
        largest, least = _exponents(dataset.columns)
        columns: dict[str, int] = {}
        group: list[int] = []
        awkward = np.flatnonzero(np.abs(largest) > ORDINARY)
        for index in [*awkward[np.argsort(-largest[awkward], kind="stable")].tolist(), None]:
            # Columns whose exponents differ by at most this are divided by the same power: it keeps their sums and
            # ratios.
            if group and (index is None or largest[group[0]] - largest[index] > 60):
                # Scaling gives a number no exponent below -1000: smaller numbers lose digits.
                exponent = int(min(largest[group[0]], least[group].min() + 1000))
                columns |= {dataset.features[member]: exponent for member in group}
                group = []
            if index is not None:
                group.append(index)
        own = int(_exponents(dataset.target[None])[0][0])
        return cls(columns, own if target and abs(own) > ORDINARY else 0)

    def __bool__(self) -> bool:
        return bool(self.columns) or self.target != 0

    def applied(self, dataset: Dataset) -> Dataset:
        """The data set, scaled; the same object if there is nothing to do."""
        if not self:
            return dataset
        columns = dataset.columns
        if self.columns:
            columns = np.ldexp(columns, [[-self.columns.get(name, 0)] for name in dataset.features])
        return replace(dataset, columns=columns, target=np.ldexp(dataset.target, -self.target), known_ranges=None)

    def entering(self, tree: Tree) -> Tree:
        """Rewrite a formula of the given data for the scaled data."""
        return self._rescaled(tree, 1, gather=False) if self else tree

    def leaving(self, tree: Tree, dataset: Dataset) -> Tree:
        """Rewrite a formula of the scaled data for the given data.

        Parameters
        ----------
        tree : Tree
        dataset : Dataset
            The given data. The formula is simplified if this changes its values there only by rounding.
        """
        if not self:
            return tree
        written, gathered = (self._rescaled(tree, -1, gather=gather) for gather in (False, True))
        # Rows on which a simplified formula must have the same values as before.
        columns = list(dataset.sampled(1000, np.random.default_rng(0)).columns)

        def values(form: Tree) -> Floats:
            return np.ldexp(evaluate(form, columns, np.float64, COMPILED), -self.target)

        expected, simple = values(written), [simplify(form, _primitives_of(form)) for form in (gathered, written)]
        with np.errstate(all="ignore"):
            for form in sorted((*simple, gathered), key=lambda form: form.size):
                if form.size < written.size and (np.abs(values(form) - expected) <= 1e-12 * np.abs(expected)).all():
                    return form
        return written

    def loss(self, value: float, degree: int) -> float:
        """A loss of the scaled target in the units of the given target.

        A loss beyond float64's range becomes its largest number, or 0.

        Parameters
        ----------
        value : float
        degree : int
            Power of the target's unit that the loss is measured in (see `shine.evaluate.losses.form.Loss`).
        """
        try:
            return math.ldexp(value, self.target * degree)
        except OverflowError:
            return math.copysign(float(np.finfo(np.float64).max), value)

    def _rescaled(self, tree: Tree, direction: int, *, gather: bool) -> Tree:
        """A formula with the factors of its columns and of the target.

        Parameters
        ----------
        tree : Tree
        direction : {1, -1}
        gather : bool
            Whether constants take up the factors of the products that they are in, where float64 has these numbers.
            The partial products are others then, and may overflow.
        """
        primitives = _primitives_of(tree)
        tape = tape_from_tree(tree, primitives)
        names = {code: name for name, code in primitives.function_codes.items()}
        mul, arities = primitives.function_codes["mul"], primitives.arities
        stack: list[_Part] = []
        for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
            node, feature = [(code, value)], CONSTANT < code < primitives.first_function
            if code < primitives.first_function:
                exponent = direction * self.columns.get(primitives.features[code - 1], 0) if feature else 0
                part = _Part(node, exponent, ((0, 1),) if gather and not feature else None)
                stack.append(part if gather else part.settled(0, mul))
                continue
            start = len(stack) - int(arities[code])
            stack[start:] = [_applied(names[code], node, stack[start:], mul)]
        (whole,) = stack
        codes, values = (
            np.array(part) for part in zip(*whole.settled(direction * self.target, mul).nodes, strict=True)
        )
        written = tree_from_tape(codes.astype(np.int16), values.astype(np.float64), primitives)
        return replace(written, parameters=tree.parameters, name=tree.name)


@dataclass(frozen=True)
class _Part:
    """Postfix nodes, whose value is to be multiplied by a power of two.

    Parameters
    ----------
    nodes : list of (code, value)
    exponent : int
    constants : tuple of (place, {1, -1}), optional
        Positions of constants that multiply the value by a number if all are multiplied by it, or by its inverse;
        None if there are none.
    """

    nodes: list[tuple[int, float]]
    exponent: int
    constants: tuple[tuple[int, int], ...] | None

    def settled(self, exponent: int, mul: int) -> _Part:
        """The part with another exponent: its constants take up the difference if they can, and otherwise a factor."""
        factor = self.exponent - exponent
        if factor == 0:
            return self
        nodes = list(self.nodes)
        for place, sign in self.constants or ():
            code, value = nodes[place]
            moved = _moved(value, sign * factor)
            if moved is None:
                break
            nodes[place] = (code, moved)
        else:
            if self.constants:
                return _Part(nodes, exponent, self.constants)
        return _Part([*self.nodes, *_times(factor, mul)], exponent, None)

    def after(self, nodes: int, sign: int = 1) -> tuple[tuple[int, int], ...]:
        """The places of the constants if so many nodes come before the part."""
        return tuple((place + nodes, sign * own) for place, own in self.constants or ())


def _applied(name: str, node: list[tuple[int, float]], parts: list[_Part], mul: int) -> _Part:
    """A function of parts."""
    first, last = parts[0], parts[-1]
    if name in ("mul", "div"):
        sign = 1 if name == "mul" else -1
        nodes, exponent = [*first.nodes, *last.nodes, *node], first.exponent + sign * last.exponent
        return _Part(nodes, exponent, first.constants or last.after(len(first.nodes), sign) or None)
    if name in ("neg", "abs"):
        return _Part([*first.nodes, *node], first.exponent, first.constants)
    exponent = 0
    if name in ("add", "sub", "min", "max"):
        # The exponent of one without constants, which the others can take up.
        exponent = next((part.exponent for part in parts if part.constants is None), first.exponent)
    parts = [part.settled(exponent, mul) for part in parts]
    nodes = [each for part in parts for each in part.nodes] + node
    if name in ("add", "sub", "min", "max") and all(part.constants for part in parts):
        return _Part(nodes, exponent, (*parts[0].after(0), *parts[1].after(len(parts[0].nodes))))
    return _Part(nodes, exponent, None)


def _moved(value: float, exponent: int) -> float | None:
    """A number times a power of two; None if it leaves the range in which that is exact."""
    try:
        moved = math.ldexp(value, exponent)
    except OverflowError:
        return None
    return moved if value == 0 or abs(moved) >= float(np.finfo(np.float64).tiny) else None


def _times(exponent: int, mul: int) -> list[tuple[int, float]]:
    """Postfix nodes that multiply the value before them by a power of two."""
    # Largest absolute exponent that is written as one factor; a larger one becomes several factors.
    count = -(-abs(exponent) // 1020)
    parts = [exponent // count + (number < exponent % count) for number in range(count)]
    return [node for part in parts for node in ((CONSTANT, math.ldexp(1.0, part)), (mul, 0.0))]


def _primitives_of(tree: Tree) -> PrimitiveSet:
    """Primitive set of the functions that a formula calls, and multiplication."""
    known = {**STANDARD, **tree.functions}
    return PrimitiveSet(tuple(known[name] for name in sorted({*functions_of(tree), "mul"})), tree.parameters)


def _exponents(columns: Floats) -> tuple[Indices, Indices]:
    """Binary exponents of the largest and of the smallest nonzero number of each column; 0 for columns of zeros."""
    step = max(_AT_ONCE // max(columns.shape[1], 1), 1)
    found = []
    for start in range(0, len(columns), step):
        sizes = np.abs(columns[start : start + step])
        smallest = sizes.min(axis=1, where=sizes > 0, initial=np.inf)
        ends = np.array([sizes.max(axis=1), np.where(np.isfinite(smallest), smallest, 0.0)])
        found.append(np.frexp(ends)[1].astype(np.int64))
    largest, least = np.concatenate(found, axis=1)
    return largest, least


LINE_FUNCTIONS = ("add", "sub", "mul")
"""Functions that write a slope and an intercept into a formula, even if the search does not draw from them."""


def with_functions(primitives: PrimitiveSet, names: Sequence[str]) -> PrimitiveSet:
    """The primitive set, with the named standard functions that it lacks."""
    added = select(STANDARD, [name for name in names if name not in primitives.table])
    return replace(primitives, functions=(*primitives.functions, *added)) if added else primitives


def with_line(tree: Tree, slope: float, intercept: float) -> Tree:
    """A formula with a slope and an intercept written into it; unchanged if one of them is not finite."""
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        return tree
    node = tree.result
    if slope != 1:
        node = application("mul", [ast.Constant(slope), node])
    if intercept != 0:
        node = application("add" if intercept > 0 else "sub", [node, ast.Constant(abs(intercept))])
    return replace(tree, result=node)


def without_line(tree: Tree) -> Tree:
    """A formula without its outermost slope and intercept, if it has them."""
    node = tree.result
    for operators in ((ast.Add, ast.Sub), (ast.Mult, ast.Div)):
        match node:
            case ast.BinOp(left=inner, op=operator, right=ast.Constant()) if isinstance(operator, operators):
                node = inner
            case ast.BinOp(left=ast.Constant(), op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=inner) if (
                isinstance(operator, operators)
            ):
                node = inner
    return replace(tree, result=node)
