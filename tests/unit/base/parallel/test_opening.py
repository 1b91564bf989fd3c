"""The pools of what users give, and the end of their processes."""

from __future__ import annotations

import os
import time
from concurrent.futures import BrokenExecutor

import psutil
import pytest
from joblib import Parallel, delayed
from unit.base.parallel.executors import results

from shine.base.parallel import opened, opening


@pytest.mark.slow
def test_processes_that_are_still_busy_end_with_an_interrupted_block():
    with pytest.raises(KeyboardInterrupt), opened(workers=1) as pool:
        assert pool is not None
        process = pool.submit(os.getpid).result()
        waiting = [pool.submit(time.sleep, 600) for _ in range(9)]  # more than loky hands out at once
        waiting[-1].cancel()
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.slow
def test_other_users_of_joblib_have_processes_of_their_own():
    with opened(workers=2) as pool:
        assert pool is not None
        assert results(pool, abs, [-1, -2]) == [1, 2]
        assert Parallel(2)(delayed(abs)(-n) for n in range(3)) == [0, 1, 2]
        assert results(pool, abs, [-3]) == [3]


@pytest.mark.slow
def test_processes_are_kept_for_the_next_search():
    with opened(workers=1) as pool:
        assert pool is not None
        first = pool.submit(os.getpid).result()
    with opened(workers=1) as pool:
        assert pool is not None
        assert pool.submit(os.getpid).result() == first


@pytest.mark.slow
def test_the_death_of_a_process_is_seen_where_another_one_had_been_idle_for_too_long(monkeypatch):
    monkeypatch.setattr(opening, "SECONDS_KEPT", 0.5)
    monkeypatch.setattr(opening, "_KEPT", {})
    with opened(workers=1) as pool:
        assert pool is not None
        first = pool.submit(os.getpid).result()
        while psutil.pid_exists(first):
            time.sleep(0.05)
        with pytest.raises(BrokenExecutor):
            pool.submit(os.abort).result(timeout=60)
