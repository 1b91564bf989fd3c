"""Arithmetic of whole arrays with the same bits on every processor: functions, inner products, small linear systems.

NumPy's `log`, `exp` and matrix products give other bits on other processors. A search decides about formulas by the
functions here, so that it decides the same on every processor.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Floats, Mask
from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load, store
from shine.compiler.codegen.native.loops import emit_predict, row_numbers
from shine.compiler.codegen.numbers import Functions, Numbers, source_digest
from shine.compiler.llvm import Engine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import EXACT, INEXACT, REFERENCE
from shine.lang.interpret import Functions as Meanings

__all__ = ["COMPILED", "Panels", "apply", "dot", "exp", "inner", "log", "power"]


AT_ONCE = 6
"""Rows of the first matrix that use each load from the second: their sums just fit into the 16 registers of AVX2."""

_ZERO = ir.Constant(I64, 0)


def emit_inner(module: ir.Module, name: str, dtype: str) -> None:
    """Emit ``void name(a, panels, out, rows, length, count)``.

    ``a`` has `rows` rows of `length` numbers. ``panels`` holds the other matrix in `count` panels of `panel_width`
    rows; a panel has the first elements of its rows, then the second elements, and so on. ``out`` has `rows` rows of
    ``count * panel_width`` numbers.
    """
    numbers = row_numbers(dtype)
    labels = ("a", "panels", "out", "rows", "length", "count")
    function = declare(module, name, ir.VoidType(), [POINTER] * 3 + [I64] * 3, labels)
    a, panels, out, rows, length, count = function.args
    out.add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    width = ir.Constant(I64, numbers.width)
    stride = build.mul(count, width)
    whole = build.sub(rows, build.urem(rows, ir.Constant(I64, AT_ONCE)))
    with counted(build, _ZERO, count) as panel:
        column = build.mul(panel.index, width)
        own = element_pointer(build, panels, build.mul(column, length), numbers.element)
        for first, last, step in ((_ZERO, whole, AT_ONCE), (whole, rows, 1)):
            with counted(build, first, last, step) as group:
                lines = [build.add(group.index, ir.Constant(I64, i)) for i in range(step)]
                sums = _sums(build, numbers, a, own, [build.mul(line, length) for line in lines], length)
                for line, total in zip(lines, sums, strict=True):
                    at = build.add(build.mul(line, stride), column)
                    store(build, total, out, at, numbers.element)
    build.ret_void()


def _sums(
    build: ir.IRBuilder,
    numbers: Numbers,
    a: ir.Value,
    panel: ir.Value,
    starts: Sequence[ir.Value],
    length: ir.Value,
) -> list[ir.Value]:
    """Inner products of some rows with all rows of a panel, one vector per row."""
    width, zero = ir.Constant(I64, numbers.width), ir.Constant(numbers.type, None)
    with counted(build, _ZERO, length, carried=[zero] * len(starts)) as loop:
        others = load(build, panel, build.mul(loop.index, width), numbers.element, numbers.type)
        for start, total in zip(starts, loop.values, strict=True):
            one = load(build, a, build.add(start, loop.index), numbers.element, numbers.element)
            loop.results.append(build.fadd(total, build.fmul(broadcast(build, one, numbers.type), others)))
    return loop.values


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
    broadcast = arguments if len(arguments) == 1 else np.broadcast_arrays(*arguments)
    columns = [np.ascontiguousarray(array, dtype=np.float64) for array in broadcast]
    out = np.empty(np.shape(broadcast[0]))
    places = np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.uintp)
    function = _basic(primitive) if primitive.definition is None else _elementwise(Functions.of((primitive,)))
    function(places.ctypes.data, out.ctypes.data, out.size)
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
        width = row_numbers(self._dtype.name).width
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


def gram_matrix(matrix: AnyArray) -> AnyArray:
    """Inner products of all rows with each other, shape (n, n): the bits of `inner`, for about half of the work."""
    half = len(matrix) // 2
    # Least rows of a matrix of inner products whose halves are computed apart: below, calls take as long as products.
    if half < 128:
        return inner(matrix, matrix)
    across = inner(matrix[:half], matrix[half:])
    return np.block([[gram_matrix(matrix[:half]), across], [across.T, gram_matrix(matrix[half:])]])


@cache
def _basic(primitive: Primitive) -> Any:
    """The compiled function of a basic primitive: its name says what it means."""
    return _elementwise(Functions.of((primitive,)))


@cache
def _elementwise(function: Functions) -> Any:
    """The compiled function ``(columns, out, count)`` of a primitive."""
    primitive = function.functions[0]
    names = tuple(f"x{i}" for i in range(primitive.arity))
    call = application(primitive.name, [ast.Name(name, ast.Load()) for name in names])
    tree = Tree(names, call, functions={primitive.name: primitive})

    def emitted() -> ir.Module:
        module = ir.Module(name="elementwise")
        emit_predict(module, tree, "elementwise", "float64")
        return module

    engine = Engine.kept(["elementwise"], ("elementwise", source_digest(), *function.meaning), emitted, "O1")
    return engine.function("elementwise", ctypes.c_uint8, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@cache
def _inner_function(dtype: str) -> Any:
    """The compiled function that `emit_inner` emits."""

    def emitted() -> ir.Module:
        module = ir.Module(name="inner")
        emit_inner(module, "inner", dtype)
        return module

    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3
    return Engine.kept(["inner"], ("inner", source_digest(), dtype), emitted, "O1").function("inner", None, *kinds)


def solved(matrix: Floats, rights: Floats, ridge: float) -> Floats:
    """Solve ``(matrix + ridge) solution = right`` for each right side.

    Shapes are (..., n, n) and (..., n_sides, n); leading axes are separate systems.
    """
    size = matrix.shape[-1]
    triangle, pivots, solutions = _eliminated(matrix + ridge * np.eye(size), np.swapaxes(rights, -1, -2))
    for k in reversed(range(size)):
        solutions[..., k, :] /= pivots[..., k, None]
        solutions[..., :k, :] -= triangle[..., :k, k, None] * solutions[..., None, k, :]
    return np.swapaxes(solutions, -1, -2)


def inverse_diagonal(matrix: Floats, dependent: float = 1e-14) -> Floats:
    """Diagonal of the inverse of a matrix with a diagonal of ones, shape (n,).

    An unknown whose pivot is at most `dependent` depends on those before it. It counts as known: its entry is 0.
    """
    _, pivots, lower = _eliminated(matrix, np.eye(len(matrix)), dependent)
    total: Floats = np.add.reduce(lower**2 / pivots[:, None], axis=0)
    return total


def _eliminated(matrix: Floats, rights: Floats, dependent: float = 0.0) -> tuple[Floats, Floats, Floats]:
    """Eliminate each unknown from the equations below its own; return the upper triangle, pivots and right sides.

    An unknown whose pivot is at most `dependent` is left out; its pivot becomes infinite.
    """
    size = matrix.shape[-1]
    rest = np.concatenate([matrix, rights], axis=-1)
    pivots = np.full(matrix.shape[:-1], np.inf)
    for k in range(size):
        usable = rest[..., k, k] > dependent
        rest[..., k, :] = np.where(usable[..., None], rest[..., k, :], 0.0)
        pivots[..., k] = np.where(usable, rest[..., k, k], np.inf)
        factors = rest[..., k + 1 :, k] / pivots[..., k, None]
        rest[..., k + 1 :, k + 1 :] -= factors[..., None] * rest[..., None, k, k + 1 :]
    return rest[..., :size], pivots, rest[..., size:]


DEPENDENT = 1e-12
"""A column depends on earlier ones if its residual is at most this share of its length: that is rounding."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Columns of a regression as an orthonormal basis and a triangle; leading axes are separate regressions.

    A column that depends on those before it has a basis vector of zeros, and gets the coefficient 0.

    Parameters
    ----------
    basis : ndarray of shape (..., n_columns, n_rows)
    triangle : ndarray of shape (..., n_columns, n_columns)
        The scaled columns in terms of the basis: ``column[j] = sum(triangle[i, j] * basis[i])``; the diagonal is 1 for
        a dependent column.
    scale : ndarray of shape (..., n_columns)
        Divisors of the columns.
    kept : ndarray of shape (..., n_columns), bool
        Whether a column is independent of those before it.

    Notes
    -----
    Gram and Schmidt's method. Each column is orthogonalized twice: that makes it orthogonal to rounding (Kahan; Parlett
    1980).
    """

    basis: Floats
    triangle: Floats
    scale: Floats
    kept: Mask

    @classmethod
    def of(cls, columns: Floats, dependent: float = DEPENDENT) -> Regression:
        """The regression on some columns, shape (..., n_columns, n_rows).

        A column that is not finite counts as dependent. To weigh rows, multiply columns and views by the square roots
        of the weights.
        """
        scale = np.abs(columns).max(axis=-1, initial=0.0)
        usable = np.isfinite(scale) & (scale > 0)
        scale = np.where(usable, scale, 1.0)
        scaled = np.where(usable[..., None], columns, 0.0) / scale[..., None]
        count = columns.shape[-2]
        basis, triangle = np.zeros_like(scaled), np.zeros((*columns.shape[:-1], count))
        kept = np.zeros(columns.shape[:-1], np.bool_)
        for j in range(count):
            rest, before = scaled[..., j, :], basis[..., :j, :]
            own = np.sqrt(dot(rest, rest))
            for _ in range(2 if j else 0):
                along = dot(before, rest[..., None, :])
                triangle[..., :j, j] += along
                rest = rest - np.add.reduce(along[..., None] * before, axis=-2)
            length = np.sqrt(dot(rest, rest))
            fresh = length > dependent * own
            basis[..., j, :] = np.where(fresh[..., None], rest, 0.0) / np.where(fresh, length, 1.0)[..., None]
            triangle[..., j, j] = np.where(fresh, length, 1.0)
            kept[..., j] = fresh
        return cls(basis, triangle, scale, kept)

    def coefficients(self, view: Floats) -> Floats:
        """Coefficients of the columns in the best fit to a view, shape (..., n_columns)."""
        solution = dot(self.basis, view[..., None, :])
        for j in reversed(range(solution.shape[-1])):
            solution[..., j] /= self.triangle[..., j, j]
            solution[..., :j] -= solution[..., j, None] * self.triangle[..., :j, j]
        return np.where(self.kept, solution / self.scale, 0.0)

    def leading(self, count: int) -> Regression:
        """The regression on the first so many columns."""
        first = slice(count)
        return Regression(
            self.basis[..., first, :], self.triangle[..., first, first], self.scale[..., first], self.kept[..., first]
        )

    def rest(self, view: Floats) -> Floats:
        """Residuals of the best fit to a view, shape (..., n_rows)."""
        along = dot(self.basis, view[..., None, :])
        left: Floats = view - np.add.reduce(along[..., None] * self.basis, axis=-2)
        return left

    @property
    def variances(self) -> Floats:
        """Variance of each coefficient, in units of the rows' variance, shape (..., n_columns); inf where dependent."""
        count = self.triangle.shape[-1]
        inverse = np.zeros_like(self.triangle)
        for j in range(count):
            inverse[..., j, j] = 1 / self.triangle[..., j, j]
            for i in reversed(range(j)):
                across = self.triangle[..., i, i + 1 : j + 1] * inverse[..., i + 1 : j + 1, j]
                inverse[..., i, j] = -np.add.reduce(across, axis=-1) / self.triangle[..., i, i]
        return np.where(self.kept, dot(inverse, inverse) / self.scale**2, np.inf)


def least_squares(columns: Floats, view: Floats) -> Floats:
    """Coefficients of columns, shape (..., n_columns, n_rows), in the best fit to a view (see `Regression`)."""
    return Regression.of(columns).coefficients(view)


def combined(coefficients: Floats, columns: Floats) -> Floats:
    """Sum of columns, shape (..., n_columns, n_rows), each multiplied by its coefficient."""
    total: Floats = np.add.reduce(coefficients[..., None] * columns, axis=-2)
    return total
