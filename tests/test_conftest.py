"""The options of this suite's conftest and its settings of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPS = """
import pytest

def test_passes():
    pass

@pytest.mark.skipif(True, reason="no such program")
def test_needs_a_program():
    pass

def test_needs_a_package():
    pytest.importorskip("no_such_package")

@pytest.mark.xfail(reason="not yet")
def test_is_expected_to_fail():
    assert False
"""


def outcome(folder: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of pytest with this suite's settings, for the tests of a folder."""
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    command += ["-p", "no:cacheprovider", "-o", "pythonpath=", "-n", "0", *options, str(folder)]
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_skip_is_a_failure_where_none_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SKIPS)
    code, shown = outcome(tmp_path)
    assert (code, "1 passed, 2 skipped, 1 xfailed" in shown) == (0, True), shown
    code, shown = outcome(tmp_path, "--no-skips")
    assert (code, "2 failed, 1 passed, 1 error" in shown) == (1, True), shown
    assert "no such program" in shown and "no_such_package" in shown and "not yet" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("waits", "option", "shown"),
    [
        ("threading.Event().wait()", "--timeout=1", "Timeout"),
        # Native code that holds the interpreter's lock answers no signal.
        ("ctypes.PyDLL(None).sleep(1000)", "--override-ini=faulthandler_timeout=1", "Timeout"),
    ],
    ids=["Python", "native"],
)
def test_a_hanging_test_is_ended(waits: str, option: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(f"import ctypes, threading\n\ndef test_hangs():\n    {waits}\n")
    code, output = outcome(tmp_path, option, "-n", "1")
    assert (code, shown in output) == (1, True), output


@pytest.mark.slow
def test_a_module_of_slow_tests_is_imported_only_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text(
        "import pytest\nprint('imported')\npytestmark = pytest.mark.slow\n\ndef test_one():\n    pass\n"
    )
    (tmp_path / "test_quick.py").write_text("def test_two():\n    pass\n")
    code, shown = outcome(tmp_path, "-s")
    assert (code, "1 passed" in shown, "imported" in shown) == (0, True, False), shown
    code, shown = outcome(tmp_path, "-s", "-m", "")
    assert (code, "2 passed" in shown, "imported" in shown) == (0, True, True), shown
