"""An array formula as a compiled callable."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import ArrayLike

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.native.arrays import emit_arrays
from shine.compiler.codegen.native.loops import row_numbers
from shine.compiler.llvm import Engine, optimized_ir
from shine.compiler.llvm.target import pipeline_level
from shine.lang.arrays.formula import ArrayFormula, check_indices
from shine.lang.forms.names import value_text

FLOATS = ("float64", "float32")
"""Number types of array formulas."""

_NAME = "arrays"
_LINE = 64
"""Bytes of a line of the cache."""


class ArrayKernel:
    """A formula of vectors and numbers, compiled to native code; `shine.jit` makes it.

    Parameters
    ----------
    formula : ArrayFormula
    dtype : {"float64", "float32"}
        Type of arguments and results.
    opt_level : {"O0", "O1", "O2", "O3"} or int

    Attributes
    ----------
    formula : ArrayFormula
    dtype : str
    parameters : tuple of str
        Names of the arguments, in calling order.
    vectors : tuple of str
        Those that are vectors.
    ir : str
        LLVM IR of the function of all individuals, as lowered.

    Raises
    ------
    LoweringError
        If a primitive or a number has no meaning in the type.
    ValueError
        If the type is no floating-point type.

    Notes
    -----
    Sums and products begin with 0 and 1 and take the terms one after the other, in the order of the index; `min` and
    `max` are NaN if a term is. An individual has the same bits alone and in a batch, and in Shine's interpreter.
    """

    def __init__(self, formula: ArrayFormula, dtype: str = "float64", opt_level: str | int = "O2") -> None:
        if dtype not in FLOATS:
            raise ValueError(f"array formulas have dtype {' or '.join(FLOATS)}, not {value_text(dtype)}")
        self.formula, self.dtype, self.opt_level = formula, dtype, pipeline_level(opt_level)
        self.parameters, self.vectors = formula.parameters, formula.vectors
        module = ir.Module(name=formula.name)
        emit_arrays(module, formula, _NAME, dtype)
        self.ir = str(module)
        self._checked: set[tuple[int, ...]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return array_kernel, (self.formula, self.dtype, self.opt_level)

    def __repr__(self) -> str:
        return f"<ArrayKernel {self.formula.text!r} of ({', '.join(self.parameters)}), {self.dtype}>"

    def __call__(self, *arguments: ArrayLike, **named: ArrayLike) -> Any:
        """Value of the formula for one individual, or for many.

        Parameters
        ----------
        *arguments, **named : array-like
            By position or by name. A vector has shape (length,), or (individuals, length) for a batch; a number is one,
            or an array of shape (individuals,). Values without an axis of individuals are the same for all.
            Lengths may differ from call to call.

        Returns
        -------
        float, ndarray of shape (individuals,), or tuple of them
            A tuple if the formula returns one with several values.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or not numbers.
        ValueError
            If the numbers of individuals differ, or the formula has a minimum or maximum of nothing.
        IndexError
            If the formula reads an element that a vector does not have.

        Examples
        --------
        >>> import shine
        >>> sphere = shine.jit("sum(v*v for v in x)")
        >>> sphere([3.0, 4.0])
        25.0
        >>> sphere([[3.0, 4.0], [1.0, 0.0]])
        array([25.,  1.])
        """
        given = self._named(arguments, named)
        arrays = [self._array(name, given[name]) for name in self.parameters]
        rows = self._individuals(arrays)
        results = self.run(arrays, 1 if rows is None else rows)
        values = [result.item() if rows is None else result for result in results]
        return values[0] if len(values) == 1 else tuple(values)

    def run(self, arrays: Sequence[AnyArray], rows: int) -> AnyArray:
        """Values for some individuals, without checks of the arguments but for their lengths.

        Parameters
        ----------
        arrays : sequence of ndarray
            One a parameter, in `dtype`, of the shapes that a call takes.
        rows : int
            Number of individuals.

        Returns
        -------
        ndarray of shape (results, rows)
        """
        return self.prepared(arrays, rows)(rows)

    def prepared(self, arrays: Sequence[AnyArray], rows: int) -> PreparedCall:
        """A call that can be repeated after the arrays have got other numbers, for up to `rows` individuals.

        Arguments and errors are those of `run`.
        """
        if len(arrays) != len(self.parameters):
            raise TypeError(f"the formula takes ({', '.join(self.parameters)}), not {len(arrays)} arrays")
        lengths = self._lengths(arrays)
        strides = [
            lengths.get(name, 1) if array.ndim == 1 + (name in lengths) else 0
            for name, array in zip(self.parameters, arrays, strict=True)
        ]
        room = row_numbers(self.dtype).width * sum(lengths[vector] for vector in self.formula.vectors)
        out = np.empty((len(self.formula.results), rows), self.dtype)
        return PreparedCall(self._function, arrays, strides, list(lengths.values()), room, out)

    @cached_property
    def optimized_ir(self) -> str:
        """The LLVM IR after optimization for this host."""
        return optimized_ir(self.ir, level=self.opt_level)

    @cached_property
    def _function(self) -> Any:
        kinds = [ctypes.c_void_p] * 5 + [ctypes.c_int64]
        return Engine(self.ir, self.opt_level).function(_NAME, None, *kinds)

    def _lengths(self, arrays: Sequence[AnyArray]) -> Mapping[str, int]:
        """Length of each vector; the formula can be computed for them."""
        shapes = zip(self.parameters, arrays, strict=True)
        lengths = {name: array.shape[-1] for name, array in shapes if name in self.vectors}
        key = tuple(lengths.values())
        if key not in self._checked:
            check_indices(self.formula, lengths)
            if len(self._checked) >= 1000:  # most lengths of vectors that are remembered as checked
                self._checked.clear()
            self._checked.add(key)
        return lengths

    def _named(self, arguments: Sequence[ArrayLike], named: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
        given = dict(zip(self.parameters, arguments, strict=False))
        unexpected = [name for name in named if name not in self.parameters or name in given]
        given |= named
        missing = [name for name in self.parameters if name not in given]
        if len(arguments) > len(self.parameters) or unexpected or missing:
            problem = (
                f"unexpected {unexpected[0]!r}" if unexpected else f"missing {missing[0]!r}" if missing else "too many"
            )
            raise TypeError(f"the formula takes ({', '.join(self.parameters)}): {problem}")
        return given

    def _array(self, name: str, value: ArrayLike) -> AnyArray:
        """An argument as an array of `dtype`, with the axes that it may have."""
        axes = 1 + (name in self.vectors)
        wanted = (
            f"shape ({'length,' if axes == 2 else ''}) or ({'individuals, length' if axes == 2 else 'individuals,'})"
        )
        try:
            array = np.asarray(value)
        except ValueError:
            raise ValueError(f"argument {name!r} has rows of unequal lengths; it needs {wanted}") from None
        if array.dtype.kind not in "biuf" and array.size:
            raise TypeError(f"argument {name!r} has dtype {array.dtype}; numbers are needed")
        if not axes - 1 <= array.ndim <= axes:
            raise ValueError(f"argument {name!r} has shape {array.shape}; it needs {wanted}")
        with np.errstate(over="ignore"):
            return array.astype(self.dtype, copy=False)

    def _individuals(self, arrays: Sequence[AnyArray]) -> int | None:
        """Number of individuals; None if no argument has an axis of them."""
        found: dict[str, int] = {}
        for name, array in zip(self.parameters, arrays, strict=True):
            if array.ndim == 1 + (name in self.vectors):
                found[name] = array.shape[0]
        if len(set(found.values())) > 1:
            parts = ", ".join(f"{name!r} has {count}" for name, count in found.items())
            raise ValueError(f"the arguments have different numbers of individuals: {parts}")
        return next(iter(found.values()), None)


class PreparedCall:
    """A call of compiled code with the addresses that it needs, found once; `ArrayKernel.prepared` makes it."""

    def __init__(
        self,
        function: Any,
        arrays: Sequence[AnyArray],
        strides: Sequence[int],
        lengths: Sequence[int],
        room: int,
        out: AnyArray,
    ) -> None:
        self.values = out
        held = [np.ascontiguousarray(array) for array in arrays]
        block = np.empty(room * out.itemsize + _LINE, np.uint8)
        first, size = _address(out), out.strides[0]
        outs = [first + size * place for place in range(len(out))]
        tables = [_words(words) for words in ([_address(array) for array in held], strides, lengths, outs)]
        # The tables and arrays live as long as their addresses are used.
        self._held = held, block, tables
        self._function = function
        # Vectors that cross the lines of the cache take twice as long.
        aligned = -(-_address(block) // _LINE) * _LINE
        self._arguments = (*(ctypes.addressof(table) for table in tables), aligned)

    def __call__(self, rows: int) -> AnyArray:
        """The values for the first `rows` individuals, shape (results, rows), until the next call."""
        self._function(*self._arguments, rows)
        return self.values[:, :rows]

    @property
    def words(self) -> tuple[int, ...]:
        """What native code needs for such a call: function, arguments, address, row length and number of the values."""
        function = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        return (function, *self._arguments, _address(self.values), self.values.shape[1], len(self.values))


@lru_cache(maxsize=64)
def array_kernel(formula: ArrayFormula, dtype: str, opt_level: int) -> ArrayKernel:
    """A kernel that this process may have compiled before: pools of processes send one with every task."""
    return ArrayKernel(formula, dtype, opt_level)


def _words(numbers: Sequence[int]) -> Any:
    """Whole numbers and addresses as an array of C."""
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)


def _address(array: AnyArray) -> int:
    # Three times as fast as `array.ctypes.data`.
    address: int = array.__array_interface__["data"][0]
    return address
