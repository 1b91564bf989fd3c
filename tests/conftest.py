"""Fixtures and the profile of property tests."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

# Shared machines are slow at times: examples are limited in number, never in time.
settings.register_profile("shine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.load_profile("shine")

if "PYTEST_XDIST_WORKER" not in os.environ:
    # One cache of object code for all workers, none of it the user's own.
    folder = tempfile.mkdtemp(prefix="shine-tests-")
    os.environ["SHINE_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_collection_finish() -> None:
    """What the imports made stays for good: looking at it again and again took a third of the time of deep trees."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 1000)
