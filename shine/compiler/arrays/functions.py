"""Functions of whole arrays with the same bits as formulas: elementary functions, and sums in a fixed order.

NumPy's `log`, `exp` and matrix products give other bits on other processors. A search decides about formulas by the
functions here, so that it decides the same on every processor.
"""

from __future__ import annotations

import ast
import ctypes
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Floats
from shine.compiler.codegen.identity import Functions, source_digest
from shine.compiler.codegen.native.inner import emit_inner, panel_width
from shine.compiler.codegen.native.loops import emit_predict
from shine.compiler.llvm import Engine, cached, host_object
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.meaning.folding import EXACT, INEXACT
from shine.lang.meaning.folding import Functions as Meanings
from shine.lang.meaning.interpret import REFERENCE


def apply(primitive: Primitive, *arguments: Floats) -> Floats:
    """A primitive applied to arrays.

    Parameters
    ----------
    primitive : Primitive
    *arguments : ndarray, float64
        One for each argument, of shapes that broadcast.

    Returns
    -------
    ndarray, float64
        Of the broadcast shape, with the bits of a formula's values; not finite where there is no value.
    """
    if primitive.definition is None and primitive.name not in INEXACT:
        # These have one right result, and NumPy gives it.
        with np.errstate(all="ignore"):
            exact: Floats = REFERENCE[primitive.name](*arguments)
        return exact
    broadcast = np.broadcast_arrays(*arguments)
    columns = [np.ascontiguousarray(array, dtype=np.float64) for array in broadcast]
    out = np.empty(broadcast[0].shape)
    places = np.array([column.ctypes.data for column in columns], dtype=np.uintp)
    _elementwise(Functions.of((primitive,)))(places.ctypes.data, out.ctypes.data, out.size)
    return out


def log(values: Floats) -> Floats:
    """Natural logarithm of each element."""
    return apply(STANDARD["log"], values)


def exp(values: Floats) -> Floats:
    """Exponential of each element."""
    return apply(STANDARD["exp"], values)


def power(values: Floats, exponent: float) -> Floats:
    """Each element to a power; small multiples of 1/2 use products and square roots, as in formulas."""
    size = abs(exponent)
    if exponent == 0 or 2 * size != round(2 * size) or size > 16:
        return apply(STANDARD["pow"], values, np.array(exponent))
    with np.errstate(all="ignore"):
        result = np.sqrt(values) if size % 1 else np.ones_like(values)
        for _ in range(int(size)):
            result = result * values
        return 1 / result if exponent < 0 else result


COMPILED: Meanings = {**EXACT, **{name: partial(apply, STANDARD[name]) for name in INEXACT}}
"""The basic primitives by name, for folding constants: with the same bits as in all compiled tiers."""


def dot(a: AnyArray, b: AnyArray) -> AnyArray:
    """Sum of the products of elements over the last axis; the other axes broadcast."""
    total: AnyArray = np.add.reduce(a * b, axis=-1)
    return total


class Panels:
    """A matrix laid out for inner products of its rows with the rows of others.

    Parameters
    ----------
    matrix : ndarray of shape (n, length), float64 or float32

    Attributes
    ----------
    count : int
        Rows of the matrix.
    """

    def __init__(self, matrix: AnyArray) -> None:
        self.count, self._length = matrix.shape
        self._dtype = matrix.dtype
        width = panel_width(self._dtype.name)
        self._panels = -(-self.count // width)
        padded = np.zeros((self._panels * width, self._length), self._dtype)
        padded[: self.count] = matrix
        self._packed = np.ascontiguousarray(padded.reshape(self._panels, width, self._length).transpose(0, 2, 1))

    def inner(self, others: AnyArray) -> AnyArray:
        """Inner products of rows, shape (n_others, n), each added up from the first element to the last.

        Parameters
        ----------
        others : ndarray of shape (n_others, length)
        """
        others = np.ascontiguousarray(others, self._dtype)
        out = np.empty((len(others), self._packed.shape[0] * self._packed.shape[2]), self._dtype)
        pointers = [array.ctypes.data for array in (others, self._packed, out)]
        _inner_function(self._dtype.name)(*pointers, len(others), self._length, self._panels)
        return out[:, : self.count]


def inner(others: AnyArray, matrix: AnyArray) -> AnyArray:
    """Inner products of all rows of one matrix with all rows of another, shape (n_others, n) (see `Panels`)."""
    return Panels(matrix).inner(others)


@cache
def _elementwise(function: Functions) -> Any:
    """The compiled function ``(columns, out, count)`` of a primitive."""
    primitive = function.functions[0]
    names = tuple(f"x{i}" for i in range(primitive.arity))
    call = application(primitive.name, [ast.Name(name, ast.Load()) for name in names])
    tree = Tree(names, call, functions={primitive.name: primitive})

    def make() -> bytes:
        module = ir.Module(name="elementwise")
        emit_predict(module, tree, "elementwise", "float64")
        return host_object(str(module), "O1")

    code = cached(("elementwise", source_digest(), *function.meaning), make)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    return Engine.of_object(code, ["elementwise"]).function("elementwise", ctypes.c_uint8, *kinds)


@cache
def _inner_function(dtype: str) -> Any:
    """The compiled function that `emit_inner` emits."""

    def make() -> bytes:
        module = ir.Module(name="inner")
        emit_inner(module, "inner", dtype)
        return host_object(str(module), "O1")

    code = cached(("inner", source_digest(), dtype), make)
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3
    return Engine.of_object(code, ["inner"]).function("inner", None, *kinds)
