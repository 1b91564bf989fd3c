"""LLVM IR -> primitives: functions of C, Rust and other languages that compile to LLVM.

A function is *lifted*: its LLVM IR becomes a formula of the language, which defines a composite primitive. So it works
in all tiers, derivatives and exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path

from shine.base.errors import GraphImportError
from shine.compiler.llvm.foreign import MAX_BYTES, ForeignFunction, foreign_function
from shine.formats.read.llvmir.lifting import Lifter
from shine.formats.read.llvmir.scope import EXACT_BITS, SUPPORTED_TYPES
from shine.formats.read.llvmir.text import blocks
from shine.lang.forms.grammar import NAMED_CONSTANTS
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive

__all__ = ["primitive_from_llvm"]

MAX_SIZE = 2000
"""Most nodes of a lifted function."""

MAX_ARGUMENTS = 26
"""Most arguments of a function."""


def primitive_from_llvm(source: str | Path | bytes, function: str, name: str | None = None) -> Primitive:
    """A function in LLVM IR or bitcode as a primitive.

    Parameters
    ----------
    source : str, Path or bytes
        A file or its content: IR as text (``clang -S -emit-llvm``, ``rustc --emit=llvm-ir``) or bitcode (``clang -c
        -emit-llvm``). Text of several lines is IR, other text a path.
    function : str
        Name of the function. Its arguments and its result must all be doubles, or all floats.
    name : str, optional
        Name in formulas; the function's own name by default.

    Returns
    -------
    Primitive
        A composite primitive whose definition computes the function, in the number type of the kernel. If the function
        only adds, subtracts, multiplies, divides, takes roots, rounds, compares and chooses, float64 results equal
        those of the compiled function bit for bit.

    Raises
    ------
    GraphImportError
        If the source cannot be read, or the function does something that a formula cannot: access memory, loop as often
        as an argument says, call unknown functions. The message names the instruction.
    ValueError
        If the name is not a name, or belongs to one of Shine's primitives.

    Examples
    --------
    >>> code = '''
    ... define double @leg(double %a, double %b) {
    ...   %x = fmul double %a, %a
    ...   %y = fmul double %b, %b
    ...   %z = fsub double %x, %y
    ...   ret double %z
    ... }'''
    >>> print(primitive_from_llvm(code, "leg").definition)
    a*a - b*b
    """
    chosen = function if name is None else name
    if not chosen.isidentifier() or iskeyword(chosen) or chosen.startswith("__"):
        raise ValueError(f"{chosen!r} is not a name that formulas can use; give the primitive another one: name=...")
    if chosen in STANDARD or chosen in NAMED_CONSTANTS:
        raise ValueError(f"{chosen!r} is one of Shine's own names; give the primitive another one: name=...")
    foreign = foreign_function(_content(source), function)
    try:
        return lifted(foreign, chosen)
    except GraphImportError as error:
        raise GraphImportError(f"LLVM function {function!r}: {error}") from None


def _content(source: str | Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    if not isinstance(source, str | Path):
        raise TypeError(f"source is a path, text or bytes, not {type(source).__name__}")
    if isinstance(source, str) and "\n" in source:
        return source.encode("utf-8", "surrogateescape")
    try:
        with Path(source).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise GraphImportError(f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def lifted(foreign: ForeignFunction, name: str) -> Primitive:
    """The primitive of a function that LLVM has simplified; a `GraphImportError` if a formula cannot compute it."""
    kind = foreign.returns
    if kind not in EXACT_BITS:
        raise GraphImportError(f"its result has type {kind}; {SUPPORTED_TYPES}")
    for position, (other, label) in enumerate(foreign.arguments, start=1):
        if other != kind:
            shown = f" ({label})" if label else ""
            raise GraphImportError(f"argument {position}{shown} has type {other}, the result {kind}; {SUPPORTED_TYPES}")
    if not 1 <= len(foreign.arguments) <= MAX_ARGUMENTS:
        raise GraphImportError(
            f"it has {len(foreign.arguments)} arguments; a primitive has at least one and at most {MAX_ARGUMENTS}"
        )
    parameters = _parameters([label for _, label in foreign.arguments])
    lifter = Lifter(kind, foreign.tables)
    definition = lifter.lift(blocks(foreign.body), dict(zip(foreign.labels, parameters, strict=True)), name)
    if definition.size > MAX_SIZE:
        raise GraphImportError(f"it becomes a formula of {definition.size} nodes; at most {MAX_SIZE} make a primitive")
    return Primitive(name, len(parameters), definition)


def _parameters(labels: Sequence[str]) -> list[str]:
    """Names of the arguments: their own if formulas can use them all, else ``a, b, ...``."""
    usable = all(label.isidentifier() and not iskeyword(label) and not label.startswith("__") for label in labels)
    if usable and not {*labels} & {*STANDARD, *NAMED_CONSTANTS}:
        return list(labels)
    return [chr(ord("a") + position) for position in range(len(labels))]
