"""Ways to damage a good code cache, or to put consistent code there that computes another function.

The kinds in `FOREIGN_OWNER` need root: they make files of another owner.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shine.compiler.llvm import cache

STRANGER = 12345
"""The id of another user."""


@dataclass
class Scene:
    """A good cache, for a case to damage.

    `good` is the object code of the wanted machine. `foreign` is that of a machine with the same symbols whose first
    function subtracts, and `other` the file of its valid entry.
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
        return self.folder / cache.NAME

    def signed(self, content: bytes, key: bytes) -> bytes:
        """An entry signed as the cache does, with a secret."""
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
    os.chdir(place.parent)  # a socket's path must be short
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
