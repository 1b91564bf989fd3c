"""Elementary functions that right-hand sides share: compiled once, so that a right-hand side is compiled fast."""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, declare
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import lanes_number, source_digest
from shine.compiler.codegen.vecmath.functions import FUNCTIONS, call
from shine.compiler.llvm import Engine, cached, host_object

_DOUBLE = ir.DoubleType()
_PRODUCTS = (2, 3)
"""Exponents of powers that are products."""


class Calling(AstJit):
    """Lowers trees of float64 scalars to calls of the functions of `addresses`; the bits are those of `AstJit`."""

    def _apply(self, name: str, *arguments: ir.Value) -> ir.Value:
        known = addresses().get(name)
        if known is None or (name == "pow" and lanes_number(arguments[1]) in _PRODUCTS):
            return super()._apply(name, *arguments)
        pointer = self.emit.builder.inttoptr(ir.Constant(I64, known), POINTER)
        pointer.type = FunctionPointer(_signature(name))
        return self.emit.builder.call(pointer, arguments)


def _signature(name: str) -> ir.FunctionType:
    return ir.FunctionType(_DOUBLE, [_DOUBLE] * FUNCTIONS[name].arity)


def _emit() -> ir.Module:
    """A function of doubles for each elementary function."""
    module = ir.Module(name="elementary")
    for name, rule in FUNCTIONS.items():
        function = declare(module, name, _DOUBLE, [_DOUBLE] * rule.arity, "xy"[: rule.arity])
        build = ir.IRBuilder(function.append_basic_block("entry"))
        build.ret(call(build, name, *function.args))
    return module


@cache
def _engine() -> Engine:
    code = cached(("scalar functions", source_digest("evaluate")), lambda: host_object(str(_emit()), "O1"))
    return Engine.of_object(code, FUNCTIONS)


@cache
def addresses() -> dict[str, int]:
    """Address of each function; valid as long as the process lives."""
    return {name: _engine().address(name) for name in FUNCTIONS}
