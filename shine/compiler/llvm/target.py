"""Target machines: the host with all its features, or any other triple that LLVM was built for."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from shine.base.errors import CompilationError


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def llvm_version() -> str:
    """Version of LLVM, such as ``"20.1.8"``."""
    return ".".join(map(str, llvm.llvm_version_info))


@cache
def host_triple() -> str:
    """Triple of this process."""
    return str(llvm.get_process_triple())


@cache
def host_cpu() -> tuple[str, str]:
    """Name of the host's CPU and its features as LLVM spells them (``+avx2,-sse4a,...``)."""
    return str(llvm.get_host_cpu_name()), str(llvm.get_host_cpu_features().flatten())


_REGISTERS = {"+avx512f": 64, "+avx": 32}
"""Bytes of the widest vector register by the feature that brings it; 16 without any."""


@cache
def register_bytes() -> int:
    """Bytes of a vector register of the host."""
    features = host_cpu()[1].split(",")
    return next((size for feature, size in _REGISTERS.items() if feature in features), 16)


def target_machine(
    triple: str | None = None, cpu: str | None = None, features: str = "", level: int = 2, *, jit: bool = False
) -> llvm.TargetMachine:
    """A target machine; each module gets its own, because an engine takes ownership of it.

    Parameters
    ----------
    triple : str, optional
        For example ``"aarch64-linux-gnu"``; the host's by default.
    cpu : str, optional
        LLVM's name of a processor. The default is this processor with its features if no triple is given, else the
        baseline of the triple.
    features : str
        Comma-separated, ``+name`` or ``-name``.
    level : {0, 1, 2, 3}
        Effort of instruction selection and register allocation.
    jit : bool
        Whether the code is loaded into this process.

    Raises
    ------
    CompilationError
        If LLVM has no such target.
    """
    _initialize()
    if triple is None and cpu is None:
        cpu, features = host_cpu()
    try:
        target = llvm.Target.from_triple(triple or host_triple())
        return target.create_target_machine(
            cpu=cpu or "",
            features=features,
            opt=level,
            reloc="default" if jit else "pic",
            codemodel="jitdefault" if jit else "default",
            jit=jit,
        )
    except RuntimeError as error:
        raise CompilationError(
            f"LLVM has no target {triple!r}: {str(error).strip()}; "
            "use a triple such as x86_64-linux-gnu, aarch64-linux-gnu, armv7-linux-gnueabihf or wasm32"
        ) from None
