"""Loops over arrays as native code, written as plain Python functions of numbers and flat arrays.

A kernel has assignments, `for ... in range(...)`, `while`, `if`, elements of arrays, arithmetic, comparisons, `min`,
`max`, `int`, and a `return` of a whole number at its end. It means what it means in Python, except that whole numbers
have 64 bits and wrap, that `>>` shifts in zeros, and that no index is checked. All kernels of a library are compiled
together, at the first call of one, and kept in the cache.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, load, number, store
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine, cached, host_object

DOUBLE, BIT = ir.DoubleType(), ir.IntType(1)

ELEMENTS: dict[str, tuple[ir.Type, np.dtype[Any]]] = {
    "Codes": (ir.IntType(16), np.dtype(np.int16)),
    "Integers": (ir.IntType(32), np.dtype(np.int32)),
    "Indices": (I64, np.dtype(np.int64)),
    "Hashes": (I64, np.dtype(np.uint64)),
    "Floats": (DOUBLE, np.dtype(np.float64)),
    "Mask": (ir.IntType(8), np.dtype(np.bool_)),
}
"""Elements of the arrays that a kernel takes, by the names of the types in its signature."""

_WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitXor: "xor", ast.RShift: "lshr",
          ast.LShift: "shl"}  # fmt: skip
_REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

F = TypeVar("F", bound=Callable[..., Any])


class Library:
    """Kernels that are compiled together, and the decorator that makes them native functions.

    Parameters
    ----------
    name : str
        Part of the name in the cache. The kernels must be in the room `compiler`, whose source is the other part.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kernels: dict[str, Callable[..., Any]] = {}

    def __call__(self, writes: int) -> Callable[[F], F]:
        """A decorator of kernels that write to their last arrays, so many of them; the others may be in pieces."""

        def decorated(kernel: F) -> F:
            name, kinds = kernel.__name__, _kinds(kernel)
            self._kernels[name] = kernel
            dtypes = [ELEMENTS[kind][1] if kind in ELEMENTS else None for kind in kinds]
            reads = len(kinds) - writes

            @wraps(kernel)
            def native(*arguments: Any) -> int:
                # The copies of arrays in pieces live until the call is over.
                given = [
                    argument if dtype is None or place >= reads else np.ascontiguousarray(argument, dtype)
                    for place, (argument, dtype) in enumerate(zip(arguments, dtypes, strict=True))
                ]
                places = [
                    argument if dtype is None else _address(argument, dtype)
                    for argument, dtype in zip(given, dtypes, strict=True)
                ]
                return cast(int, self._compiled[name](*places))

            return cast(F, native)

        return decorated

    @cached_property
    def _compiled(self) -> dict[str, Any]:
        code = cached(("kernels", source_digest(), self._name), lambda: host_object(str(self._module())))
        engine = Engine.of_object(code, self._kernels)
        return {
            name: engine.function(
                name,
                ctypes.c_int64,
                *(ctypes.c_void_p if kind in ELEMENTS else ctypes.c_int64 for kind in _kinds(kernel)),
            )
            for name, kernel in self._kernels.items()
        }

    def _module(self) -> ir.Module:
        module = ir.Module(name=self._name)
        for kernel in self._kernels.values():
            _Emission(module, kernel)
        return module


def _kinds(kernel: Callable[..., Any]) -> list[str]:
    """The types of a kernel's parameters, as they are written."""
    return [kind for name, kind in kernel.__annotations__.items() if name != "return"]


