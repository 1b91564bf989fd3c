"""The cache on disk: which entries are trusted, which are made again; problems with it are never errors."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import shine
from shine.compiler.llvm import cache, cached
from shine.compiler.llvm import cache as cache_module
from shine.compiler.llvm.cache import ENTRIES, cache_folder
from shine.evaluate.tiers import machine_rows as machine
from shine.evaluate.tiers.machine_rows import Machine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table

CODE = bytes(range(256)) * 4
ROOT = Path(shine.__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache for the test alone."""
    cache_module._warn.cache_clear()
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Makes code, and counts how often."""

    def __init__(self, code: bytes = CODE) -> None:
        self.code, self.calls = code, 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.code


def entries(folder: Path) -> list[Path]:
    """All files of the cache except its secret."""
    return [path for path in folder.iterdir() if path.name != cache.NAME]


def entry(folder: Path) -> Path:
    """The only entry."""
    (only,) = entries(folder)
    return only


def made_again() -> bool:
    """Whether the entry is made; it has the right bytes in any case."""
    maker = Maker()
    assert cached(("x",), maker) == CODE
    return maker.calls == 1


def test_an_entry_is_made_once():
    assert [made_again() for _ in range(3)] == [True, False, False]


def test_descriptions_that_differ_have_entries_of_their_own(folder):
    for description in (("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ()):
        cached(description, Maker())
    assert len(entries(folder)) == 5


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


def test_a_directory_in_the_place_of_an_entry_is_no_error(folder):
    made_again()
    path = entry(folder)
    path.unlink()
    path.mkdir()
    assert [made_again(), made_again()] == [True, True]


def test_an_entry_that_cannot_be_read_is_no_error(folder, monkeypatch):
    made_again()
    known, opened = entry(folder), os.open

    def refuse(path, flags, *mode):
        if Path(path) == known:
            raise PermissionError(path)
        return opened(path, flags, *mode)

    monkeypatch.setattr("os.open", refuse)
    assert made_again()


def test_a_place_below_a_file_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="cache cannot be used: Not a directory; set SHINE_CACHE_DIR"):
        assert made_again()
    assert [made_again(), made_again()] == [True, True]
    assert (tmp_path / "file").read_text() == ""


def test_a_file_in_the_place_of_the_cache_is_no_error(folder):
    folder.write_text("mine")
    with pytest.warns(RuntimeWarning, match="cache cannot be used: Not a directory; set SHINE_CACHE_DIR"):
        assert made_again()
    assert [made_again(), made_again()] == [True, True]
    assert folder.read_text() == "mine"


def refusing_to_write(path, flags, *mode, opened=os.open):
    """`os.open` on a file system that is read-only."""
    if flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(30, "Read-only file system")
    return opened(path, flags, *mode)


@pytest.mark.parametrize("has_secret", [False, True])
def test_a_cache_that_cannot_be_written_is_no_error(monkeypatch, has_secret):
    if has_secret:
        cached(("another",), Maker())
    monkeypatch.setattr("os.open", refusing_to_write)
    with pytest.warns(RuntimeWarning, match="cache cannot be written: Read-only file system"):
        assert made_again()
    assert [made_again(), made_again()] == [True, True]


def test_entries_of_a_cache_that_cannot_be_written_are_used(monkeypatch):
    made_again()
    monkeypatch.setattr("os.open", refusing_to_write)
    assert not made_again()


def test_a_full_disk_is_no_error_and_leaves_nothing_behind(folder, monkeypatch):
    made_again()
    entry(folder).unlink()

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.warns(RuntimeWarning, match="cache cannot be written: No space left on device; make room there"):
        assert made_again()
    assert made_again()
    assert entries(folder) == []


def test_no_home_directory_is_no_error(monkeypatch):
    def refuse():
        raise RuntimeError("Could not determine home directory.")

    for variable in ("SHINE_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    with pytest.warns(RuntimeWarning, match="there is no home directory; set SHINE_CACHE_DIR"):
        assert made_again()
    assert [made_again(), made_again()] == [True, True]


def test_a_user_who_wants_no_cache_has_none_and_no_warning(monkeypatch):
    monkeypatch.setenv("SHINE_CACHE_DIR", os.devnull)
    assert [made_again(), made_again()] == [True, True]


def test_a_folder_of_the_user_s_other_files_keeps_them(folder):
    folder.mkdir(mode=0o700)
    mine = [folder / f"data{number}.csv" for number in range(2 * ENTRIES)]
    for path in mine:
        path.write_text("mine")
    made_again()
    assert not made_again()
    assert all(path.exists() for path in mine)


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have places of their own")
def test_the_cache_is_in_the_user_s_cache_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("SHINE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "shine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other" / "shine"


def test_nothing_is_kept_if_making_it_fails(folder):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cached(("x",), fail)
    assert made_again()


def test_the_entries_used_last_are_kept(folder):
    for number in range(ENTRIES):
        cached(("n", str(number)), Maker(str(number).encode()))
    for age, path in enumerate(entries(folder)):
        os.utime(path, (1e9 + age, 1e9 + age))
    cached(("n", "7"), Maker())  # used again
    oldest = min((path for path in entries(folder)), key=lambda path: path.stat().st_mtime)
    cached(("new",), Maker())
    cached(("newer",), Maker())
    assert len(entries(folder)) == ENTRIES
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
    assert [path.name[0] != "." for path in entries(folder)] == [True]


PROCESS = """
import sys, threading
from shine.compiler.llvm import cache as cache_module
from shine.compiler.llvm import cache
from shine.compiler.llvm import cached
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
    assert len(entries(folder)) == 20
    assert not [path for path in entries(folder) if path.name.startswith(".")]


# Entries that somebody else may have written

