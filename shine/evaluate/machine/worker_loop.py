"""The worker loop: each thread takes the next few individuals of a population until none is left.

One word of memory counts the individuals that are taken. So no thread waits for another, or for Python, between two
individuals, and all threads end at nearly the same time.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, declare, store

WORKER_LOOP = "worker_loop"
"""Name of the function that `emit_worker_loop` emits."""


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
