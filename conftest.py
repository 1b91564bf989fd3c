"""Fixtures, the profile of property tests, and options of pytest."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell makes background jobs, and all processes they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared machines are slow at times: limit the number of examples, never their time. Without the slow tests, a third.
for profile, count in (("quick", 20), ("all", 60)):
    settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=count)

if "PYTEST_XDIST_WORKER" not in os.environ:
    # All workers share one cache of object code, and leave the user's alone.
    folder = tempfile.mkdtemp(prefix="shine-tests-")
    os.environ["SHINE_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
"""A line of each module whose tests are all slow."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """True for a module of slow tests only, if they are left out: PyTorch, JAX and ONNX take seconds to import."""
    if config.getoption("-m") != "not slow" or collection_path.suffix != ".py":
        return None
    return ALL_SLOW in collection_path.read_text(encoding="utf-8") or None


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if config.getoption("-m") == "not slow" else "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips",
        action="store_true",
        help="a skipped or expectedly failing test fails: for machines that have everything the tests need",
    )


def pytest_report_header() -> str:
    """Which Shine is tested: the working tree, or an installed copy."""
    found = importlib.util.find_spec("shine")
    return f"shine: {found.origin if found else 'not installed'}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    return failed_if_skipped(report, item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    return failed_if_skipped(report, collector.config)


def failed_if_skipped(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config):
    """The report; with --no-skips, a skip becomes a failure."""
    if report.skipped and config.getoption("--no-skips"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        report.outcome, report.longrepr = "failed", f"not run, and --no-skips forbids it: {reason}"
    return report


def pytest_collection_finish() -> None:
    """Exclude the imported modules from garbage collection: scanning them took a third of the time of deep trees."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 1000)
