"""The known part of a template solved for an unknown function: the values that it must have in each row.

If ``log(f(a))*b + 2`` is measured, ``f(a)`` is ``exp((y - 2)/b)``. The noise of each value grows as the inverse says
(the delta method). A template such as ``f(a) + f(b)`` has no inverse: then a rough function is tabulated where it is
called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED, exp, log
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import functions_of, tape_from_tree, tree_from_tape
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.search.kinds.template.rough_fits import RoughFit
from shine.search.templates.composition import Composition
from shine.search.templates.law import inlined
from shine.search.templates.template import Parameter

LEAST_SHARE = 0.5
"""Share of the rows for which the known part must have an inverse."""

Inverse = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Value of a function, its other operand -> the operand, and the size of the derivative of the value by it."""

_ONE = np.ones(1)

INVERSES: dict[tuple[str, int], Inverse] = {
    ("add", 0): lambda y, o: (y - o, _ONE),
    ("add", 1): lambda y, o: (y - o, _ONE),
    ("sub", 0): lambda y, o: (y + o, _ONE),
    ("sub", 1): lambda y, o: (o - y, _ONE),
    ("mul", 0): lambda y, o: (y / o, np.abs(o)),
    ("mul", 1): lambda y, o: (y / o, np.abs(o)),
    ("div", 0): lambda y, o: (y * o, 1 / np.abs(o)),
    ("div", 1): lambda y, o: (o / y, y * y / np.abs(o)),
    ("neg", 0): lambda y, o: (-y, _ONE),
    ("inv", 0): lambda y, o: (1 / y, y * y),
    ("exp", 0): lambda y, o: (log(y), np.abs(y)),
    ("log", 0): lambda y, o: (exp(y), exp(-y)),
    ("sqrt", 0): lambda y, o: (np.where(y < 0, np.nan, y * y), 0.5 / np.abs(y)),
}
"""Inverses by the name of the function and the place of the operand."""

_AFFINE = ("add", "sub", "mul", "div", "neg")
_SUMS = ("add", "sub")


