"""Native code in this process: a module compiled by MCJIT, and its lifetime."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import llvmlite.binding as llvm

from shine.base.errors import CompilationError
from shine.compiler.llvm.fma import host_has_fma, with_fma_defined
from shine.compiler.llvm.passes import Optimizer, host_optimizer, parse, pipeline_level
from shine.compiler.llvm.target import target_machine


class Engine:
    """Compiled code of one module. Its functions keep it alive.

    Parameters
    ----------
    ir : str
        Textual LLVM IR; it must define every symbol it uses (LLVM ends the process otherwise).
    level : {"O0", "O1", "O2", "O3"} or int
        Optimization pipeline.
    selection : int, optional
        Effort of instruction selection, that of the pipeline by default.

    Raises
    ------
    CompilationError
        If the IR is not valid.
    """

    def __init__(self, ir: str, level: str | int = "O2", selection: int | None = None) -> None:
        module, machine = _compiled(ir, level, selection)
        defined = frozenset(f.name for f in module.functions if not f.is_declaration)
        self._hold(llvm.create_mcjit_compiler(module, machine), defined)

    @classmethod
    def of_object(cls, code: bytes, names: Iterable[str]) -> Self:
        """An engine for object code from `host_object`, which defines the functions `names`."""
        machine = target_machine(jit=True)
        module = parse("")
        module.triple = machine.triple
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        made = cls.__new__(cls)
        made._hold(engine, frozenset(names))
        return made

    def _hold(self, engine: llvm.ExecutionEngine, defined: frozenset[str]) -> None:
        engine.finalize_object()
        self._engine, self._defined = engine, defined
        self._finalizer = weakref.finalize(self, engine.close)

    def function(self, name: str, restype: Any, *argtypes: Any) -> Any:
        """A `ctypes` function that keeps this engine alive; calling it releases the GIL. Errors as of `address`."""
        function: Any = ctypes.CFUNCTYPE(restype, *argtypes)(self.address(name))
        function.engine = self
        return function

    def address(self, name: str) -> int:
        """Address of a function, valid while this engine lives.

        Raises
        ------
        CompilationError
            If the module has no such function, or the engine is closed.
        """
        # MCJIT ends the process if it is asked for a symbol it does not have.
        if not self._finalizer.alive or name not in self._defined:
            raise CompilationError(f"the module has no function {name!r}, or is closed")
        return int(self._engine.get_function_address(name))

    def close(self) -> None:
        """Free the machine code; the functions must not be called any more."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def host_object(ir: str, level: str | int = "O2", selection: int | None = None) -> bytes:
    """Object code of a module for this process, to be loaded by `Engine.of_object` here or in another one."""
    module, machine = _compiled(ir, level, selection)
    return bytes(machine.emit_object(module))


def _compiled(ir: str, level: str | int, selection: int | None) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """A module optimized for this process, and the target machine to finish it."""
    speed = pipeline_level(level)
    module = parse(ir if host_has_fma() else with_fma_defined(ir))
    machine = target_machine(level=speed if selection is None else selection, jit=True)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    host_optimizer(speed).run(module)
    return module, machine


T = TypeVar("T")


def _optimized(
    ir: str, triple: str | None, cpu: str | None, features: str, level: str | int
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    speed = pipeline_level(level)
    module = parse(ir)
    machine = target_machine(triple, cpu, features, speed)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    Optimizer(machine, speed).run(module)
    return module, machine


def optimized_ir(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> str:
    """Textual IR after a pipeline has run for a target (see `shine.compiler.llvm.target.target_machine`)."""
    return str(_optimized(ir, triple, cpu, features, level)[0])


def assembly(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> str:
    """Assembly of a module for a target, with its label and directive lines."""
    module, machine = _optimized(ir, triple, cpu, features, level)
    machine.set_asm_verbosity(False)
    return _emitted(machine.emit_assembly, module)


def object_code(
    ir: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> bytes:
    """Relocatable object file of a module for a target, in the target's own format."""
    module, machine = _optimized(ir, triple, cpu, features, level)
    return _emitted(machine.emit_object, module)


def _emitted(emit: Callable[[llvm.ModuleRef], T], module: llvm.ModuleRef) -> T:
    try:
        return emit(module)
    except RuntimeError as error:
        raise CompilationError(f"LLVM cannot emit code for {module.triple}: {error}") from None
