"""Code for NVIDIA GPUs: PTX, which the driver or `ptxas` turns into code for a card.

A device function of one row, which CUDA C++ can call, and a kernel over columns. Nothing is contracted, approximated
or flushed to zero: results have the same bits as on every other target.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.native.row_by_row import emit_kernel
from shine.formats.native.code import Files, Job, TextCode
from shine.formats.native.targets import Target, target_of

TRIPLE = "nvptx64-nvidia-cuda"
"""The triple used if a job's target is of another kind."""


def ptx_files(job: Job) -> Files:
    """The PTX of a job: ``NAME`` and ``NAME_kernel`` (see `shine.compiler.codegen.native.row_by_row.emit_kernel`).

    A job for a target of another kind is compiled for the least processor of `TRIPLE`.

    Raises
    ------
    CompilationError
        If the program has constant arrays.
    """
    job.check()
    module = ir.Module(name=job.name)
    emit_kernel(module, job.program, job.name)
    made = TextCode(job.order.on(gpu_target(job.target)), job.description, str(module))
    return {f"{job.name}.ptx": made.assembly.encode()}


def gpu_target(wanted: Target) -> Target:
    """The target of PTX: the one that is wanted, if that is a GPU, else the least of `TRIPLE`."""
    return wanted if wanted.format == "ptx" else target_of(TRIPLE)
