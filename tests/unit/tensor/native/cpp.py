"""Programs in C++ that read all arguments of a class from standard input, and write its results."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shine.base.typing import AnyArray

STRICT = ["-std=c++11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]

_MAIN = """
#include "NAME.h"
#include "NAME.hpp"

#include <cstdio>

int main() {
  a::Net net;
  for (size_t i = 0; i != net.kNumArgs; i++) {
    if (std::fread(net.arg_data(i), 1, net.arg_size(i), stdin) != net.arg_size(i)) return 2;
  }
  if (!net.Run()) return 1;
  for (size_t i = 0; i != net.kNumResults; i++) std::fwrite(net.result_data(i), 1, net.result_size(i), stdout);
  return 0;
}
"""


def results_in_cpp(folder: Path, name: str, arguments: Sequence[AnyArray], like: Sequence[AnyArray]) -> list[AnyArray]:
    """Results of the class `a::Net` in the files `name` of a folder; arrays `like` them tell types and shapes."""
    (folder / "main.cpp").write_text(_MAIN.replace("NAME", name))
    command = ["g++", *STRICT, "main.cpp", f"{name}.o", "-o", "main"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    ran = subprocess.run(["./main"], cwd=folder, input=joined(arguments), capture_output=True, timeout=60)
    assert ran.returncode == 0
    return split(ran.stdout, like)


def joined(arrays: Sequence[AnyArray]) -> bytes:
    """The elements of arrays, one after the other."""
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def split(content: bytes, like: Sequence[AnyArray]) -> list[AnyArray]:
    """Arrays that lie one after the other, with the types and shapes of others."""
    ends = np.cumsum([0, *(array.nbytes for array in like)])
    assert len(content) == ends[-1]
    pairs = zip(like, ends[:-1], strict=True)
    return [np.frombuffer(content, each.dtype, each.size, int(end)).reshape(each.shape) for each, end in pairs]
