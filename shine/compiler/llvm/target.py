"""Target machines: the host or any other triple that LLVM was built for; and pipelines of optimization for them.

Pipelines run through llvmlite's `PassBuilder`, which succeeds `PassManagerBuilder` since LLVM's new pass manager;
llvmlite no longer has the old one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from shine.base.errors import CompilationError, placed


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
    known = "use a triple such as x86_64-linux-gnu, aarch64-linux-gnu, armv7-linux-gnueabihf or wasm32"
    told = lambda error: f"{str(error).strip()}; {known}"  # noqa: E731
    with placed(f"LLVM has no target {triple!r}", RuntimeError, kind=CompilationError, told=told):
        target = llvm.Target.from_triple(triple or host_triple())
        return target.create_target_machine(
            cpu=cpu or "",
            features=features,
            opt=level,
            reloc="default" if jit else "pic",
            codemodel="jitdefault" if jit else "default",
            jit=jit,
        )


_GUARD: Any = getattr(ffi.lib, "_lock", None)
"""llvmlite's guard, which offers no public way to hold it; its `_lock` is an `RLock`."""


class _Lock:
    """llvmlite's lock, or one of Shine's own if llvmlite's is not found."""

    def __init__(self) -> None:
        self._own = threading.RLock()

    @property
    def _current(self) -> Any:
        return getattr(_GUARD, "_lock", self._own)

    def __enter__(self) -> None:
        self._current.acquire()

    def __exit__(self, *error: object) -> None:
        self._current.release()

    def after_fork_in_parent(self) -> None:
        with suppress(RuntimeError):  # an interrupt ended the wait for it
            self._current.release()

    def after_fork_in_child(self) -> None:
        try:
            self._current.release()
        except RuntimeError:  # as above; the thread that holds it does not run here
            self._own = threading.RLock()
            if hasattr(_GUARD, "_lock"):
                _GUARD._lock = threading.RLock()


LOCK = _Lock()
"""Held while LLVM works. The thread that holds it may take it again."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.__enter__, after_in_parent=LOCK.after_fork_in_parent, after_in_child=LOCK.after_fork_in_child
    )


PIPELINES: dict[str, int] = {"O0": 0, "O1": 1, "O2": 2, "O3": 3}
"""LLVM's speed level of each pipeline."""


def pipeline_level(name: str | int) -> int:
    """Speed level of a pipeline given as ``"O2"`` or ``2``; a `ValueError` if there is no such pipeline."""
    level = PIPELINES.get(name, -1) if isinstance(name, str) else name
    if isinstance(level, bool) or level not in PIPELINES.values():
        raise ValueError(f"unknown optimization level {name!r}; use one of {', '.join(PIPELINES)}")
    return level


class _Module(llvm.ModuleRef):
    """A module that ends its context: LLVM crashes if a context ends first, and garbage in a cycle, such as that of an
    exception, is finalized in any order."""

    def _dispose(self) -> None:
        super()._dispose()
        ffi.lib.LLVMPY_ContextDispose(self._address)

    def detach(self) -> None:
        if self._owned:  # by an engine: the context ends with the last reference to it
            self._context._owned = False
        super().detach()


def in_own_context(read: Callable[..., llvm.ModuleRef], content: str | bytes) -> llvm.ModuleRef:
    """The module that `read` makes of the content, in a context of its own: a shared one would grow."""
    context = llvm.create_context()
    module = read(content, context=context)
    module.__class__, module._address, context._owned = _Module, context._ptr, True
    return module


def parse(ir: str) -> llvm.ModuleRef:
    """The module of a textual IR, verified."""
    with placed("LLVM rejects the module", RuntimeError, kind=CompilationError):
        module = in_own_context(llvm.parse_assembly, ir)
        module.verify()
    return module


class Optimizer:
    """Runs the default pipeline of one speed level, on modules for one target machine.

    Nearly all of Shine's loops are vector code already, so vectorizers and unroller are off: they would gain nothing
    and cost most of the compile time.

    Parameters
    ----------
    machine : TargetMachine
    level : {0, 1, 2, 3}
    vectorize : bool, default False
        Turn loops over numbers into loops over vectors.
    """

    # A pass builder gets slower with each run, and leaks 1.5 KB when it is closed: this many runs keep both small.
    _RUNS = 32

    def __init__(self, machine: llvm.TargetMachine, level: int, vectorize: bool = False) -> None:
        self._machine = machine
        self._tuning = llvm.create_pipeline_tuning_options(speed_level=level)
        self._tuning.loop_vectorization = vectorize
        self._tuning.slp_vectorization = False
        self._tuning.loop_unrolling = False
        # Elementary functions stay calls: inlining a few hundred of them takes seconds and gains next to nothing.
        self._tuning.inlining_threshold = 50
        self._builder: llvm.PassBuilder | None = None
        self._runs = 0

    def run(self, module: llvm.ModuleRef) -> None:
        """Optimize a module in place."""
        with LOCK:
            if self._builder is None or self._runs == self._RUNS:
                if self._builder is not None:
                    self._builder.close()
                self._builder, self._runs = llvm.create_pass_builder(self._machine, self._tuning), 0
            self._runs += 1
            passes = self._builder.getModulePassManager()
            if self._tuning.speed_level == 0:
                passes.add_sroa_pass()  # else the variables of kernels would stay on the stack
            try:
                passes.run(module, self._builder)
            finally:
                # llvmlite never frees a module pass manager (57 KB a compile), and running one twice aborts.
                ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
                passes.detach()


@cache
def host_optimizer(level: int, vectorize: bool) -> Optimizer:
    """The optimizer of code for this process."""
    return Optimizer(target_machine(level=level, jit=True), level, vectorize)
