"""For what native code is made: triples, processors and their features, checked before LLVM sees them.

LLVM warns on standard error of a processor it does not know, and ends the process for some that it does. What a caller
named is therefore tried in a process of its own first, and remembered.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shine.errors import CompilationError
from shine.llvm import cached
from shine.llvm.target import host_cpu, host_triple, target_machine

ARCHITECTURES = (
    "x86_64", "i686", "aarch64", "armv7", "thumbv7", "riscv32", "riscv64", "powerpc", "powerpc64", "powerpc64le",
    "s390x", "wasm32", "wasm64", "mips", "mips64", "sparc", "sparcv9", "loongarch64", "hexagon", "nvptx64",
)  # fmt: skip
"""First parts of triples that are asked for; LLVM is built for more or fewer of them, and lists them to no caller."""

FATAL = ("amdgcn", "r600", "bpf")
"""What triples begin with have no meaning for Shine's code, and where LLVM ends the process instead of saying so."""

NATIVE = "native"
"""The name of this very processor, with all its features."""

FORMATS = (
    (r"wasm(32|64)", "wasm"),
    (r"nvptx", "ptx"),
    (r".*-(apple|darwin|macos|ios)", "macho"),
    (r".*-(windows|mingw32|cygwin|uefi)", "coff"),
    (r"", "elf"),
)
"""Beginnings of triples, and the format of their object files; the first one that fits counts."""

_SYSTEMS = ("linux", "windows", "darwin", "macos", "ios", "freebsd", "netbsd", "openbsd", "none", "wasi", "cuda")
"""Second parts of triples that leave out the vendor."""


@dataclass(frozen=True)
class _Baseline:
    """The least that the platform of a triple has.

    Parameters
    ----------
    triple : str
        Pattern of the whole triple.
    cpu : str
    features : str
        With the processor of the baseline.
    always : str
        With every other processor too.
    abi : str
        Calling convention, where it does not follow from the triple.
    """

    triple: str
    cpu: str = ""
    features: str = ""
    always: str = ""
    abi: str = ""


_BASELINES = (
    _Baseline(r"x86_64", cpu="x86-64"),
    # The x87 unit rounds twice.
    _Baseline(r"i[3-6]86", cpu="pentium4", always="+sse2"),
    # NEON takes subnormal float32 for zero, the scalar unit does not: rows would have other bits.
    _Baseline(r"(arm|thumb).*eabihf", features="+armv7-a,+vfp3d16,-d32", always="-neon"),
    _Baseline(r"(arm|thumb)", always="-neon"),
    # What distributions mean by riscv64: RV64GC, floating-point numbers in registers of their own.
    _Baseline(r"riscv64", always="+m,+a,+f,+d,+c", abi="lp64d"),
    _Baseline(r"riscv32", always="+m,+a,+f,+d,+c", abi="ilp32d"),
)

_PATH = "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
_PROBE = "from shine.llvm import assembly; assembly(*sys.argv[1:])"
_LIST = "from shine.llvm.target import target_machine; target_machine(sys.argv[1], 'help')"
_PROBED = "define i32 @f(i32 %a) {\n  ret i32 %a\n}\n"
_SECONDS = 60


@dataclass(frozen=True)
class Target:
    """A machine that code is made for; `target_of` checks and completes it.

    Parameters
    ----------
    triple : str
        With all its parts: ``aarch64-unknown-linux-gnu``.
    cpu : str
        LLVM's name of the processor; the least of the triple's platform if empty.
    features : str
        Comma-separated, ``+name`` or ``-name``.
    abi : str
        Calling convention, where it does not follow from the triple.
    word : int
        Bits of a pointer and of ``size_t``.
    """

    triple: str
    cpu: str = ""
    features: str = ""
    abi: str = ""
    word: int = 64

    @property
    def format(self) -> str:
        """Format of its object files: elf, macho, coff, wasm or ptx."""
        return next(name for pattern, name in FORMATS if re.match(pattern, self.triple))

    @property
    def is_host(self) -> bool:
        """Whether the triple is that of this process, whatever the processor."""
        return self.triple == normalized(host_triple())


