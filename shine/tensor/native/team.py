"""Threads that run one call of a compiled tensor program together."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

import numpy as np

from shine.compiler.llvm import Engine
from shine.compiler.threads import Workers
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.loops.driver import STATE_BYTES
from shine.tensor.native.code import TensorCode

_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class Team:
    """Threads for the steps of a program (`shine.tensor.loops.driver`); several calls may use it at once.

    Parameters
    ----------
    code : TensorCode
        It has steps.
    threads : int
    """

    def __init__(self, code: TensorCode, threads: int) -> None:
        self._name = code.interface.name
        self._steps, self._scratch = len(code.steps), code.scratch_bytes
        self._threads = min(threads, max(code.steps))
        self._workers = Workers(self._threads)

    def function(self, engine: Engine) -> Callable[[int, int, int], None]:
        """The program, as a function of the addresses of arguments, results and arena."""
        share = engine.function(f"{self._name}.share", ctypes.c_int32, *[ctypes.c_void_p] * 5)

        def run(arguments: int, results: int, arena: int) -> None:
            # Shared memory of threads and their own, each at a line of the cache.
            state_bytes = (self._steps + 1) * STATE_BYTES
            room = np.empty(state_bytes + self._threads * self._scratch + ALIGNMENT, np.uint8)
            state = -(-room.ctypes.data // ALIGNMENT) * ALIGNMENT
            ctypes.memset(state, 0, state_bytes)
            scratch = state + state_bytes
            stopped = ctypes.c_int64.from_address(state)

            def work(thread: int) -> None:
                while share(arguments, results, arena, scratch + thread * self._scratch, state):
                    _yield()

            def abandon() -> None:
                stopped.value = 1

            self._workers.run(work, abandon)

        return run
