"""Values that the parameters of a template start from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED, exp
from shine.data.datasets.dataset import Dataset
from shine.evaluate.protocols import ConstantFitter
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.templates.composition import Composition
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.template import Parameter, Template

NEAR = 16.0
"""Starts within this factor of 1 are 1: a fit goes that far by itself."""

ROWS = 1000
"""Rows that sizes are medians of."""


def with_starts(template: Template, dataset: Dataset) -> Template:
    """The template with starts of parameters that the user gave none, where their size is far from 1."""
    rows = dataset.sampled(ROWS, np.random.default_rng(0))
    names = {each.name for each in template.parameters}
    found = _Sizes(rows, names, template.calls)
    several = len(template.outputs) > 1
    for number, output in enumerate(template.outputs):
        own = rows.columns[rows.features.index(OUTPUT)] == number if several else slice(None)
        # Constants of unknown functions have a part in the size of the target.
        found.of_parameters(output, None if template.unknowns else _median(np.abs(rows.target[own])))
    parameters = []
    for each in template.parameters:
        size, (low, high) = found.sizes.get(each.name), each.bounds
        free = each.value is None and each.start is None and not each.integer
        known = free and size is not None and not 1 / NEAR <= size <= NEAR and low <= size <= high
        parameters.append(replace(each, start=size) if known else each)
    return replace(template, parameters=tuple(parameters))


@dataclass
class _Sizes:
    """Sizes of parameters; of each, the first that something tells.

    Parameters
    ----------
    rows : Dataset
    parameters : set of str
    calls : mapping
        What is called by the template: functions of unknown size.
    """

    rows: Dataset
    parameters: set[str]
    calls: Mapping[str, object]
    sizes: dict[str, float] = field(default_factory=dict)

    def of_parameters(self, output: Tree, size: float | None) -> None:
        """Note the sizes that an output of some size tells."""
        waiting: list[tuple[ast.AST, float | None]] = [(output.result, size)]
        waiting += [(value, None) for _, value in output.assignments]
        while waiting:
            node, wanted = waiting.pop()
            wanted = wanted if wanted is not None and 0 < wanted < np.inf else None
            match node:
                case ast.Name(name) if name in self.parameters:
                    if wanted is not None:
                        self.sizes.setdefault(name, wanted)
                case ast.BinOp(left, ast.Mult(), right):
                    waiting += [(right, _over(wanted, self._size(output, left)))]
                    waiting += [(left, _over(wanted, self._size(output, right)))]
                case ast.BinOp(left, ast.Div(), right):
                    above, below = self._size(output, left), self._size(output, right)
                    waiting += [(right, None if wanted is None else (above or 1.0) / wanted)]
                    waiting += [(left, None if wanted is None else wanted * (below or 1.0))]
                case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                    waiting += [
                        (right, self._size(output, left) or wanted),
                        (left, self._size(output, right) or wanted),
                    ]
                case ast.UnaryOp(ast.USub(), operand):
                    waiting.append((operand, wanted))
                case ast.Call(ast.Name("sqrt"), [argument]):
                    waiting.append((argument, None if wanted is None else wanted * wanted))
                case ast.Call(ast.Name("abs" | "max" | "min"), arguments):
                    waiting += [(argument, wanted) for argument in arguments]
                case ast.Call(_, arguments):
                    waiting += [(argument, 1.0) for argument in arguments]
                case ast.BinOp(left, ast.Pow(), right):
                    waiting += [(right, None), (left, 1.0)]
                case _:
                    waiting += [(child, None) for child in ast.iter_child_nodes(node)]

    def _size(self, output: Tree, node: ast.expr) -> float | None:
        """Median size of the values of a part that only columns decide; None of others, and where it is 0."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if not names <= set(self.rows.features) or names & set(self.calls):
            return None
        tree = replace(output, parameters=self.rows.features, result=node, assignments=())
        with np.errstate(all="ignore"):
            values = np.abs(evaluate(tree, list(self.rows.columns), np.float64, COMPILED))
        return _median(values)


def _median(sizes: Floats) -> float | None:
    """The median of the sizes that are neither 0 nor infinite; None if there are none."""
    known = np.sort(sizes[np.isfinite(sizes) & (sizes > 0)])
    return float(known[len(known) // 2]) if len(known) else None


def _over(wanted: float | None, size: float | None) -> float | None:
    """The size of a factor of what has a size."""
    return None if wanted is None else wanted / (size or 1.0)


STARTS, KEPT = 1000, 20
"""Starts of a formula without unknown functions, and the best of them, which go on."""

STEPS, LATER_STEPS, LAST_STEPS, TOLERANCE = 10, 100, 3000, 1e-9
"""Most steps of the fits from all starts, from those kept, and from the best, along valleys as curved as those of
``a*exp(-b/t)``; and the share of the error that ends a fit."""


def fitted_starts(
    composition: Composition, fitter: ConstantFitter, rows: Dataset, rng: np.random.Generator
) -> Population:
    """The parameters of a template without unknown functions, fitted from many starts: the best fit.

    A parameter may be near the size that its place asks for, be a value of a column or a distance of two, or one by it.
    """
    table = rows.columns[:, rng.integers(rows.n_rows, size=(2, STARTS))]
    firsts = composition.starts[np.array(composition.offsets, np.int64)]
    drawn = []
    for parameter, first in zip(composition.parameters, firsts.tolist(), strict=True):
        column = rng.integers(len(table), size=STARTS)
        one, other = table[column, 0, np.arange(STARTS)], table[column, 1, np.arange(STARTS)]
        # Standard deviation of starts around a size, in decades, and the share of them below 0
        signs = np.where(rng.random(STARTS) < 0.25, -1.0, 1.0)
        near = (first or 1.0) * signs * exp(2.302585092994046 * 1.0 * rng.standard_normal(STARTS))
        away = np.where(one == other, near, signs * (one - other))
        found = np.choose(rng.integers(6, size=STARTS), [near, near, near, one, away, 1 / away])
        drawn.append(_within(parameter, found, rng))
    values = np.repeat(np.array(drawn).reshape(-1, STARTS), composition.counts, axis=0).T
    values[0] = composition.starts
    individuals = assembled([], composition.genome, values)
    for steps, kept in ((STEPS, KEPT), (LATER_STEPS, 1), (LAST_STEPS, 1)):
        fit = fitter.fit(individuals, steps, tolerance=TOLERANCE)
        best = np.argsort(np.where(np.isfinite(fit.errors), fit.errors, np.inf), kind="stable")[:kept]
        individuals = fit.population.take(best)
    return individuals


def _within(parameter: Parameter, values: Floats, rng: np.random.Generator) -> Floats:
    """Values that the bounds of a parameter allow."""
    low, high = parameter.bounds
    if np.isfinite(high - low):
        values = rng.uniform(low, high, len(values))
    values = np.where(values < low, 2 * low - values, np.where(values > high, 2 * high - values, values))
    return np.rint(values) if parameter.integer else values
