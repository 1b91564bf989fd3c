"""LLVM IR's calls of intrinsics and of C's mathematics library."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from shine.base.errors import GraphImportError
from shine.formats.read.llvmir.scope import Integer, Lane, Number, Scope, Value
from shine.formats.read.llvmir.text import Cursor, Type
from shine.lang.forms.functions import verify_function
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import CONDITIONAL, Tree

_DEFINITIONS = """
def signbit(x):
    # Only division tells -0.0 from 0.0. NaN has no sign in the language and counts as positive.
    return x < 0 or x == 0 and 1 / x < 0

def copysign(x, y):
    negative = y < 0 or y == 0 and 1 / y < 0
    return -abs(x) if negative else abs(x)

def fmod(x, y):
    # For positive numbers, Python's remainder. C's remainder has the sign of x, even if it is 0.
    rest = abs(x) % abs(y)
    return x - rest if x == 0 else -rest if x < 0 else rest

def trunc(x):
    return ceil(x) if x < 0 else floor(x)

def round(x):
    # Halves away from zero; adding a half to x itself would round twice.
    large = abs(x)
    whole = floor(large)
    away = whole + 1 if large - whole >= 0.5 else whole
    return x if x == 0 else -away if x < 0 else away

def rint(x):
    # Halves to even.
    large = abs(x)
    whole = floor(large)
    rest = large - whole
    up = rest > 0.5 or rest == 0.5 and whole % 2 == 1
    even = whole + 1 if up else whole
    return x if x == 0 else -even if x < 0 else even

def fmin(x, y):
    # If one is NaN, the result is the other; C leaves open which of 0.0 and -0.0 is less.
    return y if y < x or x != x else x

def fmax(x, y):
    return y if y > x or x != x else x

def minimum(x, y):
    # NaN if one is; -0.0 is less than 0.0, and the sum of zeros is negative if both are.
    return -(-x - y) if x == 0 and y == 0 else min(x, y)

def maximum(x, y):
    return x + y if x == 0 and y == 0 else max(x, y)

def minimumnum(x, y):
    return -(-x - y) if x == 0 and y == 0 else y if y < x or x != x else x

def maximumnum(x, y):
    return x + y if x == 0 and y == 0 else y if y > x or x != x else x

def fdim(x, y):
    return 0 if x <= y else x - y

def exp2(x):
    return 2 ** x

def exp10(x):
    return 10 ** x

def pow(x, y):
    return x ** y

def atan2(y, x):
    # The angle within an eighth of the circle, then mirrored to its place.
    small = min(abs(y), abs(x))
    large = max(abs(y), abs(x))
    ratio = 0 if large == 0 else 1 if small == large else small / large
    eighth = atan(ratio)
    quarter = 1.5707963267948966 - eighth if abs(y) > abs(x) else eighth
    half = 3.141592653589793 - quarter if x < 0 or x == 0 and 1 / x < 0 else quarter
    return -half if y < 0 or y == 0 and 1 / y < 0 else half

def asinh(x):
    # Beyond 1e8 the root equals x; below, log1p keeps small values exact.
    large = abs(x)
    near = log1p(large + large * large / (1 + sqrt(1 + large * large)))
    value = log(large) + 0.6931471805599453 if large > 100000000 else near
    return x if x == 0 else -value if x < 0 else value

def acosh(x):
    above = x - 1
    near = log1p(above + sqrt(above) * sqrt(above + 2))
    return log(x) + 0.6931471805599453 if x > 100000000 else near

def atanh(x):
    large = abs(x)
    value = log1p(2 * large / (1 - large)) / 2
    return x if x == 0 else -value if x < 0 else value
"""


@cache
def _definitions() -> dict[str, Tree]:
    table = {}
    for node in ast.parse(_DEFINITIONS).body:
        assert isinstance(node, ast.FunctionDef)
        table[node.name] = verify_function(node, STANDARD)
    return table


_PRIMITIVES = (
    "sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "cbrt", "hypot", "floor", "ceil",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
)  # fmt: skip
_DEFINED = (
    "pow", "exp2", "exp10", "atan2", "asinh", "acosh", "atanh", "fmod", "fmin", "fmax", "fdim", "copysign",
    "trunc", "round", "rint",
)  # fmt: skip

LIBRARY: dict[str, str] = {
    **{name: name for name in (*_PRIMITIVES, *_DEFINED)},
    "fabs": "abs",
    "nearbyint": "rint",
    "roundeven": "rint",
    "fminimum": "minimum",
    "fmaximum": "maximum",
    "fminimum_num": "minimumnum",
    "fmaximum_num": "maximumnum",
}
"""Functions of C's mathematics library by name; floats have an ``f`` at the end."""

INTRINSICS: dict[str, str] = {
    **{name: LIBRARY[name] for name in LIBRARY.keys() - {"fmin", "fmax", "fmod", "fdim", "hypot", "cbrt"}},
    **{name: name for name in ("minimum", "maximum", "minimumnum", "maximumnum")},
    "minnum": "fmin",
    "maxnum": "fmax",
}
"""LLVM's intrinsics by name: ``llvm.sqrt.f64`` is ``sqrt``."""


