"""The symbols that an object file refers to without defining them: a small reader of the four usual formats."""

from __future__ import annotations

import struct
from collections.abc import Callable

from shine.base.errors import CompilationError


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
    try:
        return reader(code)
    except (struct.error, IndexError, ValueError) as error:
        raise CompilationError(f"the object file is damaged: {error}") from None


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
