"""The pools of what users give, and the end of their processes."""

from __future__ import annotations

import os
import time

import pytest

from shine.parallel import opened


def test_processes_that_are_still_busy_end_with_an_interrupted_block():
    with pytest.raises(KeyboardInterrupt), opened(workers=1) as pool:
        assert pool is not None
        process = pool.submit(os.getpid).result()
        waiting = [pool.submit(time.sleep, 600) for _ in range(9)]  # more than loky hands out at once
        waiting[-1].cancel()
        raise KeyboardInterrupt
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