def meaning(name: str) -> Tree | str:
    """The definition of a name in these tables, or of ``signbit``; or the name of a primitive."""
    return _definitions().get(name, name)


def arity(name: str) -> int:
    """Number of arguments of a name in these tables."""
    found = meaning(name)
    return STANDARD[found].arity if isinstance(found, str) else len(found.parameters)


_IGNORED = (
    "llvm.assume", "llvm.dbg.", "llvm.lifetime.", "llvm.experimental.noalias.scope.decl", "llvm.sideeffect",
    "llvm.donothing", "llvm.pseudoprobe",
)  # fmt: skip
"""Intrinsics that compute nothing."""
_TYPE_SUFFIX = re.compile(r"(?:\.(?:v\d+)?(?:f32|f64|i\d+))+$")


def call(scope: Scope, cursor: Cursor) -> Value | None:
    """The value of a call; None if it returns nothing."""
    name = cursor.callee()
    if name.startswith(_IGNORED):
        return None
    if name.startswith("llvm."):
        return _intrinsic(scope, name, partial(_arguments, scope, cursor))
    single = scope.kind == "float" and name.endswith("f")
    plain = name[:-1] if single else name
    if plain == "fma":
        raise GraphImportError(_FUSED)
    if plain in ("ldexp", "scalbn", "scalbln"):
        return _scaled(scope, "", _arguments(scope, cursor))
    if plain not in LIBRARY:
        raise GraphImportError(
            f"it calls {name!r}, which the module does not define, or which calls itself; "
            f"a formula can call these functions of C: {', '.join(sorted(LIBRARY))}"
        )
    return _mathematical(scope, LIBRARY[plain], _arguments(scope, cursor))


Argument = tuple[Type, Value]


def _arguments(scope: Scope, cursor: Cursor) -> list[Argument]:
    """Read arguments up to the closing parenthesis."""
    found: list[Argument] = []
    while cursor.next != ")":
        if found:
            cursor.expect(",")
        kind = cursor.type()
        cursor.attributes()
        found.append((kind, scope.read(cursor, kind)))
    return found


