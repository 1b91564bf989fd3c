"""Code of a tensor program for a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shine.base.lazy import cached_property
from shine.formats.native.code import Code
from shine.formats.native.targets import Target
from shine.tensor.native.interface import Interface


@dataclass(frozen=True)
class Lowered:
    """A tensor program as LLVM IR.

    Parameters
    ----------
    text : str
        It defines the function of the interface.
    interface : Interface
    report : tuple of str
        Descriptions of the groups of loops.
    steps : tuple of int
        Blocks of the steps that threads share; none if one thread runs the function.
    scratch_bytes : int
        Memory of its own that each of these threads needs.
    """

    text: str
    interface: Interface
    report: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    scratch_bytes: int = 0


Lowering = Callable[[Target], Lowered]
"""Makes LLVM IR for a target."""


@dataclass(frozen=True, eq=False)
class TensorCode(Code):
    """A tensor program that is compiled for a target.

    Parameters
    ----------
    order, description
        As of `Code`.
    lower : callable
        The program's `Lowering`.
    cpp_class : str
        Name of its class in C++, with namespaces; empty if it has none.
    """

    lower: Lowering
    cpp_class: str = ""

    @cached_property
    def _lowered(self) -> Lowered:
        return self.lower(self.target)

    @property
    def interface(self) -> Interface:
        """Names and types of the function."""
        return self._lowered.interface

    @property
    def steps(self) -> tuple[int, ...]:
        """Blocks of the steps that threads share; none if one thread runs the function."""
        return self._lowered.steps

    @property
    def scratch_bytes(self) -> int:
        """Memory of its own that each of the threads needs."""
        return self._lowered.scratch_bytes

    @property
    def report(self) -> str:
        """A line for each group of loops: tiles, vectors, fused values; then its memory."""
        return "\n".join([*self._lowered.report, f"arena: {self.interface.arena_bytes} bytes"])

    @property
    def text(self) -> str:
        """LLVM IR of the function."""
        return self._lowered.text

    def on(self, target: Target) -> TensorCode:
        """The code for another target."""
        return self if target == self.target else replace(self, order=self.order.on(target))
