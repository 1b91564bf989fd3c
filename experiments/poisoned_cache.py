"""Does anything that lies in the code cache make Shine crash, hang, or run code that it did not write?

    python experiments/poisoned_cache.py [--cases 1000] [--seed 0]

Each case damages a good cache in one of many ways, or puts code there that computes another function and is as
consistent as its kind allows, and then evaluates a formula. What an attacker could do to files of other owners needs
root; without it those kinds are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import queue
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import shine
from shine.evaluators.machine_code import Machine, machine_of
from shine.evaluators.machine_code import _machine_of as machines
from shine.evaluators.machine_tier import MachineEvaluator
from shine.lang.library import STANDARD
from shine.lang.primitives import select
from shine.llvm import cache, secret

STRANGER = 12345
"""A user that is somebody else."""

SECONDS = 30
"""After which a case hangs."""

X = np.linspace(1, 2, 100)
FUNCTIONS = select(STANDARD, ["add"])
POPULATION = shine.Population.from_trees([shine.parse("x0 + 1")], shine.PrimitiveSet(FUNCTIONS, ("x0",)))


@dataclass
class Scene:
    """A good cache in which a case changes something.

    `good` and `foreign` are object code: of the machine that is wanted, and of one of the same symbols whose first
    function subtracts. `other` is the file of the good entry for that one.
    """

    rng: random.Random
    folder: Path
    entry: Path
    other: Path
    good: bytes
    foreign: bytes

    @property
    def secret(self) -> Path:
        """The file of the secret."""
        return self.folder / secret.NAME

    def signed(self, content: bytes, key: bytes) -> bytes:
        """An entry as the cache writes it, under some secret."""
        return cache._head(self.entry.name, content, key) + content


Kind = Callable[[Scene], None]
KINDS: dict[str, Kind] = {}
FOREIGN_OWNER = set[str]()


def kind(name: str, needs_root: bool = False) -> Callable[[Kind], Kind]:
    """Register a kind of damage."""

    def add(function: Kind) -> Kind:
        KINDS[name] = function
        if needs_root:
            FOREIGN_OWNER.add(name)
        return function

    return add


@kind("foreign code with a digest that everybody can compute")
def _(s: Scene) -> None:
    s.entry.write_bytes(cache._MAGIC + hashlib.sha256(s.foreign).digest() + s.foreign)


@kind("foreign code with the digest of an empty secret")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, b""))


@kind("foreign code under the digest of the good one")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.entry.read_bytes()[: -len(s.good)] + s.foreign)


@kind("foreign code under another secret")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.rng.randbytes(32)))


@kind("foreign code under a secret that others may read")
def _(s: Scene) -> None:
    key = s.rng.randbytes(32)
    s.secret.write_bytes(key)
    s.secret.chmod(s.rng.choice([0o644, 0o640, 0o604, 0o666]))
    s.entry.write_bytes(s.signed(s.foreign, key))


@kind("foreign code under a secret of zeros")
def _(s: Scene) -> None:
    s.secret.write_bytes(bytes(32))
    s.entry.write_bytes(s.signed(s.foreign, bytes(32)))


@kind("foreign code under a secret that is a link")
def _(s: Scene) -> None:
    key = s.rng.randbytes(32)
    (s.folder.parent / "key").write_bytes(key)
    (s.folder.parent / "key").chmod(0o600)
    s.secret.unlink()
    s.secret.symlink_to(s.folder.parent / "key")
    s.entry.write_bytes(s.signed(s.foreign, key))


@kind("foreign code under a stranger's secret", needs_root=True)
def _(s: Scene) -> None:
    key = s.rng.randbytes(32)
    s.secret.write_bytes(key)
    os.chown(s.secret, STRANGER, -1)
    s.entry.write_bytes(s.signed(s.foreign, key))


@kind("the entry of another machine under this one's name")
def _(s: Scene) -> None:
    shutil.copy(s.other, s.entry)


@kind("a link to foreign code that is consistent")
def _(s: Scene) -> None:
    s.other.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    s.entry.unlink()
    s.entry.symlink_to(s.other)


@kind("a good link to nowhere, or to itself")
def _(s: Scene) -> None:
    s.entry.unlink()
    s.entry.symlink_to(s.rng.choice([s.folder / "nowhere", s.entry, Path("/dev/zero"), Path("/dev/full")]))


@kind("foreign code that others may write, rightly signed")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    s.entry.chmod(s.rng.choice([0o620, 0o602, 0o666, 0o777]))


@kind("a stranger's foreign code, rightly signed", needs_root=True)
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    os.chown(s.entry, STRANGER, -1)


@kind("a folder that others may write, consistent throughout")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    s.folder.chmod(s.rng.choice([0o777, 0o757, 0o1777, 0o722]))


@kind("a folder in one that others may write, consistent throughout")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    s.folder.parent.chmod(s.rng.choice([0o777, 0o757, 0o722]))


@kind("a stranger's folder, consistent throughout", needs_root=True)
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    for path in (s.folder, *s.folder.iterdir()):
        os.chown(path, STRANGER, -1)


@kind("a folder in a stranger's, consistent throughout", needs_root=True)
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    os.chown(s.folder.parent, STRANGER, -1)


@kind("a stranger's link to a folder that is consistent throughout", needs_root=True)
def _(s: Scene) -> None:
    s.entry.write_bytes(s.signed(s.foreign, s.secret.read_bytes()))
    s.folder.rename(s.folder.with_name("elsewhere"))
    s.folder.symlink_to(s.folder.with_name("elsewhere"))
    os.lchown(s.folder, STRANGER, -1)


@kind("cut off")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.entry.read_bytes()[: s.rng.randrange(s.entry.stat().st_size)])


@kind("cut off in its head")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.entry.read_bytes()[: s.rng.randrange(60)])


@kind("flipped bits")
def _(s: Scene) -> None:
    content = bytearray(s.entry.read_bytes())
    for _ in range(s.rng.choice([1, 1, 1, 2, 50])):
        content[s.rng.randrange(len(content))] ^= 1 << s.rng.randrange(8)
    s.entry.write_bytes(content)


@kind("flipped bits in the head")
def _(s: Scene) -> None:
    content = bytearray(s.entry.read_bytes())
    content[s.rng.randrange(46)] ^= 1 << s.rng.randrange(8)
    s.entry.write_bytes(content)


@kind("something behind the end")
def _(s: Scene) -> None:
    s.entry.write_bytes(s.entry.read_bytes() + s.rng.randbytes(s.rng.randrange(1, 5000)))


@kind("a part overwritten")
def _(s: Scene) -> None:
    content = bytearray(s.entry.read_bytes())
    start = s.rng.randrange(len(content))
    content[start : start + 4096] = s.rng.choice([bytes, s.rng.randbytes])(len(content[start : start + 4096]))
    s.entry.write_bytes(content)


@kind("rubbish")
def _(s: Scene) -> None:
    body = s.rng.choice([b"", b"\x7fELF", s.good[:64]]) + s.rng.randbytes(s.rng.randrange(3000))
    head = s.rng.choice([b"", cache._MAGIC, cache._MAGIC + hashlib.sha256(body).digest()])
    s.entry.write_bytes(head + body)


@kind("a FIFO")
def _(s: Scene) -> None:
    place = s.rng.choice([s.entry, s.secret])
    place.unlink()
    os.mkfifo(place)


@kind("a socket")
def _(s: Scene) -> None:
    place = s.rng.choice([s.entry, s.secret])
    place.unlink()
    before = os.getcwd()
    os.chdir(place.parent)  # the name of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind("s")
        os.rename("s", place.name)
    finally:
        os.chdir(before)


@kind("a directory")
def _(s: Scene) -> None:
    place = s.rng.choice([s.entry, s.secret])
    place.unlink()
    place.mkdir()


@kind("a huge file")
def _(s: Scene) -> None:
    with s.rng.choice([s.entry, s.secret]).open("r+b") as file:
        file.truncate(s.rng.choice([1 << 27, 1 << 33, 1 << 40]))


@kind("not to be read")
def _(s: Scene) -> None:
    s.rng.choice([s.entry, s.secret, s.folder]).chmod(0)


@kind("a damaged secret")
def _(s: Scene) -> None:
    content = s.rng.choice([b"", s.rng.randbytes(31), s.rng.randbytes(33), bytes(32), s.rng.randbytes(32)])
    s.secret.write_bytes(content)


@kind("no secret")
def _(s: Scene) -> None:
    s.secret.unlink()


@kind("no folder")
def _(s: Scene) -> None:
    shutil.rmtree(s.folder)
    replacement = s.rng.choice(["nothing", "file", "fifo", "loop"])
    if replacement == "file":
        s.folder.write_bytes(s.rng.randbytes(100))
    elif replacement == "fifo":
        os.mkfifo(s.folder)
    elif replacement == "loop":
        s.folder.symlink_to(s.folder)


def outcome() -> str:
    """What comes of evaluating the formula with the cache as it is."""
    cache._warn.cache_clear()
    machines.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = shine.data.dataset.Dataset.from_arrays(X[:, None], X)
        values = MachineEvaluator(data, "mse", False, "float64").predict(POPULATION)[0]
    if len(caught) > 1:
        return f"{len(caught)} warnings"
    if not np.array_equal(values, X + 1):
        return "foreign code was run"
    return "right, with a warning" if caught else "right"


def scene(home: Path, number: int, seed: int) -> Scene:
    """A fresh copy of the good cache."""
    place = home / f"case{number}"
    place.mkdir(mode=0o700)
    shutil.copytree(home / "good", place / "cache")
    os.environ["SHINE_CACHE_DIR"] = str(place / "cache")
    folder = place / "cache"
    folder.chmod(0o700)
    names = (home / "names").read_text().split()
    head = len(cache._MAGIC) + cache._DIGEST_BYTES
    entry, other = (folder / name for name in names)
    rng = random.Random(f"{seed} {number}")
    return Scene(rng, folder, entry, other, entry.read_bytes()[head:], other.read_bytes()[head:])


def work(home: Path, first: int, last: int, seed: int) -> None:
    """The cases of one process, a line each before it and a line after it."""
    names = [name for name in KINDS if os.geteuid() == 0 or name not in FOREIGN_OWNER]
    for number in range(first, last):
        name = names[number % len(names)]
        print(f"{number}\t{name}", flush=True)
        KINDS[name](scene(home, number, seed))
        print(outcome(), flush=True)
        shutil.rmtree(home / f"case{number}", ignore_errors=True)


def good_cache(home: Path) -> None:
    """The cache of two machines, that which is wanted first."""
    os.environ["SHINE_CACHE_DIR"] = str(home / "good")
    names: list[str] = []
    for function in ("add", "sub"):
        Machine(select(STANDARD, [function]), "float64")
        names += [path.name for path in (home / "good").iterdir() if path.name not in (secret.NAME, *names)]
    (home / "names").write_text(" ".join(names))
    assert machine_of(FUNCTIONS, "float64")


def check_canary(home: Path) -> None:
    """Foreign code that the user has signed is run: so the canary would tell."""
    number = -1
    own = scene(home, number, 0)
    own.entry.write_bytes(own.signed(own.foreign, own.secret.read_bytes()))
    said = outcome()
    assert said == "foreign code was run", said


def run(home: Path, cases: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each outcome came, and the cases in which it was none of the right ones."""
    outcomes, bad, number = Counter[str](), list[str](), 0
    while number < cases:
        command = [sys.executable, __file__, "--work", str(home), str(number), str(cases), "--seed", str(seed)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines: queue.Queue[str] = queue.Queue()

        def read(worker: subprocess.Popen[str] = worker, lines: queue.Queue[str] = lines) -> None:
            for line in worker.stdout or ():
                lines.put(line.rstrip("\n"))
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        while begun := lines.get(timeout=60):
            try:
                said = lines.get(timeout=SECONDS) or f"crash {worker.wait()}"
            except queue.Empty:
                said = "hang"
            number = int(begun.split("\t")[0]) + 1
            outcomes[said.partition(" -")[0]] += 1
            if not said.startswith("right"):
                bad.append(f"{begun}: {said}")
                break
        worker.kill()
        worker.wait()
    return outcomes, bad


def main() -> None:
    """Make the cases and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        home, first, last = options.work
        work(Path(home), int(first), int(last), options.seed)
        return
    with tempfile.TemporaryDirectory() as home:
        good_cache(Path(home))
        check_canary(Path(home))
        outcomes, bad = run(Path(home), options.cases, options.seed)
    kinds = len(KINDS) if os.geteuid() == 0 else len(KINDS) - len(FOREIGN_OWNER)
    print(f"{options.cases} cases of {kinds} kinds:", ", ".join(f"{count} {name}" for name, count in outcomes.items()))
    print("\n".join(bad))


if __name__ == "__main__":
    main()
