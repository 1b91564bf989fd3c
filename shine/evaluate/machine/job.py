"""Jobs of the tile machine: arrays of 64-bit words, each an address or a number, that Python hands over."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, element_pointer, load, number

JOB = (
    "codes", "values", "sizes", "width", "functions", "rows", "full", "columns", "target", "weights", "tail_columns",
    "tail_target", "tail_weights", "weighted", "loss_columns", "tail_loss_columns", "lines", "scaled", "known",
    "limits", "errors", "fit", "fitting", "out", "derived", "nested",
    "instructions", "operands", "tiles", "result", "first", "last",
)  # fmt: skip
"""Words of a job.

The population:

============================== ========================================================================
``codes`` ``values`` ``sizes`` its arrays
``width``                      nodes of a row of ``codes`` and of ``values``
``functions``                  code of the first function
``first`` ``last``             individuals to evaluate: the first one, and the one after the last
============================== ========================================================================

The rows lie in two places: the first ``full`` rows are read where the data set has them, the others from a padded copy,
the tail::

    row      0 ........ full - 1 | full ...... rows - 1 | padding
    read at  columns             | tail_columns         | up to whole groups of ROW_GROUP rows
             target, weights,    | tail_target,         | up to whole chunks; the weights are 0
             loss_columns        | tail_weights,        |
                                 | tail_loss_columns    |

============================== ========================================================================
``rows`` ``full``              number of rows; number of rows before the tail, a multiple of a tile's
``columns`` ``tail_columns``   address of each feature's column
``target`` ``weights``         addresses of row 0
``tail_target``                where row 0 would be if the rows before the tail were there too, so that a
``tail_weights``               row has the same index in both places
``loss_columns``               addresses of the addresses of row 0 of each column that the loss reads,
``tail_loss_columns``          beside predictions and target
``weighted``                   whether any weight is not 1; if not, only the tail's weights are read
``derived`` ``nested``         columns of functions of features, and of functions of those (see `assembler`);
                               0 if there are none, which is required if ``full`` is not 0
============================== ========================================================================

The results:

============================== ========================================================================
``out``                        where results go: predictions, or `LANES` sums an individual
``lines`` ``scaled``           slope and intercept of each individual; whether any is not 1 and 0; or for
                               function ``lines`` `LINE_FIELDS` of each of `LINE_FORMS`, which it fits
``fit`` ``fitting``            addresses of the function that fits lines to the first rows, 0 if they
                               have been fitted, and of its data
``known``                      `CHUNK_FIELDS` of each chunk
``errors``                     address of the addresses of functions that add up errors (see
                               `shine.evaluate.losses.code.row_errors.VARIANTS`)
``limits``                     sum of errors of each individual beyond which its evaluation stops
============================== ========================================================================

The remaining words, `SCRATCH`, are memory of one thread.
"""

SCRATCH = ("instructions", "operands", "tiles", "result")
"""Words of a job that point to memory of one thread: the assembler's instructions and operands, the stack of tiles, and
the buffer for the values of whole tapes."""

Job = dict[str, ir.Value]
"""The words of a job by name, as i64."""


def job_fields(build: ir.IRBuilder, pointer: ir.Value, names: Sequence[str]) -> Job:
    """Load the words of a job that has these names in this order."""
    return {name: load(build, pointer, number(position), I64, I64) for position, name in enumerate(names)}


def job_entry(build: ir.IRBuilder, job: Job, field: str, index: ir.Value, size: int | ir.Value) -> ir.Value:
    """Address of entry `index`, of `size` bytes, in the array that a word of the job points to."""
    return element_pointer(build, build.inttoptr(job[field], POINTER), build.mul(index, number(size)), ir.IntType(8))
