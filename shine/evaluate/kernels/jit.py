"""`shine.jit`: from a formula, an array formula or a graph to a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shine.evaluate.kernels.arrays import ArrayKernel
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.arrays.formula import ArrayFormula
from shine.lang.arrays.reading import array_formula
from shine.lang.parse import Source, parse
from shine.lang.program.program import Program


def jit(
    source: Source | Program | ArrayFormula | Kernel | None = None,
    params: Sequence[str] | None = None,
    dtype: str = "float64",
    opt_level: str | int = "O2",
) -> Any:
    """Compile a formula or a graph; also a decorator, with or without arguments.

    Parameters
    ----------
    source : str, function, ast node, Tree, Program or Kernel
        Written in the restricted language (see `shine.lang.parse.parse`); a graph as `shine.load_graph` reads it, or an
        object that has one as its ``program``, brings its own arguments and types. A formula may have vectors:
        ``sum(x[i]*x[i] for i in range(len(x)))`` (see `shine.lang.arrays.reading.array_formula`).
    params : sequence of str, optional
        Order of the arguments; by default that of a function, or the names of an expression in natural order (a, b, x2,
        x10), vectors first.
    dtype : {"float64", "float32", "int64", "int32"}
    opt_level : {"O0", "O1", "O2", "O3"} or int

    Returns
    -------
    Kernel or ArrayKernel
        An `ArrayKernel` if the formula has vectors.

    Raises
    ------
    UnsupportedSyntaxError
        If the formula is not part of the language.
    LoweringError
        If it has no meaning in the dtype.
    TypeError
        If it is none of these, or `params` or a dtype is given with a graph.
    ValueError
        If the dtype is unknown, or that of integers in an array formula.

    Examples
    --------
    >>> k = jit("sqrt(a*a + b*b)")
    >>> k(3.0, 4.0)
    5.0
    >>> rastrigin = jit("10*n + sum(v*v - 10*cos(2*pi*v) for v in x)")
    >>> rastrigin([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    array([ 0., 14.])
    """
    if source is None:
        return lambda function: jit(function, params, dtype, opt_level)
    given: Any = source.source if isinstance(source, Kernel) else getattr(source, "program", source)
    if isinstance(given, Program):
        if params is not None or dtype != "float64":
            raise TypeError("a graph has arguments and types of its own; params and dtype are for formulas")
        return Kernel(given, opt_level=opt_level)
    arrays = array_formula(given, params)
    return Kernel(parse(given, params), dtype, opt_level) if arrays is None else ArrayKernel(arrays, dtype, opt_level)
