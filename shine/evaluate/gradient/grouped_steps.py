"""Steps of a fit with unknowns by group: groups are eliminated, the rest is solved (see `grouped_fitting`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    counted,
    declare,
    element_pointer,
    intrinsic,
    load,
    number,
    stack,
    store,
)
from shine.evaluate.gradient.job import GROUPED_JOB
from shine.evaluate.machine.job import Job, job_entry, job_fields

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def double(value: float) -> ir.Constant:
    """A number as a constant of the code."""
    return ir.Constant(_DOUBLE, value)


class Emitter:
    """Shorthands for arrays of numbers."""

    def __init__(self, module: ir.Module, build: ir.IRBuilder) -> None:
        self.module, self.build = module, build

    def at(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        """The number at a position of an array."""
        return load(self.build, pointer, number(index), _DOUBLE, _DOUBLE)

    def put(self, value: ir.Value, pointer: ir.Value, index: ir.Value | int) -> None:
        """Store a number at a position of an array."""
        store(self.build, value, pointer, number(index), _DOUBLE)

    def increase(self, pointer: ir.Value, index: ir.Value, value: ir.Value) -> None:
        """Add to the number at a position of an array."""
        self.put(self.build.fadd(self.at(pointer, index), value), pointer, index)

    def moved(self, pointer: ir.Value, count: ir.Value) -> ir.Value:
        """Address of the number at a position of an array."""
        return element_pointer(self.build, pointer, count, _DOUBLE)

    def finite(self, value: ir.Value) -> ir.Value:
        """Whether a number is finite."""
        size = self.build.call(intrinsic(self.module, "llvm.fabs", _DOUBLE, 1), [value])
        return self.build.fcmp_ordered("<", size, double(float("inf")))

    def smaller(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The smaller of two numbers; the second if the first is NaN."""
        return self.build.select(self.build.fcmp_ordered("<", a, b), a, b)

    def larger(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The larger of two numbers; the second if the first is NaN."""
        return self.build.select(self.build.fcmp_ordered(">", a, b), a, b)

    def zeroed(self, pointer: ir.Value, count: ir.Value) -> None:
        """Fill an array with zeros."""
        with counted(self.build, number(0), count) as loop:
            self.put(double(0.0), pointer, loop.index)

    def copied(self, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
        """Copy an array."""
        with counted(self.build, number(0), count) as loop:
            self.put(self.at(source, loop.index), target, loop.index)


@dataclass(frozen=True)
class _Triangle:
    """Equations: an upper triangle of numbers, with the right sides after its columns.

    Parameters
    ----------
    matrix : ir.Value
    count : ir.Value
        Unknowns to eliminate, the first ones.
    size : ir.Value
        All unknowns.
    stride : ir.Value
        Numbers in a row.
    """

    matrix: ir.Value
    count: ir.Value
    size: ir.Value
    stride: ir.Value


class _Equations(Emitter):
    """An internal function with the arguments ``(job, individual, blocks, best, damping, length)``."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type) -> None:
        labels = ("job", "individual", "blocks", "best", "damping", "length")
        kinds = [POINTER, I64, POINTER, POINTER, _DOUBLE, _DOUBLE]
        self.function = function = declare(module, name, result, kinds, labels)
        function.linkage = "internal"
        build = ir.IRBuilder(function.append_basic_block("entry"))
        super().__init__(module, build)
        pointer, self.individual, self.blocks, self.best, self.damping, self.length = function.args
        self.job: Job = job_fields(build, pointer, GROUPED_JOB)
        names = ("work", "reduced", "trial", "totals", "flags", "step")
        self.work, self.reduced, self.trial, self.totals, self.flags, self.step = (
            build.inttoptr(self.job[name], POINTER) for name in names
        )
        self.own, self.shared, self.groups = self.job["own"], self.job["shared"], self.job["n_groups"]
        self.size = build.add(self.own, self.shared)
        self.stride = build.add(self.size, number(1))
        self.width = build.add(self.shared, number(1))
        self.by_group = build.mul(self.groups, self.own)
        self.lows, self.highs = (
            job_entry(build, self.job, name, self.individual, build.mul(self.size, number(8)))
            for name in ("lows", "highs")
        )

    def _block(self, blocks: ir.Value, group: ir.Value) -> ir.Value:
        return self.moved(blocks, self.build.mul(group, self.build.mul(self.stride, self.stride)))

    def _cell(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self.build.add(self.build.mul(row, self.stride), column)

    def _diagonal(self, block: ir.Value, k: ir.Value) -> ir.Value:
        return self.at(block, self._cell(k, k))

    @property
    def _shared_equations(self) -> _Triangle:
        return _Triangle(self.reduced, self.shared, self.shared, self.width)

    def _own_equations(self, work: ir.Value) -> _Triangle:
        return _Triangle(work, self.own, self.size, self.stride)

    def _eliminate(self, triangle: _Triangle, diagonal: Callable[[ir.Value], ir.Value]) -> None:
        """Eliminate unknowns, given their diagonal entries before any elimination."""
        build = self.build
        matrix, count, size, stride = triangle.matrix, triangle.count, triangle.size, triangle.stride
        with counted(build, number(0), count) as k:
            own = build.add(build.mul(k.index, stride), k.index)
            undamped = self.at(matrix, own)
            whole = diagonal(k.index)
            pivot = build.fadd(undamped, build.fmul(self.damping, whole))
            # An unknown whose pivot is at most this share of its diagonal depends on those before it: it does not move.
            usable = build.fcmp_ordered(">", pivot, build.fmul(double(1e-14), whole))
            # A row of zeros is that of an unknown that stays.
            usable = build.and_(usable, build.fcmp_ordered(">", undamped, double(0.0)))
            pivot = build.select(usable, pivot, double(float("inf")))
            self.put(pivot, matrix, own)
            with counted(build, build.add(k.index, number(1)), size) as row:
                there = build.add(build.mul(k.index, stride), row.index)
                factor = build.fdiv(self.at(matrix, there), pivot)
                with counted(build, row.index, build.add(size, number(1))) as column:
                    taken = build.fmul(factor, self.at(matrix, build.add(build.mul(k.index, stride), column.index)))
                    cell = build.add(build.mul(row.index, stride), column.index)
                    self.put(build.fsub(self.at(matrix, cell), taken), matrix, cell)


class Reduce(_Equations):
    """The function that eliminates the groups: it writes ``work``, ``reduced``, ``totals`` and ``flags``."""

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module, "reduce_blocks", ir.VoidType())
        build = self.build
        self._add_totals()
        self.zeroed(self.reduced, build.mul(self.width, self.width))
        with counted(build, number(0), self.groups) as group:
            block, work = self._block(self.blocks, group.index), self._block(self.work, group.index)
            self._mark_own(group.index, block)
            self._copy_free(group.index, block, work)
            self._eliminate(self._own_equations(work), lambda k: self._diagonal(block, k))
            with (
                counted(build, self.own, self.size) as row,
                counted(build, row.index, self.stride) as column,
            ):
                across = build.sub(column.index, self.own)
                cell = build.add(build.mul(build.sub(row.index, self.own), self.width), across)
                self.increase(self.reduced, cell, self.at(work, self._cell(row.index, column.index)))
        build.ret_void()

    def _add_totals(self) -> None:
        """Add up the diagonal and the products with the residual of each shared unknown; mark those that stay."""
        build = self.build
        zero = double(0.0)
        with counted(build, number(0), self.shared) as each:
            k = build.add(self.own, each.index)
            with counted(build, number(0), self.groups, carried=[zero, zero]) as group:
                block = self._block(self.blocks, group.index)
                group.results = [
                    build.fadd(group.values[0], self._diagonal(block, k)),
                    build.fadd(group.values[1], self.at(block, self._cell(k, self.size))),
                ]
            diagonal, slant = group.values
            self.put(diagonal, self.totals, each.index)
            self.put(slant, self.totals, build.add(self.shared, each.index))
            self._mark(build.add(self.by_group, each.index), k, diagonal, slant)

    def _mark_own(self, group: ir.Value, block: ir.Value) -> None:
        build = self.build
        with counted(build, number(0), self.own) as k:
            slant = self.at(block, self._cell(k.index, self.size))
            place = build.add(build.mul(group, self.own), k.index)
            self._mark(place, k.index, self._diagonal(block, k.index), slant)

    def _mark(self, place: ir.Value, k: ir.Value, diagonal: ir.Value, slant: ir.Value) -> None:
        """Note whether an unknown stays where it is."""
        build = self.build
        count = build.add(self.by_group, self.shared)
        fixed = job_entry(build, self.job, "fixed", build.add(build.mul(self.individual, count), place), 1)
        byte = load(build, fixed, number(0), _BYTE, _BYTE)
        value = self.at(self.best, place)
        below = build.and_(
            build.fcmp_ordered("<=", value, self.at(self.lows, k)), build.fcmp_ordered("<", slant, double(0.0))
        )
        above = build.and_(
            build.fcmp_ordered(">=", value, self.at(self.highs, k)), build.fcmp_ordered(">", slant, double(0.0))
        )
        free = build.and_(build.fcmp_ordered(">", diagonal, double(0.0)), self.finite(diagonal))
        free = build.and_(build.and_(free, self.finite(slant)), build.icmp_unsigned("==", byte, byte.type(0)))
        stays = build.or_(build.not_(free), build.or_(below, above))
        store(build, build.zext(stays, I64), self.flags, place, I64)

    def _stays(self, group: ir.Value, unknown: ir.Value) -> ir.Value:
        """Whether an unknown of a block stays; the residual does not."""
        build = self.build
        is_own = build.icmp_signed("<", unknown, self.own)
        place = build.select(
            is_own,
            build.add(build.mul(group, self.own), unknown),
            build.add(self.by_group, build.sub(unknown, self.own)),
        )
        residual = build.icmp_signed(">=", unknown, self.size)
        flag = load(build, self.flags, build.select(residual, number(0), place), I64, I64)
        return build.and_(build.not_(residual), build.icmp_unsigned("!=", flag, number(0)))

    def _copy_free(self, group: ir.Value, block: ir.Value, work: ir.Value) -> None:
        """Copy the upper triangle of a block, with zeros for unknowns that stay."""
        build = self.build
        with counted(build, number(0), self.size) as row:
            stays = self._stays(group, row.index)
            with counted(build, row.index, self.stride) as column:
                cell = self._cell(row.index, column.index)
                value = self.at(block, cell)
                left_out = build.or_(build.or_(stays, self._stays(group, column.index)), build.not_(self.finite(value)))
                self.put(build.select(left_out, double(0.0), value), work, cell)


@dataclass(frozen=True)
class _Unknowns:
    """Addresses of the steps and the bounds of some unknowns, and the position of the first in the trial."""

    step: ir.Value
    first: ir.Value
    lows: ir.Value
    highs: ir.Value


class Solve(_Equations):
    """The function that writes the next trial.

    It returns the promise: how far the errors would fall if the formula were linear in its unknowns.
    """

    def __init__(self, module: ir.Module, reduce: ir.Function) -> None:
        super().__init__(module, "solve_blocks", _DOUBLE)
        build = self.build
        self.promise = stack(build, _DOUBLE, 1)
        self.put(double(0.0), self.promise, 0)
        build.call(reduce, list(self.function.args))
        self._eliminate(self._shared_equations, lambda k: self.at(self.totals, k))
        after = self.moved(self.step, self.own)
        lows, highs = self.moved(self.lows, self.own), self.moved(self.highs, self.own)
        slants = self.moved(self.totals, self.shared)
        unknowns = _Unknowns(after, self.by_group, lows, highs)
        self._substitute(self._shared_equations, unknowns, lambda k: (self.at(self.totals, k), self.at(slants, k)))
        with counted(build, number(0), self.groups) as group:
            block, work = self._block(self.blocks, group.index), self._block(self.work, group.index)
            unknowns = _Unknowns(self.step, build.mul(group.index, self.own), self.lows, self.highs)
            self._substitute(
                self._own_equations(work),
                unknowns,
                lambda k: (self._diagonal(block, k), self.at(block, self._cell(k, self.size))),
            )
        build.ret(self.at(self.promise, 0))

    def _substitute(
        self, triangle: _Triangle, unknowns: _Unknowns, known: Callable[[ir.Value], tuple[ir.Value, ir.Value]]
    ) -> None:
        """Compute the steps of the unknowns, from the last one up; write the trial and the promise.

        `known` gives the diagonal entry of an unknown and its product with the residual, before any elimination.
        """
        build, step = self.build, unknowns.step
        matrix, count, size, stride = triangle.matrix, triangle.count, triangle.size, triangle.stride
        with counted(build, number(0), count) as back:
            k = build.sub(build.sub(count, number(1)), back.index)
            row = build.mul(k, stride)
            right = self.at(matrix, build.add(row, size))
            with counted(build, build.add(k, number(1)), size, carried=[right]) as column:
                taken = build.fmul(self.at(matrix, build.add(row, column.index)), self.at(step, column.index))
                column.results = [build.fsub(column.values[0], taken)]
            pivot = self.at(matrix, build.add(row, k))
            usable = self.finite(pivot)
            value = build.select(usable, build.fdiv(column.values[0], pivot), double(0.0))
            self.put(value, step, k)
            diagonal, slant = known(k)
            promised = build.fmul(value, build.fadd(slant, build.fmul(build.fmul(self.damping, diagonal), value)))
            promised = build.select(usable, promised, double(0.0))
            self.put(build.fadd(self.at(self.promise, 0), promised), self.promise, 0)
            place = build.add(unknowns.first, k)
            moved = build.fadd(self.at(self.best, place), build.fmul(self.length, value))
            inside = self.larger(self.smaller(moved, self.at(unknowns.highs, k)), self.at(unknowns.lows, k))
            self.put(inside, self.trial, place)
