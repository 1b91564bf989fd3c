"""The worker loop: it takes every individual once, and a call ends when it should."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import ir

from shine.compiler.llvm import Engine
from shine.evaluate.machine.job import WORKER_LOOP, emit_worker_loop

Range = tuple[int, int]


@pytest.fixture(scope="module")
def share():
    module = ir.Module()
    emit_worker_loop(module)
    return Engine(str(module), "O0").function(WORKER_LOOP, None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 3)


def taken(share, begun: np.ndarray, count: int, step: int, quota: int) -> list[Range]:
    """The ranges that one call of the worker loop passes to its entry."""
    job, found = np.zeros(2, np.int64), []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def entry(address):
        assert address == job.ctypes.data
        found.append((int(job[0]), int(job[1])))

    address = ctypes.cast(entry, ctypes.c_void_p).value
    share(address, job.ctypes.data, job.ctypes.data, begun.ctypes.data, count, step, quota)
    return found


@given(count=st.integers(0, 200), step=st.integers(1, 50))
def test_all_are_taken_in_order_and_each_once(share, count, step):
    found = taken(share, np.zeros(1, np.int64), count, step, 10**6)
    assert [i for first, last in found for i in range(first, last)] == list(range(count))
    assert all(last - first == step for first, last in found[:-1])


@given(step=st.integers(1, 50), quota=st.integers(1, 200))
def test_a_call_ends_after_its_quota(share, step, quota):
    begun = np.zeros(1, np.int64)
    found = taken(share, begun, 10**6, step, quota)
    assert len(found) == -(-quota // step)
    assert begun[0] == found[-1][1]


@pytest.mark.parametrize("begun", [10, 11, 10**6])
def test_nothing_is_taken_when_none_is_left(share, begun):
    assert taken(share, np.array([begun]), 10, 3, 100) == []


def test_threads_take_different_individuals(share):
    begun, found = np.zeros(1, np.int64), []
    threads = [threading.Thread(target=lambda: found.extend(taken(share, begun, 20_000, 3, 10**6))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(i for first, last in found for i in range(first, last)) == list(range(20_000))