def _address(array: AnyArray, dtype: np.dtype[Any]) -> int:
    """Where an array begins."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"a kernel writes to an array of {dtype} in one piece, not to one of {array.dtype}")
    return int(array.__array_interface__["data"][0])


class _Emission:
    """The native code of one kernel; each variable is a slot on the stack, which LLVM turns into registers."""

    def __init__(self, module: ir.Module, kernel: Callable[..., Any]) -> None:
        self.elements = {
            name: ELEMENTS[kind][0]
            for name, kind in zip(inspect.signature(kernel).parameters, _kinds(kernel), strict=True)
            if kind in ELEMENTS
        }
        labels = list(inspect.signature(kernel).parameters)
        kinds = [POINTER if label in self.elements else I64 for label in labels]
        function = declare(module, kernel.__name__, I64, kinds, labels)
        entry = function.append_basic_block("entry")
        self.at_entry = ir.IRBuilder(entry)
        self.build = build = ir.IRBuilder(function.append_basic_block("body"))
        self.arguments = dict(zip(labels, function.args, strict=True))
        self.slots: dict[str, tuple[ir.Value, ir.Type]] = {}
        self.result = number(0)
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kernel))).body
        assert isinstance(definition, ast.FunctionDef)
        first = self.build.block
        self.statements(definition.body)
        build.ret(self.result)
        self.at_entry.branch(first)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Emit statements in order."""
        for statement in body:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        """Emit one statement."""
        build = self.build
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, [self.value(each) for each in values], strict=True):
                    self.assign(target, value)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target=target, op=operator, value=value):
                self.assign(target, self.binary(operator, self.value(target), self.value(value)))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=limits), body=body):
                *start, stop = map(self.value, limits)
                with counted(build, start[0] if start else number(0), stop) as loop:
                    self.put(name, loop.index)
                    self.statements(body)
            case ast.While(test=test, body=body):
                head, inner, done = (build.append_basic_block(label) for label in ("test", "inner", "done"))
                build.branch(head)
                build.position_at_end(head)
                build.cbranch(self.truth(test), inner, done)
                build.position_at_end(inner)
                self.statements(body)
                build.branch(head)
                build.position_at_end(done)
            case ast.If(test=test, body=body, orelse=[]):
                with build.if_then(self.truth(test)):
                    self.statements(body)
            case ast.If(test=test, body=body, orelse=orelse):
                with build.if_else(self.truth(test)) as (then, otherwise):
                    with then:
                        self.statements(body)
                    with otherwise:
                        self.statements(orelse)
            case ast.Return(value=ast.expr() as value):
                self.result = self.value(value)
            case _:
                raise NotImplementedError(f"a kernel has no {ast.unparse(statement)}")

    def assign(self, target: ast.expr, value: ir.Value) -> None:
        """Give a variable or an element a value."""
        if isinstance(target, ast.Name):
            self.put(target.id, value)
            return
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        element = self.elements[target.value.id]
        narrow = value if element == value.type else self.build.trunc(self.whole(value), element)
        store(self.build, narrow, self.arguments[target.value.id], self.value(target.slice), element)

    def put(self, name: str, value: ir.Value) -> None:
        """Give a variable a value; its first one decides its type."""
        value = self.whole(value)
        if name not in self.slots:
            slot = self.at_entry.alloca(value.type)
            slot.type = POINTER
            self.slots[name] = slot, value.type
        self.build.store(value, self.slots[name][0])

    def whole(self, value: ir.Value) -> ir.Value:
        """A value, a truth as 0 or 1."""
        return self.build.zext(value, I64) if value.type == BIT else value

    def truth(self, node: ast.expr) -> ir.Value:
        """Whether an expression holds; the second part of `and` and `or` is computed only if it decides."""
        build = self.build
        match node:
            case ast.BoolOp(op=operator, values=[first, *rest]):
                slot = self.at_entry.alloca(BIT)
                slot.type = POINTER
                build.store(self.truth(first), slot)
                for each in rest:
                    known = build.load(slot, typ=BIT)
                    with build.if_then(known if isinstance(operator, ast.And) else build.not_(known)):
                        build.store(self.truth(each), slot)
                return build.load(slot, typ=BIT)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return build.not_(self.truth(operand))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                a, b = self.value(left), self.value(right)
                compare = build.fcmp_ordered if a.type == DOUBLE else build.icmp_signed
                return compare(_COMPARISONS[type(operator)], a, b)
        return build.icmp_signed("!=", self.value(node), number(0))

    def value(self, node: ast.expr) -> ir.Value:
        """The value of an expression: a whole number or a float64."""
        build = self.build
        match node:
            case ast.Constant(value=int() as value):
                return number(value)
            case ast.Constant(value=float() as value):
                return ir.Constant(DOUBLE, value)
            case ast.Name(id=name):
                known = self.slots.get(name)
                return self.arguments[name] if known is None else build.load(known[0], typ=known[1])
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                element = self.elements[name]
                found = load(build, self.arguments[name], self.value(index), element, element)
                if element in (I64, DOUBLE):
                    return found
                return build.zext(found, I64) if element.width == 8 else build.sext(found, I64)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(operator, self.value(left), self.value(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return build.select(self.truth(test), self.value(body), self.value(orelse))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right]):
                a, b = self.value(left), self.value(right)
                return build.select(build.icmp_signed("<" if name == "min" else ">", a, b), a, b)
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                found = self.value(inner)
                return build.fptosi(found, I64) if found.type == DOUBLE else found
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.whole(self.truth(node))
        raise NotImplementedError(f"a kernel has no {ast.unparse(node)}")

    def binary(self, operator: ast.operator, a: ir.Value, b: ir.Value) -> ir.Value:
        """An operation on two numbers; a whole one beside a float64 becomes one."""
        build = self.build
        if DOUBLE not in (a.type, b.type):
            return getattr(build, _WHOLE[type(operator)])(a, b)
        a, b = (each if each.type == DOUBLE else build.sitofp(each, DOUBLE) for each in (a, b))
        return getattr(build, _REAL[type(operator)])(a, b)
