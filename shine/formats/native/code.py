"""Native code of anything, in every form: an order says what it is made for, a subclass of `Code` says from what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self, TypedDict

from shine.base.errors import CompilationError
from shine.base.lazy import cached_property
from shine.compiler.codegen.native.entries import COPY_BYTES, SMALL_COPY_BYTES, entries_ir
from shine.compiler.llvm import assembly, optimized_ir
from shine.compiler.llvm.target import pipeline_level
from shine.formats.native import freestanding
from shine.formats.native.interface import Interface, check_name, interface_of
from shine.formats.native.targets import Target, target_of
from shine.lang.program.program import Program

STACK: dict[str, frozenset[str]] = {"coff": frozenset({"__chkstk", "___chkstk_ms"})}
"""Symbols that a system's compilers provide to grow the stack by more than a page, used for very many columns."""

OBJECT_SUFFIX: dict[str, str] = {"coff": ".obj"}
"""Ending of object files if it is not ``.o``."""

Files = dict[str, bytes]
"""Contents of files by their names."""


class Options(TypedDict, total=False):
    """Options of an order; `shine.aot.compile` documents them."""

    target: str | None
    cpu: str | None
    features: str
    opt_level: str | int


@dataclass(frozen=True)
class Order:
    """Form and target of native code; `Order.of` checks it.

    Parameters
    ----------
    name : str
        Name of the function in C, and of the files.
    target : Target
    level : str or int
        Optimization pipeline of LLVM.
    """

    name: str
    target: Target
    level: str | int = "O2"

    @classmethod
    def of(
        cls,
        name: str,
        *,
        target: str | None = None,
        cpu: str | None = None,
        features: str = "",
        opt_level: str | int = "O2",
    ) -> Self:
        """A checked order; the arguments are those of `shine.aot.compile`.

        Raises
        ------
        ValueError
            If a function in C cannot have this name, or there is no such level.
        CompilationError
            If LLVM has no such target, processor or feature.
        """
        check_name(name)
        level = pipeline_level(opt_level)
        return cls(name, target_of(target, cpu, features), level)

    @property
    def machine(self) -> tuple[str, str, str]:
        """The target in LLVM's terms."""
        return self.target.triple, self.target.cpu, self.target.features

    def on(self, target: Target) -> Order:
        """The same for another target."""
        return replace(self, target=target)


@dataclass(frozen=True, eq=False)
class Code(ABC):
    """A named function for a target; a subclass emits it.

    Parameters
    ----------
    order : Order
    description : str
        The source as a reader knows it.
    """

    order: Order
    description: str

    @property
    @abstractmethod
    def text(self) -> str:
        """LLVM IR, which may have operations that the target lacks."""

    @property
    def name(self) -> str:
        """Name of the function, and of the files."""
        return self.order.name

    @property
    def target(self) -> Target:
        """The machine that the code is for."""
        return self.order.target

    @property
    def object_name(self) -> str:
        """Name of the object file."""
        return f"{self.name}{OBJECT_SUFFIX.get(self.target.format, '.o')}"

    @cached_property
    def ir(self) -> str:
        """LLVM IR before optimization; on the target it needs nothing from outside."""
        return freestanding.prepare(self.text, *self.order.machine)

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR after optimization for the target."""
        return optimized_ir(self.ir, *self.order.machine, level=self.order.level)

    @cached_property
    def assembly(self) -> str:
        """Assembly for the target."""
        return assembly(self.ir, *self.order.machine, level=self.order.level)

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
        provided = STACK.get(self.target.format, frozenset())
        return freestanding.complete_object(self.ir, *self.order.machine, self.order.level, provided)


@dataclass(frozen=True, eq=False)
class TextCode(Code):
    """Code whose IR is known.

    Parameters
    ----------
    order, description
        As of `Code`.
    lowered : str
    """

    lowered: str

    @property
    def text(self) -> str:
        """The IR as text."""
        return self.lowered


@dataclass(frozen=True, eq=False)
class Job(Code):
    """A program that is compiled for a target under a name.

    Parameters
    ----------
    order, description
        As of `Code`; the name is that of the function of one row.
    program : Program
    """

    program: Program

    @cached_property
    def _lowered(self) -> tuple[str, bool]:
        room = SMALL_COPY_BYTES if self.target.format == "coff" else COPY_BYTES
        return entries_ir(self.program, self.name, self.target.word, self.target.abi, room)

    @cached_property
    def interface(self) -> Interface:
        """Names and types of the entry points."""
        self.check()
        return interface_of(self.program, self.name, self._lowered[1])

    @property
    def text(self) -> str:
        """LLVM IR of the entry points."""
        self.check()
        return self._lowered[0]

    def check(self) -> None:
        """Refuse, before lowering, programs that cannot be compiled.

        Raises
        ------
        CompilationError
            If the program has constant arrays.
        """
        interface_of(self.program, self.name, False)
