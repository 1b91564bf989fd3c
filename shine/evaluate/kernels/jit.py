"""`shine.jit` and `shine.grad`: from a formula, an array formula or a graph to a kernel or its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.evaluate.kernels.arrays import ArrayKernel
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.arrays.formula import ArrayFormula
from shine.lang.arrays.reading import array_formula
from shine.lang.derivative import gradient, unused_name, value_and_gradient
from shine.lang.forms.names import value_text
from shine.lang.forms.tree import Tree
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
    source : str, function, ast node, Tree, model, SymPy expression, Program or Kernel
        Written in the restricted language (see `shine.lang.parse.parse`), as text, a def or a lambda; a graph as
        `shine.load_graph` reads it, or an object that has one as its ``program``, has arguments and types of its own.
        A formula may have vectors: ``sum(v*v for v in x)`` (see `shine.lang.arrays.reading.array_formula`).
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


DTYPES = ("float64", "float32")
"""Number types that have derivatives."""


class GradientKernel(Kernel):
    """Derivatives of a formula, compiled to native code; `shine.grad` makes it.

    Parameters
    ----------
    trees : sequence of Tree
        One for each result, all with the same parameters and the same assignments.
    dtype : {"float64", "float32"}
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline, see `shine.evaluate.kernels.kernel.Kernel`.
    single : bool
        Whether a call returns its only result as it is, not in a tuple.

    Attributes
    ----------
    trees : tuple of Tree
    ir : str
        LLVM IR of the loops over rows, as lowered; calls with numbers use them too.
    """

    _has_one_row = False

    def __init__(
        self, trees: Sequence[Tree], dtype: str = "float64", opt_level: str | int = "O2", single: bool = False
    ) -> None:
        self.trees, self.single = tuple(trees), single
        super().__init__(self.trees[0] if single else self.trees, dtype, opt_level)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.trees, self.dtype, self.opt_level, self.single)

    def __repr__(self) -> str:
        many = "a derivative" if self.single else f"{len(self.trees)} results"
        return f"<GradientKernel of {many} of ({', '.join(self.parameters)}), {self.dtype}>"


def grad(
    source: Source | Kernel,
    wrt: str | int | Sequence[str | int] | None = None,
    keep_outputs: bool = False,
    seedable: bool = False,
    params: Sequence[str] | None = None,
    dtype: str | None = None,
    opt_level: str | int = "O2",
) -> GradientKernel:
    """Compile the derivatives of a formula, computed exactly and all in one pass (adjoint code generation).

    Parameters
    ----------
    source : str, function, ast node, Tree, model, SymPy expression or Kernel
        A formula as `shine.jit` takes it; a kernel of one formula; or, for derivatives of derivatives, a kernel that
        `shine.grad` made of one derivative.
    wrt : str, int or sequence of them, optional
        Parameters to differentiate with respect to, by name or by position; all by default.
    keep_outputs : bool
        Whether to return the value of the formula as well, before its derivatives.
    seedable : bool
        Whether the kernel takes a first argument, ``seed``, that multiplies the derivatives. It is called
        ``seed_1`` and so on if the formula has a parameter of that name.
    params : sequence of str, optional
        Order of the arguments, as of `shine.jit`.
    dtype : {"float64", "float32"}, optional
        Type of arguments and results; a kernel's own, else float64.
    opt_level : {"O0", "O1", "O2", "O3"} or int

    Returns
    -------
    GradientKernel
        Called with the formula's arguments, it returns a tuple: the value if it is kept, then one derivative a
        parameter in `wrt`. One derivative alone is returned as it is, not in a tuple, if `wrt` is one name or
        position, or is left out and the formula has one parameter.

    Raises
    ------
    UnsupportedSyntaxError
        If the formula is not part of the language.
    ValueError
        If the formula has no such parameter, the dtype is not a floating-point type, or `source` returns
        several results.
    TypeError
        If `source` or `wrt` is none of the above.

    Notes
    -----
    Where a formula has no derivative, `shine.lang.derivative` takes that of one side, or 0. Branches that are not taken
    contribute nothing, even where derivatives in them are infinite.

    Examples
    --------
    >>> grad("sin(a)*b")(0.0, 2.0)
    (2.0, 0.0)
    >>> grad(grad("x**3"))(2.0)
    12.0
    """
    tree = _differentiable(source, params)
    if dtype is None:
        dtype = (source.dtype if isinstance(source, Kernel) else None) or "float64"
    if dtype not in DTYPES:
        raise ValueError(f"{value_text(dtype)} numbers have no derivatives; use dtype {' or '.join(map(repr, DTYPES))}")
    one = isinstance(wrt, str | int) or (wrt is None and len(tree.parameters) == 1)
    names = _names(tree, wrt)
    seed = unused_name("seed", tree.parameters) if seedable else None
    transform = value_and_gradient if keep_outputs else gradient
    return GradientKernel(transform(tree, names, cotangent=seed), dtype, opt_level, one and not keep_outputs)


def _differentiable(source: Source | Kernel, params: Sequence[str] | None) -> Tree:
    if not isinstance(source, Kernel):
        return parse(source, params)
    if isinstance(source, GradientKernel) and not source.single:
        raise ValueError(
            f"the gradient to differentiate returns a tuple of {len(source.trees)}; "
            "choose one derivative of it with wrt='name' and without keep_outputs"
        )
    given: Any = source.tree or source.source
    return parse(given, params)


def _names(tree: Tree, wrt: str | int | Sequence[str | int] | None) -> tuple[str, ...]:
    """The parameters to differentiate with respect to."""
    given = tree.parameters if wrt is None else [wrt] if isinstance(wrt, str | int) else list(wrt)
    known = ", ".join(tree.parameters) or "none"
    if not given:
        raise ValueError(f"there is nothing to differentiate with respect to; the formula's parameters are {known}")
    names = []
    for parameter in given:
        if isinstance(parameter, bool) or not isinstance(parameter, str | int | np.integer):
            raise TypeError(f"wrt is names or positions of parameters ({known}), not {value_text(parameter)}")
        if not isinstance(parameter, str):
            if not 0 <= parameter < len(tree.parameters):
                raise ValueError(
                    f"wrt has position {parameter}, but the formula has {len(tree.parameters)} parameters: {known}; "
                    "positions count from 0"
                )
            parameter = tree.parameters[parameter]
        names.append(parameter)
    return tuple(names)
