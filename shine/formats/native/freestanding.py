"""Code that needs no library: the module itself defines the operations that its target lacks.

LLVM turns an operation that a processor lacks into a call: `floor` of libm on the first x86-64, `__divdi3` of the
compiler's runtime on 32-bit ARM, `memcpy` for a loop that copies. To find out, Shine compiles each operation of the
module alone for the target. If that object file has an undefined symbol, a function of
`shine.compiler.codegen.vecmath.substitutes` with the same bits takes the place of the operation.
"""

from __future__ import annotations

import re
from functools import cache

from llvmlite import ir

from shine.base.errors import CompilationError
from shine.compiler.codegen.vecmath.substitutes import (
    DIVISIONS,
    INTRINSICS,
    TO_INTEGER,
    TO_REAL,
    define_substitute,
    parsed_type,
)
from shine.compiler.llvm import object_code
from shine.compiler.llvm.engine import with_fma_defined
from shine.formats.native.symbols import undefined

PROVIDED = frozenset(
    {".TOC.", "_GLOBAL_OFFSET_TABLE_", "_gp_disp", "_fltused", "__stack_pointer", "__memory_base", "__linear_memory"}
)
"""Symbols that a linker defines itself: places in the file that it writes, not code."""

_TYPE = r"(?:<\d+ x \w+>|\w+)"
_INTRINSIC = re.compile(
    rf'declare (?P<type>{_TYPE}) @"?llvm\.(?P<operation>{"|".join(INTRINSICS)})\.(?P<suffix>\w+)"?\(.*\)(?: #\d+)?'
)
_FMA = re.compile(rf'^declare ({_TYPE}) @"?llvm\.fma\.(\w+)', re.MULTILINE)
_OPERATION = re.compile(
    rf"= (?:(?P<division>{'|'.join(DIVISIONS)}) (?:exact )?(?P<type>{_TYPE}) (?P<operands>.+)"
    rf"|(?P<conversion>{'|'.join((*TO_REAL, *TO_INTEGER))}) "
    rf"(?P<source>{_TYPE}) (?P<operand>.+) to (?P<target>{_TYPE}))$",
    re.MULTILINE,
)
_DEFINITION = re.compile(r"^define .*\)[^()\n{]*?(?=\s*\{?$)", re.MULTILINE)


def prepare(text: str, triple: str | None = None, cpu: str | None = None, features: str = "") -> str:
    """IR with the same results, from which a target gets code without library calls.

    Parameters
    ----------
    text : str
        Textual IR as llvmlite's builder writes it.
    triple, cpu, features
        The target, as for `shine.compiler.llvm.object_code`.

    Returns
    -------
    str
        The module, with the operations that the target lacks as internal functions. Its functions also forbid LLVM to
        replace a loop by a call of the C library.
    """
    target = triple, cpu, features
    module = ir.Module()
    renamed: dict[str, str] = {}

    def intrinsic(match: re.Match[str]) -> str:
        kind = parsed_type(match["type"])
        name = f"llvm.{match['operation']}.{match['suffix']}"
        call = f'call {match["type"]} @"{name}"({match["type"]} %a)'
        if kind is None or not _is_missing(call, match["type"], match["type"], 1, *target):
            return match[0]
        substitute = define_substitute(module, match["operation"], kind, kind)
        assert substitute is not None
        renamed[f'@"{name}"'] = f'@"{substitute.name}"'
        return ""

    for kind, suffix in _FMA.findall(text):
        call = f'call {kind} @"llvm.fma.{suffix}"({kind} %a, {kind} %b, {kind} %c)'
        if _is_missing(call, kind, kind, 3, *target):
            text = with_fma_defined(text)
            break
    text = _OPERATION.sub(lambda match: _substituted(module, match, *target), _INTRINSIC.sub(intrinsic, text))
    for name, substitute in renamed.items():
        text = text.replace(name, substitute)
    declared = set(re.findall(r"^declare .*", text, re.MULTILINE))
    functions = [str(function) for function in module.functions]
    text = "\n".join([text, *(function for function in functions if function.strip() not in declared)])
    return _DEFINITION.sub(_with_attributes, text)


def _with_attributes(match: re.Match[str]) -> str:
    """Mark all functions as not unwinding: 32-bit ARM would refer to the unwinder."""
    return f'{match[0]}{"" if "nounwind" in match[0] else " nounwind"} "no-builtins"'


def freestanding_object(
    text: str, triple: str | None = None, cpu: str | None = None, features: str = "", level: str | int = "O2"
) -> bytes:
    """Object code that refers to nothing outside itself.

    Raises
    ------
    CompilationError
        If it would: the target lacks an instruction for which Shine has no substitute.
    """
    return complete_object(prepare(text, triple, cpu, features), triple, cpu, features, level)


def complete_object(
    text: str,
    triple: str | None,
    cpu: str | None,
    features: str,
    level: str | int = "O2",
    provided: frozenset[str] = frozenset(),
) -> bytes:
    """Object code of IR that `prepare` made; `provided` are symbols that it may refer to."""
    code = object_code(text, triple, cpu, features, level)
    missing = sorted(undefined_symbols(code) - provided)
    if missing:
        raise CompilationError(
            f"code for {triple or 'this host'} would call {', '.join(missing)}; name a processor that has the "
            "instructions (cpu), or turn them on (features)"
        )
    return code


def undefined_symbols(code: bytes) -> set[str]:
    """Names of the symbols that an object file needs from elsewhere, except those that every linker defines.

    Raises
    ------
    CompilationError
        If its format is unknown (see `shine.formats.native.symbols`), or it is damaged.
    """
    return undefined(code) - PROVIDED


def _substituted(module: ir.Module, match: re.Match[str], *target: str | None) -> str:
    """An instruction, or a call of its substitute if the target lacks it."""
    if match["division"]:
        operation, arguments = match["division"], _operands(match["operands"])
        source = result = match["type"]
        # Division by a constant is a multiplication on most targets.
        divisor = "%b" if arguments[1].startswith("%") else arguments[1]
        instruction = f"{operation} {source} %a, {divisor}"
    else:
        operation, arguments = match["conversion"], [match["operand"]]
        source, result = match["source"], match["target"]
        instruction = f"{operation} {source} %a to {result}"
    kinds = parsed_type(source), parsed_type(result)
    if kinds[0] is None or kinds[1] is None or not _is_missing(instruction, source, result, len(arguments), *target):
        return match[0]
    function = define_substitute(module, operation, *kinds)
    if function is None:
        return match[0]
    return f'= call {result} @"{function.name}"({", ".join(f"{source} {argument}" for argument in arguments)})'


def _operands(text: str) -> list[str]:
    """Split two operands at the comma between them; a vector constant has commas of its own."""
    return [part.strip() for part in re.findall(r"(?:<[^>]*>|splat \([^)]*\)|[^,<])+", text)]


@cache
def _is_missing(
    instruction: str, source: str, result: str, operands: int, triple: str | None, cpu: str | None, features: str
) -> bool:
    """Whether code for a target calls a library for an instruction on `%a` (and `%b` and `%c`)."""
    if triple is not None and triple.startswith("nvptx"):  # PTX has all instructions, and no object files
        return False
    parameters = ", ".join(f"{source} %{name}" for name in "abc"[:operands])
    declared = re.search(r'@"llvm[^"]*"', instruction)
    declaration = f"declare {result} {declared[0]}({', '.join([source] * operands)})\n" if declared else ""
    text = f"{declaration}define {result} @f({parameters}) {{\n%r = {instruction}\nret {result} %r\n}}\n"
    return bool(undefined_symbols(object_code(text, triple, cpu, features)))
