"""A module written out: optimized IR, assembly or an object file, for the host or any other target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import llvmlite.binding as llvm

from shine.base.errors import CompilationError
from shine.compiler.llvm.passes import Optimizer, parse, pipeline_level
from shine.compiler.llvm.target import target_machine

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
