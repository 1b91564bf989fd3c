"""The native code of a kernel (see `shine.compiler.kernels`): what each statement and each expression becomes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Any, get_args, get_origin

import numpy as np
from llvmlite import ir

from shine.base.typing import ELEMENTS, Floats
from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    FunctionPointer,
    broadcast,
    counted,
    element_pointer,
    intrinsic,
    load,
    number,
    store,
)
from shine.compiler.codegen.vecmath.functions import call

DOUBLE, BIT = ir.DoubleType(), ir.IntType(1)

_WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
          ast.RShift: "lshr", ast.LShift: "shl"}  # fmt: skip
_REAL = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

_TYPES = {"int": I64, "Address": I64, "float": DOUBLE, "None": ir.VoidType()}
_INTRINSICS = {"abs": "llvm.fabs", "sqrt": "llvm.sqrt"}


class _ArrayPointer(ir.PointerType):
    """A pointer that knows the elements it points to."""

    def __init__(self, element: type[np.generic]) -> None:
        super().__init__()
        self.element = DOUBLE if element is np.float64 else ir.IntType(8 * np.dtype(element).itemsize)


def type_of(annotation: str, scope: Mapping[str, Any]) -> ir.Type:
    """Of a number, or of an address: of elements, of the words of a job, of a function."""
    alias = scope.get(annotation)
    if get_origin(alias) is Callable:
        return FunctionPointer(ir.FunctionType(_TYPES[getattr(get_args(alias)[-1], "__name__", "None")], []))
    return _ArrayPointer(ELEMENTS[annotation]) if annotation in ELEMENTS else _TYPES.get(annotation, POINTER)


class Emission:
    """The native code of one kernel; each variable is a slot on the stack, which LLVM turns into registers."""

    def __init__(self, function: ir.Function, words: Sequence[str]) -> None:
        self.module, self.words = function.module, words
        self.at_entry = ir.IRBuilder(function.append_basic_block("entry"))
        self.build = ir.IRBuilder(function.append_basic_block("body"))
        self.scope: dict[str, Any] = {}
        self.slots: dict[str, ir.Value] = {}
        self.types: dict[str, ir.Type] = {}
        self.end: ir.Block | None = None  # where a `break` leads

    def body(self, function: Callable[..., object], given: Sequence[ir.Value]) -> ir.Value | None:
        """Emit what a function does with these arguments; its variables are its own. What it returns."""
        caller = dict(vars(self))
        definition = _definition(function)
        self.scope, self.slots, self.types = function.__globals__, {}, {}
        for parameter, value in zip(definition.args.args, given, strict=True):
            self.assign(ast.Name(parameter.arg), value)
        *body, end = definition.body[1:]  # the first is the docstring
        returned = end.value if isinstance(end, ast.Return) else None
        self.statements(body if returned else [*body, end])
        found = returned and self.value(returned)
        vars(self).update(caller)
        return found

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Emit statements in order."""
        build = self.build
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                    for target, value in zip(targets, [self.value(each) for each in values], strict=True):
                        self.assign(target, value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Subscript(value=array, slice=ast.Slice())):
                    for place, target in enumerate(targets):
                        self.assign(target, self.value(ast.Subscript(array, ast.Constant(place))))
                case ast.Assign(targets=[target], value=value):
                    self.assign(target, self.value(value))
                case ast.AnnAssign(target=target, annotation=ast.Name(id=kind), value=ast.expr() as value):
                    self.assign(target, build.inttoptr(self.value(value), type_of(kind, self.scope)))
                case ast.AugAssign(target=target, op=operator, value=value):
                    self.assign(target, self.binary(operator, self.value(target), self.value(value)))
                case ast.For(target=target, iter=ast.Call(args=limits), body=inner):
                    given = limits if limits[1:] else [ast.Constant(0), *limits]
                    with counted(build, *map(self.value, given)) as loop:
                        self.assign(target, loop.index)
                        self.looped(inner, None)
                case ast.For(target=target, iter=ast.Tuple(elts=values), body=inner):
                    for each in values:
                        self.assign(target, self.value(each))
                        self.looped(inner, None)
                case ast.While(test=test, body=inner):
                    head, again, done = (build.append_basic_block(label) for label in ("test", "again", "done"))
                    build.branch(head)
                    build.position_at_end(head)
                    build.cbranch(self.truth(test), again, done)
                    build.position_at_end(again)
                    self.looped(inner, done)
                    build.branch(head)
                    build.position_at_end(done)
                case ast.Break() if self.end is not None:
                    build.branch(self.end)
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

    def looped(self, body: Sequence[ast.stmt], end: ir.Block | None) -> None:
        """Emit the body of a loop, whose `break` leads to a block."""
        outer, self.end = self.end, end
        self.statements(body)
        self.end = outer

    def assign(self, target: ast.expr, value: ir.Value) -> None:
        """Give a variable or an element a value; the first value of a variable decides its type."""
        value = self.build.zext(value, I64) if value.type == BIT else value
        match target:
            case ast.Name(id=name):
                if name not in self.slots:
                    self.slots[name], self.types[name] = self.slot(value.type), value.type
                self.build.store(value, self.slots[name])
            case ast.Subscript(value=array, slice=ast.Slice(lower=None, upper=ast.expr() as count)):
                value, _ = self.alike(value, ir.Constant(self.vector(count), None))
                store(self.build, value, self.value(array), number(0), DOUBLE)
            case ast.Subscript(value=array, slice=index):
                pointer = self.value(array)
                element = pointer.type.element
                if element == DOUBLE:
                    value = self.real(value)
                elif element != value.type:
                    value = self.build.trunc(value, element)
                store(self.build, value, pointer, self.value(index), element)

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
            case ast.Compare(left=left, ops=operators, comparators=others):
                values = [self.value(each) for each in (left, *others)]
                return reduce(build.and_, map(self.comparison, operators, values, values[1:]))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return build.not_(self.truth(inner))
        return build.icmp_signed("!=", self.value(node), number(0))

    def comparison(self, operator: ast.cmpop, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether a comparison of two numbers holds; of NaN only `!=` does."""
        if a.type == b.type == I64:
            return self.build.icmp_signed(_COMPARISONS[type(operator)], a, b)
        compare = self.build.fcmp_unordered if isinstance(operator, ast.NotEq) else self.build.fcmp_ordered
        return compare(_COMPARISONS[type(operator)], *self.alike(a, b))

    def value(self, node: ast.expr) -> ir.Value:
        """The value of an expression: a whole number, a float64, a vector or an address."""
        build = self.build
        match node:
            case ast.Constant(value=int() | float() as value):
                return number(value) if isinstance(value, int) else ir.Constant(DOUBLE, value)
            case ast.Name(id=name):
                if name in self.slots:
                    return build.load(self.slots[name], typ=self.types[name])
                known = self.scope[name]
                return self.table(name, known) if isinstance(known, np.ndarray) else self.value(ast.Constant(known))
            case ast.Subscript(value=job, slice=ast.Constant(value=str() as word)):
                return load(build, self.value(job), number(self.words.index(word)), I64, I64)
            case ast.Subscript(value=array, slice=ast.Slice(lower=ast.expr() as first, upper=None)):
                pointer = self.value(array)
                rest = element_pointer(build, pointer, self.value(first), pointer.type.element)
                rest.type = pointer.type
                return rest
            case ast.Subscript(value=array, slice=ast.Slice(lower=None, upper=ast.expr() as count)):
                return load(build, self.value(array), number(0), DOUBLE, self.vector(count))
            case ast.Subscript(value=array, slice=index):
                pointer = self.value(array)
                element = pointer.type.element
                found = load(build, pointer, self.value(index), element, element)
                if element in (I64, DOUBLE):
                    return found
                return build.zext(found, I64) if element.width == 8 else build.sext(found, I64)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(operator, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return number(-value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                negated = self.value(inner)
                return build.neg(negated) if negated.type == I64 else build.fneg(negated)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return build.select(self.truth(test), self.value(body), self.value(orelse))
            case ast.Call(func=ast.Attribute(attr="empty"), args=[ast.Constant(value=int() as count), *kind]):
                array = _ArrayPointer(np.int64 if kind else np.float64)
                room = self.at_entry.alloca(ir.ArrayType(array.element, count))
                room.type = array
                return room
            case ast.Call(func=ast.Attribute(attr="zeros"), args=[count]):
                return ir.Constant(self.vector(count), None)
            case ast.Call(func=ast.Attribute(attr="where"), args=[test, body, orelse]):
                return build.select(self.truth(test), *self.alike(self.value(body), self.value(orelse)))
            case ast.Call(func=ast.Name(id=name), args=given):
                return self.called(name, [self.value(each) for each in given])
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return build.zext(self.truth(node), I64)
        raise NotImplementedError(f"a kernel has no {ast.unparse(node)}")

    def binary(self, operator: ast.operator, a: ir.Value, b: ir.Value) -> ir.Value:
        """An operation on two numbers or vectors."""
        if a.type == b.type == I64:
            return getattr(self.build, _WHOLE[type(operator)])(a, b)
        a, b = self.alike(a, b)
        if isinstance(operator, ast.Pow):
            return call(self.build, "pow", a, b)
        return getattr(self.build, _REAL[type(operator)])(a, b)

    def real(self, value: ir.Value) -> ir.Value:
        """A number as float64."""
        return self.build.sitofp(value, DOUBLE) if value.type == I64 else value

    def alike(self, *values: ir.Value) -> list[ir.Value]:
        """Numbers as float64; beside a vector, one in each of its lanes."""
        vectors = [each.type for each in values if isinstance(each.type, ir.VectorType)]
        reals = [self.real(each) for each in values]
        return [broadcast(self.build, each, vectors[0]) if vectors and each.type == DOUBLE else each for each in reals]

    def vector(self, count: ast.expr) -> ir.VectorType:
        """The type of vectors of so many float64."""
        return ir.VectorType(DOUBLE, self.value(count).constant)

    def table(self, name: str, numbers: Floats) -> ir.Value:
        """A constant array."""
        kind = ir.ArrayType(DOUBLE, len(numbers))
        table = ir.GlobalVariable(self.module, kind, self.module.get_unique_name(name))
        table.initializer, table.global_constant, table.linkage = ir.Constant(kind, numbers.tolist()), True, "internal"
        table.type = _ArrayPointer(np.float64)
        return table

    def called(self, name: str, given: Sequence[ir.Value]) -> ir.Value | None:
        """What a function returns; its code is put here unless the module has it."""
        build = self.build
        match name, given:
            case "min", (a, b):
                return build.select(self.comparison(ast.Lt(), b, a), b, a)
            case "max", (a, b):
                return build.select(self.comparison(ast.Gt(), b, a), b, a)
            case "int", (real,):
                return build.fptosi(real, I64)
            case (("abs" | "sqrt"), (real,)):
                return build.call(intrinsic(self.module, _INTRINSICS[name], real.type, 1), [real])
        if name in self.slots:
            address = self.value(ast.Name(name))
            result = address.type.pointee.return_type
            address.type = FunctionPointer(ir.FunctionType(result, [each.type for each in given]))
            return build.call(address, given)
        if name in self.module.globals:
            return build.call(self.module.globals[name], given)
        return self.body(self.scope[name], given)


@cache
def _definition(function: Callable[..., object]) -> ast.FunctionDef:
    (definition,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(definition, ast.FunctionDef)
    return definition
