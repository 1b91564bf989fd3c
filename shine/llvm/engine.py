"""Native code in this process: a module compiled by MCJIT, and the lifetime of what it holds."""

from __future__ import annotations

import ctypes
import weakref
from types import TracebackType
from typing import Any, Self

import llvmlite.binding as llvm

from shine.errors import CompilationError
from shine.llvm.passes import host_optimizer, parse, pipeline_level
from shine.llvm.target import target_machine


class Engine:
    """Compiled code of one module. Whoever holds a function of it holds the engine.

    Parameters
    ----------
    ir : str
        Textual LLVM IR; it must define every symbol it uses (LLVM ends the process otherwise).
    level : {"O0", "O1", "O2", "O3"} or int
        Optimization pipeline.
    selection : int, optional
        Effort of instruction selection, if it is to differ from the pipeline's.

    Raises
    ------
    CompilationError
        If the IR is not valid.
    """

    def __init__(self, ir: str, level: str | int = "O2", selection: int | None = None) -> None:
        speed = pipeline_level(level)
        module = parse(ir)
        machine = target_machine(level=speed if selection is None else selection, jit=True)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        host_optimizer(speed).run(module)
        self._defined = frozenset(f.name for f in module.functions if not f.is_declaration)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._finalizer = weakref.finalize(self, self._engine.close)

    def function(self, name: str, restype: Any, *argtypes: Any) -> Any:
        """A `ctypes` function that keeps this engine alive; calling it releases the GIL."""
        function: Any = ctypes.CFUNCTYPE(restype, *argtypes)(self.address(name))
        function.engine = self
        return function

    def address(self, name: str) -> int:
        """Address of a function, valid while this engine lives."""
        # Asking MCJIT for a symbol it does not have ends the process.
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
