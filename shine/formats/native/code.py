"""Native artifacts: an order says for what target, a subclass of `Code` of what source and in which kinds of files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

from shine.base.errors import CompilationError
from shine.base.files import write_bytes
from shine.base.lazy import cached_property
from shine.compiler.llvm import assembly, optimized_ir
from shine.compiler.llvm.target import pipeline_level
from shine.formats.native import freestanding
from shine.formats.native.interface import check_name
from shine.formats.native.targets import Target, target_of
from shine.lang.forms.names import value_text

STACK: dict[str, frozenset[str]] = {"coff": frozenset({"__chkstk", "___chkstk_ms"})}
"""Symbols that a system's compilers provide to grow the stack by more than a page, used for very many columns."""

OBJECT_SUFFIX: dict[str, str] = {"coff": ".obj"}
"""Ending of object files if it is not ``.o``."""

Files = dict[str, bytes]
"""Contents of files by their names."""

Emitter = Callable[[Any], Files]
"""Makes the files of one kind from the code that has this kind."""

NEEDS: dict[str, tuple[str, ...]] = {
    "cmake": ("object", "header"),
    "pkgconfig": ("object", "header"),
    "bench": ("object", "header"),
    "python": ("shared",),
}
"""Kinds that are useless alone, and the kinds that are made along with them."""


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
        return self if target == self.target else replace(self, target=target)

    def prepared(self, text: str) -> str:
        """LLVM IR that needs nothing from outside on the target."""
        return freestanding.prepare(text, *self.machine)

    def assembly(self, ir: str) -> str:
        """Assembly of prepared IR."""
        return assembly(ir, *self.machine, level=self.level)

    def object_code(self, ir: str) -> bytes:
        """Object file of prepared IR, which needs no other object file.

        A `CompilationError` if it would need another, because the target lacks instructions; or the target has no
        object files.
        """
        if self.target.format == "ptx":
            raise CompilationError(f"{self.target.triple} has no object files; emit ptx")
        provided = STACK.get(self.target.format, frozenset())
        return freestanding.complete_object(ir, *self.machine, self.level, provided)


@dataclass(frozen=True, eq=False)
class Code(ABC):
    """A named function for a target; a subclass has its source.

    Parameters
    ----------
    order : Order
    description : str
        The source as a reader knows it.

    Attributes
    ----------
    emitters : mapping of str to callable
        The kinds of files that the source can have, and the functions that make them.
    """

    emitters: ClassVar[Mapping[str, Emitter]] = {}

    order: Order
    description: str

    @property
    @abstractmethod
    def text(self) -> str:
        """LLVM IR, which may have operations that the target lacks."""

    @abstractmethod
    def header(self) -> Files:
        """The header for C and C++."""

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
        return self.order.prepared(self.text)

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR after optimization for the target."""
        return optimized_ir(self.ir, *self.order.machine, level=self.order.level)

    @cached_property
    def assembly(self) -> str:
        """Assembly for the target."""
        return self.order.assembly(self.ir)

    @cached_property
    def object_code(self) -> bytes:
        """Object file for the target; see `Order.object_code`."""
        return self.order.object_code(self.ir)

    def on(self, target: Target) -> Self:
        """The same for another target."""
        return self if target == self.target else replace(self, order=self.order.on(target))

    def described(self) -> dict[str, object]:
        """The source, the name, the target and the interface, for JSON."""
        target = self.target
        return {
            "source": self.description,
            "name": self.name,
            "target": target.triple,
            "cpu": target.cpu or None,
            "features": target.features or None,
        }

    def files(self, kinds: str | Iterable[str]) -> Files:
        """The files of some kinds, and of the kinds that these need.

        Parameters
        ----------
        kinds : str or iterable of str
            Some of `emitters`.

        Raises
        ------
        ValueError
            If there is no such kind, or none is named.
        CompilationError, ExportError
            If the target cannot have such a file, or nothing installed can make it.
        """
        chosen: list[str] = []
        for kind in kinds if isinstance(kinds, Iterable) and not isinstance(kinds, str) else [kinds]:
            if not isinstance(kind, str) or kind not in self.emitters:
                raise ValueError(f"cannot emit {value_text(kind)}; use some of {', '.join(self.emitters)}")
            chosen += [kind, *NEEDS.get(kind, ())]
        if not chosen:
            raise ValueError(f"there is nothing to emit; name some of {', '.join(self.emitters)}")
        files: Files = {}
        for kind in dict.fromkeys(chosen):
            files.update(self.emitters[kind](self))
        return files


def written(files: Files, folder: str | Path) -> list[Path]:
    """Paths of files that are written to a folder, which is made if it is missing.

    A `TypeError` if the folder is no path, an `OSError` if a file cannot be written.
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder={value_text(folder)} is no path; give the path of a folder")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        write_bytes(place / file, content)
    return [place / file for file in files]
