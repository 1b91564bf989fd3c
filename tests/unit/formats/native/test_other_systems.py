"""Code for Windows and macOS, as far as this machine can tell: Windows' calling convention in an ELF object, whose
functions C calls by `ms_abi`, and the symbols of COFF and Mach-O objects."""

from __future__ import annotations

import ctypes
import platform
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from unit.formats.native.cases import equal

import shine
from shine.aot import build

FORMULA = "sqrt(a*a + b*b) + exp(a)*sin(b) - log(abs(a) + c)*tan(c)**3"

WRAPPED = """
#include <stddef.h>
#define WINDOWS __attribute__((ms_abi))
WINDOWS double f(double, double, double);
WINDOWS void f_batch(const double *, size_t, ptrdiff_t, ptrdiff_t, double *);

double one(double a, double b, double c) { return f(a, b, c); }
/* The caller's numbers stay in registers that Windows' functions must give back. */
double kept(double a, double b, double c)
{
    double p = a * 3, q = b * 5, r = c * 7, s = a + b, t = b + c;
    double found = f(a, b, c);
    return found - found + p + q + r + s + t;
}
void batch(const double *x, size_t rows, double *y) { f_batch(x, rows, 3, 1, y); }
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the convention is that of x86-64")
def test_functions_keep_to_windows_calling_convention(tmp_path: Path) -> None:
    build(FORMULA, tmp_path, "f", "object", target="x86_64-pc-windows-msvc-elf")
    (tmp_path / "wrapped.c").write_text(WRAPPED, encoding="utf-8")
    command = ["gcc", "-O2", "-shared", "-fPIC", "-o", "wrapped.so", "wrapped.c", "f.obj"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    library = ctypes.CDLL(str(tmp_path / "wrapped.so"))
    rows = np.random.default_rng(0).normal(size=(1001, 3))
    wanted = shine.jit(FORMULA)(*rows.T)
    library.one.restype = library.kept.restype = ctypes.c_double
    for name in ("one", "kept"):
        getattr(library, name).argtypes = [ctypes.c_double] * 3
    found = np.empty(len(rows))
    library.batch(
        rows.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(rows)), found.ctypes.data_as(ctypes.c_void_p)
    )
    assert equal(found, wanted)
    assert equal(np.array([library.one(*row) for row in rows]), wanted)
    assert library.kept(1.0, 2.0, 4.0) == 1 * 3 + 2 * 5 + 4 * 7 + 3 + 6


def symbols_of_coff(content: bytes) -> set[str]:
    """Names of symbols, by Microsoft's description of the format."""
    machine, _, _, start, count = struct.unpack_from("<HHIII", content)
    assert machine == 0x8664
    strings, names, place = start + 18 * count, set(), 0
    while place < count:
        entry = content[start + 18 * place : start + 18 * place + 18]
        zeros, offset = struct.unpack_from("<II", entry)
        raw = entry[:8] if zeros else content[strings + offset : content.index(b"\0", strings + offset)]
        names.add(raw.rstrip(b"\0").decode())
        place += 1 + entry[17]
    return names


def symbols_of_macho(content: bytes) -> set[str]:
    """Names of symbols, by Apple's description of the format."""
    magic, processor, _, _, commands = struct.unpack_from("<IIIII", content)
    assert (magic, processor) == (0xFEEDFACF, 0x0100000C)
    at = 32
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", content, at)
        if kind == 2:
            start, count, strings, _ = struct.unpack_from("<IIII", content, at + 8)
            names = [strings + struct.unpack_from("<I", content, start + 16 * each)[0] for each in range(count)]
            return {content[name : content.index(b"\0", name)].decode() for name in names}
        at += size
    return set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("triple", "name", "read", "prefix"),
    [
        ("x86_64-pc-windows-msvc", "f.obj", symbols_of_coff, ""),
        ("x86_64-pc-windows-gnu", "f.obj", symbols_of_coff, ""),
        ("arm64-apple-darwin", "f.o", symbols_of_macho, "_"),
    ],
)
def test_objects_of_other_systems_name_the_functions_of_the_header(triple, name, read, prefix, tmp_path: Path) -> None:
    build(FORMULA, tmp_path, "f", "object", target=triple)
    names = read((tmp_path / name).read_bytes())
    assert {f"{prefix}f", f"{prefix}f_batch"} <= names
