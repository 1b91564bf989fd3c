"""The cache on disk: what is trusted, what is made again, and that nothing about it is ever an error."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import shine
from shine.evaluators import machine
from shine.evaluators.machine import Machine
from shine.lang.library import STANDARD
from shine.lang.parse import primitive_table
from shine.lang.primitives import select
from shine.llvm import cached
from shine.llvm.cache import ENTRIES, cache_folder

CODE = bytes(range(256)) * 4
ROOT = Path(shine.__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Makes code, and counts how often."""

    def __init__(self, code: bytes = CODE) -> None:
        self.code, self.calls = code, 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.code


def entry(folder: Path) -> Path:
    """The only file of the cache."""
    (only,) = folder.iterdir()
    return only


def made_again() -> bool:
    """Whether the entry has to be made; it has the right bytes in any case."""
    maker = Maker()
    assert cached(("x",), maker) == CODE
    return maker.calls == 1


def test_an_entry_is_made_once():
    assert [made_again() for _ in range(3)] == [True, False, False]


def test_descriptions_that_differ_have_entries_of_their_own(folder):
    for description in (("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ()):
        cached(description, Maker())
    assert len(list(folder.iterdir())) == 5


def test_an_entry_cut_off_anywhere_is_made_again(folder):
    made_again()
    content = entry(folder).read_bytes()
    for length in range(0, len(content), 10):
        entry(folder).write_bytes(content[:length])
        assert made_again(), length
        assert not made_again()


def test_an_entry_with_one_flipped_bit_is_made_again(folder):
    made_again()
    content = entry(folder).read_bytes()
    rng = np.random.default_rng(0)
    for position in [*range(64), *rng.integers(64, len(content), 40).tolist()]:
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        entry(folder).write_bytes(changed)
        assert made_again(), position


@pytest.mark.parametrize("content", [b"", b"\0", b"\x7fELF", b"shine cache 1\n", b"shine cache 1\n" + bytes(32), CODE])
def test_foreign_content_is_made_again(folder, content):
    made_again()
    entry(folder).write_bytes(content)
    assert [made_again(), made_again()] == [True, False]


def test_an_entry_with_something_behind_its_end_is_made_again(folder):
    made_again()
    entry(folder).write_bytes(entry(folder).read_bytes() + b"\0")
    assert made_again()


def test_a_directory_in_the_place_of_an_entry_is_no_error(folder):
    made_again()
    path = entry(folder)
    path.unlink()
    path.mkdir()
    assert [made_again(), made_again()] == [True, True]


def test_an_entry_that_cannot_be_read_is_no_error(monkeypatch):
    made_again()

    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert made_again()


def test_a_place_below_a_file_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert [made_again(), made_again()] == [True, True]
    assert (tmp_path / "file").read_text() == ""


def test_a_file_in_the_place_of_the_cache_is_no_error(folder):
    folder.write_text("mine")
    assert [made_again(), made_again()] == [True, True]
    assert folder.read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_no_error(monkeypatch):
    def refuse(*arguments, **keywords):
        raise PermissionError("read-only")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert [made_again(), made_again()] == [True, True]


def test_a_full_disk_is_no_error_and_leaves_nothing_behind(folder, monkeypatch):
    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    assert made_again()
    assert list(folder.iterdir()) == []


def test_no_home_directory_is_no_error(monkeypatch):
    def refuse():
        raise RuntimeError("Could not determine home directory.")

    for variable in ("SHINE_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    assert [made_again(), made_again()] == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have places of their own")
def test_the_cache_is_in_the_user_s_cache_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("SHINE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "shine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other" / "shine"


def test_what_fails_to_be_made_is_not_kept(folder):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cached(("x",), fail)
    assert made_again()


def test_the_entries_used_last_are_kept(folder):
    for number in range(ENTRIES):
        cached(("n", str(number)), Maker(str(number).encode()))
    for age, path in enumerate(folder.iterdir()):
        os.utime(path, (1e9 + age, 1e9 + age))
    cached(("n", "7"), Maker())  # used again
    oldest = min((path for path in folder.iterdir()), key=lambda path: path.stat().st_mtime)
    cached(("new",), Maker())
    cached(("newer",), Maker())
    assert len(list(folder.iterdir())) == ENTRIES
    assert not oldest.exists()
    maker = Maker()
    assert cached(("n", "7"), maker) == b"7"
    assert maker.calls == 0


def test_threads_that_write_one_entry_at_once_all_get_it(folder):
    barrier = threading.Barrier(8)

    def work(_):
        def make():
            barrier.wait(30)
            return CODE

        return cached(("x",), make)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [CODE] * 8
    assert not made_again()
    assert [path.name[0] != "." for path in folder.iterdir()] == [True]


PROCESS = """
import sys, threading
from shine.llvm import cached
code = bytes(range(256)) * 4
start = threading.Timer(30, lambda: None)
sys.stdin.readline()
for number in range(200):
    assert cached(("shared", str(number % 20)), lambda: code) == code
"""


def test_processes_that_write_at_once_do_not_disturb_each_other(folder):
    command = [sys.executable, "-W", "error", "-c", PROCESS.replace("start = threading.Timer(30, lambda: None)\n", "")]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)
    ]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [(writer.communicate(timeout=60)[1], writer.returncode) for writer in writers] == [("", 0)] * 2
    assert len(list(folder.iterdir())) == 20
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


# Machines


def sixteen(x, y):
    """A user's function."""
    return x * y + 16


ADD = select(STANDARD, ["add"])


def test_a_machine_is_compiled_once_and_then_loaded(monkeypatch):
    Machine(ADD, "float64")

    def refuse(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(machine, "emit_machine", refuse)
    monkeypatch.setattr(machine, "host_object", refuse)
    Machine(ADD, "float64")


def test_a_second_process_loads_what_the_first_compiled(folder):
    code = """
import sys
from shine.evaluators import machine
if sys.argv[1] == "load":
    def refuse(*arguments):
        raise AssertionError("compiled again")
    machine.emit_machine = machine.host_object = refuse
import shine
population = shine.Population.from_sources(["x0*x0 + 1"])
print(shine.Evaluator([[1.0], [2.0]], [1.0, 4.0], tier="machine")(population).tolist())
"""
    outputs = []
    for step in ("compile", "load"):
        command = [sys.executable, "-W", "error", "-c", code, step]
        outputs.append(subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60))
    assert [(done.stdout, done.stderr) for done in outputs] == [("[1.0]\n", "")] * 2
    assert len(list(folder.iterdir())) == 1


def test_a_damaged_machine_is_compiled_again(folder):
    population = shine.Population.from_sources(["x0 + 1"])
    Machine(ADD, "float64")
    content = bytearray(entry(folder).read_bytes())
    content[len(content) // 2] ^= 1
    entry(folder).write_bytes(content)
    again = Machine(ADD, "float64")
    assert entry(folder).read_bytes() != bytes(content)
    assert isinstance(again, Machine)
    assert population.sizes.tolist() == [3]


def _defined(body: str, helper: str = "x"):
    """Primitives `helped`, and `helper` that it calls, from their bodies."""
    namespace: dict[str, object] = {}
    table = primitive_table([])[0]
    for text in (f"def helper(x):\n    return {helper}", f"def helped(x):\n    return {body}"):
        tree = shine.parse(text, primitives=table)
        table = {**table, tree.name: type(table["add"])(tree.name, len(tree.parameters), tree)}
        namespace[tree.name] = tree
    return table


VARIANTS = {
    "float64": (ADD, "float64"),
    "float32": (ADD, "float32"),
    "more functions": (select(STANDARD, ["add", "mul"]), "float64"),
    "another order": (select(STANDARD, ["mul", "add"]), "float64"),
    "a user's function": (select(_defined("x + 1"), ["helped"]), "float64"),
    "another definition": (select(_defined("x + 2"), ["helped"]), "float64"),
    "it calls another": (select(_defined("helper(x)"), ["helped"]), "float64"),
    "the other is changed": (select(_defined("helper(x)", "x + 1"), ["helped"]), "float64"),
}


def test_machines_that_differ_have_entries_of_their_own(folder, monkeypatch):
    monkeypatch.setattr(machine, "emit_machine", lambda functions, dtype: "")
    monkeypatch.setattr(machine, "host_object", lambda text, level, selection: b"")

    class Nothing:
        def function(self, *arguments):
            return ctypes.CFUNCTYPE(None)(lambda: None)

    monkeypatch.setattr(machine.Engine, "of_object", classmethod(lambda *arguments: Nothing()))
    for number, (functions, dtype) in enumerate(VARIANTS.values(), 1):
        Machine(functions, dtype)
        assert len(list(folder.iterdir())) == number


@pytest.mark.parametrize("tier", ["machine", "native", "reference"])
def test_functions_of_one_name_that_call_different_ones_are_not_taken_for_each_other(tier):
    for helper, expected in (("x + 1", 2.0), ("x + 2", 3.0)):
        functions = select(_defined("helper(x)", helper), ["helped"])
        primitives = shine.PrimitiveSet(functions, ("x0",))
        population = shine.Population(np.array([[1, 2]], np.int16), np.zeros((1, 2)), np.array([2]), primitives)
        assert shine.Evaluator([[1.0]], [1.0], tier=tier).predict(population).tolist() == [[expected]]
