"""Array formulas as native code: a block of individuals at a time, one in each lane.

The elements of a block are first copied so that those of one index lie side by side. So the loops over an index are
scalar loops of vector instructions, each lane adds up in the order of the index, and an individual gets the same bits
alone and in any place of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load, stack, store
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.native.loops import row_numbers
from shine.compiler.codegen.numbers import Numbers
from shine.lang.arrays.formula import (
    STARTS,
    STEPS,
    Affine,
    ArrayFormula,
    Element,
    IntegerValue,
    Reduction,
    length_symbol,
)
from shine.lang.forms.visitor import Visit

_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


def emit_arrays(module: ir.Module, formula: ArrayFormula, name: str, dtype: str) -> None:
    """Emit the function of all individuals, ``void name(arguments, strides, lengths, outs, block, rows)``.

    ``arguments`` points to a pointer for each parameter, to numbers of `dtype`; a vector's elements lie side by side.
    ``strides`` has the distance between two individuals for each parameter, in numbers, 0 if all share one value;
    ``lengths`` the length of each vector, in the order of ``formula.vectors``. ``outs`` points to a pointer for each
    result. ``block`` has room for a SIMD vector for each element of the vectors. The indices must have been checked.
    """
    numbers = row_numbers(dtype)
    labels = ("arguments", "strides", "lengths", "outs", "block", "rows")
    function = declare(module, name, ir.VoidType(), [POINTER] * 5 + [I64], labels)
    arguments, strides, lengths, outs, block, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    copy = _copy_function(module, numbers)
    scalars = stack(builder, numbers.element, max(len(formula.scalars), 1) * numbers.width)
    results = stack(builder, numbers.element, len(formula.results) * numbers.width)
    symbols = {
        length_symbol(vector): load(builder, lengths, ir.Constant(I64, place), I64, I64)
        for place, vector in enumerate(formula.vectors)
    }
    width = ir.Constant(I64, numbers.width)
    with counted(builder, _ZERO, rows, numbers.width) as loop:
        vectors, values, room = dict[str, ir.Value](), dict[str, ir.Value](), block
        for place, parameter in enumerate(formula.parameters):
            source = load(builder, arguments, ir.Constant(I64, place), POINTER, POINTER)
            stride = load(builder, strides, ir.Constant(I64, place), I64, I64)
            if parameter in formula.vectors:
                vectors[parameter], count = room, symbols[length_symbol(parameter)]
                room = element_pointer(builder, room, builder.mul(count, width), numbers.element)
                builder.call(copy, [vectors[parameter], source, stride, count, loop.index, rows])
            else:
                here = ir.Constant(I64, len(values) * numbers.width)
                target = element_pointer(builder, scalars, here, numbers.element)
                builder.call(copy, [target, source, stride, _ONE, loop.index, rows])
                values[parameter] = load(builder, target, _ZERO, numbers.element, numbers.type)
        jit = _ArrayJit(builder, numbers, vectors, symbols)
        left = builder.sub(rows, loop.index)
        count = builder.select(builder.icmp_signed("<", left, width), left, width)
        for place, value in enumerate(jit.lower_arrays(formula, values)):
            out = load(builder, outs, ir.Constant(I64, place), POINTER, POINTER)
            kept = element_pointer(builder, results, ir.Constant(I64, place * numbers.width), numbers.element)
            store(builder, value, kept, _ZERO, numbers.element)
            with counted(builder, _ZERO, count) as lane:
                one = load(builder, kept, lane.index, numbers.element, numbers.element)
                store(builder, one, out, builder.add(loop.index, lane.index), numbers.element)
    builder.ret_void()


class _ArrayJit(AstJit):
    """Lowers array formulas; loop variables and lengths are i64 values that all lanes share."""

    def __init__(
        self, builder: ir.IRBuilder, numbers: Numbers, vectors: Mapping[str, ir.Value], symbols: dict[str, ir.Value]
    ) -> None:
        super().__init__(builder, numbers)
        self._vectors, self._symbols = vectors, dict(symbols)

    def lower_arrays(self, formula: ArrayFormula, values: Mapping[str, ir.Value]) -> list[ir.Value]:
        """Emit a formula for the values of its numbers; return those of its results."""
        self._names, self._functions = dict(values), formula.functions
        for name, value in formula.assignments:
            self._names[name] = self.visit(value)
        return [self.visit(result) for result in formula.results]

    def visit_IntegerValue(self, node: IntegerValue) -> ir.Value:
        numbers, builder = self.emit.numbers, self.emit.builder
        if not node.number.terms:
            return self.emit.constant(node.number.constant)
        return broadcast(builder, builder.sitofp(self._integer(node.number), numbers.element), numbers.type)

    def visit_Element(self, node: Element) -> ir.Value:
        builder, numbers = self.emit.builder, self.emit.numbers
        index, length = self._integer(node.index), self._symbols[length_symbol(node.vector)]
        is_below = builder.icmp_signed("<", index, _ZERO)
        index = builder.select(is_below, builder.add(index, length), index)
        place = builder.mul(index, ir.Constant(I64, numbers.width))
        return load(builder, self._vectors[node.vector], place, numbers.element, numbers.type)

    def visit_Reduction(self, node: Reduction) -> Visit:
        builder = self.emit.builder
        start, (stop, *others) = self._integer(node.start), (self._integer(each) for each in node.stops)
        for other in others:
            stop = builder.select(builder.icmp_signed("<", other, stop), other, stop)
        step, size = ir.Constant(I64, node.step), abs(node.step)
        count = builder.sub(stop, start) if node.step > 0 else builder.sub(start, stop)
        if size > 1:
            # Below zero, the quotient rounds to zero or less: no iteration either way.
            count = builder.sdiv(builder.add(count, ir.Constant(I64, size - 1)), ir.Constant(I64, size))
        with counted(builder, _ZERO, count, carried=[self.emit.constant(STARTS[node.kind])]) as loop:
            self._symbols[node.index] = builder.add(start, builder.mul(loop.index, step))
            term = yield node.body
            loop.results = [self._apply(STEPS[node.kind], loop.values[0], term)]
        del self._symbols[node.index]
        return loop.values[0]

    def _integer(self, number: Affine) -> ir.Value:
        builder = self.emit.builder
        total: ir.Value = ir.Constant(I64, number.constant)
        for symbol, factor in number.terms:
            total = builder.add(total, builder.mul(self._symbols[symbol], ir.Constant(I64, factor)))
        return total


def _copy_function(module: ir.Module, numbers: Numbers) -> ir.Function:
    """Internal function: the elements of a block, those of one index side by side.

    ``void copy(target, source, stride, count, first, rows)`` copies `count` elements of the individuals from
    `first` on; lanes after the last individual repeat it.
    """
    labels = ("target", "source", "stride", "count", "first", "rows")
    function = declare(module, f"shine.block.{numbers.dtype}", ir.VoidType(), [POINTER, POINTER, *[I64] * 4], labels)
    function.linkage = "internal"
    function.args[0].add_attribute("noalias")
    target, source, stride, count, first, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    last = builder.sub(rows, _ONE)
    lanes = []
    for lane in range(numbers.width):
        row = builder.add(first, ir.Constant(I64, lane))
        row = builder.select(builder.icmp_signed(">", row, last), last, row)
        lanes.append(element_pointer(builder, source, builder.mul(row, stride), numbers.element))
    with counted(builder, _ZERO, count) as loop:
        vector: ir.Value = ir.Constant(numbers.type, ir.Undefined)
        for lane, pointer in enumerate(lanes):
            value = load(builder, pointer, loop.index, numbers.element, numbers.element)
            vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
        store(builder, vector, target, builder.mul(loop.index, ir.Constant(I64, numbers.width)), numbers.element)
    builder.ret_void()
    return function
