"""Ahead of time: formulas, graphs, tensor programs and trees as object files, headers, shared libraries and modules.

The files need neither Shine nor a library of mathematical functions, and are made for any processor. See docs/aot.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from shine.formats.native.code import Code, Options, Order, written
from shine.formats.native.formula import FormulaCode, formula_code
from shine.formats.native.targets import Target, target_of

__all__ = ["Code", "Compilable", "FormulaCode", "Order", "Target", "build", "code_of", "compile", "target_of"]


@runtime_checkable
class Compilable(Protocol):
    """Anything that makes native code of itself: a tensor program, compiled trees."""

    def code(self, name: str | None = None, **options: Any) -> Code:
        """Code for a target, under a name or one of its own."""


def compile(
    source: Any, name: str | None = None, emit: str | Iterable[str] = ("object", "header"), **options: Any
) -> dict[str, bytes]:
    """Compile a formula, a graph, a tensor program or an ensemble of trees ahead of time.

    Parameters
    ----------
    source : str, function, ast node, Tree, Program, model, TensorFunction or CompiledTrees
        A formula in the restricted language; a graph (see `shine.load_graph`); anything with a `program` or a `tree`; a
        tensor program (see `shine.tensor.load`); what `shine.trees.compile` returns.
    name : str, optional
        Name of the function; names of files begin with it. By default ``f``; of a tensor program, its own name.
    emit : str or iterable of str
        Kinds of files: object, header, ir, asm, shared, cmake, pkgconfig. All but trees also have python, wasm and ptx;
        formulas have bench and wasm-scalar, too, and tensor programs class.
    dtype : {"float64", "float32", "int64", "int32"}
        Type of a formula's arguments and result; float64 by default. Graphs have their own types.
    params : sequence of str, optional
        Order of a formula's arguments; by default that of `shine.parse`.
    cpp_class : str, optional
        A class in C++ around a tensor program, such as ``foo::bar::MatMulComp``.
    method : str, optional
        What the function of trees computes (see `shine.trees.build`).
    target : str, optional
        A triple such as ``"aarch64-linux-gnu"``; this host's by default.
    cpu, features : str, optional
        LLVM's name of a processor, such as ``"x86-64-v3"``, or ``"native"``; by default the least of the triple's
        platform. Comma-separated features, ``+name`` or ``-name``, come on top of the processor's own.
    opt_level : str or int
        O0, O1, O2, O3 or a number; O2 by default.

    Returns
    -------
    dict of str to bytes
        Contents of the files by their names.

    Raises
    ------
    ValueError
        If there is no such kind, type or level, or a function in C cannot have this name.
    TypeError
        If the source has no such option.
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
    return code_of(source, name, **options).files(emit)


def build(
    source: Any,
    folder: str | Path,
    name: str | None = None,
    emit: str | Iterable[str] = ("object", "header"),
    **options: Any,
) -> list[Path]:
    """Compile ahead of time into files of a folder.

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
    return written(code_of(source, name, **options).files(emit), folder)


def code_of(source: Any, name: str | None = None, **options: Any) -> Code:
    """The checked code of a source; the arguments and errors are those of `compile`."""
    make = source.code if isinstance(source, Compilable) else partial(formula_code, source)
    known = [*list(signature(make).parameters)[1:-1], *Options.__annotations__]
    for option in options:
        if option not in known:
            raise TypeError(f"there is no option {option!r} for this source; there are {', '.join(known)}")
    return make(name, **options)


def __dir__() -> list[str]:
    return sorted(__all__)
