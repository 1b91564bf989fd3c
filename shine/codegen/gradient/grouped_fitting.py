"""Levenberg-Marquardt (Marquardt 1963) with unknowns by group, within bounds, as native code.

The matrix of an individual's normal equations is a border of the shared unknowns around one block for each group::

    [ A1          C1 ]         A: a group's own unknowns
    [     A2      C2 ]         C: products of a group's own unknowns and the shared ones
    [         ... .. ]         S: shared unknowns
    [ C1' C2' ..  S  ]

Eliminating the groups leaves the Schur complement ``S - sum(C' A^-1 C)``: the cost is linear in their number. Each
group has a block ``[[A, C, a], [C', S, s], [a', s', e]]`` of its rows; a, s and e are products with the residual.

Damping is relative to the diagonal. An unknown does not move if it is fixed, has no influence, or is at a bound and
would be pushed across it; other steps end at the bounds. Where weights stand for curvatures, a step shows how much
longer the next one should be, as in `constant_fitting`.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    intrinsic,
    load,
    number,
    stack,
    store,
)
from shine.codegen.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    LONGEST,
    MOST_DAMPING,
)
from shine.codegen.gradient.grouped import call_grouped
from shine.codegen.gradient.job import GROUPED_JOB
from shine.codegen.machine.job import Job, job_entry, job_fields
from shine.codegen.machine.worker_loop import emit_worker_loop

FIT_GROUPED, REDUCE_GROUPED = "fit_grouped", "reduce_grouped"
"""Names of the functions of a job: one fits its individuals, the other eliminates their groups once."""

DEPENDENT = 1e-14
"""An unknown whose pivot is at most this share of its diagonal depends on those before it: it does not move."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def _double(value: float) -> ir.Constant:
    return ir.Constant(_DOUBLE, value)


def emit_grouped_fitting() -> ir.Module:
    """The module of `FIT_GROUPED` and `REDUCE_GROUPED`, which take a pointer to the words of `GROUPED_JOB`, and of the
    worker loop.

    The latter writes to ``out`` for each individual the upper triangle of the equations of the shared unknowns, the
    groups eliminated, with the products with the residual in the last column.
    """
    module = ir.Module(name="grouped_fitting")
    reduce = _Reduce(module).function
    solve = _Solve(module, reduce).function
    for name, emit in ((FIT_GROUPED, _Fit.emit), (REDUCE_GROUPED, _Fit.emit_reductions)):
        function = declare(module, name, ir.VoidType(), [POINTER], ["job"])
        build = ir.IRBuilder(function.append_basic_block("entry"))
        emit(_Fit(module, build, function.args[0], solve, reduce))
        build.ret_void()
    emit_worker_loop(module)
    return module


def grouped_scratch(groups: int, own: int, shared: int, constants: int, fixed_columns: int) -> dict[str, int]:
    """Bytes of the memory of one thread, by word of a job."""
    size = own + shared
    blocks, unknowns = groups * (size + 1) ** 2, groups * own + shared
    numbers = {
        "state": 1 + (constants + fixed_columns) ** 2, "kept": blocks, "fresh": blocks, "work": blocks,
        "reduced": (shared + 1) ** 2, "trial": unknowns, "totals": 2 * shared, "flags": unknowns, "step": size + 1,
    }  # fmt: skip
    return {name: 8 * count for name, count in numbers.items()}


