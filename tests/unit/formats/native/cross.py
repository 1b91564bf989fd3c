"""Programs in C for other processors: a formula's object file, a `_start` without a library, and an emulator."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from shine.aot import FormulaCode
from shine.formats.native.interface import Column

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Machine:
    """A target with an emulator that runs programs for it.

    Parameters
    ----------
    triple : str
    binutils : str
        Prefix of the names of its tools.
    emulator : str
    call : str
        A system call in inline assembly: number `n`, arguments `a`, `b`, `c`, result in `r`.
    numbers : tuple of int
        Numbers of the system calls exit, read and write.
    header : tuple of str
        Lines of ``readelf -h`` about objects for it.
    """

    triple: str
    binutils: str
    emulator: str
    call: str
    numbers: tuple[int, int, int]
    header: tuple[str, ...]

    def missing(self) -> str | None:
        """The first missing tool; None if all are installed."""
        missing = next((tool for tool in ("clang", self.emulator) if shutil.which(tool) is None), None)
        return missing or (None if self.linker() else f"{self.binutils}-ld")

    def linker(self) -> list[str] | None:
        """The command of a linker, of the binutils or of Zig; None if neither is installed."""
        path = shutil.which(f"{self.binutils}-ld")
        zig = [sys.executable, "-m", "ziglang", "ld.lld"] if importlib.util.find_spec("ziglang") else None
        return [path] if path else zig

    def syscall(self) -> str:
        """A function `call` in C for system calls."""
        return f"static long call(long n, long a, long b, long c) {{ {self.call} return r; }}"


MACHINES = {
    "aarch64": Machine(
        "aarch64-linux-gnu",
        "aarch64-linux-gnu",
        "qemu-aarch64",
        'register long x8 __asm__("x8") = n; register long r __asm__("x0") = a; register long x1 __asm__("x1") = b;'
        'register long x2 __asm__("x2") = c;'
        '__asm__ volatile("svc 0" : "+r"(r) : "r"(x8), "r"(x1), "r"(x2) : "memory");',
        (93, 63, 64),
        ("AArch64",),
    ),
    "arm": Machine(
        "arm-linux-gnueabihf",
        "arm-linux-gnueabihf",
        "qemu-arm",
        'register long r7 __asm__("r7") = n; register long r __asm__("r0") = a; register long r1 __asm__("r1") = b;'
        'register long r2 __asm__("r2") = c;'
        '__asm__ volatile("svc 0" : "+r"(r) : "r"(r7), "r"(r1), "r"(r2) : "memory");',
        (1, 3, 4),
        ("Version5 EABI",),
    ),
    "powerpc64le": Machine(
        "powerpc64le-linux-gnu",
        "powerpc64le-linux-gnu",
        "qemu-ppc64le",
        'register long r0 __asm__("r0") = n; register long r __asm__("r3") = a; register long r4 __asm__("r4") = b;'
        'register long r5 __asm__("r5") = c;'
        '__asm__ volatile("sc" : "+r"(r0), "+r"(r), "+r"(r4), "+r"(r5) : : "memory", "cr0", "ctr", "r6", "r7", "r8",'
        '"r9", "r10", "r11", "r12");',
        (1, 3, 4),
        ("PowerPC64", "abiv2"),
    ),
    "riscv64": Machine(
        "riscv64-linux-gnu",
        "riscv64-linux-gnu",
        "qemu-riscv64",
        'register long a7 __asm__("a7") = n; register long r __asm__("a0") = a; register long a1 __asm__("a1") = b;'
        'register long a2 __asm__("a2") = c;'
        '__asm__ volatile("ecall" : "+r"(r) : "r"(a7), "r"(a1), "r"(a2) : "memory");',
        (93, 63, 64),
        ("RISC-V", "double-float ABI"),
    ),
}
"""Jobs that the emulators run."""

OPTIONS = {
    "arm": ["-march=armv7-a", "-mfpu=vfpv3-d16", "-mfloat-abi=hard"],
    "riscv64": ["-march=rv64gc", "-mabi=lp64d", "-mno-relax"],
}
"""Options of clang for a target."""

_START = """
{call}

static unsigned char input[{room_in}] __attribute__((aligned(16)));
static unsigned char output[{room_out}] __attribute__((aligned(16)));

static int run(void);

