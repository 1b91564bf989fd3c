"""Native code of formulas and of programs of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from llvmlite import ir

from shine.base.lazy import cached_property
from shine.compiler.codegen.native.entries import COPY_BYTES, SMALL_COPY_BYTES, entries_ir
from shine.compiler.codegen.native.row_by_row import emit_kernel
from shine.compiler.codegen.numbers import ELEMENTS
from shine.formats.native.code import Code, Emitter, Files, Options, Order
from shine.formats.native.emission import OF_CODE, bench_files
from shine.formats.native.headers import formula_header, gpu_header
from shine.formats.native.interface import Column, Interface, interface_of
from shine.formats.native.python_module import formula_module
from shine.formats.native.targets import gpu_target
from shine.formats.native.wasm import formula_files
from shine.formats.write.sources import abridged, notes, with_preparation
from shine.lang.parse import parse
from shine.lang.program.program import Program
from shine.lang.program.trees import tree_program

LARGE = 6_000
"""Functions with more nodes are compiled without optimization: the time of LLVM's passes is not linear in the size."""


@dataclass(frozen=True, eq=False)
class FormulaCode(Code):
    """A program that is compiled for a target under a name.

    Parameters
    ----------
    order, description
        As of `Code`; the name is that of the function of one row.
    program : Program
    """

    emitters: ClassVar[Mapping[str, Emitter]] = {
        **OF_CODE,
        "python": lambda code: formula_module(code, code.interface, code.program),
        "bench": lambda code: bench_files(code, code.interface),
        "wasm": lambda code: formula_files(code, code.program, batch=True),
        "wasm-scalar": lambda code: formula_files(code, code.program, batch=False),
        "ptx": lambda code: code.on(gpu_target(code.target)).ptx(),
    }

    program: Program

    @cached_property
    def _lowered(self) -> tuple[str, bool]:
        interface_of(self.program, self.name, False)  # refuses programs before they are lowered
        room = SMALL_COPY_BYTES if self.target.format == "coff" else COPY_BYTES
        return entries_ir(self.program, self.name, self.target.word, self.target.abi, room)

    @cached_property
    def interface(self) -> Interface:
        """Names and types of the entry points; a `CompilationError` if the program has constant arrays."""
        return interface_of(self.program, self.name, self._lowered[1])

    @property
    def text(self) -> str:
        """LLVM IR of the entry points; the errors are those of `interface`."""
        return self._lowered[0]

    def header(self) -> Files:
        """The header for C and C++."""
        return formula_header(self, self.interface)

    def ptx(self) -> Files:
        """The PTX of ``NAME`` and ``NAME_kernel`` (see `shine.compiler.codegen.native.row_by_row.emit_kernel`), and its
        header, if the target is a GPU."""
        interface_of(self.program, self.name, False)
        module = ir.Module(name=self.name)
        interface = interface_of(self.program, self.name, emit_kernel(module, self.program, self.name))
        code = self.order.assembly(self.order.prepared(str(module))).encode()
        return {f"{self.name}.ptx": code, **gpu_header(self, interface)}

    def described(self) -> dict[str, object]:
        """The description of `Code`, with arguments, results and whether there is a status."""
        interface = self.interface
        columns = {"parameters": _listed(interface.parameters), "outputs": _listed(interface.outputs)}
        return {**super().described(), **columns, "status": interface.can_fail}


def _listed(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"name": column.label, "dtype": column.dtype} for column in columns]


def formula_code(
    source: Any,
    name: str | None = None,
    *,
    dtype: str = "float64",
    params: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> FormulaCode:
    """Code of a formula or a graph; the arguments and errors are those of `shine.aot.compile`."""
    order = Order.of("f" if name is None else name, **options)
    if dtype not in ELEMENTS:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(ELEMENTS)}")
    program = source if isinstance(source, Program) else getattr(source, "program", None)
    if isinstance(program, Program):
        return FormulaCode(_quick(order, program.size), f"the graph {program.name}", program)
    tree = parse(getattr(source, "named", source), params)
    headings = with_preparation(getattr(source, "headings", None), getattr(source, "preparation", None))
    noted = notes({name: name for name in tree.parameters}, headings)
    description = "\n".join([abridged(str(tree)), *(f"{name} is {note}." for name, note in noted.items())])
    return FormulaCode(_quick(order, tree.size), description, tree_program(tree, dtype))


def _quick(order: Order, size: int) -> Order:
    return order if size <= LARGE else replace(order, level=0)
