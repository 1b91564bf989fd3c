"""Normal equations over sections of the rows, each with its own values of some constants.

A template's formulas have parameters by group. The rows of a group lie together, padded to whole groups of rows of the
machine; over them, such a parameter is a constant. So a tape is assembled once for each output; between two sections,
only the values of its constants are written anew.

Several constants may be one unknown. The products of their derivatives are added up to the products of the unknowns,
separately for each group: the blocks of `grouped_fitting`.
"""

from __future__ import annotations

from math import inf

import numpy as np

from shine.base.typing import Codes, Floats, Indices, Words
from shine.evaluate.gradient.job import OUTPUT, SECTION
from shine.evaluate.gradient.normal_equations import (
    ALONE,
    COLUMNS,
    FIXED_COLUMNS,
    Assembler,
    Products,
    plan_run,
    run_tiles,
    write_constant,
)

_CODES, _VALUES, _SIZES, _WIDTH, _CONSTANTS, _STARTS, _NODES, _SLOTS, _FIRST, _LAST = range(len(OUTPUT))
_OUTPUT_BYTES, _SECTION_WORDS = 8 * len(OUTPUT), len(SECTION)


def grouped(
    job: Words,
    individual: int,
    unknowns: Floats,
    limit: float,
    blocks: Floats,
    wanted: int,
    assembler: Assembler,
    slopes: Indices,
    size: int,
    plain: Products,
    weighted: Products,
) -> float:
    """The sum of errors of an individual with these unknowns; its products are added to its blocks if `wanted`.

    Once the sum exceeds the limit, it stops, if errors are never negative.
    """
    columns: Indices = job["columns"]
    loss_columns: Indices = job["loss_columns"]
    sections: Indices = job["sections"]
    state: Floats = job["state"]
    line, plan = np.empty(2), np.empty(7, np.int64)
    line[0], line[1] = 1.0, 0.0
    total, further = 0.0, 1
    for place in range(job["n_outputs"]):
        output: Indices = job["outputs"] + place * _OUTPUT_BYTES
        codes: Codes = output[_CODES]
        values: Floats = output[_VALUES]
        sizes: Indices = output[_SIZES]
        starts: Indices = output[_STARTS]
        nodes: Indices = output[_NODES]
        slots: Indices = output[_SLOTS]
        row, count = individual * output[_WIDTH], sizes[individual]
        first, last = starts[individual], starts[individual + 1]
        most = output[_CONSTANTS] if wanted else 0
        plan_run(job, codes[row:], values[row:], count, columns, most, ALONE, plan, assembler, slopes, size)
        stride = plan[COLUMNS]
        for section in range(output[_FIRST], output[_LAST]):
            if further:
                block, begin, end = sections[section * _SECTION_WORDS :][:3]
                write_unknowns(job, unknowns, block, nodes[first:], slots[first:], last - first)
                for cell in range(stride * stride + 1):
                    state[cell] = 0.0
                # Callers that ask for the errors of groups want all of them.
                left = inf if job["group_errors"] else limit - total
                run_tiles(
                    job, plan, job["target"], job["weights"], loss_columns, 0, begin, end, line, left, state, stride,
                    ALONE, plain, weighted,
                )  # fmt: skip
                total += state[0]
                if job["group_errors"]:
                    errors: Floats = job["group_errors"]
                    errors[individual * job["n_groups"] + block] += state[0]
                further = job["group_errors"] or not job["bounded"] or total <= limit
                if further and wanted:
                    add_products(job, slots[first:], stride, state, block, blocks)
    return total


def write_unknowns(job: Words, unknowns: Floats, block: int, nodes: Indices, slots: Indices, count: int) -> None:
    """Write the unknowns of a section's group to the constants of the assembled tape."""
    copies: Floats = job["constants"]
    for place in range(count):
        slot = slots[place]
        if slot >= 0:
            # The shared unknowns come after those of all groups.
            own = slot < job["own"]
            write_constant(copies, nodes[place], unknowns[slot + (block if own else job["n_groups"] - 1) * job["own"]])


def add_products(job: Words, slots: Indices, stride: int, state: Floats, group: int, blocks: Floats) -> None:
    """Add the products of a section, whose lower triangle is in the state, to its group's block."""
    size = job["own"] + job["shared"]
    block = blocks[group * (size + 1) * (size + 1) :]
    for row in range(stride - (FIXED_COLUMNS - 1)):
        # The residual comes first, before two columns of the line.
        a, own_row = size, 0
        if row:
            a, own_row = slots[row - 1], row + (FIXED_COLUMNS - 1)
        if a >= 0:
            for column in range(row + 1):
                b, own_column = size, 0
                if column:
                    b, own_column = slots[column - 1], column + (FIXED_COLUMNS - 1)
                if b >= 0:
                    product = state[own_row * stride + own_column + 1]
                    block[a * (size + 1) + b] += product
                    if row != column:
                        block[b * (size + 1) + a] += product
