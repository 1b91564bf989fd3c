"""The function that threads call together to run a program: they take blocks of its steps."""

from __future__ import annotations

from collections.abc import Sequence

STATE_BYTES = 64
"""Bytes that threads share for each step, and once more for the request to stop."""

_TURNS = 20_000
"""Looks at a counter before a waiting thread yields its processor: some ten microseconds."""


def driver_ir(name: str, steps: Sequence[tuple[str, int]]) -> str:
    """LLVM IR of ``int32_t NAME.share(arguments, results, arena, scratch, state)``, which each thread calls.

    Threads take the blocks of a step until none is left, and go on when all are done. A thread that has waited for a
    while returns 1: it should yield its processor, and call again. One that returns 0 has seen the end, or the request
    to stop, a number other than 0 at the start of the state. No thread relies on another one to begin.

    Parameters
    ----------
    name : str
    steps : sequence of (str, int)
        Functions ``void f(arguments, results, arena, scratch, block)``, and how many blocks they have.
    """
    count = len(steps)
    functions = ", ".join(f'ptr @"{function}"' for function, _ in steps)
    blocks = ", ".join(f"i64 {number}" for _, number in steps)
    return f"""
@"{name}.steps" = internal constant [{count} x ptr] [{functions}]
@"{name}.blocks" = internal constant [{count} x i64] [{blocks}]
define i32 @"{name}.share"(ptr %arguments, ptr %results, ptr %arena, ptr %scratch, ptr %state) {{
entry:
  br label %step
step:
  %s = phi i64 [0, %entry], [%after, %next]
  %more = icmp ult i64 %s, {count}
  br i1 %more, label %begin, label %end
begin:
  %after = add i64 %s, 1
  %at = mul i64 %after, {STATE_BYTES}
  %taken = getelementptr i8, ptr %state, i64 %at
  %done = getelementptr i8, ptr %taken, i64 8
  %blocks_place = getelementptr i64, ptr @"{name}.blocks", i64 %s
  %blocks = load i64, ptr %blocks_place
  %function_place = getelementptr ptr, ptr @"{name}.steps", i64 %s
  %function = load ptr, ptr %function_place
  br label %take
take:
  %stops = load atomic i64, ptr %state acquire, align 8
  %stopped = icmp ne i64 %stops, 0
  br i1 %stopped, label %end, label %try
try:
  %seen = load atomic i64, ptr %done acquire, align 8
  %over = icmp uge i64 %seen, %blocks
  br i1 %over, label %next, label %ask
ask:
  %block = atomicrmw add ptr %taken, i64 1 acq_rel
  %free = icmp ult i64 %block, %blocks
  br i1 %free, label %run, label %wait
run:
  call void %function(ptr %arguments, ptr %results, ptr %arena, ptr %scratch, i64 %block)
  %was = atomicrmw add ptr %done, i64 1 acq_rel
  br label %take
wait:
  %turn = phi i64 [0, %ask], [%turns, %again]
  %ready = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %ready, %blocks
  br i1 %all, label %next, label %again
again:
  %turns = add i64 %turn, 1
  %patient = icmp ult i64 %turns, {_TURNS}
  br i1 %patient, label %wait, label %pause
next:
  br label %step
pause:
  ret i32 1
end:
  ret i32 0
}}
"""
