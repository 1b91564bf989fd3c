"""From a module to LLVM IR for a target, through all passes; and the interface that follows."""

from __future__ import annotations

from functools import cache

from shine.compiler.processor import Machine, machine_of
from shine.formats.native.targets import NATIVE, Target, target_of
from shine.tensor.form.module import Module
from shine.tensor.loops.emission import emit
from shine.tensor.native.code import Lowered, Lowering
from shine.tensor.native.interface import interface_of
from shine.tensor.native.nvptx import kernel_ir
from shine.tensor.passes.pipeline import optimized


def lowering(module: Module, function: str, name: str, is_shared: bool = False) -> Lowering:
    """Lowering of a function of a module to LLVM IR.

    Parameters
    ----------
    module : Module
        Without declarations.
    function : str
    name : str
        Name of the function in C.
    is_shared : bool
        Whether threads of this process share the work, if that pays.

    Code for a GPU has a kernel, too.
    """

    @cache
    def small() -> Module:
        return optimized(module, [function])

    def lower(target: Target) -> Lowered:
        text, found = emit(small(), machine_for(target), function, name, is_shared=is_shared)
        interface = interface_of(name, module.function(function), module.labels, found.arena_bytes)
        if target.format == "ptx":
            text += kernel_ir(interface)
        return Lowered(text, interface, found.report, found.steps, found.scratch_bytes)

    return lower


def machine_for(target: Target) -> Machine:
    """The processor of a target; if it is this one, with its own caches."""
    is_here = target == target_of(None, NATIVE)
    return machine_of(None if is_here else target.triple, target.cpu, target.features)
