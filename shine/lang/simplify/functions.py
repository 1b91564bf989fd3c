"""Rules for single functions, up to rounding: which functions undo each other, are even or are odd."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from shine.lang.forms.facts import FACTS, basic_where
from shine.lang.simplify.exact import ExactRules
from shine.lang.simplify.factoring import SumBuilder
from shine.lang.simplify.ranges import Ranges
from shine.lang.simplify.sums import LARGEST_EXPONENT, Product, Sum, combined, raised, times_sum
from shine.lang.simplify.terms import (
    CONSTANT,
    MINUS_ONE,
    NAME,
    ONE,
    ZERO,
    Coefficient,
    Terms,
    Unfit,
    coefficient,
    negative,
    plus,
    times,
    to_the_power,
    value,
)


class FunctionBuilder(SumBuilder):
    """Finds the shortest formulas for functions of simplified arguments.

    Parameters
    ----------
    terms : Terms
    allowed : frozenset of str
        Functions that a rule may introduce.
    """

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        super().__init__(terms, allowed)
        self.exact = ExactRules(terms, allowed)
        self.ranges = Ranges(terms)

    def written_product(self, product: Product) -> int:
        """The shortest formula found for a product. A subclass implements it."""
        raise NotImplementedError(f"{type(self).__name__} writes no products")

    def function(self, operation: str, arguments: tuple[int, ...]) -> int:
        """The shortest known term for a function of simplified arguments, other than sums and products."""
        rule = _RULES.get(operation)
        if rule is not None and any(self.terms.operations[argument] != CONSTANT for argument in arguments):
            try:
                found = rule(self, operation, arguments)
            except Unfit:
                found = None
            if found is not None and self.terms.sizes[found] <= 1 + sum(self.terms.sizes[a] for a in arguments):
                return found
        return self.exact.apply(operation, arguments, 0)

    def opposite(self, term: int) -> int:
        """The shortest formula for the negative of a term."""
        if self.is_sum(term):
            return self.shortest_sum(times_sum(MINUS_ONE, self.sum_of(term)))
        own, factors = self.product_of(term)
        return self.written_product(Product(negative(own), factors))

    def positive(self, term: int) -> tuple[int, bool]:
        """The shorter of a term and its negative, and whether that is the negative; prefers terms without a minus."""
        sizes = self.terms.sizes
        if self.is_sum(term):
            constant, parts = self.sum_of(term)
            if all(value(factor) <= 0 for factor in (constant, *parts.values())):
                turned = self.shortest_sum(times_sum(MINUS_ONE, Sum(constant, parts)))
                return (turned, True) if sizes[turned] <= sizes[term] else (term, False)
        opposite = self.opposite(term)
        if sizes[opposite] != sizes[term]:
            return (opposite, True) if sizes[opposite] < sizes[term] else (term, False)
        is_negative = not self.is_sum(term) and self.product_of(term).coefficient[0] < 0
        return (opposite, True) if is_negative else (term, False)


def _undone(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The argument of the function that an operation undoes; None if it is applied to something else."""
    undone = FACTS[operation].undoes
    return None if undone is None else builder.exact.inside(arguments[0], undone)


