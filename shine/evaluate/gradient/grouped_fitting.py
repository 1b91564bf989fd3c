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

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, Variables, counted, declare, intrinsic, number, stack
from shine.evaluate.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    LONGEST,
    MOST_DAMPING,
)
from shine.evaluate.gradient.grouped import call_grouped
from shine.evaluate.gradient.grouped_steps import Emitter, Reduce, Solve, double
from shine.evaluate.gradient.job import GROUPED_JOB
from shine.evaluate.machine.job import emit_worker_loop, job_entry, job_fields

FIT_GROUPED, REDUCE_GROUPED = "fit_grouped", "reduce_grouped"
"""Names of the functions of a job: one fits its individuals, the other eliminates their groups once."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def emit_grouped_fitting() -> ir.Module:
    """The module of `FIT_GROUPED` and `REDUCE_GROUPED`, which take a pointer to the words of `GROUPED_JOB`, and of the
    worker loop.

    The latter writes to ``out`` for each individual the upper triangle of the equations of the shared unknowns, the
    groups eliminated, with the products with the residual in the last column.
    """
    module = ir.Module(name="grouped_fitting")
    reduce = Reduce(module).function
    solve = Solve(module, reduce).function
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


class _Fit(Emitter):
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
            self.put(double(FIRST_DAMPING), self.damping, 0)
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
            arguments = [self.pointer, each.index, best, double(float("inf")), blocks, number(1)]
            found = build.fadd(call_grouped(build, job["grouped"], arguments), self._penalty(each.index, best, blocks))
            self.put(found, job_entry(build, job, "errors", each.index, 8), 0)
            build.call(self.reduce, [self.pointer, each.index, blocks, best, double(0.0), double(1.0)])
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
            build.fcmp_ordered("<", found, limit), build.fcmp_ordered(">", found, double(-float("inf")))
        )
        with build.if_then(build.icmp_unsigned("!=", step, number(0))):
            factor = build.select(better, double(AFTER_BETTER), double(AFTER_WORSE))
            damping = build.fmul(self.at(self.damping, 0), factor)
            damping = self.larger(self.smaller(damping, double(MOST_DAMPING)), double(LEAST_DAMPING))
            self.put(damping, self.damping, 0)
        self.put(double(1.0), self.length, 0)
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
        fittable = build.and_(build.fcmp_ordered(">", error_now, double(0.0)), self.finite(error_now))
        with build.if_then(build.and_(fittable, not_last)):
            kept = build.inttoptr(variables["kept"], POINTER)
            numbers = self.at(self.damping, 0), self.at(self.length, 0)
            promise = build.call(self.solve, [self.pointer, individual, kept, best, *numbers])
            enough = build.fcmp_ordered(">", promise, build.fmul(self.tolerance, error_now))
            variables["going"] = build.zext(enough, I64)

    def _lengthen(self, best: ir.Value, trial: ir.Value, kept: ir.Value, fresh: ir.Value) -> None:
        """Set the factor of the next step: the right one for the step to this trial, in hindsight (see
        `constant_fitting`)."""
        build, job = self.build, self.job
        zero = double(0.0)
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
        self.put(self.smaller(self.larger(length, double(1.0)), double(LONGEST)), self.length, 0)

    def _penalty(self, individual: ir.Value, trial: ir.Value, blocks: ir.Value) -> ir.Value:
        """The penalties of a trial, added to its blocks too."""
        build, job = self.build, self.job
        own = job["own"]
        there = build.icmp_unsigned("!=", job["prior"], number(0))
        groups = build.select(there, job["n_groups"], number(0))
        precisions = job_entry(build, job, "prior", individual, build.mul(own, number(16)))
        centers = self.moved(precisions, own)
        with counted(build, number(0), groups, carried=[double(0.0)]) as group:
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
