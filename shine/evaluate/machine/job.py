"""Jobs of the tile machine: arrays of 64-bit words, each an address or a number, that Python hands over.

In the worker loop, each thread takes the next few individuals of a population until none is left. One word of memory
counts the individuals that are taken. So no thread waits for another, or for Python, between two individuals, and all
threads end at nearly the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, declare, element_pointer, load, number, store

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
                               `shine.evaluate.losses.row_errors.VARIANTS`)
``limits``                     sum of errors of each individual beyond which its evaluation stops
============================== ========================================================================

The remaining words are memory of one thread: ``instructions`` and ``operands`` of the assembler, the stack of
``tiles``, and the buffer for the values of whole tapes, ``result``.
"""

Job = dict[str, ir.Value]
"""The words of a job by name, as i64."""

WORKER_LOOP = "worker_loop"
"""Name of the function that `emit_worker_loop` emits."""


def job_fields(build: ir.IRBuilder, pointer: ir.Value, names: Sequence[str]) -> Job:
    """Load the words of a job that has these names in this order."""
    return {name: load(build, pointer, number(position), I64, I64) for position, name in enumerate(names)}


def job_entry(build: ir.IRBuilder, job: Job, field: str, index: ir.Value, size: int | ir.Value) -> ir.Value:
    """Address of entry `index`, of `size` bytes, in the array that a word of the job points to."""
    return element_pointer(build, build.inttoptr(job[field], POINTER), build.mul(index, number(size)), ir.IntType(8))


def emit_worker_loop(module: ir.Module) -> None:
    """Emit ``void worker_loop(entry, job, range, begun, count, step, quota)``.

    Parameters of the emitted function
    ----------------------------------
    entry : pointer to ``void entry(job)``
        Evaluates a range of the individuals.
    job : pointer
        The argument of `entry`.
    range : pointer to two i64
        Two words of the job: the first individual of the range, and the one after its last.
    begun : pointer to i64
        Number of individuals taken so far, by all threads.
    count : i64
        Number of individuals of the population.
    step : i64
        Number of individuals to take at a time.
    quota : i64
        The loop also returns after this many individuals, so that Python sees an interrupt.
    """
    labels = ("entry", "job", "range", "begun", "count", "step", "quota")
    kinds = [POINTER] * 4 + [I64] * 3
    function = declare(module, WORKER_LOOP, ir.VoidType(), kinds, labels)
    entry, job, range_, begun, count, step, quota = function.args
    entry.type = FunctionPointer(ir.FunctionType(ir.VoidType(), [POINTER]))
    start, head, body, end = (function.append_basic_block(name) for name in ("start", "head", "body", "end"))
    build = ir.IRBuilder(start)
    build.branch(head)
    build.position_at_end(head)
    done = build.phi(I64, "done")
    done.add_incoming(ir.Constant(I64, 0), start)
    # Monotonic is enough: only this number passes between threads. Results are read after the threads are joined.
    first = build.atomic_rmw("add", begun, step, "monotonic")
    build.cbranch(build.icmp_signed("<", first, count), body, end)
    build.position_at_end(body)
    following = build.add(first, step)
    last = build.select(build.icmp_signed("<", following, count), following, count)
    for position, value in enumerate((first, last)):
        store(build, value, range_, ir.Constant(I64, position), I64)
    build.call(entry, [job])
    more = build.add(done, step)
    done.add_incoming(more, body)
    build.cbranch(build.icmp_signed("<", more, quota), head, end)
    build.position_at_end(end)
    build.ret_void()
