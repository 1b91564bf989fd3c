"""Ahead of time: formulas and graphs as object files, headers, shared libraries and modules, for any processor.

The files need neither Shine nor a library of mathematical functions. See docs/aot.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from shine.compiler.codegen.numbers import ELEMENTS
from shine.formats.native.code import Job, Options, Order
from shine.formats.native.emission import EMITTERS, emitted, written
from shine.formats.native.targets import Target, target_of
from shine.formats.write.sources import notes, with_preparation
from shine.lang.parse import parse
from shine.lang.program.program import Program
from shine.lang.program.trees import tree_program

if TYPE_CHECKING:
    from shine.lang.parse import Source

__all__ = ["EMITTERS", "Job", "Order", "Target", "build", "compile", "emitted", "job", "target_of"]

LARGE = 6_000
"""Functions with more nodes are compiled without optimization: the time of LLVM's passes is not linear in the size."""

_SHOWN = 1000
"""Longest formula, in characters, that is quoted in comments."""


def compile(
    source: Source | Program | Any,
    name: str = "f",
    emit: str | Iterable[str] = ("object", "header"),
    *,
    dtype: str = "float64",
    params: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> dict[str, bytes]:
    """Compile a formula or a graph ahead of time.

    Parameters
    ----------
    source : str, function, ast node, Tree, Program, or object with a `program` or a `tree`
        A formula in the restricted language, a graph (see `shine.load_graph`), or a model.
    name : str
        Name of the function; names of files begin with it.
    emit : str or iterable of str
        Kinds of files, some of `EMITTERS`: object, header, ir, asm, shared, python, cmake, pkgconfig, bench, ...
    dtype : {"float64", "float32", "int64", "int32"}
        Type of a formula's arguments and result. A graph has its own types.
    params : sequence of str, optional
        Order of a formula's arguments; by default that of `shine.parse`.
    **options
        `target` is a triple such as ``"aarch64-linux-gnu"``, this host's by default. `cpu` is LLVM's name of a
        processor, such as ``"x86-64-v3"``, or ``"native"``; by default the least of the triple's platform. `features`
        are comma-separated, ``+name`` or ``-name``, on top of the processor's own. `opt_level` is O0, O1, O2, O3 or a
        number; O2 by default.

    Returns
    -------
    dict of str to bytes
        Contents of the files by their names.

    Raises
    ------
    ValueError
        If there is no such kind, type or level, or a function in C cannot have this name.
    UnsupportedSyntaxError
        If the formula is not part of the language.
    LoweringError
        If it has no meaning in the type.
    CompilationError
        If LLVM has no such target, processor or feature, or a graph has constant arrays.
    ExportError
        If a linker that is needed is missing, or fails.

    Examples
    --------
    >>> files = compile("sqrt(a*a + b*b)", "hypotenuse", target="aarch64-linux-gnu")
    >>> print(*files)
    hypotenuse.o hypotenuse.h
    """
    return emitted(job(source, name, dtype=dtype, params=params, **options), emit)


def build(
    source: Source | Program | Any,
    folder: str | Path,
    name: str = "f",
    emit: str | Iterable[str] = ("object", "header"),
    **options: Any,
) -> list[Path]:
    """Compile a formula or a graph ahead of time into files of a folder.

    Parameters
    ----------
    source, name, emit, **options
        As in `compile`.
    folder : path-like
        Made if missing. Nothing is written unless all files can be made.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    OSError
        If a file cannot be written. Other errors are those of `compile`.

    Examples
    --------
    >>> print(*build("a*b", folder, "area", "header"))    # doctest: +SKIP
    area.h
    """
    return written(emitted(job(source, name, **options), emit), folder)


def job(
    source: Source | Program | Any,
    name: str = "f",
    *,
    dtype: str = "float64",
    params: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Job:
    """A checked job for `emitted`; the arguments and errors are those of `compile`."""
    order = Order.of(name, **options)
    if dtype not in ELEMENTS:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(ELEMENTS)}")
    program = source if isinstance(source, Program) else getattr(source, "program", None)
    if isinstance(program, Program):
        return Job(_quick(order, program.size), f"the graph {program.name}", program)
    formula: Any = source
    tree = parse(getattr(formula, "named", formula), params)
    text = str(tree)
    description = text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
    headings = with_preparation(getattr(formula, "headings", None), getattr(formula, "preparation", None))
    noted = notes({name: name for name in tree.parameters}, headings)
    description = "\n".join([description, *(f"{name} is {note}." for name, note in noted.items())])
    return Job(_quick(order, tree.size), description, tree_program(tree, dtype))


def _quick(order: Order, size: int) -> Order:
    return order if size <= LARGE else replace(order, level=0)


def __dir__() -> list[str]:
    return sorted(__all__)