class _Emitter:
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
        return self.build.fcmp_ordered("<", size, _double(float("inf")))

    def smaller(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The smaller of two numbers; the second if the first is NaN."""
        return self.build.select(self.build.fcmp_ordered("<", a, b), a, b)

    def larger(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The larger of two numbers; the second if the first is NaN."""
        return self.build.select(self.build.fcmp_ordered(">", a, b), a, b)

    def zeroed(self, pointer: ir.Value, count: ir.Value) -> None:
        """Fill an array with zeros."""
        with counted(self.build, number(0), count) as loop:
            self.put(_double(0.0), pointer, loop.index)

    def copied(self, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
        """Copy an array."""
        with counted(self.build, number(0), count) as loop:
            self.put(self.at(source, loop.index), target, loop.index)


class _Fit(_Emitter):
    """The loop over the individuals, and over the steps of each."""

    def __init__(
        self, module: ir.Module, build: ir.IRBuilder, pointer: ir.Value, solve: ir.Function, reduce: ir.Function
    ) -> None:
        super().__init__(module, build)
        self.pointer, self.solve, self.reduce = pointer, solve, reduce
        self.job = job = job_fields(build, pointer, GROUPED_JOB)
        self.variables = Variables(build, going=0, kept=0, fresh=0)
        self.damping, self.length = stack(build, _DOUBLE, 1), stack(build, _DOUBLE, 1)
        self.size = build.add(job["own"], job["shared"])
        self.stride = build.add(self.size, number(1))
        self.block = build.mul(self.stride, self.stride)
        self.by_group = build.mul(job["n_groups"], job["own"])
        self.count = build.add(self.by_group, job["shared"])
        self.tolerance = self.at(build.inttoptr(job["tolerance"], POINTER), 0)

    def emit(self) -> None:
        """Emit the fits of all individuals of the job."""
        build, job, variables = self.build, self.job, self.variables
        trial = build.inttoptr(job["trial"], POINTER)
        with counted(build, job["first"], job["last"]) as each:
            best = job_entry(build, job, "unknowns", each.index, build.mul(self.count, number(8)))
            error = job_entry(build, job, "errors", each.index, 8)
            self.put(_double(FIRST_DAMPING), self.damping, 0)
            self.copied(best, trial, self.count)
            variables["going"], variables["kept"], variables["fresh"] = 1, job["kept"], job["fresh"]
            with (
                counted(build, number(0), build.add(job["steps"], number(1))) as step,
                build.if_then(build.icmp_unsigned("!=", variables["going"], number(0))),
            ):
                self._advance(each.index, step.index, best, error, trial)

    def emit_reductions(self) -> None:
        """Emit the elimination of the groups of all individuals of the job."""
        build, job = self.build, self.job
        width = build.add(job["shared"], number(1))
        cells = build.mul(width, width)
        blocks, reduced = (build.inttoptr(job[name], POINTER) for name in ("fresh", "reduced"))
        with counted(build, job["first"], job["last"]) as each:
            best = job_entry(build, job, "unknowns", each.index, build.mul(self.count, number(8)))
            self.zeroed(blocks, build.mul(job["n_groups"], self.block))
            arguments = [self.pointer, each.index, best, _double(float("inf")), blocks, number(1)]
            found = build.fadd(call_grouped(build, job["grouped"], arguments), self._penalty(each.index, best, blocks))
            self.put(found, job_entry(build, job, "errors", each.index, 8), 0)
            build.call(self.reduce, [self.pointer, each.index, blocks, best, _double(0.0), _double(1.0)])
            out = job_entry(build, job, "out", each.index, build.mul(cells, number(8)))
            self.copied(reduced, out, cells)
            with build.if_then(build.icmp_unsigned("!=", job["blocks"], number(0))):
                numbers = build.mul(job["n_groups"], self.block)
                place = job_entry(build, job, "blocks", each.index, build.mul(numbers, number(8)))
                self.copied(blocks, place, numbers)

    def _advance(self, individual: ir.Value, step: ir.Value, best: ir.Value, error: ir.Value, trial: ir.Value) -> None:
        """Measure the trial, keep it if it is better, and take the next step."""
        build, job, variables = self.build, self.job, self.variables
        fresh = build.inttoptr(variables["fresh"], POINTER)
        not_last = build.icmp_unsigned("<", step, job["steps"])
        self.zeroed(fresh, build.mul(job["n_groups"], self.block))
        limit = self.at(error, 0)
        arguments = [self.pointer, individual, trial, limit, fresh, build.zext(not_last, I64)]
        found = build.fadd(call_grouped(build, job["grouped"], arguments), self._penalty(individual, trial, fresh))
        # A loss without a least error must not run away to minus infinity.
        better = build.and_(
            build.fcmp_ordered("<", found, limit), build.fcmp_ordered(">", found, _double(-float("inf")))
        )
        with build.if_then(build.icmp_unsigned("!=", step, number(0))):
            factor = build.select(better, _double(AFTER_BETTER), _double(AFTER_WORSE))
            damping = build.fmul(self.at(self.damping, 0), factor)
            damping = self.larger(self.smaller(damping, _double(MOST_DAMPING)), _double(LEAST_DAMPING))
            self.put(damping, self.damping, 0)
        self.put(_double(1.0), self.length, 0)
        reweighted = build.icmp_unsigned("!=", job["reweighted"], number(0))
        later = build.and_(not_last, build.icmp_unsigned("!=", step, number(0)))
        with build.if_then(build.and_(build.and_(reweighted, later), better)):
            self._lengthen(best, trial, build.inttoptr(variables["kept"], POINTER), fresh)
        with build.if_then(better):
            self.put(found, error, 0)
            self.copied(trial, best, self.count)
            kept = variables["kept"]
            variables["kept"] = variables["fresh"]
            variables["fresh"] = kept
        error_now = build.call(intrinsic(self.module, "llvm.fabs", _DOUBLE, 1), [self.at(error, 0)])
        variables["going"] = 0
        fittable = build.and_(build.fcmp_ordered(">", error_now, _double(0.0)), self.finite(error_now))
        with build.if_then(build.and_(fittable, not_last)):
            kept = build.inttoptr(variables["kept"], POINTER)
            numbers = self.at(self.damping, 0), self.at(self.length, 0)
            promise = build.call(self.solve, [self.pointer, individual, kept, best, *numbers])
            enough = build.fcmp_ordered(">", promise, build.fmul(self.tolerance, error_now))
            variables["going"] = build.zext(enough, I64)

    def _lengthen(self, best: ir.Value, trial: ir.Value, kept: ir.Value, fresh: ir.Value) -> None:
        """Set the factor of the next step: what would have been right for the step to this trial (see
        `constant_fitting`)."""
        build, job = self.build, self.job
        zero = _double(0.0)
        with counted(build, number(0), job["n_groups"], carried=[zero, zero, zero]) as group:
            before, after = (self.moved(each, build.mul(group.index, self.block)) for each in (kept, fresh))

            def move(unknown: ir.Value) -> ir.Value:
                own = build.add(build.mul(group.index, job["own"]), unknown)
                shared = build.add(self.by_group, build.sub(unknown, job["own"]))
                place = build.select(build.icmp_signed("<", unknown, job["own"]), own, shared)
                return build.fsub(self.at(trial, place), self.at(best, place))

            with counted(build, number(0), self.size, carried=group.values) as row:
                own = move(row.index)
                still = build.fcmp_ordered("==", own, zero)
                line = build.mul(row.index, self.stride)
                right = build.add(line, self.size)
                slopes = (build.select(still, zero, build.fmul(self.at(each, right), own)) for each in (before, after))
                with counted(build, number(0), self.size, carried=[zero]) as column:
                    other = move(column.index)
                    bent = build.fmul(self.at(before, build.add(line, column.index)), other)
                    bent = build.select(build.fcmp_ordered("==", other, zero), zero, bent)
                    column.results = [build.fadd(column.values[0], bent)]
                bending = build.select(still, zero, build.fmul(own, column.values[0]))
                row.results = [build.fadd(a, b) for a, b in zip(row.values, (*slopes, bending), strict=True)]
            group.results = row.values
        slope, slope_there, bending = group.values
        length = build.fdiv(bending, build.fsub(slope, slope_there))
        self.put(self.smaller(self.larger(length, _double(1.0)), _double(LONGEST)), self.length, 0)

    def _penalty(self, individual: ir.Value, trial: ir.Value, blocks: ir.Value) -> ir.Value:
        """The penalties of a trial, added to its blocks too."""
        build, job = self.build, self.job
        own = job["own"]
        there = build.icmp_unsigned("!=", job["prior"], number(0))
        groups = build.select(there, job["n_groups"], number(0))
        precisions = job_entry(build, job, "prior", individual, build.mul(own, number(16)))
        centers = self.moved(precisions, own)
        with counted(build, number(0), groups, carried=[_double(0.0)]) as group:
            block = self.moved(blocks, build.mul(group.index, self.block))
            values = self.moved(trial, build.mul(group.index, own))
            with counted(build, number(0), own, carried=[group.values[0]]) as k:
                precision = self.at(precisions, k.index)
                away = build.fsub(self.at(centers, k.index), self.at(values, k.index))
                pull = build.fmul(precision, away)
                self.increase(block, build.add(build.mul(k.index, self.stride), k.index), precision)
                self.increase(block, build.add(build.mul(k.index, self.stride), self.size), pull)
                k.results = [build.fadd(k.values[0], build.fmul(pull, away))]
            group.results = [k.values[0]]
        return group.values[0]


class _Equations(_Emitter):
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

    def _eliminate(
        self,
        matrix: ir.Value,
        count: ir.Value,
        size: ir.Value,
        stride: ir.Value,
        diagonal: Callable[[ir.Value], ir.Value],
    ) -> None:
        """Eliminate the first `count` of `size` unknowns of an upper triangle with a right side after its columns."""
        build = self.build
        with counted(build, number(0), count) as k:
            own = build.add(build.mul(k.index, stride), k.index)
            undamped = self.at(matrix, own)
            whole = diagonal(k.index)
            pivot = build.fadd(undamped, build.fmul(self.damping, whole))
            usable = build.fcmp_ordered(">", pivot, build.fmul(_double(DEPENDENT), whole))
            # A row of zeros is that of an unknown that stays.
            usable = build.and_(usable, build.fcmp_ordered(">", undamped, _double(0.0)))
            pivot = build.select(usable, pivot, _double(float("inf")))
            self.put(pivot, matrix, own)
            with counted(build, build.add(k.index, number(1)), size) as row:
                there = build.add(build.mul(k.index, stride), row.index)
                factor = build.fdiv(self.at(matrix, there), pivot)
                with counted(build, row.index, build.add(size, number(1))) as column:
                    taken = build.fmul(factor, self.at(matrix, build.add(build.mul(k.index, stride), column.index)))
                    cell = build.add(build.mul(row.index, stride), column.index)
                    self.put(build.fsub(self.at(matrix, cell), taken), matrix, cell)


class _Reduce(_Equations):
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
            self._eliminate(work, self.own, self.size, self.stride, lambda k: self._diagonal(block, k))
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
        zero = _double(0.0)
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
            build.fcmp_ordered("<=", value, self.at(self.lows, k)), build.fcmp_ordered("<", slant, _double(0.0))
        )
        above = build.and_(
            build.fcmp_ordered(">=", value, self.at(self.highs, k)), build.fcmp_ordered(">", slant, _double(0.0))
        )
        free = build.and_(build.fcmp_ordered(">", diagonal, _double(0.0)), self.finite(diagonal))
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
                self.put(build.select(left_out, _double(0.0), value), work, cell)


class _Solve(_Equations):
    """The function that writes the next trial.

    It returns the promise: how far the errors would fall if the formula were linear in its unknowns.
    """

    def __init__(self, module: ir.Module, reduce: ir.Function) -> None:
        super().__init__(module, "solve_blocks", _DOUBLE)
        build = self.build
        self.promise = stack(build, _DOUBLE, 1)
        self.put(_double(0.0), self.promise, 0)
        build.call(reduce, list(self.function.args))
        self._eliminate(self.reduced, self.shared, self.shared, self.width, lambda k: self.at(self.totals, k))
        after = self.moved(self.step, self.own)
        lows, highs = self.moved(self.lows, self.own), self.moved(self.highs, self.own)
        slants = self.moved(self.totals, self.shared)
        self._substitute(
            self.reduced, self.shared, self.shared, self.width, after, self.by_group, lows, highs,
            lambda k: (self.at(self.totals, k), self.at(slants, k)),
        )  # fmt: skip
        with counted(build, number(0), self.groups) as group:
            block, work = self._block(self.blocks, group.index), self._block(self.work, group.index)
            self._substitute(
                work, self.own, self.size, self.stride, self.step, build.mul(group.index, self.own), self.lows,
                self.highs, lambda k: (self._diagonal(block, k), self.at(block, self._cell(k, self.size))),
            )  # fmt: skip
        build.ret(self.at(self.promise, 0))

    def _substitute(
        self,
        matrix: ir.Value,
        count: ir.Value,
        size: ir.Value,
        stride: ir.Value,
        step: ir.Value,
        base: ir.Value,
        lows: ir.Value,
        highs: ir.Value,
        known: Callable[[ir.Value], tuple[ir.Value, ir.Value]],
    ) -> None:
        """Compute the steps of the first `count` unknowns, from the last one up; write the trial and the promise."""
        build = self.build
        with counted(build, number(0), count) as back:
            k = build.sub(build.sub(count, number(1)), back.index)
            row = build.mul(k, stride)
            right = self.at(matrix, build.add(row, size))
            with counted(build, build.add(k, number(1)), size, carried=[right]) as column:
                taken = build.fmul(self.at(matrix, build.add(row, column.index)), self.at(step, column.index))
                column.results = [build.fsub(column.values[0], taken)]
            pivot = self.at(matrix, build.add(row, k))
            usable = self.finite(pivot)
            value = build.select(usable, build.fdiv(column.values[0], pivot), _double(0.0))
            self.put(value, step, k)
            diagonal, slant = known(k)
            promised = build.fmul(value, build.fadd(slant, build.fmul(build.fmul(self.damping, diagonal), value)))
            promised = build.select(usable, promised, _double(0.0))
            self.put(build.fadd(self.at(self.promise, 0), promised), self.promise, 0)
            place = build.add(base, k)
            moved = build.fadd(self.at(self.best, place), build.fmul(self.length, value))
            inside = self.larger(self.smaller(moved, self.at(highs, k)), self.at(lows, k))
            self.put(inside, self.trial, place)
