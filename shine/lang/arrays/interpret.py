"""The reference tier of array formulas: NumPy over the individuals, Python over the loop variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from shine.base.typing import AnyArray
from shine.lang.arrays.formula import (
    STARTS,
    STEPS,
    ArrayFormula,
    Element,
    IntegerValue,
    Reduction,
    check_indices,
    length_symbol,
    loop_values,
)
from shine.lang.forms.visitor import Visit
from shine.lang.interpret import Interpreter


def evaluate_arrays(
    formula: ArrayFormula,
    arguments: Sequence[AnyArray],
    dtype: DTypeLike = np.float64,
    functions: Mapping[str, Callable[..., AnyArray]] | None = None,
) -> tuple[AnyArray, ...]:
    """Values of an array formula for some individuals.

    Parameters
    ----------
    formula : ArrayFormula
    arguments : sequence of ndarray
        One a parameter: of shape (individuals, length) for a vector, (individuals,) for a number.
    dtype : {"float64", "float32"}
    functions : mapping of str to callable, optional
        The basic primitives, `shine.lang.interpret.REFERENCE` by default. With `shine.compiler.arrays.COMPILED`
        the values have the bits of compiled code, in float64.

    Returns
    -------
    tuple of ndarray of shape (individuals,)
        One for each result.

    Raises
    ------
    IndexError
        If the formula reads an element that a vector does not have.
    ValueError
        If it has the minimum or maximum of nothing.
    """
    given = {name: np.asarray(each, dtype) for name, each in zip(formula.parameters, arguments, strict=True)}
    rows = len(next(iter(given.values()))) if given else 1
    check_indices(formula, {name: given[name].shape[1] for name in formula.vectors})
    with np.errstate(all="ignore"):
        return _ArrayInterpreter(np.dtype(dtype), rows, functions).values_of(formula, given)


class _ArrayInterpreter(Interpreter):
    def values_of(self, formula: ArrayFormula, given: Mapping[str, AnyArray]) -> tuple[AnyArray, ...]:
        self._vectors = {name: np.ascontiguousarray(given[name].T) for name in formula.vectors}
        self._symbols = {length_symbol(name): len(vector) for name, vector in self._vectors.items()}
        self.values, self.functions = {name: given[name] for name in formula.scalars}, formula.functions
        for name, value in formula.assignments:
            self.values[name] = self.visit(value)
        return tuple(self.visit(result) for result in formula.results)

    def visit_IntegerValue(self, node: IntegerValue) -> AnyArray:
        return np.full(self.rows, node.number.value(self._symbols), dtype=self.dtype)

    def visit_Element(self, node: Element) -> AnyArray:
        element: AnyArray = self._vectors[node.vector][node.index.value(self._symbols)]
        return element

    def visit_Reduction(self, node: Reduction) -> Visit:
        total: Any = np.full(self.rows, STARTS[node.kind], dtype=self.dtype)
        for value in loop_values(node, self._symbols):
            self._symbols[node.index] = value
            total = self._apply(STEPS[node.kind], total, (yield node.body))
        self._symbols.pop(node.index, None)
        return total
