"""One rule for each basic primitive: values -> LLVM IR. Rules work on scalars and vectors alike, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.compiler.codegen.blocks import intrinsic
from shine.compiler.codegen.numbers import Numbers, lanes_number, splat
from shine.compiler.codegen.vecmath import functions as vecmath


class Emitter:
    """The place of new instructions, and the state of the lanes they work on.

    Parameters
    ----------
    builder : ir.IRBuilder
    numbers : Numbers
        Type of every value.

    Attributes
    ----------
    active : ir.Value or None
        Lanes that reach the current node, as an i1 mask; None means all. Only integers need it: a failure in a lane
        that is not active does not count.
    failed : ir.Value or None
        Lanes that divided by zero so far.
    """

    def __init__(self, builder: ir.IRBuilder, numbers: Numbers) -> None:
        self.builder = builder
        self.numbers = numbers
        self.active: ir.Value | None = None
        self.failed: ir.Value | None = None

    def constant(self, value: int | float) -> ir.Constant:
        """A number in every lane."""
        return self.numbers.constant(value)

    def compare(self, operator: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """Mask of a comparison; as in IEEE 754, NaN is unequal to everything."""
        if self.numbers.is_integer:
            return self.builder.icmp_signed(operator, left, right)
        ordered = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
        return ordered(operator, left, right)

    def truth(self, value: ir.Value) -> ir.Value:
        """Mask of the lanes Python calls true: everything but zero, NaN included."""
        return self.compare("!=", value, self.constant(0))

    def number(self, mask: ir.Value) -> ir.Value:
        """1 where a mask holds, 0 elsewhere."""
        return self.builder.select(mask, self.constant(1), self.constant(0))

    def intrinsic(self, name: str, *arguments: ir.Value) -> ir.Value:
        """Call of an LLVM intrinsic that is overloaded on the type of its first argument."""
        return self.builder.call(intrinsic(self.builder.module, name, arguments[0].type, len(arguments)), arguments)

    def fail(self, mask: ir.Value) -> None:
        """Mark the active lanes of a mask as failed."""
        if self.active is not None:
            mask = self.builder.and_(mask, self.active)
        self.failed = mask if self.failed is None else self.builder.or_(self.failed, mask)


Rule = Callable[..., ir.Value]


def _builder_rule(method: str) -> Rule:
    """A rule that is one instruction."""
    return lambda emit, *arguments: getattr(emit.builder, method)(*arguments)


def _comparison(operator: str) -> Rule:
    return lambda emit, a, b: emit.number(emit.compare(operator, a, b))


def _intrinsic(name: str) -> Rule:
    return lambda emit, a: emit.intrinsic(name, a)


def _vecmath(name: str) -> Rule:
    return lambda emit, *arguments: vecmath.call(emit.builder, name, *arguments)


def _sign(emit: Emitter, a: ir.Value) -> ir.Value:
    zero, select = emit.constant(0), emit.builder.select
    # NaN is neither above, below nor equal to zero, so it stays NaN.
    rest = a if emit.numbers.is_integer else select(emit.compare("==", a, zero), zero, a)
    below = select(emit.compare("<", a, zero), emit.constant(-1), rest)
    return select(emit.compare(">", a, zero), emit.constant(1), below)


def _extremum(operator: str) -> Rule:
    """min or max; NaN if either operand is: the first operand if it is NaN or precedes the second, else the second.

    ``select(a < b, a, b)`` is one instruction of x86 and WebAssembly, and right if `b` is NaN. So only NaN in `a` needs
    a comparison of its own, and none if an operand is a constant.
    """

    def rule(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
        build, left, right = emit.builder, lanes_number(a), lanes_number(b)
        if emit.numbers.is_integer or left is not None:
            return build.select(emit.compare(operator, a, b), a, b)
        if right == 0:
            return build.select(build.fcmp_unordered(operator, a, b), a, b)
        if right is not None:
            # Operands that are equal have equal bits, because they are not zero: either may be chosen.
            return build.select(emit.compare(operator, b, a), b, a)
        chosen = build.select(emit.compare(operator, a, b), a, b)
        return build.select(build.fcmp_ordered("ord", a, a), chosen, a)

    return rule


def _float_remainder(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """Python's `%`: the sign of the divisor (CPython's float_rem)."""
    build, zero = emit.builder, emit.constant(0)
    remainder = vecmath.call(build, "fmod", a, b)
    differs = build.xor(emit.compare("<", b, zero), emit.compare("<", remainder, zero))
    moved = build.select(differs, build.fadd(remainder, b), remainder)
    exact = emit.compare("==", remainder, zero)
    return build.select(exact, emit.intrinsic("llvm.copysign", zero, b), moved)


def _float_floordiv(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """Python's `//` (CPython's float_floor_div), with IEEE results for a zero divisor."""
    build, zero = emit.builder, emit.constant(0)
    remainder = vecmath.call(build, "fmod", a, b)
    quotient = build.fdiv(build.fsub(a, remainder), b)
    differs = build.xor(emit.compare("<", b, zero), emit.compare("<", remainder, zero))
    moves = build.and_(differs, emit.compare("!=", remainder, zero))
    quotient = build.select(moves, build.fsub(quotient, emit.constant(1)), quotient)
    floor = emit.intrinsic("llvm.floor", quotient)
    rounded_down = emit.compare(">", build.fsub(quotient, floor), emit.constant(0.5))
    floor = build.select(rounded_down, build.fadd(floor, emit.constant(1)), floor)
    plain = build.fdiv(a, b)
    signed_zero = emit.intrinsic("llvm.copysign", zero, plain)
    result = build.select(emit.compare("==", quotient, zero), signed_zero, floor)
    return build.select(emit.compare("==", b, zero), plain, result)


def _integer_quotient(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """a / b, truncated.

    `sdiv` ends the process for a zero divisor, and for the smallest integer divided by -1. Both get the divisor 1
    instead: the first counts as failed, the second wraps.
    """
    build = emit.builder
    if isinstance(b, ir.Constant) and b not in (emit.constant(0), emit.constant(-1)):
        return build.sdiv(a, b)
    zero = emit.compare("==", b, emit.constant(0))
    minus_one = emit.compare("==", b, emit.constant(-1))
    emit.fail(zero)
    divisor = build.select(build.or_(zero, minus_one), emit.constant(1), b)
    return build.select(minus_one, build.sub(emit.constant(0), a), build.sdiv(a, divisor))


def _floor_parts(emit: Emitter, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Truncated quotient, remainder, and the mask of the lanes in which flooring changes them."""
    build, zero = emit.builder, emit.constant(0)
    quotient = _integer_quotient(emit, a, b)
    remainder = build.sub(a, build.mul(quotient, b))
    opposite = emit.compare("<", build.xor(remainder, b), zero)
    return quotient, remainder, build.and_(opposite, emit.compare("!=", remainder, zero))


