"""The header in C, and what the object needs."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from unit.tensor.native.programs import matmul

from shine.formats.native.freestanding import undefined_symbols
from shine.formats.native.targets import target_of

MAIN = """
#include <stdio.h>
#include "matmul.h"

static float x[] = {1, 2, 3, 4, 5, 6}, y[] = {7, 8, 9, 10, 11, 12}, z[4];
static double arena[(matmul_arena_bytes + 7) / 8 + 8];

int main(void)
{
    const void *arguments[matmul_n_arguments];
    void *results[matmul_n_results];
    arguments[0] = x;
    arguments[1] = y;
    results[0] = z;
    matmul(arguments, results, arena);
    printf("%g %g %g %g\\n", z[0], z[1], z[2], z[3]);
#if __STDC_VERSION__ >= 199901L
    z[3] = 0;
    matmul_call(x, y, z, arena);
    return z[3] != 154;
#else
    return 0;
#endif
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("standard", ["c89", "c99", "c17"])
def test_a_c_program_computes_the_product(standard, tmp_path):
    job = matmul()
    (tmp_path / "matmul.h").write_bytes(job.header()["matmul.h"])
    (tmp_path / "f.o").write_bytes(job.object_code)
    (tmp_path / "main.c").write_text(MAIN)
    options = [
        f"-std={standard}",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wno-long-long",
        "-Werror",
        "-Wno-unused-function",
    ]
    for command in (["gcc", *options, "main.c", "f.o", "-o", "main"], ["./main"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["58", "64", "139", "154"]


TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu", "arm-linux-gnueabihf", "riscv64-linux-gnu", "powerpc64le-linux-gnu")
TRIPLES += ("x86_64-pc-windows-msvc", "arm64-apple-darwin", "wasm32")


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_object_needs_nothing(triple):
    assert undefined_symbols(matmul(target=target_of(triple)).object_code) <= {"_fltused"}
