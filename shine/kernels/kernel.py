"""`shine.jit`: one formula as a compiled callable."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import ArrayLike

from shine.codegen.native.loops import emit_predict, emit_scalar
from shine.codegen.numbers import ELEMENTS
from shine.data.dataset import Dataset
from shine.evaluators.native import NativeFitness
from shine.evaluators.rows import Rows, target_of
from shine.fitness import score
from shine.kernels.graph_kernel import GraphKernel
from shine.lang.lazy import cached_property
from shine.lang.names import symbol
from shine.lang.parse import Source, parse
from shine.lang.program.program import Program
from shine.lang.tree import Tree
from shine.llvm import Engine, assembly, object_code, optimized_ir
from shine.llvm.passes import pipeline_level
from shine.typing import AnyArray

_C_TYPES: dict[str, Any] = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
}

LARGE = 2_000
"""Nodes above which a formula is compiled without optimization: LLVM's passes are not linear in a function's size."""


class Kernel:
    """A formula compiled to native code; `shine.jit` makes it.

    Parameters
    ----------
    tree : Tree
    dtype : {"float64", "float32", "int64", "int32"}
        Type of arguments and result. Among integers ``/`` truncates, and division by zero is a
        `ZeroDivisionError`; overflow wraps.
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline; formulas of more than `LARGE` nodes get O0 whatever is asked.

    Attributes
    ----------
    parameters : tuple of str
        Names of the arguments, in calling order.
    ir : str
        LLVM IR of the function of one row, as lowered.
    """

    def __init__(self, tree: Tree, dtype: str = "float64", opt_level: str | int = "O2") -> None:
        if dtype not in ELEMENTS:
            raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(ELEMENTS)}")
        self.tree = tree
        self.dtype = dtype
        self.parameters = tree.parameters
        level = pipeline_level(opt_level)
        self.opt_level = 0 if tree.size > LARGE else level
        module = ir.Module(name=tree.name)
        self._symbol = symbol(tree.name)
        self._can_fail = emit_scalar(module, tree, self._symbol, dtype)
        self.ir = str(module)

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return type(self), (self.tree, self.dtype, self.opt_level)

    def __repr__(self) -> str:
        return f"<Kernel {self.tree!r} of ({', '.join(self.parameters)}), {self.dtype}>"

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Value of the formula.

        Parameters
        ----------
        *arguments, **named : scalars or arrays
            One a parameter, by position or by name; arrays broadcast against each other.

        Returns
        -------
        float, int or ndarray
            A number if all arguments are scalars, else an array of the broadcast shape and the kernel's dtype.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or do not fit the dtype.
        ZeroDivisionError
            If an integer division has a zero divisor in any row that Python would evaluate.
        """
        arrays = argument_arrays(self.parameters, self.dtype, arguments, named)
        if all(array.ndim == 0 for array in arrays):
            return self._scalar([array.item() for array in arrays])
        broadcast = np.broadcast_arrays(*arrays)
        shape = broadcast[0].shape
        return self._predict([np.ascontiguousarray(array).reshape(-1) for array in broadcast]).reshape(shape)

    def fitness(
        self,
        X: ArrayLike,
        y: ArrayLike,
        loss: str = "mse",
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
    ) -> float:
        """Loss over all rows, from one pass of compiled code over the data.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_parameters)
            Columns in the order of `parameters`.
        y : array-like of shape (n_rows,)
        loss : {"mse", "rmse", "mae", "nmse", "r2"}
            ``r2`` is 1 - R^2, as losses are minimized; ``nmse`` is the same number under its other name.
        sample_weight : array-like of shape (n_rows,), optional
        linear_scaling : bool
            Whether to measure ``intercept + slope * formula`` with the best slope and intercept.

        Returns
        -------
        float
            inf when any prediction is not finite.

        Raises
        ------
        DataError
            If the data do not fit the formula or each other.
        """
        dataset = Dataset.from_arrays(X, y, sample_weight, self.parameters)
        measure, target = self._fitness.over(Rows(dataset, self.dtype)), target_of(dataset, self.dtype)
        return float(score(measure, 1, target, loss, linear_scaling).losses[0])

    @cached_property
    def _fitness(self) -> NativeFitness:
        return NativeFitness([self.tree], self.dtype, self.opt_level)

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR of the function of one row after optimization for this host."""
        return optimized_ir(self.ir, level=self.opt_level)

    @cached_property
    def loop_ir(self) -> str:
        """LLVM IR of the loop over rows, as lowered: what arrays are evaluated with."""
        module = ir.Module(name=f"{self.tree.name}.predict")
        emit_predict(module, self.tree, "predict", self.dtype)
        return str(module)

    def assembly(self, target: str | None = None, cpu: str | None = None) -> str:
        """Assembly of the function of one row.

        Parameters
        ----------
        target : str, optional
            A triple such as ``"aarch64-linux-gnu"``; the host with all its features by default.
        cpu : str, optional
            LLVM's name of a processor, for example ``"x86-64-v3"``.

        Raises
        ------
        CompilationError
            If LLVM has no such target.
        """
        return assembly(self.ir, target, cpu, level=self.opt_level)

    def object_code(self, target: str | None = None, cpu: str | None = None) -> bytes:
        """Object file of the function of one row, for a target as in `assembly`."""
        return object_code(self.ir, target, cpu, level=self.opt_level)

    @cached_property
    def _scalar_function(self) -> Any:
        kinds = [_C_TYPES[self.dtype]] * len(self.parameters) + [ctypes.c_void_p] * self._can_fail
        return Engine(self.ir, self.opt_level).function(self._symbol, _C_TYPES[self.dtype], *kinds)

    def _scalar(self, arguments: list[float]) -> float:
        if not self._can_fail:
            return self._scalar_function(*arguments)
        failed = ctypes.c_uint8()
        result: float = self._scalar_function(*arguments, ctypes.addressof(failed))
        if failed.value:
            raise ZeroDivisionError(f"integer division by zero in {self.tree!r}")
        return result

    @cached_property
    def _predict_function(self) -> Any:
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        return Engine(self.loop_ir, self.opt_level).function("predict", ctypes.c_uint8, *kinds)

    def _predict(self, columns: list[AnyArray]) -> AnyArray:
        rows = len(columns[0])
        out = np.empty(rows, dtype=self.dtype)
        pointers = np.array([column.ctypes.data for column in columns], dtype=np.uintp)
        if rows and self._predict_function(pointers.ctypes.data, out.ctypes.data, rows):
            raise ZeroDivisionError(f"integer division by zero in {self.tree!r}")
        return out


def argument_arrays(
    parameters: Sequence[str], dtype: str, arguments: Sequence[ArrayLike], named: Mapping[str, ArrayLike]
) -> list[AnyArray]:
    """The arguments of a call as arrays of a dtype, one a parameter and in their order; not yet broadcast.

    Raises
    ------
    TypeError
        If arguments are missing, too many, no numbers, or do not fit the dtype.
    """
    bound = dict(zip(parameters, arguments, strict=False))
    extra = [name for name in named if name in bound or name not in parameters]
    missing = [name for name in parameters if name not in bound and name not in named]
    if len(arguments) > len(parameters) or extra or missing:
        problem = f"unexpected {extra[0]!r}" if extra else f"missing {missing[0]!r}" if missing else "too many"
        raise TypeError(f"the formula takes ({', '.join(parameters)}): {problem}")
    bound.update(named)
    return [_array(name, bound[name], dtype) for name in parameters]


def _array(name: str, value: ArrayLike, dtype: str) -> AnyArray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"argument {name!r} has dtype {array.dtype}; numbers are needed")
    converted = array.astype(dtype, copy=False)
    if dtype.startswith("int") and not np.array_equal(converted, array):
        raise TypeError(f"argument {name!r} does not fit {dtype}: it has fractions, or is out of range")
    return converted


def jit(
    source: Source | Program | None = None,
    params: Sequence[str] | None = None,
    dtype: str = "float64",
    opt_level: str | int = "O2",
) -> Any:
    """Compile a formula or a graph; also a decorator, with or without arguments.

    Parameters
    ----------
    source : str, function, ast node, Tree or Program
        Written in the restricted language (see `shine.lang.parse.parse`); a graph as `shine.load_graph` reads it, or
        what has one as its ``program``, brings its own arguments and types.
    params : sequence of str, optional
        Order of the arguments; a function's own, or the names of an expression in natural order (a, b, x2, x10).
    dtype : {"float64", "float32", "int64", "int32"}
    opt_level : {"O0", "O1", "O2", "O3"} or int

    Returns
    -------
    Kernel
        A `GraphKernel` of a graph.

    Raises
    ------
    UnsupportedSyntaxError
        If the formula is not part of the language.
    LoweringError
        If it has no meaning in the dtype.
    TypeError
        If it is none of these, or `params` or a dtype is given with a graph.

    Examples
    --------
    >>> k = jit("sqrt(a*a + b*b)")
    >>> k(3.0, 4.0)
    5.0
    """
    if source is None:
        return lambda function: jit(function, params, dtype, opt_level)
    if not isinstance(source, Program):
        source = getattr(source, "program", source)
    if isinstance(source, Program):
        if params is not None or dtype != "float64":
            raise TypeError("a graph has arguments and types of its own; params and dtype are for formulas")
        return GraphKernel(source, opt_level)
    return Kernel(parse(source, params), dtype, opt_level)
