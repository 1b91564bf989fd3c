"""Compiled queries: kept in memory, and on disk as all code of Shine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from llvmlite import ir

from shine.compiler.codegen.identity import source_digest
from shine.compiler.llvm import Engine, cached, host_object
from shine.frames.codegen.kernels import COMPUTE, POSITIONS, SELECT, emit_positions, emit_query
from shine.frames.language.types import Plan

KEPT = 256
"""Most queries whose code stays in memory."""

MANY_STEPS = 1_000
"""Steps from which a query is compiled without optimization, whose time is not linear."""

_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64


@lru_cache(maxsize=KEPT)
def selecting(plan: Plan) -> Any:
    """The function of a condition, see `shine.frames.codegen.kernels.emit_query`."""
    kinds = [_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _COUNT]
    return _compiled(SELECT, repr(plan), lambda module: emit_query(module, plan, computes=False), kinds, plan)


@lru_cache(maxsize=KEPT)
def computing(plan: Plan) -> Any:
    """The function of values, see `shine.frames.codegen.kernels.emit_query`."""
    kinds = [_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS]
    return _compiled(COMPUTE, repr(plan), lambda module: emit_query(module, plan, computes=True), kinds, plan)


@lru_cache(maxsize=2)
def positions(bits: int) -> Any:
    """The function from bits to indices, see `shine.frames.codegen.kernels.emit_positions`."""
    kinds = [_ADDRESS, _COUNT, _COUNT, _ADDRESS, _COUNT]
    return _compiled(POSITIONS, str(bits), lambda module: emit_positions(module, bits), kinds)


def _compiled(
    name: str, meaning: str, emit: Callable[[ir.Module], None], kinds: list[Any], plan: Plan | None = None
) -> Any:
    def made() -> bytes:
        module = ir.Module(name=f"queries.{name}")
        emit(module)
        return host_object(str(module), 0 if plan is not None and len(plan.steps) > MANY_STEPS else 2)

    code = cached(("queries", name, meaning, source_digest("frames")), made)
    return Engine.of_object(code, [name]).function(name, ctypes.c_int64, *kinds)