def _even_function(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    if (undone := _undone(builder, operation, arguments)) is not None:
        return undone
    (a,) = arguments
    if (inner := builder.exact.inside(a, "abs")) is not None:
        return builder.exact.apply(operation, (inner,), 0)
    return builder.exact.apply(operation, (builder.positive(a)[0],), 0)


def _odd_function(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    if (undone := _undone(builder, operation, arguments)) is not None:
        return undone
    a, changed = builder.positive(arguments[0])
    return builder.product(MINUS_ONE, {builder.exact.apply(operation, (a,), 0): 1}) if changed else None


def _absolute(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    low, high = builder.ranges.of(arguments[0])
    if low >= 0 or high <= 0:
        return arguments[0] if low >= 0 else builder.opposite(arguments[0])
    a, _ = builder.positive(arguments[0])
    (number, divisor), factors = builder.product_of(a)
    if not all(_is_not_negative(builder, base, exponent) for base, exponent in factors.items()):
        if (number, divisor) == ONE:
            return builder.exact.apply("abs", (a,), 0)
        inner = builder.exact.apply("abs", (builder.product(ONE, factors),), 0)
        own, factors = builder.product_of(inner)
        number, divisor = times((number, divisor), own)
    return builder.product((abs(number), divisor), factors)


def _is_not_negative(builder: FunctionBuilder, base: int, exponent: int) -> bool:
    return exponent % 2 == 0 or builder.ranges.is_not_negative(base)


def _root(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The root of an even power is half the power of the absolute value."""
    (number, divisor), factors = builder.product_of(arguments[0])
    if number < 0 or not factors:
        return None
    if any(exponent % 2 for exponent in factors.values()):
        return _root_of_some(builder, (number, divisor), factors)
    signed = [base for base, e in factors.items() if e // 2 % 2 and not builder.ranges.has_one_sign(base)]
    halved = {base: exponent // 2 for base, exponent in factors.items() if base not in signed}
    if signed:
        if "abs" not in builder.allowed:
            return None
        halved[builder.terms.make("abs", builder.product(ONE, {base: factors[base] // 2 for base in signed}))] = 1
    scale = coefficient(math.sqrt(number), math.sqrt(divisor))
    negative_ones = sum(e % 2 and builder.ranges.of(base)[0] < 0 for base, e in halved.items() if base in factors)
    return builder.product(negative(scale) if negative_ones % 2 else scale, halved)


def _root_of_some(builder: FunctionBuilder, factor: Coefficient, factors: Mapping[int, int]) -> int | None:
    """``sqrt(x**2*y)`` is ``x*sqrt(y)`` if x is never negative."""
    rest = {base: exponent for base, exponent in factors.items() if exponent % 2}
    root = builder.product(factor, rest)
    # Where x is 0, the root of a negative y would be missing.
    least = 0.0 if builder.ranges.is_not_negative(root) else 5e-324
    out = {base: e // 2 for base, e in factors.items() if base not in rest and builder.ranges.of(base)[0] >= least}
    if not out:
        return None
    within = {base: exponent for base, exponent in factors.items() if base not in out}
    sign = -1 if max(within.values()) < 0 else 1  # x/sqrt(y), not x*sqrt(1/y)
    inner = builder.product(to_the_power(factor, sign), raised(within, sign))
    own, inside = builder.product_of(builder.function("sqrt", (inner,)))
    return builder.product(to_the_power(own, sign), combined(out, raised(inside, sign)))


def common_power(builder: FunctionBuilder, factors: Mapping[int, int]) -> tuple[int, dict[int, int]]:
    """The largest exponent by which a product is a power of another one, which is never negative, and that one."""
    greatest = math.gcd(*factors.values())
    # Roots of an odd power are missing where the product is negative, and so is it.
    for power in dict.fromkeys((greatest, greatest // (greatest & -greatest)) if greatest else ()):
        root = {base: exponent // power for base, exponent in factors.items()}
        if power % 2 or builder.ranges.is_not_negative(builder.product(ONE, root)):
            return power, root
    return 1, dict(factors)


def _exponential(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The exponential of a multiple of a logarithm is a power."""
    factor, factors = builder.product_of(arguments[0])
    if len(factors) != 1:
        return None
    ((base, exponent),) = factors.items()
    inner = builder.exact.inside(base, "log")
    power = value(factor)
    if inner is None or exponent != 1:
        return None
    if power.is_integer() and abs(power) <= LARGEST_EXPONENT:
        own, inside = builder.product_of(inner)
        scaled = {part: int(power) * e for part, e in inside.items()}
        return builder.product(to_the_power(own, int(power)), scaled)
    if power == 0.5 and "sqrt" in builder.allowed:
        return builder.function("sqrt", (inner,))
    return builder.terms.make("pow", inner, builder.terms.constant(power)) if "pow" in builder.allowed else None


def _logarithm(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``log(exp(x)**2*y)`` is ``2*x + log(y)``: exponentials are positive, so any power of them has a logarithm."""
    factor, factors = builder.product_of(arguments[0])
    parts: dict[int, Coefficient] = {}
    rest = dict[int, int]()
    for base, exponent in factors.items():
        found = _power_of_exponential(builder, base)
        if found is None:
            rest[base] = exponent
        else:
            own, part = found
            parts[part] = plus(parts.get(part, ZERO), times((float(exponent), 1.0), own))
    if not rest and factor != ONE:
        return None
    if parts and rest:
        sign = 1 if max(rest.values()) > 0 else -1
        log = builder.function("log", (builder.product(to_the_power(factor, sign), raised(rest, sign)),))
        parts[log] = plus(parts.get(log, ZERO), (float(sign), 1.0))
    return builder.shortest_sum(Sum(ZERO, {part: own for part, own in parts.items() if own[0]})) if parts else None


def _power_of_exponential(builder: FunctionBuilder, base: int) -> tuple[Coefficient, int] | None:
    """The logarithm of an exponential, of its root, or of its power, as a multiple of a term."""
    terms, (operation, arguments) = builder.terms, (builder.terms.operations[base], builder.terms.arguments[base])
    others: dict[int, int] = {}
    power = 0.5 if operation == "sqrt" else 1.0
    if operation == "pow":
        number = terms.number(arguments[1])
        power, others = (1.0, {arguments[1]: 1}) if number is None else (number, {})
    inner = builder.exact.inside(arguments[0] if operation in ("sqrt", "pow") else base, "exp")
    if inner is None:
        return None
    own, inside = builder.product_of(inner)
    return times(coefficient(power), own), builder.product(ONE, combined(inside, others))


def _power(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    if builder.terms.number(arguments[1]) == 0.5 and "sqrt" in builder.allowed:
        return builder.function("sqrt", arguments[:1])
    base, number = arguments[0], builder.terms.number(arguments[1])
    own, factors = builder.product_of(base)
    if number is None or number.is_integer() or own != ONE:
        return None
    # (x**2)**0.75 is x**1.5 if x is never negative.
    power, root = common_power(builder, factors)
    whole = power * number
    if power == 1 or not math.isfinite(whole):
        return None
    if whole.is_integer() and abs(whole) * max(map(abs, root.values())) <= LARGEST_EXPONENT:
        # A negative product has no fractional power, but a whole one.
        return builder.product(ONE, raised(root, int(whole)))
    return builder.function("pow", (builder.product(ONE, root), builder.terms.constant(whole)))


def _extremum(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``max(max(a, b), b)`` is ``max(a, b)``; two constants become one."""
    terms = builder.terms
    for one, other in (arguments, arguments[::-1]):
        (low, _), (_, high) = map(builder.ranges.of, (one, other) if operation == "max" else (other, one))
        if low >= high and (low, high) != (0.0, 0.0):
            return one
        if terms.operations[one] != operation:
            continue
        inner = terms.arguments[one]
        if other in inner:
            return one
        if terms.number(other) is not None and terms.number(inner[1]) is not None:
            return builder.exact.apply(operation, (inner[0], builder.exact.apply(operation, (inner[1], other), 0)), 0)
    return None


def _step(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``relu(x)`` is x and ``sign(x)`` is 1 if x is positive."""
    low, high = builder.ranges.of(arguments[0])
    if operation == "relu":
        return arguments[0] if low >= 0 else builder.terms.constant(0.0) if high <= 0 else None
    return builder.terms.constant(math.copysign(1.0, low)) if low > 0 or high < 0 else None


def _comparison(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``x < 3`` is 1 if x is always less; only of features and numbers, which are never NaN."""
    if operation in ("le", "ge") and arguments[0] == arguments[1]:
        return builder.terms.constant(1.0)
    if any(builder.terms.operations[argument] not in (CONSTANT, NAME) for argument in arguments):
        return None
    (low, high), (least, most) = map(builder.ranges.of, arguments)
    surely = {"lt": high < least, "le": high <= least, "gt": low > most, "ge": low >= most}[operation]
    never = {"lt": low >= most, "le": low > most, "gt": high <= least, "ge": high < least}[operation]
    return builder.terms.constant(float(surely)) if surely or never else None


def _equality(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    return builder.terms.constant(float(operation != "ne")) if arguments[0] == arguments[1] else None


def _functions(parity: str) -> frozenset[str]:
    return basic_where(lambda facts: facts.family == "function" and facts.parity == parity)


_RULES: dict[str, Callable[[FunctionBuilder, str, tuple[int, ...]], int | None]] = {
    **dict.fromkeys(_functions("even"), _even_function),
    **dict.fromkeys(_functions("odd"), _odd_function),
    "abs": _absolute,
    "sqrt": _root,
    "exp": _exponential,
    "log": _logarithm,
    "pow": _power,
    "min": _extremum,
    "max": _extremum,
    "relu": _step,
    "sign": _step,
    **dict.fromkeys(("lt", "le", "gt", "ge"), _comparison),
    **dict.fromkeys(("eq", "ne"), _equality),
}
"""Rules by function: an equal term for simplified arguments, which are not all constants; None if there is none."""
