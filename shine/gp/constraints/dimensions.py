"""Which formulas are consistent in their units: they add, compare and take the sine of nothing but what they may.

A constant may have any dimension. What such a free part is multiplied with is free as well, and a condition on it holds
for one choice of the constant. Each constant stands in one place, so that no two conditions meet on the same one, and
what the sweep says is exact: a formula is consistent if some dimensions of its constants make it so.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from shine.gp.constraints.dimension_rules import Form, eliminated, rule_of
from shine.gp.constraints.units import BASE, DIMENSIONLESS, Dimension
from shine.gp.structure import Structure
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.typing import Floats, Indices, Mask

TOLERANCE = 1e-6
"""Difference of exponents that rounding may leave; a constant exponent such as 1/3 is a rounded one."""

MOST_ARGUMENTS = 8
"""Most arguments of a function that formulas with units may have: tables have an entry for each set of free ones."""


class Dimensions:
    """The dimensions of a primitive set: looks at whole populations.

    Parameters
    ----------
    primitives : PrimitiveSet
    features : mapping of str to Dimension
        Of every feature that individuals use; one that is missing has none.
    free_constants : bool
        Whether constants may have any dimension, or none.

    Raises
    ------
    ValueError
        If a function has more than `MOST_ARGUMENTS` arguments.
    """

    def __init__(
        self, primitives: PrimitiveSet, features: Mapping[str, Dimension], free_constants: bool = True
    ) -> None:
        self.primitives = primitives
        names = primitives.features
        dimensions = [DIMENSIONLESS, *(features.get(name, DIMENSIONLESS) for name in names)]
        self._terminals = np.array(dimensions, dtype=np.float64)
        self._free_constants = free_constants
        self._power = primitives.function_codes.get("pow", -1)
        self._arity = max((function.arity for function in primitives.functions), default=0)
        if self._arity > MOST_ARGUMENTS:
            widest = max(primitives.functions, key=lambda function: function.arity)
            raise ValueError(f"function {widest.name!r} has {widest.arity} arguments; units allow {MOST_ARGUMENTS}")
        rules = [rule_of(function) for function in primitives.functions]
        codes, sets, rows = len(primitives.functions), 1 << self._arity, self._arity
        # By function and by which of its arguments are free: bit i of the set is argument i.
        self._conditions = np.zeros((codes, sets, rows, self._arity))
        self._results = np.zeros((codes, sets, self._arity))
        self._any = np.zeros((codes, sets), np.bool_)
        for code, members in product(range(codes), range(sets)):
            rule = eliminated(rules[code], [i for i in range(self._arity) if members >> i & 1])
            for row, condition in enumerate(rule.conditions):
                self._conditions[code, members, row] = _dense(condition, self._arity)
            self._results[code, members] = _dense(rule.result or {}, self._arity)
            self._any[code, members] = rule.result is None

    def consistent(self, population: Population, target: Dimension | None) -> Mask:
        """Whether each individual is consistent, and of a dimension.

        Parameters
        ----------
        population : Population
            Of the primitive set.
        target : Dimension, optional
            Of the whole formula; any if None.

        Returns
        -------
        ndarray of shape (n_individuals,), bool
        """
        structure = Structure.of(population)
        rows, positions = np.nonzero(structure.sizes > 0)
        nodes = _Nodes(population.codes[rows, positions].astype(np.int64), population.values[rows, positions])
        sizes = structure.sizes[rows, positions].astype(np.int64)
        depths = structure.depths[rows, positions]
        first_function = self.primitives.first_function
        self._set_terminals(nodes)
        order = np.argsort(depths, kind="stable")
        ends = np.searchsorted(depths[order], np.arange(1, int(depths.max(initial=0)) + 1), side="right")
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            at = order[begin:end]
            arities = self.primitives.arities[nodes.codes[at]]
            # Individuals lie one behind the other, so that the arguments of a node are the nodes before it.
            arguments = np.full((len(at), self._arity), -1)
            last = at - 1
            for argument in range(self._arity - 1, -1, -1):
                has = argument < arities
                arguments[has, argument] = last[has]
                last[has] -= sizes[last[has]]
            self._apply(nodes, at, nodes.codes[at] - first_function, arguments)
            if self._power >= 0:
                self._fold(nodes, at, arguments)
                self._powers(nodes, at[nodes.codes[at] == self._power], arguments[nodes.codes[at] == self._power])
        consistent = np.ones(len(population), np.bool_)
        np.logical_and.at(consistent, rows, nodes.consistent)
        if target is not None:
            roots = np.cumsum(population.sizes) - 1
            near = np.abs(nodes.dimensions[roots] - np.array(target, dtype=np.float64)).max(axis=1) <= TOLERANCE
            consistent &= near | nodes.free[roots]
        return consistent

    def _set_terminals(self, nodes: _Nodes) -> None:
        terminal = nodes.codes < self.primitives.first_function
        nodes.dimensions[terminal] = self._terminals[nodes.codes[terminal]]
        nodes.free[:] = (nodes.codes == CONSTANT) & self._free_constants
        nodes.values[nodes.codes != CONSTANT] = np.nan

    def _apply(self, nodes: _Nodes, at: Indices, functions: Indices, arguments: Indices) -> None:
        """Dimensions of some nodes, from those of their arguments; -1 is no argument."""
        given = arguments >= 0
        free = nodes.free[arguments] & given
        members = free @ (1 << np.arange(self._arity))
        dimensions = np.where(given[:, :, None], nodes.dimensions[arguments], 0.0)
        with np.errstate(all="ignore"):
            left = self._conditions[functions, members] @ dimensions
            nodes.dimensions[at] = (self._results[functions, members][:, None, :] @ dimensions)[:, 0]
        # NaN, from an exponent beyond all numbers, is not near.
        nodes.consistent[at] = (np.abs(left) <= TOLERANCE).all(axis=(1, 2))
        nodes.free[at] = self._any[functions, members]

    def _fold(self, nodes: _Nodes, at: Indices, arguments: Indices) -> None:
        """Values of nodes below which there are only constants; NaN stands for all others."""
        constant = ((arguments < 0) | ~np.isnan(nodes.values[arguments])).all(axis=1)
        at, arguments = at[constant], arguments[constant]
        for code in np.unique(nodes.codes[at]).tolist():
            of_code = nodes.codes[at] == code
            function = self.primitives.function(code)
            operands = [nodes.values[arguments[of_code, i]] for i in range(function.arity)]
            with np.errstate(all="ignore"):
                if function.definition is None:
                    nodes.values[at[of_code]] = REFERENCE[function.name](*operands)
                else:
                    nodes.values[at[of_code]] = evaluate(function.definition, operands)

    def _powers(self, nodes: _Nodes, at: Indices, arguments: Indices) -> None:
        """Powers with constant exponents, whatever the base is."""
        exponents = nodes.values[arguments[:, 1]]
        constant = np.isfinite(exponents)
        at, exponents, bases = at[constant], exponents[constant], arguments[constant, 0]
        with np.errstate(all="ignore"):
            nodes.dimensions[at] = exponents[:, None] * nodes.dimensions[bases]
        nodes.free[at] = nodes.free[bases] & (exponents != 0)
        nodes.consistent[at] = np.isfinite(nodes.dimensions[at]).all(axis=1)


class _Nodes:
    """All nodes of a population one behind the other, and what is known of each.

    Attributes
    ----------
    codes : ndarray of shape (n_nodes,), int64
    values : ndarray of shape (n_nodes,)
    dimensions : ndarray of shape (n_nodes, 7)
        Meaningless where free.
    free : ndarray of shape (n_nodes,), bool
        Whether the dimension can be any.
    consistent : ndarray of shape (n_nodes,), bool
        Whether the node's own conditions hold.
    """

    def __init__(self, codes: Indices, values: Floats) -> None:
        self.codes, self.values = codes, values
        self.dimensions = np.zeros((len(codes), len(BASE)))
        self.free = np.zeros(len(codes), np.bool_)
        self.consistent = np.ones(len(codes), np.bool_)


def _dense(form: Form, arity: int) -> Floats:
    return np.array([form.get(i, 0) for i in range(arity)], dtype=np.float64)
