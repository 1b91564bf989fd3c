"""`shine.grad`: the derivatives of one formula as a compiled callable."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import ArrayLike

from shine.codegen.native.loops import emit_outputs, row_numbers
from shine.kernels.kernel import LARGE, Kernel, argument_arrays
from shine.lang.derivative import gradient, unused_name, value_and_gradient
from shine.lang.lazy import cached_property
from shine.lang.parse import Source, parse
from shine.lang.tree import Tree
from shine.llvm import Engine
from shine.llvm.passes import pipeline_level
from shine.typing import AnyArray

DTYPES = ("float64", "float32")
"""Number types that have derivatives."""


class GradientKernel:
    """Derivatives of a formula, compiled to native code; `shine.grad` makes it.

    Parameters
    ----------
    trees : sequence of Tree
        One a result, all with the same parameters and the same assignments.
    dtype : {"float64", "float32"}
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline; more than `shine.kernels.kernel.LARGE` nodes get O0 whatever is asked.
    single : bool
        Whether a call returns its only result as it is, not in a tuple.

    Attributes
    ----------
    parameters : tuple of str
        Names of the arguments, in calling order.
    trees : tuple of Tree
    ir : str
        LLVM IR of the loop over vectors of rows, as lowered.
    """

    def __init__(
        self, trees: Sequence[Tree], dtype: str = "float64", opt_level: str | int = "O2", single: bool = False
    ) -> None:
        self.trees = tuple(trees)
        self.dtype = dtype
        self.single = single
        self.parameters = self.trees[0].parameters
        shared = self.trees[0].assignments
        nodes = Tree(self.parameters, self.trees[0].result, shared).size + sum(
            Tree(self.parameters, tree.result).size for tree in self.trees[1:]
        )
        level = pipeline_level(opt_level)
        self.opt_level = 0 if nodes > LARGE else level
        module = ir.Module(name=f"{self.trees[0].name}.gradient")
        emit_outputs(module, self.trees, "gradient", dtype)
        self.ir = str(module)

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return type(self), (self.trees, self.dtype, self.opt_level, self.single)

    def __repr__(self) -> str:
        many = "a derivative" if self.single else f"{len(self.trees)} results"
        return f"<GradientKernel of {many} of ({', '.join(self.parameters)}), {self.dtype}>"

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """The derivatives.

        Parameters
        ----------
        *arguments, **named : scalars or arrays
            One a parameter, by position or by name; arrays broadcast against each other.

        Returns
        -------
        float, ndarray or tuple of them
            As `shine.grad` says: numbers if all arguments are scalars, else arrays of the broadcast shape and the
            kernel's dtype.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or no numbers.
        """
        arrays = argument_arrays(self.parameters, self.dtype, arguments, named)
        broadcast = np.broadcast_arrays(*arrays) if arrays else ()
        shape = broadcast[0].shape if broadcast else ()
        rows = int(np.prod(shape))
        out = self._rows([np.ascontiguousarray(array).reshape(-1) for array in broadcast], rows)
        results = tuple(row.reshape(shape) if shape else row.item() for row in out)
        return results[0] if self.single else results

    def _rows(self, columns: Sequence[AnyArray], rows: int) -> AnyArray:
        """The results, shape (n_results, n_rows). The rows behind the last full vector are copied into one."""
        width = row_numbers(self.dtype).width
        out = np.empty((len(self.trees), rows), self.dtype)
        whole, rest = divmod(rows, width)
        self._call(columns, list(out), whole)
        if rest:
            last = [np.pad(column[-rest:], (0, width - rest), mode="edge") for column in columns]
            end = np.empty((len(self.trees), width), self.dtype)
            self._call(last, list(end), 1)
            out[:, -rest:] = end[:, :rest]
        return out

    def _call(self, columns: Sequence[AnyArray], outs: Sequence[AnyArray], vectors: int) -> None:
        sources, targets = (
            np.array([array.ctypes.data for array in arrays], dtype=np.uintp) for arrays in (columns, outs)
        )
        self._function(sources.ctypes.data, targets.ctypes.data, vectors)

    @cached_property
    def _function(self) -> Any:
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        return Engine(self.ir, self.opt_level).function("gradient", ctypes.c_uint8, *kinds)


def grad(
    source: Source | Kernel | GradientKernel,
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
    source : str, function, ast node, Tree or kernel
        A formula as `shine.jit` takes it, what `shine.jit` returned, or what `shine.grad` returned for one derivative:
        derivatives of derivatives.
    wrt : str, int or sequence of them, optional
        Parameters to differentiate with respect to, by name or by position; all by default.
    keep_outputs : bool
        Whether to return the value of the formula as well, before its derivatives.
    seedable : bool
        Whether the kernel takes a first argument, ``seed``, which the derivatives are multiplied with. It is called
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
        If the formula has no such parameter, the dtype is none of floating-point numbers, or `source` returns several
        results.
    TypeError
        If `source` or `wrt` is none of the above.

    Notes
    -----
    `shine.lang.derivative` says what the derivative is where there is none: of one side, or 0. Branches that are not
    taken contribute nothing, even where derivatives in them are infinite.

    Examples
    --------
    >>> grad("sin(a)*b")(0.0, 2.0)
    (2.0, 0.0)
    >>> grad(grad("x**3"))(2.0)
    12.0
    """
    tree = _differentiable(source, params)
    own = source.dtype if isinstance(source, Kernel | GradientKernel) else "float64"
    dtype = own if dtype is None else dtype
    if dtype not in DTYPES:
        raise ValueError(f"{dtype!r} numbers have no derivatives; use dtype {' or '.join(map(repr, DTYPES))}")
    one = isinstance(wrt, str | int) or (wrt is None and len(tree.parameters) == 1)
    names = _names(tree, wrt)
    seed = unused_name("seed", tree.parameters) if seedable else None
    transform = value_and_gradient if keep_outputs else gradient
    return GradientKernel(transform(tree, names, cotangent=seed), dtype, opt_level, one and not keep_outputs)


def _differentiable(source: Source | Kernel | GradientKernel, params: Sequence[str] | None) -> Tree:
    if isinstance(source, GradientKernel):
        if not source.single:
            raise ValueError(
                f"the gradient to differentiate returns a tuple of {len(source.trees)}; "
                "choose one derivative of it with wrt='name' and without keep_outputs"
            )
        return parse(source.trees[0], params)
    return parse(source.tree if isinstance(source, Kernel) else source, params)


def _names(tree: Tree, wrt: str | int | Sequence[str | int] | None) -> tuple[str, ...]:
    """The parameters to differentiate with respect to."""
    given = tree.parameters if wrt is None else [wrt] if isinstance(wrt, str | int) else list(wrt)
    known = ", ".join(tree.parameters) or "none"
    if not given:
        raise ValueError(f"there is nothing to differentiate with respect to; the formula's parameters are {known}")
    names = []
    for parameter in given:
        if isinstance(parameter, bool) or not isinstance(parameter, str | int | np.integer):
            raise TypeError(f"wrt is names or positions of parameters ({known}), not {parameter!r}")
        if not isinstance(parameter, str):
            if not 0 <= parameter < len(tree.parameters):
                raise ValueError(
                    f"wrt has position {parameter}, but the formula has {len(tree.parameters)} parameters: {known}; "
                    "positions count from 0"
                )
            parameter = tree.parameters[parameter]
        names.append(parameter)
    return tuple(names)
