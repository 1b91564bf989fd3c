"""Code for a target in every form, and a job: a program that is compiled for a target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.compiler.codegen.native.entries import COPY_BYTES, SMALL_COPY_BYTES, entries_ir
from shine.compiler.llvm import assembly, object_code, optimized_ir
from shine.formats.native import freestanding
from shine.formats.native.interface import Interface, interface_of
from shine.formats.native.targets import Target
from shine.lang.program.program import Program

STACK: dict[str, frozenset[str]] = {"coff": frozenset({"__chkstk", "___chkstk_ms"})}
"""Symbols that a system's compilers provide to grow the stack by more than a page, used for very many columns."""

OBJECT_SUFFIX: dict[str, str] = {"coff": ".obj"}
"""Ending of object files if it is not ``.o``."""

Files = dict[str, bytes]
"""Contents of files by their names."""


class Code(ABC):
    """What is compiled for a target under a name; a subclass says from what.

    Attributes
    ----------
    name : str
        Name of the function, and of the files.
    target : Target
    level : str or int
        Optimization pipeline of LLVM.
    description : str
        The source as a reader knows it.
    """

    name: str
    target: Target
    level: str | int
    description: str

    @property
    @abstractmethod
    def ir(self) -> str:
        """LLVM IR before optimization; on the target it needs nothing from outside."""

    @property
    def object_name(self) -> str:
        """Name of the object file."""
        return f"{self.name}{OBJECT_SUFFIX.get(self.target.format, '.o')}"

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR after optimization for the target."""
        return optimized_ir(self.ir, *self._machine, level=self.level)

    @cached_property
    def assembly(self) -> str:
        """Assembly for the target."""
        return assembly(self.ir, *self._machine, level=self.level)

    @cached_property
    def object_code(self) -> bytes:
        """Object file for the target, which needs no other object file.

        Raises
        ------
        CompilationError
            If it would need another, because the target lacks instructions; or the target has no object files.
        """
        if self.target.format == "ptx":
            raise CompilationError(f"{self.target.triple} has no object files; emit ptx")
        made = object_code(self.ir, *self._machine, level=self.level)
        missing = sorted(freestanding.undefined_symbols(made) - STACK.get(self.target.format, frozenset()))
        if missing:
            raise CompilationError(
                f"code for {self.target.triple} would call {', '.join(missing)}: name a processor that has the "
                "instructions (cpu), or turn them on (features)"
            )
        return made

    @property
    def _machine(self) -> tuple[str, str, str]:
        """What LLVM has to know of the target."""
        return self.target.triple, self.target.cpu, self.target.features


@dataclass(frozen=True, eq=False)
class Job(Code):
    """A program that is compiled for a target under a name.

    Parameters
    ----------
    program : Program
    name : str
        Name of the function of one row, and of the files.
    target : Target
    level : str or int
        Optimization pipeline of LLVM.
    description : str
        The formula as a reader knows it.
    """

    program: Program
    name: str
    target: Target
    level: str | int = "O2"
    description: str = ""

    @cached_property
    def _lowered(self) -> tuple[str, bool]:
        room = SMALL_COPY_BYTES if self.target.format == "coff" else COPY_BYTES
        return entries_ir(self.program, self.name, self.target.word, self.target.abi, room)

    @cached_property
    def interface(self) -> Interface:
        """Names and types of the entry points."""
        interface_of(self.program, self.name, False)  # refuses, before lowering, programs that cannot be compiled
        return interface_of(self.program, self.name, self._lowered[1])

    @cached_property
    def ir(self) -> str:
        """LLVM IR before optimization."""
        _ = self.interface
        return freestanding.prepare(self._lowered[0], *self._machine)
