"""The command line as a process: signals, pipes, full and closed outputs, exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.commandline import ENDLESS, await_text, command, environment, process, shine, started
from helpers.markers import mostly_slow

from shine.runs import read_result

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as Unix has them")


@pytest.mark.slow
def test_the_module_runs_as_the_command_does(tmp_path: Path) -> None:
    done = process("evolve", "none.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.yaml: cannot be read: No such file or directory\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code"), mostly_slow([(signal.SIGINT, 130), (signal.SIGTERM, 143)], fast=[(signal.SIGINT, 130)])
)
def test_an_interrupted_run_keeps_and_prints_what_it_found_and_can_go_on(small: Path, sent: int, code: int) -> None:
    running = started("evolve", small, "--json", *ENDLESS)
    await_text(Path("runs/small/log.jsonl"), running)
    running.send_signal(sent)
    output, errors = running.communicate(timeout=60)
    assert running.returncode == code, errors
    assert errors in ("", "interrupted: writing the result; again to quit at once\n")
    assert json.loads(output)["stopped_by"] == "interrupted"
    assert json.loads(output) == read_result("runs/small").model_dump(mode="json")
    resumed = shine("resume", "runs/small", "--set", "stop.loss=1", "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads(resumed.stdout)["stopped_by"] == "loss"


def answers_signals(running: subprocess.Popen[str]) -> bool:
    """Whether a process has a handler for SIGTERM, according to Linux."""
    status = Path(f"/proc/{running.pid}/status").read_text()
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("seconds", mostly_slow([0.0, 0.05, 0.2, 0.5], fast=[0.05]))
def test_an_interrupt_while_starting_ends_it_without_a_traceback(small: Path, seconds: float) -> None:
    running = started("evolve", small, *ENDLESS, "--set", "fitness.tier=machine")
    while not answers_signals(running):
        time.sleep(0.001)
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    errors = running.communicate(timeout=60)[1]
    assert running.returncode == 130, errors
    # The message depends on the stage it was in.
    said = {"error: interrupted", "interrupted: writing the result; again to quit at once"}
    assert [line for line in errors.splitlines() if line in said]
    assert "Traceback" not in errors


STUBBORN = """
import sys, time
from shine.faces.cli.interruption import Interruption
interruption = Interruption()
interruption.install()
if "keep" in sys.argv:
    interruption.keep()
while True:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass  # as code that drops exceptions does
"""


def stubborn(*arguments: str) -> subprocess.Popen[str]:
    """A process that does not end when it is interrupted."""
    words = [sys.executable, "-c", STUBBORN, *arguments]
    running = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    return running


@pytest.mark.slow
def test_a_process_that_writes_its_result_has_time_until_a_second_signal() -> None:
    running = stubborn("keep")
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGTERM)  # at once: an echo
    time.sleep(1.5)
    assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    errors = running.communicate(timeout=60)[1].splitlines()
    assert errors == [
        "interrupted: writing the result; again to quit at once",
        "error: interrupted again; unwritten results are lost",
    ]
    assert running.returncode == 143


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        running = stubborn()
    finally:
        signal.signal(signal.SIGHUP, before)
    running.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == 143


def without_reader(*arguments: str) -> tuple[int, bytes]:
    """Exit code and errors of a command whose reader has left."""
    running = subprocess.Popen(command(*arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()
    return running.wait(60), errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    mostly_slow(
        ["config schema", "--help", "info --json", "jit a --emit ir", "jit a --emit obj --target x86_64"],
        fast=["config schema"],
    ),
)
def test_a_reader_that_leaves_early_is_no_error(arguments: str) -> None:
    assert without_reader(*arguments.split()) == (1, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    mostly_slow(
        ["config schema", "jit a --emit obj --target x86_64"],
        fast=["jit a --emit obj --target x86_64"],
    ),
)
def test_a_full_output_is_a_failure(arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = process(*arguments.split(), stdout=full)
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


def closed(descriptors: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command with some of its standard streams closed."""
    line = " ".join(f"'{word}'" for word in command(*arguments)) + f" {descriptors}"
    return subprocess.run(
        ["sh", "-c", line], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )


def on_a_terminal(*arguments: str | Path, **variables: str) -> tuple[int, str]:
    """Exit code of a command, and its output on a terminal of unknown width."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    running = subprocess.Popen(command(*arguments), env=environment(**variables), **streams)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's sign that the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return running.wait(60), shown.decode()


@pytest.mark.slow
def test_no_terminal_gets_an_object_file() -> None:
    code, shown = on_a_terminal("jit", "a", "--emit", "obj")
    assert code == 2
    assert shown.startswith("error: an object file is binary and not for a terminal")


@pytest.mark.slow
def test_a_terminal_gets_progress_and_lines_that_fit(small: Path) -> None:
    # Enough for the bar to be drawn at least once.
    code, shown = on_a_terminal("evolve", small, *ENDLESS, "--set", "stop.generations=300")
    assert code == 0, shown
    assert re.search(r"\| generation \d+/300, loss ", shown) and "\x1b" not in shown.splitlines()[-1]
    assert read_result("runs/small").generations == 300


@pytest.mark.slow
def test_json_is_alone_on_stdout_while_a_terminal_sees_progress(small: Path) -> None:
    ours, theirs = pty.openpty()
    done = process("evolve", small, "--json", stderr=theirs)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema_version"] >= 1