def _integer_floordiv(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    quotient, _, moves = _floor_parts(emit, a, b)
    return emit.builder.select(moves, emit.builder.sub(quotient, emit.constant(1)), quotient)


def _integer_remainder(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    _, remainder, moves = _floor_parts(emit, a, b)
    return emit.builder.select(moves, emit.builder.add(remainder, b), remainder)


def _integer_power(emit: Emitter, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Products wrap; a negative exponent truncates 1 / base**-exponent, which is 0 unless base is 1, -1 or 0."""
    build, zero, one = emit.builder, emit.constant(0), emit.constant(1)
    negative = emit.compare("<", exponent, zero)
    emit.fail(build.and_(negative, emit.compare("==", base, zero)))
    power = build.call(_power_function(build.module, emit.numbers), [base, exponent])
    odd = emit.compare("!=", build.and_(exponent, one), zero)
    unit = build.select(odd, base, one)
    is_unit = build.or_(emit.compare("==", base, one), emit.compare("==", base, emit.constant(-1)))
    return build.select(negative, build.select(is_unit, unit, zero), power)


def _product_power(power: Rule, multiply: str) -> Rule:
    """`power`, but products if the exponent is the constant 2 or 3: the same bits, cheaper."""

    def rule(emit: Emitter, base: ir.Value, exponent: ir.Value) -> ir.Value:
        times = getattr(emit.builder, multiply)
        if exponent == emit.constant(2):
            return times(base, base)
        return times(times(base, base), base) if exponent == emit.constant(3) else power(emit, base, exponent)

    return rule


def _power_function(module: ir.Module, numbers: Numbers) -> ir.Function:
    """Internal function: base**exponent by repeated squaring, a fixed number of steps for all lanes."""
    kind = numbers.type
    name = f"shine.ipow.{numbers.dtype}x{numbers.width}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
    function.linkage = "internal"
    entry, loop, done = (function.append_basic_block(label) for label in ("entry", "loop", "done"))
    build = ir.IRBuilder(entry)
    build.branch(loop)
    build.position_at_end(loop)
    step = build.phi(ir.IntType(32), "step")
    result, square, left = (build.phi(kind, label) for label in ("result", "square", "left"))
    for phi, start in ((step, 0), (result, 1), (left, None), (square, None)):
        initial = function.args[1 if phi is left else 0] if start is None else splat(phi.type, start)
        phi.add_incoming(initial, entry)
    odd = build.icmp_signed("!=", build.and_(left, splat(kind, 1)), splat(kind, 0))
    result_next = build.select(odd, build.mul(result, square), result)
    step_next = build.add(step, ir.Constant(step.type, 1))
    square_next, left_next = build.mul(square, square), build.lshr(left, splat(kind, 1))
    for phi, value in ((step, step_next), (result, result_next), (square, square_next), (left, left_next)):
        phi.add_incoming(value, loop)
    build.cbranch(build.icmp_signed("<", step_next, ir.Constant(step.type, 8 * numbers.bytes)), loop, done)
    build.position_at_end(done)
    build.ret(result_next)
    return function


def _integer_neg(emit: Emitter, a: ir.Value) -> ir.Value:
    return emit.builder.sub(emit.constant(0), a)


_SHARED: dict[str, Rule] = {
    "min": _extremum("<"),
    "max": _extremum(">"),
    "sign": _sign,
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "eq": _comparison("=="),
    "ne": _comparison("!="),
    "logical_and": lambda emit, a, b: emit.builder.select(emit.truth(a), b, a),
    "logical_or": lambda emit, a, b: emit.builder.select(emit.truth(a), a, b),
    "logical_not": lambda emit, a: emit.number(emit.compare("==", a, emit.constant(0))),
    "where": lambda emit, c, a, b: emit.builder.select(emit.truth(c), a, b),
}

FLOAT_LOWERINGS: dict[str, Rule] = _SHARED | {
    "add": _builder_rule("fadd"),
    "sub": _builder_rule("fsub"),
    "mul": _builder_rule("fmul"),
    "div": _builder_rule("fdiv"),
    "neg": _builder_rule("fneg"),
    "abs": _intrinsic("llvm.fabs"),
    "sqrt": _intrinsic("llvm.sqrt"),
    "floor": _intrinsic("llvm.floor"),
    "ceil": _intrinsic("llvm.ceil"),
    "floordiv": _float_floordiv,
    "mod": _float_remainder,
    **{name: _vecmath(name) for name in ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: _vecmath(name) for name in ("sinh", "cosh", "tanh")},
    "pow": _product_power(_vecmath("pow"), "fmul"),
}
"""Lowering of each basic primitive for floating-point numbers."""

INTEGER_LOWERINGS: dict[str, Rule] = _SHARED | {
    "add": _builder_rule("add"),
    "sub": _builder_rule("sub"),
    "mul": _builder_rule("mul"),
    "div": _integer_quotient,
    "floordiv": _integer_floordiv,
    "mod": _integer_remainder,
    "pow": _product_power(_integer_power, "mul"),
    "neg": _integer_neg,
    "abs": lambda emit, a: emit.builder.select(emit.compare("<", a, emit.constant(0)), _integer_neg(emit, a), a),
    "floor": lambda emit, a: a,
    "ceil": lambda emit, a: a,
}
"""Lowering of each basic primitive that integers have."""
