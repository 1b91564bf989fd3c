"""Kernels for GPUs on this machine: the code of a kernel, run for one thread after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

import numpy as np

from shine.compiler.llvm import Engine


def run_threads(
    text: str, kernel: str, arguments: Sequence[int | np.ndarray], places: Iterable[tuple[int, int, int, int]]
) -> None:
    """Run a kernel for threads.

    Parameters
    ----------
    text : str
        LLVM IR for a GPU, before it is optimized.
    kernel : str
    arguments : sequence of int or ndarray
    places : iterable of tuple of int
        Of each thread: tid, ctaid, ntid and nctaid.
    """
    for place in places:
        here = text.replace("define ptx_kernel", "define")
        for name, value in zip(("tid", "ctaid", "ntid", "nctaid"), place, strict=True):
            register = f'@"llvm.nvvm.read.ptx.sreg.{name}.x"()'
            assert f"declare i32 {register}" in here
            here = here.replace(f"declare i32 {register}", f"define internal i32 @here.{name}() {{ ret i32 {value} }}")
            here = here.replace(register, f"@here.{name}()")
        with Engine(here) as engine:
            kinds = [ctypes.c_int64 if isinstance(each, int) else ctypes.c_void_p for each in arguments]
            engine.function(kernel, None, *kinds)(
                *(each if isinstance(each, int) else each.ctypes.data for each in arguments)
            )