OWNERS = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
ROOT_ALONE = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


def poisoned(folder: Path) -> None:
    """Write an entry with the digest that everybody can compute, without a secret."""
    path, head = entry(folder), cache_module._MAGIC
    path.write_bytes(head + hashlib.sha256(b"foreign").digest() + b"foreign")


def replaced_by(folder: Path, make) -> Path:
    """The entry, after something else was put in its place."""
    made_again()
    path = entry(folder)
    path.unlink()
    make(path)
    return path


def test_a_digest_that_everybody_can_compute_authenticates_nothing(folder):
    made_again()
    poisoned(folder)
    assert [made_again(), made_again()] == [True, False]


def test_an_entry_in_the_place_of_another_is_made_again(folder):
    made_again()
    own = entry(folder)
    cached(("y",), Maker(b"the other"))
    (other,) = set(entries(folder)) - {own}
    shutil.copy(other, own)
    assert [made_again(), made_again()] == [True, False]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none")
def test_a_fifo_in_the_place_of_an_entry_does_not_block(folder):
    path = replaced_by(folder, os.mkfifo)
    assert [made_again(), made_again()] == [True, False]
    assert path.is_file()


def test_a_link_in_the_place_of_an_entry_is_not_followed_nor_written_through(folder, tmp_path):
    made_again()
    shutil.copy(entry(folder), tmp_path / "elsewhere")
    path = replaced_by(folder, lambda path: path.symlink_to(tmp_path / "elsewhere"))
    before = (tmp_path / "elsewhere").read_bytes()
    assert [made_again(), made_again()] == [True, False]
    assert not path.is_symlink() and (tmp_path / "elsewhere").read_bytes() == before


def test_a_huge_file_in_the_place_of_an_entry_is_not_read(folder):
    def sparse(path):
        with path.open("wb") as file:
            file.truncate(1 << 40)

    path = replaced_by(folder, sparse)
    assert [made_again(), made_again()] == [True, False]
    assert path.stat().st_size < 1 << 20


@OWNERS
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_an_entry_that_others_may_write_is_made_again(folder, mode):
    made_again()
    entry(folder).chmod(mode)
    assert [made_again(), made_again()] == [True, False]
    assert entry(folder).stat().st_mode & 0o777 == 0o600


@ROOT_ALONE
def test_an_entry_of_another_user_is_made_again(folder):
    made_again()
    os.chown(entry(folder), 12345, -1)
    assert [made_again(), made_again()] == [True, False]
    assert entry(folder).stat().st_uid == 0


@pytest.mark.parametrize("content", [b"", b"short", bytes(cache.BYTES), bytes(range(1, 34))])
def test_a_damaged_secret_is_made_anew_and_so_are_its_entries(folder, content):
    made_again()
    (folder / cache.NAME).write_bytes(content)
    assert [made_again(), made_again()] == [True, False]
    assert (folder / cache.NAME).read_bytes() != content


def test_a_secret_that_is_missing_is_made_anew(folder):
    made_again()
    (folder / cache.NAME).unlink()
    assert [made_again(), made_again()] == [True, False]


@OWNERS
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_secret_that_others_may_know_is_made_anew(folder, mode):
    made_again()
    before = (folder / cache.NAME).read_bytes()
    (folder / cache.NAME).chmod(mode)
    assert [made_again(), made_again()] == [True, False]
    assert (folder / cache.NAME).read_bytes() != before
    assert (folder / cache.NAME).stat().st_mode & 0o777 == 0o600


def test_a_directory_in_the_place_of_the_secret_is_no_error(folder):
    (folder / cache.NAME).mkdir(parents=True)
    folder.chmod(0o700)
    with pytest.warns(RuntimeWarning, match="cannot be written: Is a directory"):
        assert made_again()
    assert made_again()


@pytest.mark.slow
def test_processes_that_make_the_secret_at_once_agree(folder, tmp_path):
    code = """
import sys
from pathlib import Path
from shine.compiler.llvm.cache import secret_of
sys.stdin.readline()
print(secret_of(Path(sys.argv[1])).hex())
"""
    folder.mkdir(mode=0o700)
    (folder / cache.NAME).write_bytes(b"damaged")
    command = [sys.executable, "-c", code, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    makers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(4)]
    for maker in makers:
        maker.stdin.write("go\n")
        maker.stdin.flush()
    assert {maker.communicate(timeout=60)[0] for maker in makers} == {(folder / cache.NAME).read_bytes().hex() + "\n"}


def test_threads_that_make_the_secret_at_once_agree(folder):
    folder.mkdir(mode=0o700)
    for _ in range(20):
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(lambda _: cache.secret_of(folder), range(8)))) == 1
        (folder / cache.NAME).unlink()


# Machines


ADD = select(STANDARD, ["add"])


def test_a_machine_is_compiled_once_and_then_loaded(monkeypatch):
    Machine(ADD, "float64")

    def refuse(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(machine, "emit_machine", refuse)
    monkeypatch.setattr(machine, "host_object", refuse)
    Machine(ADD, "float64")


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
        assert len(entries(folder)) == number


@pytest.mark.parametrize("tier", ["machine", "native", "reference"])
def test_functions_of_one_name_that_call_different_ones_are_not_mixed_up(tier):
    for helper, expected in (("x + 1", 2.0), ("x + 2", 3.0)):
        functions = select(_defined("helper(x)", helper), ["helped"])
        primitives = shine.PrimitiveSet(functions, ("x0",))
        population = shine.Population(np.array([[1, 2]], np.int16), np.zeros((1, 2)), np.array([2]), primitives)
        assert shine.Evaluator([[1.0]], [1.0], tier=tier).predict(population).tolist() == [[expected]]
