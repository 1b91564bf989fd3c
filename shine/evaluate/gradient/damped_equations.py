"""One step of Levenberg-Marquardt: the normal equations of an individual scaled, damped and solved, as native code.

With J^T J the matrix of the normal equations and S the roots of its diagonal, the step solves
``(S^-1 J^T J S^-1 + damping) (S step) = S^-1 J^T r``: Marquardt's scaling (1963), which makes the step independent of
the unknowns' units. Systems have a handful of unknowns: scalar code solves them by the factors L D L^T.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, intrinsic, load, number, store
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS

LINE = FIXED_COLUMNS - 1
"""Unknowns before the constants: intercept and slope."""

_DOUBLE = ir.DoubleType()
_INFINITY = ir.Constant(_DOUBLE, float("inf"))
_ZERO, _ONE = ir.Constant(_DOUBLE, 0.0), ir.Constant(_DOUBLE, 1.0)


def scale_function(module: ir.Module) -> ir.Function:
    """Internal function that scales the normal equations to a diagonal of ones:
    ``scale(state, matrix, gradient, scale, fixed, unknowns, count, size, scaled)``.

    It reads the errors and products of `state` and the slope among the `unknowns`, and writes `gradient`, `scale` and
    the upper triangle of `matrix` without its diagonal. `count` unknowns are in use; a row of the matrix has room for
    `size`. `fixed` is a byte for each constant, not 0 if it is fixed; `scaled` is whether the line is fitted.

    An unknown that is fixed, or whose influence is 0 or not finite, gets a row of the unit matrix and gradient 0.
    """
    labels = ("state", "matrix", "gradient", "scale", "fixed", "unknowns", "count", "size", "scaled")
    kinds = [I64 if label in ("count", "size", "scaled") else POINTER for label in labels]
    function, build = _internal(module, "shine.fit.scale", ir.VoidType(), kinds, labels)
    state, matrix, gradient, scale, fixed, unknowns, count, size, scaled = function.args
    stride = build.add(size, number(1))
    slope = load(build, unknowns, number(1), _DOUBLE, _DOUBLE)

    def influence(unknown: ir.Value) -> ir.Value:
        # The state has derivatives of the prediction; those of the model are slope times as large.
        return build.select(build.icmp_unsigned(">=", unknown, number(LINE)), slope, _ONE)

    def product(row: ir.Value, column: ir.Value) -> ir.Value:
        place = build.add(build.mul(row, stride), column)
        return load(build, state, build.add(place, number(1)), _DOUBLE, _DOUBLE)

    def finite(value: ir.Value) -> ir.Value:
        return build.fcmp_ordered("<", build.call(intrinsic(module, "llvm.fabs", _DOUBLE, 1), [value]), _INFINITY)

    with counted(build, number(0), count) as loop:
        unknown = loop.index
        factor, row = influence(unknown), build.add(unknown, number(1))
        square = build.fmul(build.fmul(product(row, row), factor), factor)
        root = build.call(intrinsic(module, "llvm.sqrt", _DOUBLE, 1), [square])
        slant = build.fmul(product(row, number(0)), factor)
        of_line = build.icmp_unsigned("<", unknown, number(LINE))
        place = build.select(of_line, number(0), build.sub(unknown, number(LINE)))
        byte = load(build, fixed, place, ir.IntType(8), ir.IntType(8))
        moves = build.select(
            of_line, build.icmp_unsigned("!=", scaled, number(0)), build.icmp_unsigned("==", byte, byte.type(0))
        )
        usable = build.and_(build.and_(build.fcmp_ordered(">", root, _ZERO), finite(root)), finite(slant))
        usable = build.and_(usable, moves)
        # A scale of 0 marks an unusable unknown until the matrix is written.
        store(build, build.select(usable, root, _ZERO), scale, unknown, _DOUBLE)
        store(build, build.select(usable, build.fdiv(slant, root), _ZERO), gradient, unknown, _DOUBLE)
    with counted(build, number(0), count) as row, counted(build, number(0), row.index) as column:
        scales = [load(build, scale, each.index, _DOUBLE, _DOUBLE) for each in (row, column)]
        value = product(build.add(row.index, number(1)), build.add(column.index, number(1)))
        value = build.fmul(build.fmul(value, influence(row.index)), influence(column.index))
        value = build.fdiv(value, build.fmul(*scales))
        usable = build.and_(*(build.fcmp_ordered(">", each, _ZERO) for each in scales))
        value = build.select(build.and_(usable, finite(value)), value, _ZERO)
        # The state has the lower triangle; solving reads the upper one.
        store(build, value, matrix, build.add(build.mul(column.index, size), row.index), _DOUBLE)
    with counted(build, number(0), count) as loop:
        value = load(build, scale, loop.index, _DOUBLE, _DOUBLE)
        value = build.select(build.fcmp_ordered(">", value, _ZERO), value, _ONE)
        store(build, value, scale, loop.index, _DOUBLE)
    build.ret_void()
    return function


def solve_function(module: ir.Module) -> ir.Function:
    """Internal function that solves the damped equations:
    ``double solve(matrix, gradient, scale, work, step, count, size, damping)``.

    The first three arguments are results of `scale_function`; `work` has room for a matrix. It writes the step, in the
    units of the unknowns, and returns the promise: how far the squared error would fall if the model were linear.
    """
    labels = ("matrix", "gradient", "scale", "work", "step", "count", "size", "damping")
    kinds = [POINTER] * 5 + [I64, I64, _DOUBLE]
    function, build = _internal(module, "shine.fit.solve", _DOUBLE, kinds, labels)
    matrix, gradient, scale, work, step, count, size, damping = function.args

    system = _System(build, work, step, count, size)
    at, cell = system.at, system.cell
    damped_diagonal = build.fadd(_ONE, damping)
    with counted(build, number(0), count) as row:
        store(build, at(gradient, row.index), step, row.index, _DOUBLE)
        store(build, damped_diagonal, work, cell(row.index, row.index), _DOUBLE)
        with counted(build, build.add(row.index, number(1)), count) as column:
            place = cell(row.index, column.index)
            store(build, at(matrix, place), work, place, _DOUBLE)
    system.eliminate()
    promise = system.substitute(gradient, damping)
    with counted(build, number(0), count) as loop:
        store(build, build.fdiv(at(step, loop.index), at(scale, loop.index)), step, loop.index, _DOUBLE)
    build.ret(promise)
    return function


class _System:
    """Emits code that solves ``work * solution = step`` and writes the solution to `step`.

    `work` is the upper triangle of a positive semidefinite matrix; it is overwritten.
    """

    def __init__(self, build: ir.IRBuilder, work: ir.Value, step: ir.Value, count: ir.Value, size: ir.Value) -> None:
        self.build, self.work, self.step, self.count, self.size = build, work, step, count, size

    def at(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        """The number at a position of an array."""
        return load(self.build, pointer, index, _DOUBLE, _DOUBLE)

    def cell(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Position of an entry of a matrix."""
        return self.build.add(self.build.mul(row, self.size), column)

    def eliminate(self) -> None:
        """Eliminate each unknown from the equations below it. A semidefinite matrix needs no pivoting."""
        build, work, step, count, at, cell = self.build, self.work, self.step, self.count, self.at, self.cell
        with counted(build, number(0), count) as pivot:
            own = cell(pivot.index, pivot.index)
            value = at(work, own)
            # Rounding may leave an unknown that depends on earlier ones without a positive pivot; it then does not
            # move.
            value = build.select(build.fcmp_ordered(">", value, _ZERO), value, _INFINITY)
            store(build, value, work, own, _DOUBLE)
            known = at(step, pivot.index)
            with counted(build, build.add(pivot.index, number(1)), count) as row:
                factor = build.fdiv(at(work, cell(pivot.index, row.index)), value)
                left = build.fsub(at(step, row.index), build.fmul(factor, known))
                store(build, left, step, row.index, _DOUBLE)
                with counted(build, row.index, count) as column:
                    place = cell(row.index, column.index)
                    taken = build.fmul(factor, at(work, cell(pivot.index, column.index)))
                    store(build, build.fsub(at(work, place), taken), work, place, _DOUBLE)

    def substitute(self, gradient: ir.Value, damping: ir.Value) -> ir.Value:
        """Compute the unknowns from the last one up; return the promise of the solution."""
        build, work, step, count, at, cell = self.build, self.work, self.step, self.count, self.at, self.cell
        with counted(build, number(0), count, carried=[_ZERO]) as back:
            unknown = build.sub(build.sub(count, number(1)), back.index)
            with counted(build, build.add(unknown, number(1)), count, carried=[at(step, unknown)]) as column:
                taken = build.fmul(at(work, cell(unknown, column.index)), at(step, column.index))
                column.results = [build.fsub(column.values[0], taken)]
            value = build.fdiv(column.values[0], at(work, cell(unknown, unknown)))
            store(build, value, step, unknown, _DOUBLE)
            promised = build.fmul(value, build.fadd(at(gradient, unknown), build.fmul(damping, value)))
            back.results = [build.fadd(back.values[0], promised)]
        return back.values[0]


def _internal(
    module: ir.Module, name: str, result: ir.Type, kinds: list[ir.Type], labels: tuple[str, ...]
) -> tuple[ir.Function, ir.IRBuilder]:
    """A new internal function that stays a call, and a builder at its start."""
    function = declare(module, name, result, kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))
