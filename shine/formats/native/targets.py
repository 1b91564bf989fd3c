"""Targets of native code: triples, processors and their features, checked before LLVM sees them.

LLVM warns on standard error of a processor that it does not know, and ends the process for some that it knows. So a
caller's target is tried in another process first, and the result is remembered.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shine.base.errors import CompilationError
from shine.compiler.llvm import cached
from shine.compiler.llvm.target import host_cpu, host_triple, target_machine
from shine.lang.forms.names import check_text, choices

ARCHITECTURES = (
    "x86_64", "i686", "aarch64", "armv7", "thumbv7", "riscv32", "riscv64", "powerpc", "powerpc64", "powerpc64le",
    "s390x", "wasm32", "wasm64", "mips", "mips64", "sparc", "sparcv9", "loongarch64", "hexagon", "nvptx64",
)  # fmt: skip
"""Architectures to try: each build of LLVM has some of them, and does not list them."""

FATAL = ("amdgcn", "r600", "bpf")
"""Beginnings of triples for which Shine's code has no meaning, and LLVM ends the process instead of saying so."""

NATIVE = "native"
"""The name that stands for this processor with all its features."""

FORMATS = (
    (r"wasm(32|64)", "wasm"),
    (r"nvptx", "ptx"),
    (r".*-(apple|darwin|macos|ios)", "macho"),
    (r".*-(windows|mingw32|cygwin|uefi)", "coff"),
    (r"", "elf"),
)
"""Format of object files by the beginning of a triple; the first one that fits counts."""

_SYSTEMS = ("linux", "windows", "darwin", "macos", "ios", "freebsd", "netbsd", "openbsd", "none", "wasi", "cuda")
"""Second parts of triples that leave out the vendor."""


@dataclass(frozen=True)
class _Baseline:
    """The least processor of the platform of a triple.

    Parameters
    ----------
    triple : str
        Pattern of the whole triple.
    cpu : str
    features : str
        Features of that processor.
    always : str
        Features of every other processor too.
    abi : str
        Calling convention, if it does not follow from the triple.
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
    # NEON treats subnormal float32 numbers as zero, the scalar unit does not: many rows would get other bits than one.
    _Baseline(r"(arm|thumb).*eabihf", features="+armv7-a,+vfp3d16,-d32", always="-neon"),
    _Baseline(r"(arm|thumb)", always="-neon"),
    # riscv64 of the distributions: RV64GC, with floating-point numbers in their own registers.
    _Baseline(r"riscv64", always="+m,+a,+f,+d,+c", abi="lp64d"),
    _Baseline(r"riscv32", always="+m,+a,+f,+d,+c", abi="ilp32d"),
    # The oldest processor that CUDA 13 supports; later cards run the same PTX.
    _Baseline(r"nvptx", cpu="sm_75"),
)

_PATH = "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
_PROBE = "from shine.compiler.llvm import assembly; assembly(*sys.argv[1:])"
_LIST = "from shine.compiler.llvm.target import target_machine; target_machine(sys.argv[1], 'help')"
_PROBED = "define i32 @f(i32 %a) {\n  ret i32 %a\n}\n"
_SECONDS = 60


@dataclass(frozen=True)
class Target:
    """A machine to compile for; `target_of` checks and completes it.

    Parameters
    ----------
    triple : str
        The complete triple: ``aarch64-unknown-linux-gnu``.
    cpu : str
        LLVM's name of the processor; if empty, the least of the triple's platform.
    features : str
        Comma-separated, ``+name`` or ``-name``.
    abi : str
        Calling convention, if it does not follow from the triple.
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
    """A complete target that LLVM has.

    Parameters
    ----------
    triple : str, optional
        Such as ``aarch64-linux-gnu``; the host's by default.
    cpu : str, optional
        LLVM's name of a processor, or ``native``; by default the least of the triple's platform.
    features : str
        Comma-separated, ``+name`` or ``-name``, on top of the processor's own.

    Raises
    ------
    CompilationError
        If LLVM has no such target, processor or feature; the message lists similar names.
    TypeError
        If one of them is no text.

    Examples
    --------
    >>> target_of("riscv64-linux-gnu").abi
    'lp64d'
    """
    for what, given in (("target", triple or ""), ("cpu", cpu or ""), ("features", features)):
        check_text(what, given)
    check_triple(triple)
    full = normalized(triple or host_triple())
    baseline = next((row for row in _BASELINES if re.match(row.triple, full)), _Baseline(""))
    named = [feature.strip() for feature in features.split(",") if feature.strip()]
    chosen, parts = (baseline.cpu, [baseline.features]) if cpu is None else (cpu, [])
    if cpu == NATIVE:
        if full.partition("-")[0] != normalized(host_triple()).partition("-")[0]:
            raise CompilationError(f"processor 'native': this host is not {full}; name a processor of that target")
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
    """Raise unless LLVM has a target for a triple, and can compile formulas for it.

    Raises
    ------
    CompilationError
        If not; the message lists the architectures that LLVM has.
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
    """A triple with a vendor: LLVM goes by position, and would find no system in ``arm-linux-gnueabihf``."""
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
        raise CompilationError(f"processor {cpu!r} is not one of {triple}; {choices(cpu, processors)}")
    for feature in features:
        if feature[1:] not in known:
            near = choices(feature[1:], known)
            raise CompilationError(f"feature {feature!r} is not one of {triple}; {near}")


@cache
def names(triple: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the processors and of the features that LLVM has for a triple."""
    text = cached(("processors of", triple), lambda: _run(_LIST, triple).encode()).decode()
    head, _, tail = text.partition("Available features")
    lists = [re.findall(r"^ +(\S+) +- ", part, re.MULTILINE) for part in (head, tail)]
    return tuple(lists[0]), tuple(lists[1])


def _probed(triple: str, cpu: str, features: str) -> bytes:
    """Raise unless LLVM compiles for a processor and features without a warning."""
    said = _run(_PROBE, _PROBED, triple, cpu, features)
    if said:
        raise CompilationError(f"LLVM cannot compile for processor {cpu or 'baseline'!r} of {triple}: {said}")
    return b""


def _run(code: str, *arguments: str) -> str:
    """Standard error of some code, run in another process."""
    command = [sys.executable, "-c", _PATH + code, str(Path(__file__).parents[2]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1].removeprefix("LLVM ERROR: ") if lines else f"exit code {done.returncode}"
        raise CompilationError(f"LLVM cannot compile for {', '.join(filter(None, arguments[-3:]))}: {said}")
    return done.stderr


GPU_TRIPLE = "nvptx64-nvidia-cuda"
"""The triple of PTX if a job's target is of another kind."""


def gpu_target(wanted: Target) -> Target:
    """The target of PTX: the one that is wanted, if that is a GPU, else the least of `GPU_TRIPLE`."""
    return wanted if wanted.format == "ptx" else target_of(GPU_TRIPLE)
