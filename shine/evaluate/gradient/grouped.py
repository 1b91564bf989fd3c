"""Normal equations over sections of the rows, each with its own values of some constants.

A template's formulas have parameters by group. The rows of a group lie together, padded to whole groups of rows of the
machine; over them, such a parameter is a constant. So a tape is assembled once for each output; between two sections,
only the values of its constants are written anew.

Several constants may be one unknown. The products of their derivatives are added up to the products of the unknowns,
separately for each group: the blocks of `grouped_fitting`.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    load,
    number,
    stack,
    store,
)
from shine.evaluate.gradient.instructions import write_constant
from shine.evaluate.gradient.job import GROUPED_JOB, OUTPUT, SECTION
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS, Assembled
from shine.evaluate.machine.job import Job, job_entry, job_fields

_DOUBLE = ir.DoubleType()
_ZERO = ir.Constant(_DOUBLE, 0.0)


class GroupedEquations:
    """Emits ``double grouped(job, individual, unknowns, limit, blocks, wanted)``.

    It returns the sum of errors of an individual with these unknowns, and adds to its blocks if they are wanted. Once
    the sum exceeds the limit, it stops, if errors are never negative.
    """

    def __init__(self, module: ir.Module, name: str, assembler: ir.Function, instruction_bytes: int) -> None:
        labels = ("job", "individual", "unknowns", "limit", "blocks", "wanted")
        function = declare(module, name, _DOUBLE, [POINTER, I64, POINTER, _DOUBLE, POINTER, I64], labels)
        self.pointer, self.individual, self.unknowns, self.limit, self.blocks, self.wanted = function.args
        self.build = build = ir.IRBuilder(function.append_basic_block("entry"))
        self.assembler, self.instruction_bytes = assembler, instruction_bytes
        self.variables = Variables(build, further=1, values=0, adjoints=0, numbers=0)
        self.total, self.line = stack(build, _DOUBLE, 1), stack(build, _DOUBLE, 2)
        for place, value in ((self.total, 0.0), (self.line, 1.0)):
            store(build, ir.Constant(_DOUBLE, value), place, number(0), _DOUBLE)
        store(build, _ZERO, self.line, number(1), _DOUBLE)
        self.job = job_fields(build, self.pointer, GROUPED_JOB)
        self.size = build.add(self.job["own"], self.job["shared"])

    def emit(self) -> None:
        """Emit the whole function."""
        build, job = self.build, self.job
        with counted(build, number(0), job["n_outputs"]) as each:
            self._output(job_fields(build, job_entry(build, job, "outputs", each.index, 8 * len(OUTPUT)), OUTPUT))
        build.ret(load(build, self.total, number(0), _DOUBLE, _DOUBLE))

    def _output(self, output: Job) -> None:
        """Add the sections of an output."""
        build = self.build
        wanted = build.icmp_unsigned("!=", self.wanted, number(0))
        most = build.select(wanted, output["constants"], number(0))
        job = self.job | {name: output[name] for name in ("codes", "values", "sizes", "width")} | {"most": most}
        assembled = Assembled(build, self.assembler, job, self.individual, self.variables, self.instruction_bytes)
        columns = job["stride"] = assembled.columns
        starts = job_entry(build, output, "starts", self.individual, 8)
        first, last = (load(build, starts, number(place), I64, I64) for place in (0, 1))
        with (
            counted(build, output["first_section"], output["last_section"]) as each,
            build.if_then(build.icmp_unsigned("!=", self.variables["further"], number(0))),
        ):
            section = job_fields(build, job_entry(build, job, "sections", each.index, 8 * len(SECTION)), SECTION)
            self._write_constants(output, section, first, last)
            state = build.inttoptr(job["state"], POINTER)
            with counted(build, number(0), build.add(build.mul(columns, columns), number(1))) as cell:
                store(build, _ZERO, state, cell.index, _DOUBLE)
            before = load(build, self.total, number(0), _DOUBLE, _DOUBLE)
            # Callers that ask for the errors of groups want all of them.
            each_group = build.icmp_unsigned("!=", job["group_errors"], number(0))
            infinity = ir.Constant(_DOUBLE, float("inf"))
            left = build.select(each_group, infinity, build.fsub(self.limit, before))
            assembled.run(number(0), section["begin"], section["end"], self.line, left, state)
            total = build.fadd(before, load(build, state, number(0), _DOUBLE, _DOUBLE))
            store(build, total, self.total, number(0), _DOUBLE)
            with build.if_then(each_group):
                own = build.mul(self.individual, job["n_groups"])
                place = job_entry(build, job, "group_errors", build.add(own, section["block"]), 8)
                self._increase(place, number(0), load(build, state, number(0), _DOUBLE, _DOUBLE))
            unbounded = build.icmp_unsigned("==", job["bounded"], number(0))
            goes_on = build.or_(each_group, unbounded)
            within = build.or_(goes_on, build.fcmp_ordered("<=", total, self.limit))
            self.variables["further"] = build.zext(within, I64)
            with build.if_then(build.and_(within, wanted)):
                self._add(output, section, first, columns, state)

    def _write_constants(self, output: Job, section: Job, first: ir.Value, last: ir.Value) -> None:
        """Write the unknowns of a section's group to the constants of the assembled tape."""
        build, job = self.build, self.job
        own = element_pointer(build, self.unknowns, build.mul(section["block"], job["own"]), _DOUBLE)
        # The shared unknowns come after those of all groups.
        skipped = build.mul(build.sub(job["n_groups"], number(1)), job["own"])
        shared = element_pointer(build, self.unknowns, skipped, _DOUBLE)
        constants = build.inttoptr(job["constants"], POINTER)
        with counted(build, first, last) as each:
            slot = load(build, job_entry(build, output, "slots", each.index, 8), number(0), I64, I64)
            with build.if_then(build.icmp_signed(">=", slot, number(0))):
                node = load(build, job_entry(build, output, "nodes", each.index, 8), number(0), I64, I64)
                source = build.select(build.icmp_signed("<", slot, job["own"]), own, shared)
                write_constant(build, constants, node, load(build, source, slot, _DOUBLE, _DOUBLE))

    def _add(self, output: Job, section: Job, first: ir.Value, columns: ir.Value, state: ir.Value) -> None:
        """Add the products of a section, whose lower triangle is in the state, to its group's block."""
        build = self.build
        stride = build.add(self.size, number(1))
        block = element_pointer(build, self.blocks, build.mul(section["block"], build.mul(stride, stride)), _DOUBLE)
        slots = job_entry(build, output, "slots", first, 8)
        count = build.sub(columns, number(FIXED_COLUMNS - 1))

        def place(column: ir.Value) -> tuple[ir.Value, ir.Value]:
            """Its unknown, and its column of the state: the residual comes first, before two columns of the line."""
            is_residual = build.icmp_unsigned("==", column, number(0))
            before = build.select(is_residual, number(0), build.sub(column, number(1)))
            # Without constants, there is no slot to read.
            slot = load(build, build.select(is_residual, self.blocks, slots), before, I64, I64)
            unknown = build.select(is_residual, self.size, slot)
            return unknown, build.select(is_residual, number(0), build.add(column, number(FIXED_COLUMNS - 1)))

        with counted(build, number(0), count) as row:
            a, own_row = place(row.index)
            with (
                build.if_then(build.icmp_signed(">=", a, number(0))),
                counted(build, number(0), build.add(row.index, number(1))) as column,
            ):
                b, own_column = place(column.index)
                with build.if_then(build.icmp_signed(">=", b, number(0))):
                    cell = build.add(build.add(build.mul(own_row, columns), own_column), number(1))
                    value = load(build, state, cell, _DOUBLE, _DOUBLE)
                    self._increase(block, build.add(build.mul(a, stride), b), value)
                    with build.if_then(build.icmp_unsigned("!=", row.index, column.index)):
                        self._increase(block, build.add(build.mul(b, stride), a), value)

    def _increase(self, pointer: ir.Value, index: ir.Value, value: ir.Value) -> None:
        before = load(self.build, pointer, index, _DOUBLE, _DOUBLE)
        store(self.build, self.build.fadd(before, value), pointer, index, _DOUBLE)
