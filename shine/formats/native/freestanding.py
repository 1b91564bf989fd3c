"""Code that needs no library: the module itself defines the operations that its target lacks.

LLVM turns an operation that a processor lacks into a call: `floor` of libm on the first x86-64, `__divdi3` of the
compiler's runtime on 32-bit ARM, `memcpy` for a loop that copies. To find out, Shine compiles each operation of the
module alone for the target. If that object file has an undefined symbol, a function of
`shine.compiler.codegen.vecmath.substitutes` with the same bits takes the place of the operation.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache

from llvmlite import ir

from shine.base.errors import CompilationError, placed
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


def undefined(code: bytes) -> set[str]:
    """Names of the symbols that an object file needs from elsewhere.

    Parameters
    ----------
    code : bytes
        A relocatable file: ELF of either width and byte order, COFF, 64-bit Mach-O, or WebAssembly, also a linked
        WebAssembly module.

    Raises
    ------
    CompilationError
        If it has none of these formats, or is damaged.
    """
    reader = next((reader for magic, reader in _READERS.items() if code.startswith(magic)), None)
    if reader is None:
        raise CompilationError("the object file is neither ELF, COFF, 64-bit Mach-O nor WebAssembly")
    with placed("the object file is damaged", struct.error, IndexError, ValueError, kind=CompilationError):
        return reader(code)


def _elf(code: bytes) -> set[str]:
    """From the section headers to the symbol tables (System V gABI, chapters 4 and 5)."""
    wide, order = code[4] == 2, "<" if code[5] == 1 else ">"
    (start,) = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", code, 40 if wide else 32)
    size, count = struct.unpack_from(f"{order}HH", code, 58 if wide else 46)
    # sh_type, sh_offset, sh_size, sh_link.
    header = f"{order}4xI16xQQI" if wide else f"{order}4xI8xIII"
    sections = [struct.unpack_from(header, code, start + i * size) for i in range(count)]
    # st_name, st_shndx.
    symbol = f"{order}I2xH16x" if wide else f"{order}I10xH"
    names = set()
    for kind, offset, length, link in sections:
        if kind == 2:  # SHT_SYMTAB
            strings = sections[link][1]
            for name, section in struct.iter_unpack(symbol, code[offset : offset + length]):
                if section == 0 and name:
                    names.add(_text(code, strings + name))
    return names


def _coff(code: bytes) -> set[str]:
    """Symbols that are external, in no section and no common block (Microsoft's PE format, COFF symbol table)."""
    start, count = struct.unpack_from("<8xII", code)
    strings = start + 18 * count
    names, i = set(), 0
    while i < count:
        at = start + 18 * i
        value, section, storage, extra = struct.unpack_from("<8xIh2xBB", code, at)
        if storage == 2 and section == 0 and value == 0:
            zeros, offset = struct.unpack_from("<II", code, at)
            names.add(code[at : at + 8].rstrip(b"\0").decode() if zeros else _text(code, strings + offset))
        i += 1 + extra
    return names


def _macho(code: bytes) -> set[str]:
    """Undefined external entries of LC_SYMTAB, without the underscore of every C name (Apple's mach-o/nlist.h)."""
    (count,) = struct.unpack_from("<16xI", code)
    names, at = set(), 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:
            table, entries, strings = struct.unpack_from("<8xIII", code, at)
            for name, kind in struct.iter_unpack("<IB11x", code[table : table + 16 * entries]):
                if kind & 0b1111 == 1:
                    names.add(_text(code, strings + name).removeprefix("_"))
        at += size
    return names


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(0, start)].decode()


def _wasm(code: bytes) -> set[str]:
    """Names of the imports (WebAssembly core specification, 5.5.5); an object's imports are its undefined symbols."""
    position = 8
    names = set()
    while position < len(code):
        identifier = code[position]
        length, position = _unsigned(code, position + 1)
        if identifier == 2:
            count, at = _unsigned(code, position)
            for _ in range(count):
                name, at = _import(code, at)
                names.add(name)
        position += length
    return names


def _import(code: bytes, at: int) -> tuple[str, int]:
    """The name of one import, and where the next one begins."""
    for _ in range(2):  # its module, then its name
        length, at = _unsigned(code, at)
        name, at = code[at : at + length].decode(), at + length
    kind, at = code[at], at + 1
    if kind == 0:  # a function: its type
        return name, _unsigned(code, at)[1]
    if kind == 3:  # a global: its type, and whether it changes
        return name, at + 2
    if kind == 4:  # a tag: its attribute and its type
        return name, _unsigned(code, at + 1)[1]
    at += kind == 1  # a table has a type before its limits, a memory none
    flags, at = code[at], at + 1
    for _ in range(1 + (flags & 1)):
        at = _unsigned(code, at)[1]
    return name, at


def _unsigned(code: bytes, at: int) -> tuple[int, int]:
    """A number in LEB128, and where it ends."""
    value = shift = 0
    while True:
        byte = code[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


_READERS: dict[bytes, Callable[[bytes], set[str]]] = {
    b"\x7fELF": _elf,
    b"\0asm": _wasm,
    b"\xcf\xfa\xed\xfe": _macho,
    # The machines of COFF: x86-64, ARM64, x86, ARM.
    b"\x64\x86": _coff,
    b"\x64\xaa": _coff,
    b"\x4c\x01": _coff,
    b"\xc4\x01": _coff,
}
"""The reader for each beginning of a file."""


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


def complete_object(
    text: str,
    triple: str | None,
    cpu: str | None,
    features: str,
    level: str | int = "O2",
    provided: frozenset[str] = frozenset(),
) -> bytes:
    """Object code of IR that `prepare` made; `provided` are symbols that it may refer to.

    A `CompilationError` if it refers to others: the target lacks an instruction for which Shine has no substitute.
    """
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

    A `CompilationError` if its format is unknown (see `shine.formats.native.freestanding`), or it is damaged.
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
