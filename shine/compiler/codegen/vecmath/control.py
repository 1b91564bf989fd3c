"""Control flow of the elementary functions: internal functions, loops, and paths for rare lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.vecmath.lanes import FusingBuilder, Lanes, element_type, joined, suffix


def define(
    builder: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[ir.Type], body: Callable[..., ir.Value]
) -> ir.Function:
    """The internal function `name` of the builder's module, defined on first use by `body(builder, *arguments)`."""
    kind = type(builder)
    name = f"{name}.fused" if kind is FusingBuilder else name
    return define_in(builder.module, name, result, arguments, body, kind)


def define_in(
    module: ir.Module,
    name: str,
    result: ir.Type,
    arguments: Sequence[ir.Type],
    body: Callable[..., ir.Value],
    kind: type[ir.IRBuilder] = ir.IRBuilder,
) -> ir.Function:
    """The module's internal function `name`, defined on first use by `body(builder, *arguments)`."""
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(result, list(arguments)), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    inner = kind(function.append_basic_block("entry"))
    inner.ret(body(inner, *function.args))
    return function


def repeat(name: str, state: Sequence[Lanes], step: Callable[..., tuple[Lanes, Sequence[Lanes]]]) -> Sequence[Lanes]:
    """A loop: `step(*state)` returns whether to go on, and the next state. Returns the last state."""
    builder = state[0].builder
    before, loop, end = builder.block, builder.append_basic_block(name), builder.append_basic_block(f"{name}.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    current = [Lanes(builder, builder.phi(value.type)) for value in state]
    again, following = step(*current)
    for phi, first, later in zip(current, state, following, strict=True):
        phi.value.add_incoming(first.value, before)
        phi.value.add_incoming(later.value, builder.block)
    builder.cbranch(again.value, loop, end)
    builder.position_at_end(end)
    return following


@dataclass(frozen=True)
class RarePath:
    """A path for the few lanes that a function's formula does not cover: small code, out of line.

    Parameters
    ----------
    name : str
        Name of the functions it emits.
    applies : callable
        ``applies(*arguments)``: whether a lane is rare, as truth `Lanes`; the arguments are scalar `Lanes`.
    compute : callable
        ``compute(*arguments)``: the results of a rare lane.
    """

    name: str
    applies: Callable[..., Lanes]
    compute: Callable[..., Sequence[Lanes]]

    def replace(self, suspected: ir.Value, results: Sequence[Lanes], *arguments: Lanes) -> Sequence[Lanes]:
        """`results`, replaced in rare lanes; skipped unless the `i1` `suspected` is true.

        The result of a lane depends on its own arguments only, whatever branch the other lanes cause.
        """
        builder = arguments[0].builder
        values = [lanes.value for lanes in (*results, *arguments)]
        before = builder.block
        with builder.if_then(suspected, likely=False):
            function = self._one_lane(builder, len(results), values)
            if isinstance(arguments[0].type, ir.VectorType):
                function = self._every_lane(builder, len(results), values, function)
            changed = _unpack(builder, builder.call(function, values))
            inside = builder.block
        pairs = zip(results, changed, strict=True)
        return [merge(builder, [(old.value, before), (new.value, inside)]) for old, new in pairs]

    def _one_lane(self, builder: ir.IRBuilder, results: int, values: Sequence[ir.Value]) -> ir.Function:
        def body(inner: ir.IRBuilder, *scalars: ir.Value) -> Sequence[Lanes]:
            arguments = [Lanes(inner, value) for value in scalars[results:]]
            applies = self.applies(*arguments).value
            before = inner.block
            with inner.if_then(applies):
                changed = self.compute(*arguments)
                inside = inner.block
            pairs = zip(scalars[:results], changed, strict=True)
            return [merge(inner, [(old, before), (new.value, inside)]) for old, new in pairs]

        kinds = [element_type(value.type) for value in values]
        return _out_of_line(builder, self.name, kinds[:results], kinds, body)

    def _every_lane(
        self, builder: ir.IRBuilder, results: int, values: Sequence[ir.Value], one_lane: ir.Function
    ) -> ir.Function:
        def body(inner: ir.IRBuilder, *vectors: ir.Value) -> Sequence[Lanes]:
            def step(index: Lanes, *so_far: Lanes) -> tuple[Lanes, Sequence[Lanes]]:
                current = [*(lanes.value for lanes in so_far), *vectors[results:]]
                scalars = [inner.extract_element(vector, index.value) for vector in current]
                pairs = zip(current, _unpack(inner, inner.call(one_lane, scalars)), strict=False)
                changed = [Lanes(inner, inner.insert_element(old, new.value, index.value)) for old, new in pairs]
                return index < vectors[0].type.count - 1, (index + 1, *changed)

            state = [Lanes(inner, value) for value in (ir.IntType(32)(0), *vectors[:results])]
            return repeat("lane", state, step)[1:]

        kinds = [value.type for value in values]
        return _out_of_line(builder, self.name, kinds[:results], kinds, body)


def _pack(builder: ir.IRBuilder, parts: Sequence[Lanes]) -> ir.Value:
    packed = ir.Constant(ir.LiteralStructType([part.type for part in parts]), ir.Undefined)
    for i, part in enumerate(parts):
        packed = builder.insert_value(packed, part.value, i)
    return packed


def _unpack(builder: ir.IRBuilder, packed: ir.Value) -> list[Lanes]:
    return [Lanes(builder, builder.extract_value(packed, i)) for i in range(len(packed.type.elements))]


def merge(builder: ir.IRBuilder, incoming: Sequence[tuple[ir.Value, ir.Block]]) -> Lanes:
    """The value of the block that ran."""
    phi = builder.phi(incoming[0][0].type)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return Lanes(builder, phi)


Test = Callable[..., ir.Value]


def unless(
    rare: ir.Value,
    result: Lanes,
    name: str,
    general: Callable[..., Lanes],
    *arguments: Lanes,
    register: Test | None = None,
) -> Lanes:
    """`result`, or `general(*arguments)` if the `i1` `rare` is true: an out-of-line function.

    If `general` takes very long, give `register`: a vector of several registers is split, and `general` runs only on
    the registers for which the `i1` `register(*arguments)` is true. Where `result` is right, `general` must have the
    same bits: other lanes decide which of the two a lane gets.
    """

    def several(*values: Lanes) -> Sequence[Lanes]:
        return (general(*values),)

    return unless_all(rare, (result,), name, several, *arguments, register=register)[0]


def unless_all(
    rare: ir.Value,
    results: Sequence[Lanes],
    name: str,
    general: Callable[..., Sequence[Lanes]],
    *arguments: Lanes,
    register: Test | None = None,
) -> Sequence[Lanes]:
    """`unless` for several results at once."""
    if register is None:
        return _if(rare, results, name, general, *arguments, likely=False)
    test, count = register, len(results)

    def by_register(*values: Lanes) -> Sequence[Lanes]:
        parts = [(part[:count], part[count:]) for part in zip(*(lanes.registers() for lanes in values), strict=True)]
        changed = [_if(test(*inputs), so_far, f"{name}.register", general, *inputs) for so_far, inputs in parts]
        return [joined(lanes) for lanes in zip(*changed, strict=True)]

    return _if(rare, results, name, by_register, *results, *arguments, likely=False)


def _if(
    condition: ir.Value,
    results: Sequence[Lanes],
    name: str,
    change: Callable[..., Sequence[Lanes]],
    *arguments: Lanes,
    likely: bool | None = None,
) -> Sequence[Lanes]:
    """`results`, or those of an out-of-line function if the condition is true."""
    builder = arguments[0].builder
    values = [argument.value for argument in arguments]

    def body(inner: ir.IRBuilder, *parameters: ir.Value) -> Sequence[Lanes]:
        return change(*(Lanes(inner, parameter) for parameter in parameters))

    before = builder.block
    with builder.if_then(condition, likely=likely):
        types = [lanes.type for lanes in results]
        function = _out_of_line(builder, name, types, [value.type for value in values], body)
        changed = _unpack(builder, builder.call(function, values))
        inside = builder.block
    pairs = zip(results, changed, strict=True)
    return [merge(builder, [(old.value, before), (new.value, inside)]) for old, new in pairs]


def _out_of_line(
    builder: ir.IRBuilder,
    name: str,
    results: Sequence[ir.Type],
    arguments: Sequence[ir.Type],
    body: Callable[..., Sequence[Lanes]],
) -> ir.Function:
    """A function that returns the results of `body(builder, *arguments)` in a structure, and is never inlined."""

    def packed(inner: ir.IRBuilder, *values: ir.Value) -> ir.Value:
        return _pack(inner, body(inner, *values))

    kind = ir.LiteralStructType(list(results))
    function = define(builder, f"shine.{name}.{suffix(arguments[-1])}", kind, arguments, packed)
    # Inlined, this would take most of a kernel's compile time.
    function.attributes.update(("noinline", "cold"))
    return function
