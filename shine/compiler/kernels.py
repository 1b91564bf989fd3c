"""Loops over arrays as native code, written as plain Python functions of numbers and flat arrays.

A kernel has assignments, `for ... in range(...)`, `while`, `if`, elements of arrays, arithmetic, comparisons, `min`,
`max` and `int`, numbers of its module, and calls of functions of the same kind, which end with `return`. It means what
it means in Python, except that whole numbers have 64 bits and wrap, that `>>` shifts in zeros, that no index is
checked, and that an array it writes to overlaps none of the others.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, load, number, store
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import HEAD, WORD

DOUBLE, BIT = ir.DoubleType(), ir.IntType(1)

_WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitXor: "xor", ast.RShift: "lshr",
          ast.LShift: "shl"}  # fmt: skip
_REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

Elements = Mapping[str, type[np.generic] | None]
"""The elements of each parameter that is an array; None for a number."""


def native_functions(name: str, kernels: Mapping[Callable[..., None], Elements]) -> dict[str, Any]:
    """The kernels as native functions by name, of addresses of array objects (`id`) and of numbers.

    Parameters
    ----------
    name : str
        Part of the name in the cache. Others are the source of the kernels, and of the rooms `compiler` and `lang`.
    kernels : mapping of functions to the elements of their parameters
    """

    def emitted() -> ir.Module:
        module = ir.Module(name=name)
        for kernel, elements in kernels.items():
            _Emission(module, kernel, elements)
        return module

    names = [kernel.__name__ for kernel in kernels]
    files = sorted({kernel.__code__.co_filename for kernel in kernels})
    digest = hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()
    engine = Engine.kept(names, ("kernels", source_digest("lang"), digest, name, str(HEAD)), emitted, vectorize=True)
    return {
        own: engine.function(
            own, None, *(ctypes.c_int64 if each is None else ctypes.c_void_p for each in kinds.values())
        )
        for own, kinds in zip(names, kernels.values(), strict=True)
    }


def _type_of(element: type[np.generic]) -> ir.Type:
    return DOUBLE if element is np.float64 else ir.IntType(8 * np.dtype(element).itemsize)


class _Emission:
    """The native code of one kernel; each variable is a slot on the stack, which LLVM turns into registers."""

    def __init__(self, module: ir.Module, kernel: Callable[..., None], elements: Elements) -> None:
        self.elements = {name: _type_of(each) for name, each in elements.items() if each is not None}
        types = [POINTER if name in self.elements else I64 for name in elements]
        function = declare(module, kernel.__name__, ir.VoidType(), types, list(elements))
        inner = declare(module, f"{kernel.__name__}.loops", ir.VoidType(), types, list(elements))
        inner.linkage = "internal"
        outer = ir.IRBuilder(function.append_basic_block("entry"))
        # NumPy's array object has the address of its data first, in all versions.
        given = [
            load(outer, each, number(HEAD // WORD), I64, POINTER) if name in self.elements else each
            for name, each in zip(elements, function.args, strict=True)
        ]
        outer.call(inner, given)
        outer.ret_void()
        for name, argument in zip(elements, inner.args, strict=True):
            if name in self.elements:
                argument.add_attribute("noalias")  # an array that a kernel writes to is none of the others
        self.at_entry = ir.IRBuilder(inner.append_basic_block("entry"))
        self.build = ir.IRBuilder(inner.append_basic_block("body"))
        self.arguments = dict(zip(elements, inner.args, strict=True))
        self.slots: dict[str, ir.Value] = {}
        self.types: dict[str, ir.Type] = {}
        self.scope = kernel.__globals__
        first = self.build.block
        self.statements(_definition(kernel).body[1:])  # the first is the docstring
        self.build.ret_void()
        self.at_entry.branch(first)

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Emit statements in order."""
        build = self.build
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    for target, value in zip(targets, [self.value(each) for each in values], strict=True):
                        self.assign(target, value)
                case ast.Assign(targets=[target], value=value):
                    self.assign(target, self.value(value))
                case ast.AugAssign(target=target, op=operator, value=value):
                    self.assign(target, self.binary(operator, self.value(target), self.value(value)))
                case ast.For(target=target, iter=ast.Call(args=limits), body=inner):
                    *start, stop = map(self.value, limits)
                    with counted(build, start[0] if start else number(0), stop) as loop:
                        self.assign(target, loop.index)
                        self.statements(inner)
                case ast.While(test=test, body=inner):
                    head, again, done = (build.append_basic_block(label) for label in ("test", "again", "done"))
                    build.branch(head)
                    build.position_at_end(head)
                    build.cbranch(self.truth(test), again, done)
                    build.position_at_end(again)
                    self.statements(inner)
                    build.branch(head)
                    build.position_at_end(done)
                case ast.If(test=test, body=inner, orelse=orelse):
                    with build.if_else(self.truth(test)) as (then, otherwise):
                        with then:
                            self.statements(inner)
                        with otherwise:
                            self.statements(orelse)
                case ast.Expr(value=ast.Call() as call):
                    self.value(call)
                case _:
                    raise NotImplementedError(f"a kernel has no {ast.unparse(statement)}")

    def assign(self, target: ast.expr, value: ir.Value) -> None:
        """Give a variable or an element a value; the first value of a variable decides its type."""
        value = self.build.zext(value, I64) if value.type == BIT else value
        match target:
            case ast.Name(id=name):
                if name not in self.slots:
                    self.slots[name], self.types[name] = self.slot(value.type), value.type
                self.build.store(value, self.slots[name])
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                element = self.elements[name]
                narrow = value if element == value.type else self.build.trunc(value, element)
                store(self.build, narrow, self.arguments[name], self.value(index), element)

    def slot(self, kind: ir.Type) -> ir.Value:
        """Room for a variable, outside of all loops."""
        slot = self.at_entry.alloca(kind)
        slot.type = POINTER
        return slot

    def truth(self, node: ast.expr) -> ir.Value:
        """Whether an expression holds; the second part of `and` and `or` is computed only if it decides."""
        build = self.build
        match node:
            case ast.BoolOp(op=operator, values=[first, *rest]):
                slot = self.slot(BIT)
                build.store(self.truth(first), slot)
                for each in rest:
                    known = build.load(slot, typ=BIT)
                    with build.if_then(known if isinstance(operator, ast.And) else build.not_(known)):
                        build.store(self.truth(each), slot)
                return build.load(slot, typ=BIT)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                a, b = self.value(left), self.value(right)
                compare = build.fcmp_ordered if a.type == DOUBLE else build.icmp_signed
                return compare(_COMPARISONS[type(operator)], a, b)
        return build.icmp_signed("!=", self.value(node), number(0))

    def value(self, node: ast.expr) -> ir.Value:
        """The value of an expression: a whole number or a float64."""
        build = self.build
        match node:
            case ast.Constant(value=int() | float() as value):
                return number(value) if isinstance(value, int) else ir.Constant(DOUBLE, value)
            case ast.Name(id=name):
                known = self.slots.get(name)
                if known is not None:
                    return build.load(known, typ=self.types[name])
                return self.arguments[name] if name in self.arguments else self.value(ast.Constant(self.scope[name]))
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                element = self.elements[name]
                found = load(build, self.arguments[name], self.value(index), element, element)
                if element in (I64, DOUBLE):
                    return found
                return build.zext(found, I64) if element.width == 8 else build.sext(found, I64)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(operator, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                negated = self.value(inner)
                return build.fneg(negated) if negated.type == DOUBLE else build.neg(negated)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return build.select(self.truth(test), self.value(body), self.value(orelse))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right]):
                a, b = self.value(left), self.value(right)
                return build.select(build.icmp_signed("<" if name == "min" else ">", a, b), a, b)
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                return build.fptosi(self.value(inner), I64)
            case ast.Call(func=ast.Name(id=name), args=given):
                return self.inlined(self.scope[name], given)
            case ast.Compare():
                return build.zext(self.truth(node), I64)
        raise NotImplementedError(f"a kernel has no {ast.unparse(node)}")

    def binary(self, operator: ast.operator, a: ir.Value, b: ir.Value) -> ir.Value:
        """An operation on two numbers; a whole one beside a float64 becomes one."""
        if DOUBLE not in (a.type, b.type):
            return getattr(self.build, _WHOLE[type(operator)])(a, b)
        a, b = (each if each.type == DOUBLE else self.build.sitofp(each, DOUBLE) for each in (a, b))
        return getattr(self.build, _REAL[type(operator)])(a, b)

    def inlined(self, function: Callable[..., object], given: Sequence[ast.expr]) -> ir.Value:
        """What a function returns; its variables are its own, its arrays those that are given."""
        caller = dict(vars(self))
        definition, arguments, elements = _definition(function), {}, {}
        for parameter, own in zip(definition.args.args, given, strict=True):
            if isinstance(own, ast.Name) and own.id in self.elements:
                arguments[parameter.arg], elements[parameter.arg] = self.arguments[own.id], self.elements[own.id]
            else:
                arguments[parameter.arg] = self.value(own)
        self.arguments, self.elements, self.scope = arguments, elements, function.__globals__
        self.slots, self.types = {}, {}
        *body, end = definition.body[1:]
        self.statements(body)
        assert isinstance(end, ast.Return) and end.value is not None
        found = self.value(end.value)
        vars(self).update(caller)
        return found


@cache
def _definition(function: Callable[..., object]) -> ast.FunctionDef:
    (definition,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(definition, ast.FunctionDef)
    return definition
