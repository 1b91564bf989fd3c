"""One individual at a time: its formula, and its kernel."""

from __future__ import annotations

import ast
import ctypes
import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from shine.evaluate.kernels.kernel import Kernel
from shine.faces.deap.arguments import float_name
from shine.faces.deap.conversion import population_of
from shine.faces.deap.vocabulary import as_sets, vocabulary_of
from shine.lang.forms.grammar import LARGEST_EXACT
from shine.lang.forms.tree import Tree


def tree(individual: Any, pset: Any, sources: Mapping[str, str] | None = None) -> Tree:
    """The formula of an individual, as Shine's exports and simplification take it.

    Parameters
    ----------
    individual : deap.gp.PrimitiveTree, or sequence of them
        A tree; or a list of trees, one for each primitive set, if there are several.
    pset : deap.gp.PrimitiveSetTyped, or sequence of them
        As `gp.compile` and `gp.compileADF` take them.
    sources : mapping of str to str, optional
        Texts of the definitions of functions that have no file; see `CompiledEvaluator`.

    Returns
    -------
    Tree
        Its parameters are the arguments of the primitive set.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive of the set that cannot be compiled, with the reason.
    ValueError
        If the individual is not complete, or has a node that the primitive set lacks.
    """
    return with_integers(population_of([individual], vocabulary_of(pset, sources)).tree(0))


def with_integers(formula: Tree) -> Tree:
    """A new tree with 3 for 3.0, and 0 for False; changed in place."""
    for node in ast.walk(formula.result):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            is_negative_zero = node.value == 0 and math.copysign(1.0, node.value) < 0
            if node.value.is_integer() and abs(node.value) <= LARGEST_EXACT and not is_negative_zero:
                node.value = int(node.value)
    return formula


class CompiledIndividual(Kernel):
    """An individual as native code; `compile` makes it. See `shine.evaluate.kernels.kernel.Kernel`."""

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Value for numbers, or arrays that broadcast, by position or by name."""
        if not named and len(arguments) == len(self.parameters):
            try:
                return self.one_row(*arguments)
            except ctypes.ArgumentError:
                pass  # an argument is no number
        return super().__call__(*arguments, **named)


def compile(
    individual: Any,
    pset: Any,
    dtype: DTypeLike = "float64",
    opt_level: str | int = "O2",
    sources: Mapping[str, str] | None = None,
) -> Any:
    """A faster `gp.compile`: the individual as native code.

    Parameters
    ----------
    individual : deap.gp.PrimitiveTree, or sequence of them
        A tree; or a list of trees, one for each primitive set, as `gp.compileADF` takes them.
    pset : deap.gp.PrimitiveSetTyped, or sequence of them
    dtype : {"float64", "float32"}
        Type of arguments and result, as a name or NumPy's.
    opt_level : {"O0", "O1", "O2", "O3"} or int
    sources : mapping of str to str, optional
        Texts of the definitions of functions that have no file; see `CompiledEvaluator`.

    Returns
    -------
    CompiledIndividual or float
        A callable of the set's arguments, by position or name: it returns a float for numbers, and an array for arrays
        that broadcast. For a set without arguments the value itself, as in DEAP. Where Python's functions would raise
        an error, the result is infinite or NaN.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive of the set that cannot be compiled, with the reason.
    ValueError
        If the individual is not complete, or has a node that the primitive set lacks.

    Notes
    -----
    Compiling takes about 15 ms, a hundred times as long as `gp.compile`, and pays for a formula that is called for many
    rows. `CompiledEvaluator` evaluates many formulas once each without compiling them.
    """
    formula, kind = tree(individual, pset, sources), float_name(dtype)
    if as_sets(pset)[0].arguments:
        return CompiledIndividual(formula, kind, opt_level)
    return float(Kernel(formula, kind, opt_level)())