@dataclass(frozen=True)
class Known:
    """Parts of a template taken as known besides the known part.

    Parameters
    ----------
    numbers : mapping of str to ndarray of shape (n_rows,)
        Values of parameters in each row.
    functions : mapping of str to Tree
        Formulas of unknown functions.
    """

    numbers: Mapping[str, Floats] = field(default_factory=dict)
    functions: Mapping[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Solved:
    """The values that an unknown function must have.

    Parameters
    ----------
    rows : Dataset
        Its arguments as columns, its values as target, and their weights.
    up_to_line : bool
        Whether the values are known up to a slope and an intercept.
    """

    rows: Dataset
    up_to_line: bool


@dataclass(frozen=True)
class _Node:
    """A node of the known part: its function or leaf, its operands, and the stretch of tape that it ends."""

    name: str
    operands: tuple[_Node, ...]
    begin: int
    end: int


@np.errstate(all="ignore")
def solved(composition: Composition, dataset: Dataset, name: str, known: Known) -> Solved | None:
    """The values of an unknown function of a template; None if the template cannot be solved for them.

    Parameters are in the way, unless they are known, or are factors and summands of the whole: ``c*f(a) + d``
    determines f up to a line, like linear scaling.

    Parameters
    ----------
    composition : Composition
    dataset : Dataset
        With the columns of the composition.
    name : str
        Name of the unknown function.
    known : Known
    """
    template = composition.template
    calls = {called: by for called, (of, by) in template.calls.items() if of == name}
    others = [each.name for each in template.unknowns if each.name != name]
    if len(template.outputs) > 1 or set(calls) != {name} or any(by for _, by in template.calls.values()):
        return None
    if not set(others) <= set(known.functions):
        return None
    fixed = {each.name: np.full(dataset.n_rows, each.value) for each in template.parameters if each.value is not None}
    walk = _Walk(composition, dataset, name, {**fixed, **known.numbers}, known.functions, template.outputs[0])
    return walk.solved()


def solved_for_all(composition: Composition, rows: Dataset, fit: RoughFit) -> list[Solved] | None:
    """The values of each unknown function, with the parameters and the other functions of a rough fit."""
    groups = np.zeros(rows.n_rows, np.int64)
    if composition.template.groups is not None:
        groups = rows.columns[rows.features.index(composition.template.groups)].astype(np.int64)
    numbers = {
        parameter.name: fit.numbers[offset + groups]
        if parameter.by_group
        else np.full(rows.n_rows, fit.numbers[offset])
        for parameter, offset in zip(composition.parameters, composition.offsets, strict=True)
    }
    found = []
    for unknown in composition.template.unknowns:
        others = {name: tree for name, tree in fit.functions.items() if name != unknown.name}
        values = solved(composition, rows, unknown.name, Known(numbers, others))
        if values is None:
            values = _tabulated(composition, rows, unknown.name, Known(numbers, fit.functions))
        if values is None:
            return None
        found.append(values)
    return found


@np.errstate(all="ignore")
def _tabulated(composition: Composition, dataset: Dataset, name: str, known: Known) -> Solved | None:
    """The values of a known function where an unknown one is called; None if other derivatives are in the way."""
    template = composition.template
    fixed = {each.name: np.full(dataset.n_rows, each.value) for each in template.parameters if each.value is not None}
    arguments = []
    for tree in template.outputs:
        walk = _Walk(composition, dataset, name, {**fixed, **known.numbers}, known.functions, tree)
        found = walk.arguments()
        if found is None:
            return None
        arguments += found
    columns = np.concatenate(arguments, axis=1)
    target = np.broadcast_to(evaluate(known.functions[name], list(columns), np.float64, COMPILED), columns.shape[1:])
    which = np.flatnonzero(np.isfinite(target) & np.isfinite(columns).all(axis=0))
    if len(which) < max(LEAST_SHARE * len(target), 2):
        return None
    names = next(each.arguments for each in template.unknowns if each.name == name)
    values = Dataset(np.ascontiguousarray(columns[:, which]), np.ascontiguousarray(target[which]), None, names)
    return Solved(values, False)


class _Walk:
    """The way from the root of an output of a template to the calls of an unknown function."""

    def __init__(
        self,
        composition: Composition,
        dataset: Dataset,
        name: str,
        numbers: Mapping[str, Floats],
        functions: Mapping[str, Tree],
        tree: Tree,
    ) -> None:
        self.template, self.dataset, self.name = composition.template, dataset, name
        self.numbers, self.functions = numbers, functions
        self.parameters = {each.name: each for each in self.template.parameters}
        self.names = (*composition.features, *self.parameters)
        unknown = [Primitive(each.name, len(each.arguments)) for each in self.template.unknowns]
        used = [tree.functions[each] for each in sorted(functions_of(tree) - {each.name for each in unknown})]
        self.primitives = PrimitiveSet((*used, *unknown), self.names)
        self.tape = tape_from_tree(tree, self.primitives)

    def solved(self) -> Solved | None:
        codes = self.tape.codes.tolist()
        node = _read(codes, self.primitives)
        if codes.count(self.primitives.function_codes[self.name]) != 1:
            return None
        rows = self.dataset.n_rows
        target, slopes, up_to_line, outermost = self.dataset.target, np.ones(rows), False, True
        while node.name != self.name:
            place = next(place for place, operand in enumerate(node.operands) if _has(operand, self.name))
            others = [operand for position, operand in enumerate(node.operands) if position != place]
            other = self.values(others[0]) if len(others) == 1 else np.zeros(rows)
            if other is None:
                if not (outermost and self._is_open_line(node, place, others[0])):
                    return None
                up_to_line = True
            else:
                inverse = INVERSES.get((node.name, place))
                if inverse is None:
                    return None
                outermost = outermost and node.name in _AFFINE and bool((other == other[0]).all())
                if up_to_line and not outermost:
                    return None
                target, slope = inverse(target, other)
                slopes = slopes * slope
            node = node.operands[place]
        arguments = [self.values(operand) for operand in node.operands]
        there = [argument for argument in arguments if argument is not None]
        if len(there) < len(arguments):
            return None
        return self._rows(there, target, slopes, up_to_line or self._leaves_line_open())

    def _leaves_line_open(self) -> bool:
        """Whether parameters take up any factor and any summand of the function: ``a[group]*f(x) + d[group]``."""
        node, factor = _read(self.tape.codes.tolist(), self.primitives), False
        summand: Parameter | None = None
        while node.name != self.name:
            place = next(place for place, operand in enumerate(node.operands) if _has(operand, self.name))
            other = next((each for position, each in enumerate(node.operands) if position != place), None)
            free = self._free(other)
            if node.name in _SUMS:
                # A summand on the way to the factor must be able to grow with it.
                factor, summand = factor and free is not None, free or summand
            elif node.name not in _AFFINE or (node.name, place) == ("div", 1):
                factor, summand = False, None
            elif free is not None:
                factor = True
                summand = None if summand is None or (free.by_group and not summand.by_group) else summand
            elif other is not None and not self._is_number(other):
                summand = None
            node = node.operands[place]
        return factor and summand is not None

    def _free(self, node: _Node | None) -> Parameter | None:
        """The parameter that a node is, if it may have any value and is used nowhere else."""
        found = None if node is None or node.operands else self.parameters.get(node.name)
        if found is None or found.value is not None or found.integer or np.isfinite(found.bounds).any():
            return None
        return found if self.tape.codes.tolist().count(self.primitives.feature_codes[found.name]) == 1 else None

    def _is_number(self, node: _Node) -> bool:
        fixed = self.parameters.get(node.name)
        return not node.operands and (not node.name or (fixed is not None and fixed.value is not None))

    def arguments(self) -> list[Floats] | None:
        """Arguments of each call, shape (n_arguments, n_rows); None if a derivative is among them."""
        found, waiting = [], [_read(self.tape.codes.tolist(), self.primitives)]
        derived = {called for called, (_, by) in self.template.calls.items() if by}
        while waiting:
            node = waiting.pop()
            waiting += reversed(node.operands)
            if self.template.calls.get(node.name, ("",))[0] == self.name and node.operands:
                if any(_has(operand, called) for operand in node.operands for called in derived):
                    return None
                values = [self.values(operand) for operand in node.operands]
                if any(each is None for each in values):
                    return None
                found.append(np.array(values))
        return found

    def values(self, node: _Node) -> Floats | None:
        """Values of a part; None if it has parameters that are not known."""
        part = slice(node.begin, node.end + 1)
        found = tree_from_tape(self.tape.codes[part], self.tape.values[part], self.primitives)
        used = set(found.used_parameters)
        if used & self.parameters.keys() - self.numbers.keys():
            return None
        plain = inlined(found, self.functions, self.names, {})
        features = dict(zip(self.dataset.features, self.dataset.columns, strict=True))
        nothing = np.zeros(self.dataset.n_rows)
        columns = [self.numbers.get(name, features.get(name, nothing)) for name in self.names]
        return np.broadcast_to(evaluate(plain, columns, np.float64, COMPILED), nothing.shape)

    def _is_open_line(self, node: _Node, place: int, other: _Node) -> bool:
        """Whether the other operand is a parameter alone that is a factor or a summand."""
        parameter = self.parameters.get(other.name)
        line = node.name in _AFFINE and (node.name, place) != ("div", 1)
        return line and not other.operands and parameter is not None and not parameter.by_group

    def _rows(self, arguments: Sequence[Floats], target: Floats, slopes: Floats, line: bool) -> Solved | None:
        weights = self.dataset.row_weights * slopes * slopes
        fine = np.isfinite(target) & np.isfinite(weights) & (weights > 0) & np.isfinite(np.array(arguments)).all(axis=0)
        which = np.flatnonzero(fine)
        if len(which) < max(LEAST_SHARE * self.dataset.n_rows, 2):
            return None
        names = next(each.arguments for each in self.template.unknowns if each.name == self.name)
        columns = np.ascontiguousarray([argument[which] for argument in arguments])
        even = weights[which] if (weights[which] != weights[which[0]]).any() else None
        return Solved(Dataset(columns, np.ascontiguousarray(target[which]), even, names), line)


def _read(codes: Sequence[int], primitives: PrimitiveSet) -> _Node:
    """The tape as nodes."""
    stack: list[_Node] = []
    for end, code in enumerate(codes):
        if code < primitives.first_function:
            name = "" if code == CONSTANT else primitives.features[code - 1]
            stack.append(_Node(name, (), end, end))
            continue
        function = primitives.function(code)
        operands = tuple(stack[len(stack) - function.arity :])
        del stack[len(stack) - function.arity :]
        stack.append(_Node(function.name, operands, operands[0].begin, end))
    (root,) = stack
    return root


def _has(node: _Node, called: str) -> bool:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.name == called and each.operands:
            return True
        waiting += each.operands
    return False
