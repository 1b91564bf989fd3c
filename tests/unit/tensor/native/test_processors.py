"""Random programs on another processor, under an emulator, without any library: near the interpreter's results."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers.tensor_modules import SMOOTH, random_arguments, random_module
from unit.formats.native.cross import MACHINES, link
from unit.tensor.native.cpp import joined, split

from shine.tensor.form.interpreter import interpret
from shine.tensor.native.function import TensorFunction

pytestmark = pytest.mark.slow

MAIN = """
#include "net.h"

CALL

static unsigned char arena[net_arena_bytes + 64] __attribute__((aligned(64)));
static unsigned char input[INPUT] __attribute__((aligned(64)));
static unsigned char output[OUTPUT] __attribute__((aligned(64)));

static void all(long number, long file, unsigned char *place, long size)
{
    long n, done = 0;
    while (done < size && (n = call(number, file, (long)(place + done), size - done)) > 0) done += n;
}

void _start(void)
{
    const void *arguments[] = {ARGUMENTS};
    void *results[] = {RESULTS};
    all(READ, 0, input, INPUT_BYTES);
    net(arguments, results, arena);
    all(WRITE, 1, output, OUTPUT_BYTES);
    call(EXIT, 0, 0, 0);
    for (;;) { }
}
"""


def places(name: str, arrays: list[np.ndarray]) -> str:
    """Addresses of arrays that lie one after the other, each at a multiple of 8 bytes."""
    starts = np.cumsum([0, *(-(-array.nbytes // 8) * 8 for array in arrays)])
    return ", ".join([*(f"{name} + {start}" for start in starts[:-1]), "0"])


def spaced(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Arrays, and after each as many bytes as make the next one begin at a multiple of 8 bytes."""
    return [part for array in arrays for part in (array, np.zeros(-array.nbytes % 8, np.uint8))]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("machine", MACHINES)
def test_results_are_near_those_of_the_interpreter(machine: str, seed: int, tmp_path: Path) -> None:
    tools = MACHINES[machine]
    if missing := tools.missing():
        pytest.skip(f"there is no {missing}")
    module = random_module(seed, operations=SMOOTH, floats=("f32", "f64"))
    arguments = list(random_arguments(module, "main", seed))
    expected = list(interpret(module, "main", arguments))
    code = TensorFunction(module).code("net", target=tools.triple)
    (tmp_path / "f.o").write_bytes(code.object_code)
    (tmp_path / "net.h").write_bytes(code.header()["net.h"])
    given, made = spaced(arguments), spaced(expected)
    sizes = [sum(array.nbytes for array in arrays) for arrays in (given, made)]
    exit_, read, write = tools.numbers
    text = MAIN.replace("CALL", tools.syscall(), 1).replace("ARGUMENTS", places("input", arguments))
    text = text.replace("RESULTS", places("output", expected)).replace("INPUT_BYTES", str(sizes[0]))
    text = text.replace("OUTPUT_BYTES", str(sizes[1])).replace("[INPUT]", f"[{sizes[0] + 1}]")
    text = text.replace("[OUTPUT]", f"[{sizes[1] + 1}]").replace("EXIT", str(exit_))
    (tmp_path / "main.c").write_text(text.replace("READ", str(read)).replace("WRITE", str(write)))
    link(machine, "main.c", tmp_path)
    command = [tools.emulator, "main"]
    done = subprocess.run(command, cwd=tmp_path, input=joined(given), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    for one, other in zip(split(done.stdout, made)[::2], expected, strict=True):
        close = 1e-9 if other.dtype == "float64" and machine != "arm" else 2e-5
        np.testing.assert_allclose(one, other, rtol=close, atol=close)