def _mathematical(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """A function of floating-point numbers."""
    if len(arguments) != arity(name):
        raise GraphImportError(f"it calls {name!r} with {len(arguments)} arguments; C's takes {arity(name)}")
    for kind, _ in arguments:
        scope.check_type(kind)

    def rule(*lanes: Lane) -> Lane:
        return Number(scope.call(meaning(name), *(scope.number(lane) for lane in lanes)))

    return scope.each(rule, *(value for _, value in arguments))


def _intrinsic(scope: Scope, name: str, arguments: Callable[[], list[Argument]]) -> Value:
    plain = _TYPE_SUFFIX.sub("", name.removeprefix("llvm."))
    if plain in INTRINSICS:
        return _mathematical(scope, INTRINSICS[plain], arguments())
    if plain not in _SPECIAL:
        raise GraphImportError(
            f"intrinsic {name!r} has no meaning in a formula; supported are "
            f"{', '.join(sorted({*INTRINSICS, *_SPECIAL}))}"
        )
    return _SPECIAL[plain](scope, name, arguments())


_FUSED = (
    "fma rounds once, which a formula cannot; write a*b + c (in Rust, instead of mul_add), "
    "whose results may differ by more than the last bit where the sum cancels"
)


def _fused(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    raise GraphImportError(_FUSED)


def _multiply_add(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """llvm.fmuladd: product and sum, each rounded, as LLVM allows."""

    def rule(a: Lane, b: Lane, c: Lane) -> Lane:
        x, y, z = (scope.number(lane) for lane in (a, b, c))
        return Number(scope.call("add", scope.call("mul", x, y), z))

    return scope.each(rule, *(value for _, value in arguments))


def _power(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """llvm.powi: products by repeated squaring, in the order of LLVM's own code."""
    (_, base), (_, (exponent,)) = arguments
    power = _constant(scope, exponent, "the exponent of powi")

    def rule(lane: Lane) -> Lane:
        square, result, left = scope.number(lane), None, abs(power)
        while left:
            if left & 1:
                result = square if result is None else scope.call("mul", result, square)
            left >>= 1
            if left:
                square = scope.call("mul", square, square)
        one = scope.graph.constant(1)
        if result is None:
            return Number(one)
        return Number(scope.call("div", one, result) if power < 0 else result)

    return scope.each(rule, base)


def _scaled(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """A number times a power of two."""
    (kind, number), (_, (exponent,)) = arguments
    scope.check_type(kind)
    power = _constant(scope, exponent, "the exponent of ldexp")
    if not -1022 <= power <= 1023:
        raise GraphImportError(f"the exponent of ldexp must be within -1022 and 1023, is {power}")
    factor = scope.constant(math.ldexp(1.0, power)).node
    return scope.each(lambda lane: Number(scope.call("mul", scope.number(lane), factor)), number)


def _constant(scope: Scope, lane: Lane, what: str) -> int:
    integer = scope.integer(lane)
    if integer.low != integer.high:
        raise GraphImportError(f"{what} must be a constant")
    return integer.low


def _classified(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """llvm.is.fpclass: whether a number belongs to one of the classes in a mask."""
    (kind, number), (_, (mask,)) = arguments
    scope.check_type(kind)
    wanted = _constant(scope, mask, "the classes of is.fpclass")
    if (wanted & 3) in (1, 2):
        raise GraphImportError("signaling and quiet NaN are the same in a formula")
    return scope.each(lambda lane: scope.condition(_in_classes(scope, scope.number(lane), wanted)), number)


_SMALLEST_NORMAL = {"double": 2.0**-1022, "float": 2.0**-126}


def _in_classes(scope: Scope, x: int, wanted: int) -> int:
    # The mask's bits from the lowest: two for NaN, then -inf, normal, subnormal, -0, 0, subnormal, normal, inf.
    zero, infinity = scope.graph.constant(0), scope.constant(math.inf).node
    normal = scope.constant(_SMALLEST_NORMAL[scope.kind]).node
    size = scope.call("abs", x)
    is_zero, negative = scope.call("eq", x, zero), scope.call(meaning("signbit"), x)
    is_infinite, is_small = scope.call("eq", size, infinity), scope.call("lt", size, normal)
    finite = scope.both(scope.call("ge", size, normal), scope.call("lt", size, infinity))
    subnormal = scope.both(is_small, scope.opposite(is_zero))
    classes = ((is_infinite, 4, 512), (finite, 8, 256), (subnormal, 16, 128), (is_zero, 32, 64))
    tests = [scope.call("ne", x, x)] if wanted & 3 else []
    for holds, below, above in classes:
        if wanted & below and wanted & above:
            tests.append(holds)
        elif wanted & (below | above):
            tests.append(scope.both(holds, negative if wanted & below else scope.opposite(negative)))
    result = scope.graph.constant(0)
    for position, test in enumerate(tests):
        result = test if position == 0 else scope.either(result, test)
    return result


def _saturated(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    """llvm.fptosi.sat: the number truncated and clamped to the range of the type; 0 for NaN."""
    ((kind, number),) = arguments
    scope.check_type(kind)
    match = re.search(r"\.(?:v\d+)?i(\d+)", name)
    assert match is not None
    width = int(match[1])
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1

    def rule(lane: Lane) -> Lane:
        x = scope.number(lane)
        integer_constant = scope.call("add", scope.call(meaning("trunc"), x), scope.graph.constant(0))
        bounds = (scope.graph.constant(low), scope.graph.constant(high))
        within = scope.call("max", bounds[0], scope.call("min", integer_constant, bounds[1]))
        is_nan = scope.call("ne", x, x)
        return Integer(scope.call(CONDITIONAL, is_nan, scope.graph.constant(0), within), low, high, width)

    return scope.each(rule, number)


def _extremum(name: str) -> Callable[[Scope, str, Sequence[Argument]], Value]:
    """The smaller or greater of two integers."""

    def apply(scope: Scope, intrinsic: str, arguments: Sequence[Argument]) -> Value:
        def rule(a: Lane, b: Lane) -> Lane:
            x, y = scope.integer(a), scope.integer(b)
            if "llvm.u" in intrinsic and min(x.low, y.low) < 0:
                raise GraphImportError("an unsigned integer that may be negative is not supported")
            pick = min if name == "min" else max
            return Integer(scope.call(name, x.node, y.node), pick(x.low, y.low), pick(x.high, y.high), x.width)

        return scope.each(rule, *(value for _, value in arguments))

    return apply


def _absolute(scope: Scope, name: str, arguments: Sequence[Argument]) -> Value:
    def rule(lane: Lane) -> Lane:
        x = scope.integer(lane)
        high = max(abs(x.low), abs(x.high))
        return Integer(scope.call("abs", x.node), 0, min(high, (1 << (x.width - 1)) - 1), x.width)

    return scope.each(rule, arguments[0][1])


def _reduction(name: str) -> Callable[[Scope, str, Sequence[Argument]], Value]:
    """The sum or product of a start value and all lanes, in order."""

    def apply(scope: Scope, intrinsic: str, arguments: Sequence[Argument]) -> Value:
        (_, (start,)), (kind, lanes) = arguments
        scope.check_type(kind)
        result = scope.number(start)
        for lane in lanes:
            result = scope.call(name, result, scope.number(lane))
        return (Number(result),)

    return apply


_SPECIAL: Mapping[str, Callable[[Scope, str, Sequence[Argument]], Value]] = {
    "fma": _fused,
    "fmuladd": _multiply_add,
    "powi": _power,
    "ldexp": _scaled,
    "canonicalize": lambda scope, name, arguments: arguments[0][1],
    "is.fpclass": _classified,
    "fptosi.sat": _saturated,
    "smin": _extremum("min"),
    "umin": _extremum("min"),
    "smax": _extremum("max"),
    "umax": _extremum("max"),
    "abs": _absolute,
    "vector.reduce.fadd": _reduction("add"),
    "vector.reduce.fmul": _reduction("mul"),
}
"""Intrinsics that are not functions of C's library."""