def target_of(triple: str | None = None, cpu: str | None = None, features: str = "") -> Target:
    """A target, complete and known to be one that LLVM has.

    Parameters
    ----------
    triple : str, optional
        Such as ``aarch64-linux-gnu``; the host's without it.
    cpu : str, optional
        LLVM's name of a processor, or ``native``; the least that the triple's platform has without it.
    features : str
        Comma-separated, ``+name`` or ``-name``, on top of the processor's own.

    Returns
    -------
    Target

    Raises
    ------
    CompilationError
        If LLVM has no such target, processor or feature; the message lists what is near.

    Examples
    --------
    >>> target_of("riscv64-linux-gnu").abi
    'lp64d'
    """
    check_triple(triple)
    full = normalized(triple or host_triple())
    baseline = next((row for row in _BASELINES if re.match(row.triple, full)), _Baseline(""))
    named = [feature.strip() for feature in features.split(",") if feature.strip()]
    chosen, parts = (baseline.cpu, [baseline.features]) if cpu is None else (cpu, [])
    if cpu == NATIVE:
        if full.partition("-")[0] != normalized(host_triple()).partition("-")[0]:
            raise CompilationError(f"processor 'native': this one is no {full}; name one of the target's")
        chosen, native = host_cpu()
        parts = [native]
    for feature in named:
        if feature[0] not in "+-":
            raise CompilationError(f"feature {feature!r}: write +{feature} to turn it on or -{feature} to turn it off")
    wanted = ",".join(part for part in (*parts, baseline.always, *named) if part)
    if (cpu is not None and cpu != NATIVE) or named:
        _check_names(full, cpu, named)
        cached(("works", full, chosen, wanted), lambda: _probed(full, chosen, wanted))
    layout = str(target_machine(full).target_data)
    word = 32 if "-p:32:" in layout else 64
    return Target(full, chosen, wanted, baseline.abi, word)


def check_triple(triple: str | None) -> None:
    """Raise unless LLVM has a target for a triple, and it is one that formulas can be compiled for.

    Raises
    ------
    CompilationError
        Its message lists the architectures that there are.
    """
    if triple is None:
        return
    try:
        target_machine(triple)
    except CompilationError as error:
        reason = str(error).partition(";")[0]
        known = ", ".join(filter(_is_known, ARCHITECTURES))
        raise CompilationError(
            f"{reason}; a triple is ARCHITECTURE-SYSTEM, such as aarch64-linux-gnu, x86_64-pc-windows-msvc or "
            f"arm64-apple-darwin; LLVM has here: {known}"
        ) from None
    if triple.startswith(FATAL):
        raise CompilationError(f"target {triple}: LLVM has this target, but cannot compile formulas for it")


def normalized(triple: str) -> str:
    """A triple with a vendor: LLVM takes a part by its place, and ``arm-linux-gnueabihf`` for one without a system."""
    parts = triple.split("-")
    if len(parts) > 1 and parts[1].startswith(_SYSTEMS):
        parts.insert(1, "unknown")
    return "-".join(parts)


def _is_known(architecture: str) -> bool:
    try:
        target_machine(architecture)
    except CompilationError:
        return False
    return True


def _check_names(triple: str, cpu: str | None, features: list[str]) -> None:
    """Raise unless LLVM knows a processor and features."""
    processors, known = names(triple)
    if cpu is not None and cpu != NATIVE and cpu not in processors:
        raise CompilationError(f"processor {cpu!r} is not one of {triple}; {_near(cpu, processors)}")
    for feature in features:
        if feature[1:] not in known:
            near = _near(feature[1:], known)
            raise CompilationError(f"feature {feature!r} is not one of {triple}; {near}")


def _near(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=8, cutoff=0.5)
    if len(known) <= 16:
        return f"there are {', '.join(known)}"
    return f"near it are {', '.join(close)}" if close else f"there are {', '.join(known[:12])} and more"


@cache
def names(triple: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the processors and of the features that LLVM has for a triple."""
    text = cached(("processors of", triple), lambda: _run(_LIST, triple).encode()).decode()
    head, _, tail = text.partition("Available features")
    lists = [re.findall(r"^ +(\S+) +- ", part, re.MULTILINE) for part in (head, tail)]
    return tuple(lists[0]), tuple(lists[1])


def _probed(triple: str, cpu: str, features: str) -> bytes:
    """Nothing, if LLVM compiles for a processor and features without a word."""
    said = _run(_PROBE, _PROBED, triple, cpu, features)
    if said:
        raise CompilationError(f"LLVM cannot compile for processor {cpu or 'baseline'!r} of {triple}: {said}")
    return b""


def _run(code: str, *arguments: str) -> str:
    """What code says on standard error, in a process of its own."""
    command = [sys.executable, "-c", _PATH + code, str(Path(__file__).parents[2]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1].removeprefix("LLVM ERROR: ") if lines else f"exit code {done.returncode}"
        raise CompilationError(f"LLVM cannot compile for {', '.join(filter(None, arguments[-3:]))}: {said}")
    return done.stderr
