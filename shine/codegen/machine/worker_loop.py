"""How threads share the individuals of a population: each takes the next few until none is left.

What is taken is counted in one word of memory, so that no thread waits for another or for Python between two
individuals, and all finish within the time of a few.
"""

from __future__ import annotations

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, FunctionPointer, declare, store

WORKER_LOOP = "worker_loop"
"""Name of the function that `emit_worker_loop` emits."""


def emit_worker_loop(module: ir.Module) -> None:
    """Emit ``void share(entry, job, range, begun, count, step, quota)``.

    Parameters of the emitted function
    ----------------------------------
    entry : pointer to ``void entry(job)``
        Evaluates a range of the individuals.
    job : pointer
        What `entry` gets.
    range : pointer to two i64
        The words of the job that say which is the first individual of the range, and which the one after its last.
    begun : pointer to i64
        How many individuals are taken already; all threads count there.
    count : i64
        Individuals of the population.
    step : i64
        How many are taken at a time.
    quota : i64
        It returns when none is left, or after so many individuals, so that an interrupt is seen.
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
    # Nothing but the number itself passes between the threads here: results are read after they have been joined.
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