void _start(void)
{{
    unsigned long got = 0, put = 0;
    long n;
    int status;
    while (got < sizeof input && (n = call({read}, 0, (long)(input + got), (long)(sizeof input - got))) > 0) {{
        got += (unsigned long)n;
    }}
    status = run();
    while (put < sizeof output && (n = call({write}, 1, (long)(output + put), (long)(sizeof output - put))) > 0) {{
        put += (unsigned long)n;
    }}
    call({exit}, status, 0, 0);
    for (;;) {{ }}
}}
"""


def column_bytes(columns: Sequence[Column], rows: int) -> list[int]:
    """Offsets of the columns, which are aligned, and of the end of the last one."""
    ends = np.cumsum([0] + [-(-rows * np.dtype(column.dtype).itemsize // 16) * 16 for column in columns])
    return [int(end) for end in ends]


def run_source(job: FormulaCode, rows: int) -> tuple[str, int, int]:
    """C code that applies all functions of a job to `input`: columns one after the other, results likewise.

    `output` gets what the columns' function wrote, then what the function of one row did, then the matrix's.
    """
    interface = job.interface
    starts, ends = column_bytes(interface.parameters, rows), column_bytes(interface.outputs, rows)
    size = ends[-1]

    def given(column: Column, start: int, offset: int = 0, of: str = "output") -> str:
        return f"(({column.c_type} *)({of} + {start + offset}))"

    ins = [given(c, start, of="input") for c, start in zip(interface.parameters, starts, strict=False)]
    outs = [given(c, end) for c, end in zip(interface.outputs, ends, strict=False)]
    places = ", ".join(["n", *(f"{place}, 1" for place in (*ins, *outs))])
    later = [given(c, end, size) for c, end in zip(interface.outputs, ends, strict=False)]
    values = ", ".join(f"{place}[i]" for place in ins)
    pointers = ", ".join(f"{place} + i" for place in later)
    one = f"{later[0]}[i] = {job.name}({values});"
    if not interface.returns_value:
        one = f"{'status |= ' * interface.can_fail}{job.name}({', '.join(filter(None, (values, pointers)))});"
    lines = [f"{'status |= ' * interface.can_fail}{job.name}_columns({places});"]
    lines.append(f"for (i = 0; i < n; i++) {{ {one} }}")
    if interface.matrix and interface.parameters:
        # The columns follow each other without gaps only if their size is a multiple of the alignment.
        stride = starts[1] // np.dtype(interface.matrix).itemsize
        place = given(interface.outputs[0], ends[0], 2 * size)
        lines.append(f"{'status |= ' * interface.can_fail}{job.name}_batch({ins[0]}, n, 1, {stride}, {place});")
    body = "\n    ".join(lines)
    declared = f"const size_t n = {rows};\n    size_t i;\n    int status = 0;"
    text = f"static int run(void)\n{{\n    {declared}\n    {body}\n    return status;\n}}\n"
    return text, max(starts[-1], 1), 3 * size


def link(name: str, source: str, folder: Path, options: Sequence[str] = ()) -> None:
    """Make the program `main` of a source file and of the object `f.o` of a folder, without any library."""
    machine = MACHINES[name]
    linker = machine.linker()
    assert linker is not None
    compile_ = ["clang", f"--target={machine.triple}", *OPTIONS.get(name, []), "-O1", "-ffreestanding", "-fno-pic"]
    compile_ += ["-fno-stack-protector", *options, "-c", source, "-o", "main.o"]
    linked = [*linker, "-static", "-z", "noexecstack", "main.o", "f.o", "-o", "main"]
    linked += ["--no-relax"] * (name == "riscv64")
    for command in (compile_, linked):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def emulated(name: str, job: FormulaCode, columns: Sequence[Array], folder: Path) -> tuple[int, list[list[Array]]]:
    """Status and results of all functions of a job, run by an emulator: per function, its columns."""
    machine = MACHINES[name]
    if missing := machine.missing():
        pytest.skip(f"there is no {missing}")
    rows = len(columns[0])
    run, room_in, room_out = run_source(job, rows)
    exit_, read, write = machine.numbers
    start = _START.format(
        call=machine.syscall(), room_in=room_in, room_out=room_out, exit=exit_, read=read, write=write
    )
    (folder / "main.c").write_text(f'#include "{job.name}.h"\n{start}\n{run}')
    (folder / f"{job.name}.h").write_bytes(job.header()[f"{job.name}.h"])
    (folder / "f.o").write_bytes(job.object_code)
    link(name, "main.c", folder, ["-Wall", "-Werror"])
    interface = job.interface
    starts, ends = column_bytes(interface.parameters, rows), column_bytes(interface.outputs, rows)
    given = bytearray(room_in)
    for column, begin in zip(columns, starts, strict=False):
        given[begin : begin + column.nbytes] = column.tobytes()
    done = subprocess.run([machine.emulator, "main"], cwd=folder, input=bytes(given), capture_output=True, timeout=120)
    assert done.stderr == b"" and len(done.stdout) == room_out
    functions = 3 if interface.matrix and interface.parameters else 2
    results = [
        [
            np.frombuffer(done.stdout, column.dtype, rows, function * ends[-1] + end)
            for column, end in zip(interface.outputs, ends, strict=False)
        ]
        for function in range(functions)
    ]
    return done.returncode, results
