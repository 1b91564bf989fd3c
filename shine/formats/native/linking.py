"""Shared libraries, linked by a linker of the system or of the extra `aot`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shine.base.errors import ExportError, MissingExtraError
from shine.formats.native.code import Code, Files
from shine.formats.native.targets import Target

SUFFIXES = {"elf": ".so", "macho": ".dylib", "coff": ".dll"}
"""Ending of shared libraries in each format that has such libraries."""


@dataclass(frozen=True)
class _Linker:
    """A command that links one object file.

    Parameters
    ----------
    command : list of str
    driver : bool
        Whether it is a compiler that runs a linker, not a linker itself.
    """

    command: list[str]
    driver: bool

    def line(self, target: Target, source: str, out: str) -> list[str]:
        """The whole command line."""
        options = {
            ("elf", True): ["-shared", "-nostdlib", "-Wl,-z,defs", "-Wl,--build-id=none", f"-Wl,-soname,{out}"],
            ("elf", False): ["-shared", "-z", "defs", "-z", "noexecstack", "-soname", out],
            ("macho", True): ["-dynamiclib", "-nostdlib", f"-Wl,-install_name,@rpath/{out}"],
            ("coff", True): ["-shared", "-nostdlib", "-Wl,--no-entry"],
        }[target.format, self.driver]
        return [*self.command, *options, "-o", out, source]


def shared_files(job: Code) -> Files:
    """The shared library of a job; an `ExportError` if linking fails, a `MissingExtraError` without a linker."""
    target = job.target
    if target.format not in SUFFIXES:
        raise ExportError(f"{target.triple} has no shared libraries; emit an object file")
    out, source = f"lib{job.name}{SUFFIXES[target.format]}", f"{job.name}.o"
    code = job.object_code
    problems = []
    for linker in _linkers(target):
        made = run(linker.line(target, source, out), code, source, out)
        if isinstance(made, bytes):
            return {out: made}
        problems.append(f"{Path(linker.command[0]).name}: {made}")
    if problems:
        raise ExportError(f"the shared library cannot be linked: {'; '.join(problems)}")
    wanted = "cc or clang" if target.is_host else f"{_gnu(target.triple)}-ld or ld.lld"
    raise MissingExtraError(f"a shared library of {target.triple}", f"a linker ({wanted})", "aot")


def _linkers(target: Target) -> Iterator[_Linker]:
    """Commands that may link for a target, the first choice first."""
    names: list[tuple[str, bool]] = []
    if target.is_host:
        names += [("cc", True), ("clang", True)]
    if target.format == "elf":
        names += [("ld", False)] * target.is_host + [(f"{_gnu(target.triple)}-ld", False), ("ld.lld", False)]
    for name, driver in names:
        path = shutil.which(name)
        if path:
            yield _Linker([path], driver)
    if importlib.util.find_spec("ziglang"):
        yield _Linker([sys.executable, "-m", "ziglang", "cc", "-target", _zig(target.triple)], True)


def run(command: list[str], code: bytes, source: str, out: str) -> bytes | str:
    """The file `out` that a linker makes of the object file `source`, or its complaint."""
    with tempfile.TemporaryDirectory(prefix="shine-") as folder:
        Path(folder, source).write_bytes(code)
        environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(Path(folder, "cache"))}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        if done.returncode:
            return lines[-1] if lines else f"exit code {done.returncode}"
        return Path(folder, out).read_bytes()


def _parts(triple: str) -> tuple[str, str, str]:
    """Architecture, system and environment of a triple."""
    architecture, _, rest = triple.partition("-")
    system, _, environment = rest.partition("-")[2].partition("-")
    return architecture, system, environment


def _gnu(triple: str) -> str:
    """The name of a target in the tools of Debian and others: ``arm-linux-gnueabihf``."""
    architecture, system, environment = _parts(triple)
    architecture = "arm" if re.match(r"arm|thumb", architecture) else architecture
    return "-".join(filter(None, (architecture, system, environment)))


def _zig(triple: str) -> str:
    """Zig's name of a target: ``aarch64-macos``."""
    architecture, system, environment = _parts(triple)
    architecture = {"arm64": "aarch64", "i686": "x86"}.get(architecture, architecture)
    architecture = "arm" if architecture.startswith("arm") else architecture
    system = "macos" if system.startswith(("darwin", "macos")) else system
    environment = "gnu" if system == "windows" else environment
    return "-".join(filter(None, (architecture, system, environment)))
