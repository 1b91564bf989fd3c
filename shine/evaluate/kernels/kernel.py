"""A formula or a program as a compiled callable."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import ArrayLike

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.native.loops import VECTOR_BYTES
from shine.compiler.codegen.native.programs import emit_program_scalar
from shine.compiler.codegen.numbers import ELEMENTS
from shine.compiler.llvm import Engine, assembly, object_code, optimized_ir
from shine.compiler.llvm.target import pipeline_level
from shine.compiler.threads import check_threads
from shine.data.columns.numbers import columns_for
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.rows import ProgramRows, rows_ir
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.scores import score
from shine.evaluate.tiers.native_tier import NativeFitness
from shine.evaluate.tiers.rows import Rows, target_of
from shine.lang.forms.names import symbol, value_text
from shine.lang.forms.tree import Tree
from shine.lang.program.interpret import FORMULA, GRAPH, Shape, Signature, Wording
from shine.lang.program.program import Program, parameters_read, part
from shine.lang.program.trees import trees_program

ONE_ROW_PARAMETERS, ONE_ROW_NODES = 1_000, 100_000
"""Parameters and nodes above which the function of one row is not called: `ctypes` passes no more than 1024
arguments, and all values are on the stack."""

_C_TYPES: dict[str, Any] = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "bool": ctypes.c_bool,
}


@dataclass(frozen=True)
class _Conventions:
    """Conventions of kernels, of formulas or of graphs.

    Parameters
    ----------
    wording : Wording
        Words of error messages.
    most_optimized : int
        Nodes above which the kernel is compiled without optimization.
    vector : int or None
        Bytes of a vector of rows; if None, the number that suits each stage of the program.
    threads : int or None
        Threads that share the rows of large arrays by default; all processors if None.
    one_shape : bool
        Whether every output has the shape of all arguments; otherwise, that of the arguments it depends on.
    """

    wording: Wording
    most_optimized: int
    vector: int | None
    threads: int | None
    one_shape: bool


_FORMULA = _Conventions(FORMULA, most_optimized=2_000, vector=VECTOR_BYTES, threads=1, one_shape=True)
"""Formulas are compiled often and called for few rows: compilation is kept short."""

_GRAPH = _Conventions(GRAPH, most_optimized=20_000, vector=None, threads=None, one_shape=False)


class Kernel:
    """A formula, or a program that was read from a graph, compiled to native code; `shine.jit` makes it.

    Parameters
    ----------
    source : Tree, tuple of Tree, or Program
        Formulas in a tuple have the same parameters and the same assignments; a call returns a tuple of their values.
    dtype : {"float64", "float32", "int64", "int32"}, optional
        Type of a formula's arguments and result, float64 by default; a program has types of its own. Among integers
        ``/`` truncates, and division by zero is a `ZeroDivisionError`; overflow wraps.
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline; formulas of more than 2000 nodes and programs of more than 20 000 get O0 in any case.
    threads : int, optional
        Threads that share the rows of large arrays: by default one for a formula, all processors for a program. Their
        number changes no bit.

    Attributes
    ----------
    source : Tree, tuple of Tree, or Program
    tree : Tree or None
        The formula; None for a program, and for several formulas.
    program : Program
        The program; a formula is a program of one number type.
    dtype : str or None
        Number type of a formula; None for a program.
    parameters : tuple of str
        Names of the arguments, in calling order.
    labels : tuple of str
        Names of the arguments in a program's graph; a call may use either name.
    dtypes : tuple of str
        Types of the arguments.
    ir : str
        LLVM IR of the function of one row, as lowered; that of the loops over rows if a program has arrays of its own.

    Raises
    ------
    LoweringError
        If a primitive or a number has no meaning in its type.
    """

    _has_one_row = True
    """Whether calls with numbers are worth a function of one row."""

    def __init__(
        self,
        source: Tree | tuple[Tree, ...] | Program,
        dtype: str | None = None,
        opt_level: str | int = "O2",
        threads: int | None = None,
    ) -> None:
        check_threads(threads)
        self.source = source
        self.tree = source if isinstance(source, Tree) else None
        if isinstance(source, Program):
            if dtype is not None:
                raise TypeError(f"a program has types of its own; dtype {value_text(dtype)} is for formulas")
            self.program, self.dtype, self._conventions = source, None, _GRAPH
        else:
            self.dtype = "float64" if dtype is None else dtype
            if self.dtype not in ELEMENTS:
                raise ValueError(f"unknown dtype {value_text(dtype)}; use one of {', '.join(ELEMENTS)}")
            trees = (source,) if isinstance(source, Tree) else source
            self.program, self._conventions = trees_program(trees, self.dtype), _FORMULA
        arguments = self.program.arguments
        self.parameters = tuple(parameter.name for parameter in arguments)
        self.labels = tuple(parameter.label for parameter in arguments)
        self.dtypes = tuple(parameter.dtype for parameter in arguments)
        level = pipeline_level(opt_level)
        self.opt_level = 0 if self.program.size > self._conventions.most_optimized else level
        self._threads = self._conventions.threads if threads is None else threads
        self._signature = Signature(self.program, self._conventions.wording)
        self._groups = self._outputs_by_parameters()
        self._rows: dict[tuple[int, ...], tuple[ProgramRows, list[int]]] = {}
        takes_numbers = self._has_one_row and len(arguments) == len(self.program.parameters)
        is_small = len(arguments) <= ONE_ROW_PARAMETERS and self.program.size <= ONE_ROW_NODES
        self._calls_one_row = takes_numbers and is_small
        self._can_fail = False
        if takes_numbers:
            module = ir.Module(name=self.program.name)
            self._can_fail = emit_program_scalar(module, self.program, symbol(self.program.name))
            self.ir = str(module)
        else:
            self.ir = self.loop_ir

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return type(self), (self.source, self.dtype, self.opt_level, self._threads)

    def __repr__(self) -> str:
        if isinstance(self.source, Program):
            return f"<Kernel of {self.source!r}>"
        return f"<Kernel {self.source!r} of ({', '.join(self.parameters)}), {self.dtype}>"

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Value of the formula, or the outputs of the program.

        Parameters
        ----------
        *arguments, **named : scalars or arrays
            By position, or by name or label; an argument with a default may be left out. Arrays broadcast against each
            other, and against those of the program itself, whatever shapes its graph declares.

        Returns
        -------
        number, ndarray or tuple of them
            One value for each output, in its type; a tuple only if there are several. The value of a formula has the
            shape that all arguments broadcast to; an output of a program, that of the arguments it depends on. It is a
            number if all of these are scalars.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or do not fit their types.
        ValueError
            If the shapes of arguments do not fit each other.
        ZeroDivisionError
            If an integer division has a zero divisor in any row; in a formula, only where Python would evaluate it.
        """
        arrays = self._signature.arrays(arguments, named)
        try:
            if self._calls_one_row and all(array.ndim == 0 for array in arrays):
                results = self._of_numbers([array.item() for array in arrays])
            else:
                results = self._of_arrays(arrays)
        except ZeroDivisionError:
            raise ZeroDivisionError(f"integer division by zero in {self.source!r}") from None
        return tuple(results) if len(results) > 1 or isinstance(self.source, tuple) else results[0]

    def fitness(
        self,
        X: ArrayLike,
        y: ArrayLike,
        loss: str | Loss = "mse",
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
    ) -> float:
        """Loss of a formula over all rows, from one pass of compiled code over the data.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_parameters)
            Columns in the order of `parameters`; those of a data frame are found by their headings.
        y : array-like of shape (n_rows,)
        loss : {"mse", "rmse", "mae", "nmse", "r2"} or Loss
            ``r2`` is 1 - R^2, as losses are minimized; ``nmse`` is the same number under its other name.
        sample_weight : array-like of shape (n_rows,), optional
        linear_scaling : bool
            Whether to measure ``intercept + slope * formula`` with the best slope and intercept.

        Returns
        -------
        float
            In the target's unit, squared for ``mse``; without unit for ``nmse`` and ``r2``. inf if any prediction is
            not finite.

        Raises
        ------
        DataError
            If the data do not fit the formula or each other.
        TypeError
            If the kernel has several results, or is that of a program.
        """
        if self.tree is None or self.dtype is None:
            raise TypeError("only a kernel of one formula has a fitness; compare a program's outputs with y yourself")
        columns = np.transpose(columns_for(X, self.parameters, {}, self.parameters))
        dataset = Dataset.from_arrays(columns, y, sample_weight=sample_weight, features=self.parameters)
        kind = loss_of(loss).kind
        loss_columns, dataset = loss_columns_of(dataset, kind), loss_rows(dataset, kind)
        measure, target = self._fitness.over(Rows(dataset, self.dtype, loss_columns)), target_of(dataset, self.dtype)
        return float(score(measure, 1, target, loss, linear_scaling).losses[0])

    @cached_property
    def _fitness(self) -> NativeFitness:
        assert self.tree is not None and self.dtype is not None
        return NativeFitness([self.tree], self.dtype, self.opt_level)

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR of the function in `ir` after optimization for this host."""
        return optimized_ir(self.ir, level=self.opt_level)

    @cached_property
    def loop_ir(self) -> str:
        """LLVM IR, as lowered, of the loops that evaluate arrays; long programs have several loops."""
        return rows_ir(self.program, self.opt_level, self._conventions.vector)

    def assembly(self, target: str | None = None, cpu: str | None = None) -> str:
        """Assembly of the function in `ir`.

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
        """Object file of the function in `ir`, for a target as in `assembly`."""
        return object_code(self.ir, target, cpu, level=self.opt_level)

    @cached_property
    def one_row(self) -> Any:
        """The function of one row for `ctypes`; it takes numbers, pointers to the outputs if there are several, and a
        pointer to the byte that becomes 1 if an integer division fails."""
        kinds = [_C_TYPES[parameter.dtype] for parameter in self.program.parameters]
        outputs = self.program.outputs
        several = len(outputs) > 1
        kinds += [ctypes.c_void_p] * (len(outputs) * several + self._can_fail)
        result = None if several else _C_TYPES[outputs[0].dtype]
        return Engine(self.ir, self.opt_level).function(symbol(self.program.name), result, *kinds)

    def _of_numbers(self, arguments: list[Any]) -> list[Any]:
        outputs = self.program.outputs
        if len(outputs) == 1 and not self._can_fail:
            return [self.one_row(*arguments)]
        places = [_C_TYPES[output.dtype]() for output in outputs] if len(outputs) > 1 else []
        failed = ctypes.c_uint8()
        addresses = [ctypes.addressof(place) for place in [*places, failed][: len(places) + self._can_fail]]
        result = self.one_row(*arguments, *addresses)
        if failed.value:
            raise ZeroDivisionError
        return [place.value for place in places] or [result]

    def _outputs_by_parameters(self) -> dict[tuple[int, ...], list[int]]:
        """Positions of the outputs, grouped by those of the parameters that determine their shapes."""
        if self._conventions.one_shape:
            return {tuple(range(len(self.program.parameters))): list(range(len(self.program.outputs)))}
        groups: dict[tuple[int, ...], list[int]] = {}
        for position, read in enumerate(parameters_read(self.program)):
            groups.setdefault(read, []).append(position)
        return groups

    def _of_arrays(self, arrays: Sequence[AnyArray]) -> list[Any]:
        """All outputs; those of one shape are computed together."""
        groups: dict[Shape, list[int]] = {}
        for read, outputs in self._groups.items():
            groups.setdefault(self._signature.shape(read, arrays), []).extend(outputs)
        results: list[Any] = [None] * len(self.program.outputs)
        for shape, positions in groups.items():
            group = tuple(sorted(positions))
            if group not in self._rows:
                self._rows[group] = self._compiled_rows(group)
            rows, columns = self._rows[group]
            for position, result in zip(group, rows.run([arrays[i] for i in columns], shape), strict=True):
                results[position] = result if shape else result.item()
        return results

    def _compiled_rows(self, outputs: tuple[int, ...]) -> tuple[ProgramRows, list[int]]:
        """The outputs over arrays, and positions of the parameters that they read."""
        rows = ProgramRows(part(self.program, outputs), self.opt_level, self._threads, self._conventions.vector)
        needed = {parameter.name for parameter in rows.program.parameters}
        return rows, [i for i, parameter in enumerate(self.program.parameters) if parameter.name in needed]
