"""A program as a compiled callable: what `shine.jit` makes of a graph."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numpy.typing import ArrayLike

from shine.codegen.native.programs import emit_program_scalar
from shine.kernels.rows import ProgramRows, division_by_zero, rows_ir
from shine.lang.lazy import cached_property
from shine.lang.names import symbol
from shine.lang.program.arguments import Shape, argument_arrays, broadcast_shape
from shine.lang.program.dependencies import parameters_read, part
from shine.lang.program.program import Program
from shine.llvm import Engine, assembly, object_code, optimized_ir
from shine.llvm.passes import pipeline_level
from shine.typing import AnyArray

LARGE = 20_000
"""Nodes above which a program is compiled without optimization. It is more than for a formula, as the function over
rows is split into stages."""

SCALAR_PARAMETERS, SCALAR_NODES = 1_000, 100_000
"""Parameters and nodes above which the function of one row is not called: `ctypes` passes no more than 1024
arguments, and all values are on the stack."""

_C_TYPES: dict[str, Any] = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "bool": ctypes.c_bool,
}


class GraphKernel:
    """A program compiled to native code; `shine.jit` makes it.

    Parameters
    ----------
    program : Program
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline; programs of more than `LARGE` nodes get O0 whatever is asked.
    threads : int, optional
        How many share the rows of large arrays; all processors by default. Their number changes no bit.

    Attributes
    ----------
    parameters : tuple of str
        Names of the arguments, in calling order.
    labels : tuple of str
        What the graph calls them; arguments can be given by either.
    dtypes : tuple of str
        Types of the arguments.
    ir : str
        LLVM IR of the function of one row, as lowered; of the loop over rows, if the program has arrays of its own.

    Raises
    ------
    LoweringError
        If a primitive or a number has no meaning in its type.
    """

    def __init__(self, program: Program, opt_level: str | int = "O2", threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, or None for all processors, is {threads}")
        self.program = program
        self.parameters = tuple(parameter.name for parameter in program.arguments)
        self.labels = tuple(parameter.label for parameter in program.arguments)
        self.dtypes = tuple(parameter.dtype for parameter in program.arguments)
        level = pipeline_level(opt_level)
        self.opt_level = 0 if program.size > LARGE else level
        self._threads = threads
        self._rows: dict[tuple[int, ...], ProgramRows] = {}
        self._read = parameters_read(program)
        self._is_scalar = len(program.arguments) == len(program.parameters)
        self._can_fail = False
        if self._is_scalar:
            module = ir.Module(name=program.name)
            self._can_fail = emit_program_scalar(module, program, symbol(program.name))
            self.ir = str(module)
        else:
            self.ir = self.loop_ir

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return type(self), (self.program, self.opt_level, self._threads)

    def __repr__(self) -> str:
        return f"<GraphKernel of {self.program!r}>"

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Outputs of the program.

        Parameters
        ----------
        *arguments, **named : scalars or arrays
            By position, or by label or name; what has a default may be left out. Arrays broadcast against each other
            and against those of the program itself, whatever shapes its graph declares.

        Returns
        -------
        number, ndarray or tuple of them
            One an output; no tuple if there is only one. An output is of its type, in the shape that the arguments
            it depends on broadcast to; a number if that is no array.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or do not fit their types.
        ValueError
            If the shapes of arguments do not fit each other.
        ZeroDivisionError
            If an integer division has a zero divisor in any row.
        """
        arrays = argument_arrays(self.program, arguments, named)
        is_small = len(arrays) <= SCALAR_PARAMETERS and self.program.size <= SCALAR_NODES
        if self._is_scalar and is_small and all(array.ndim == 0 for array in arrays):
            results = self._scalar([array.item() for array in arrays])
        else:
            results = self._arrays(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR of the function of one row after optimization for this host."""
        return optimized_ir(self.ir, level=self.opt_level)

    @cached_property
    def loop_ir(self) -> str:
        """LLVM IR of the loops over rows, as lowered: what arrays are evaluated with; long programs have several."""
        return rows_ir(self.program, self.opt_level)

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
    def _scalar_function(self) -> Any:
        kinds = [_C_TYPES[parameter.dtype] for parameter in self.program.parameters]
        outputs = self.program.outputs
        several = len(outputs) > 1
        kinds += [ctypes.c_void_p] * (len(outputs) * several + self._can_fail)
        result = None if several else _C_TYPES[outputs[0].dtype]
        return Engine(self.ir, self.opt_level).function(symbol(self.program.name), result, *kinds)

    def _scalar(self, arguments: list[Any]) -> list[Any]:
        places = [_C_TYPES[output.dtype]() for output in self.program.outputs]
        failed = ctypes.c_uint8()
        addresses = [ctypes.addressof(place) for place in places] if len(places) > 1 else []
        addresses += [ctypes.addressof(failed)] * self._can_fail
        result = self._scalar_function(*arguments, *addresses)
        if failed.value:
            raise division_by_zero(self.program)
        return [place.value for place in places] if len(places) > 1 else [result]

    def _arrays(self, arrays: Sequence[AnyArray]) -> list[Any]:
        """All outputs; those of one shape are computed together."""
        parameters = self.program.parameters
        groups: dict[Shape, list[int]] = {}
        for position, read in enumerate(self._read):
            shape = broadcast_shape([parameters[i] for i in read], [arrays[i] for i in read])
            groups.setdefault(shape, []).append(position)
        results: list[Any] = [None] * len(self._read)
        for shape, positions in groups.items():
            group = tuple(positions)
            if group not in self._rows:
                self._rows[group] = ProgramRows(part(self.program, group), self.opt_level, self._threads)
            rows = self._rows[group]
            needed = {parameter.name for parameter in rows.program.parameters}
            columns = [array for p, array in zip(parameters, arrays, strict=True) if p.name in needed]
            for position, result in zip(positions, rows.run(columns, shape), strict=True):
                results[position] = result if result.ndim else result.item()
        return results
