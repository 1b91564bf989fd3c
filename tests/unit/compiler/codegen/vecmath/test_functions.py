"""The elementary functions against mpmath, at their special values, and to the bit between ways to compile them."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
from collections.abc import Callable
from functools import cache

import mpmath
import numpy as np
import pytest
from helpers.equality import same_bits
from helpers.markers import mostly_slow
from llvmlite import ir

from shine.base.errors import LoweringError
from shine.compiler.codegen.vecmath import functions as vecmath
from shine.compiler.codegen.vecmath.lanes import FusingBuilder
from shine.compiler.codegen.vecmath.trigonometric import cos_and_slope, sin_and_slope
from shine.compiler.llvm import Engine, assembly
from shine.compiler.llvm.engine import with_fma_defined
from shine.formats.native.freestanding import prepare

INF, NAN = math.inf, math.nan
PRECISIONS = [np.float64, np.float32]
ONE_ARGUMENT = [name for name, rule in vecmath.FUNCTIONS.items() if rule.arity == 1]
Array = np.ndarray


def loop(name: str, lanes: int, dtype: type, kind: type[ir.IRBuilder] = ir.IRBuilder) -> str:
    """IR of `f(arguments..., out, n)`; n must be a multiple of `lanes`, 0 lanes mean a scalar."""
    element = ir.DoubleType() if dtype is np.float64 else ir.FloatType()
    value_type = ir.VectorType(element, lanes) if lanes else element
    pointer, index = ir.PointerType(), ir.IntType(64)
    module = ir.Module("test")
    arity = vecmath.FUNCTIONS[name].arity
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (arity + 1) + [index]), "f")
    entry, body, end = (function.append_basic_block(block) for block in ("entry", "body", "end"))
    ir.IRBuilder(entry).branch(body)
    builder = kind(body)
    i = builder.phi(index)
    *places, out = (builder.gep(argument, [i], source_etype=element) for argument in function.args[:-1])
    loaded = [builder.load(place, typ=value_type) for place in places]
    stored = builder.store(vecmath.call(builder, name, *loaded), out)
    for access in (*loaded, stored):
        access.align = np.dtype(dtype).itemsize
    following = builder.add(i, index(max(lanes, 1)))
    i.add_incoming(index(0), entry)
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, function.args[-1]), body, end)
    ir.IRBuilder(end).ret_void()
    return str(module)


@cache
def compiled(
    name: str, dtype: type, lanes: int = 8, level: str = "O2", fma: bool = True, kind: type[ir.IRBuilder] = ir.IRBuilder
) -> Callable[..., Array]:
    arity = vecmath.FUNCTIONS[name].arity
    text = loop(name, lanes, dtype, kind)
    text = text if fma else with_fma_defined(text)
    function = Engine(text, level).function("f", None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)

    def evaluate(*arguments: Array) -> Array:
        n = len(arguments[0])
        padded = [np.ones(-(-n // 16) * 16, dtype) for _ in arguments]
        for array, argument in zip(padded, arguments, strict=True):
            array[:n] = argument
        out = np.empty_like(padded[0])
        function(*(array.ctypes.data for array in (*padded, out)), len(out))
        return out[:n]

    return evaluate


def ulps(result: Array, truth: list[mpmath.mpf]) -> float:
    """Largest error of finite results in units in the last place of the truth."""
    info = np.finfo(result.dtype)
    worst = 0.0
    for got, true in zip(result.tolist(), truth, strict=True):
        exponent = max(mpmath.frexp(true)[1] - 1, int(info.minexp)) if true else int(info.minexp)
        if math.isinf(got):
            # Overflow is right from half an ulp beyond the largest number on; allow the ulps of the contract.
            got = math.copysign(2.0, got) * mpmath.mpf(2) ** (info.maxexp - 1)
            true = mpmath.sign(true) * min(abs(true), abs(got))
            exponent = info.maxexp - 1
        worst = max(worst, float(abs(mpmath.mpf(got) - true) / mpmath.ldexp(1, exponent - info.nmant)))
    return worst


def samples(rng: np.random.Generator, dtype: type, bound: float, count: int = 700) -> Array:
    """Both signs: every magnitude up to `bound` down to subnormals, ordinary sizes, and the neighbours of 1."""
    info = np.finfo(dtype)
    exponents = rng.uniform(np.log2(float(info.smallest_subnormal)), np.log2(bound), count)
    with np.errstate(over="ignore"):
        parts = [2.0**exponents, rng.uniform(0, min(bound, 20), count), 1 + rng.normal(0, 0.01, count // 4)]
        x = np.concatenate(parts).astype(dtype)
    x = x[x <= dtype(bound)]
    return x * rng.choice(np.array([-1, 1], dtype), len(x))


def near_quarter_turns(rng: np.random.Generator, dtype: type, bound: float) -> Array:
    turns = np.concatenate([np.arange(1, 60), 2.0 ** rng.uniform(1, np.log2(bound) - 1, 150)])
    with mpmath.workprec(1200):
        return np.array([float(mpmath.nint(k) * mpmath.pi / 2) for k in turns], dtype)


HUGE = {np.float64: 1.7e308, np.float32: 3.4e38}
BOUNDS = {
    "exp": {np.float64: 746.0, np.float32: 104.0},
    "sinh": {np.float64: 710.5, np.float32: 89.5},
    "cosh": {np.float64: 710.5, np.float32: 89.5},
    "asin": dict.fromkeys(PRECISIONS, 1.0),
    "acos": dict.fromkeys(PRECISIONS, 1.0),
}
BOUND_IN_ULPS = 2.0
WAYS = [*((dtype, ir.IRBuilder) for dtype in PRECISIONS), (np.float64, FusingBuilder)]


@pytest.mark.parametrize(("dtype", "kind"), WAYS)
@pytest.mark.parametrize("name", mostly_slow(ONE_ARGUMENT, fast=["sin", "exp"]))
def test_function_is_within_its_bound_of_the_truth(name: str, dtype: type, kind: type[ir.IRBuilder]) -> None:
    rng = np.random.default_rng(1)
    bound = BOUNDS.get(name, HUGE)[dtype]
    x = samples(rng, dtype, bound)
    if name == "log":
        x = np.abs(x)
    if name in ("sin", "cos", "tan"):
        x = np.concatenate([x, near_quarter_turns(rng, dtype, bound)])
    x = x[x != 0]
    with mpmath.workprec(120):
        truth = [getattr(mpmath, name)(mpmath.mpf(value)) for value in x.tolist()]
        assert ulps(compiled(name, dtype, kind=kind)(x), truth) < BOUND_IN_ULPS


def test_slopes_of_sine_and_cosine_are_cosine_and_minus_sine(monkeypatch: pytest.MonkeyPatch) -> None:
    x = samples(np.random.default_rng(3), np.float64, HUGE[np.float64])
    for both, value, slope, sign in ((sin_and_slope, "sin", "cos", 1), (cos_and_slope, "cos", "sin", -1)):
        for i, same in enumerate((compiled(value, np.float64)(x), sign * compiled(slope, np.float64)(x))):
            rule = vecmath.Rule(1, lambda x, both=both, i=i: both(x)[i], vecmath.FUNCTIONS["sin"].single)
            monkeypatch.setitem(vecmath.FUNCTIONS, f"{value}.{i}", rule)
            assert same_bits(compiled(f"{value}.{i}", np.float64)(x), same).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_pow_is_within_its_bound_of_the_truth(dtype: type) -> None:
    rng = np.random.default_rng(2)
    x = np.abs(samples(rng, dtype, HUGE[dtype]))
    x = x[(x != 1) & (x != 0)]
    # Exponents that make results of every magnitude, and some beyond.
    limit = np.finfo(dtype).maxexp * 1.06
    with np.errstate(over="ignore"):
        y = (rng.uniform(-limit, limit, len(x)) / np.log2(x.astype(np.float64))).astype(dtype)
    whole = rng.random(len(x)) < 0.3
    y[whole] = np.rint(y[whole])
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    with mpmath.workprec(150):
        truth = [mpmath.mpf(a) ** mpmath.mpf(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert ulps(compiled("pow", dtype)(x, y), truth) < BOUND_IN_ULPS


SAMPLED = 2.0 ** np.arange(-3, 9)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos"])
def test_float32_is_within_its_bound_at_every_number_around_some(name: str) -> None:
    x = np.concatenate([np.float32(start).view(np.int32) + np.arange(-20000, 20000) for start in SAMPLED])
    x = x.astype(np.int32).view(np.float32)
    if name == "exp":
        x = np.concatenate([x, -x])
        x = x[(x > -103) & (x < 88)]
    truth = getattr(np, name)(x.astype(np.float64))
    unit = np.spacing(np.maximum(np.abs(truth), 2.0**-126).astype(np.float32)).astype(np.float64)
    assert (np.abs(compiled(name, np.float32)(x) - truth) / unit).max() < BOUND_IN_ULPS


@pytest.mark.parametrize(("dtype", "kind"), WAYS)
@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos"])
def test_a_lane_beside_special_ones_keeps_its_bits(name: str, dtype: type, kind: type[ir.IRBuilder]) -> None:
    x = np.abs(samples(np.random.default_rng(6), dtype, 80.0))
    x = x[x != 0]
    alone = compiled(name, dtype, kind=kind)(x)
    for special in (0.0, -0.0, INF, -INF, NAN, -1e30, 1e30, 500.0, -1000.0, 1e-310, -1e-42):
        with np.errstate(all="ignore"):
            beside = np.stack([x, np.full_like(x, special)], 1).ravel()
        assert same_bits(compiled(name, dtype, kind=kind)(beside)[::2], alone).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh"])
def test_a_processor_without_fma_gets_the_same_bits(name: str) -> None:
    assert "llvm.fma" in loop(name, 8, np.float32)
    assert "llvm.fma" not in loop(name, 8, np.float64)
    assert "llvm.fma" in loop(name, 8, np.float64, FusingBuilder)
    x = samples(np.random.default_rng(8), np.float32, HUGE[np.float32], 20000)
    for lanes in (0, 8):
        with np.errstate(all="ignore"):
            assert same_bits(
                compiled(name, np.float32, lanes, fma=False)(x), compiled(name, np.float32, lanes)(x)
            ).all()
            rounded_twice = compiled(name, np.float64, lanes, fma=False, kind=FusingBuilder)
            assert same_bits(rounded_twice(1.0 * x), compiled(name, np.float64, lanes)(1.0 * x)).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_sine_is_odd_and_cosine_even_to_the_bit(dtype: type) -> None:
    x = samples(np.random.default_rng(7), dtype, HUGE[dtype])
    assert same_bits(compiled("sin", dtype)(-x), -compiled("sin", dtype)(x)).all()
    assert same_bits(compiled("cos", dtype)(-x), compiled("cos", dtype)(x)).all()


def test_sine_of_the_float64_nearest_to_a_multiple_of_a_quarter_turn() -> None:
    x = np.array([6381956970095103 * 2.0**797])
    with mpmath.workprec(1200):
        truth = [mpmath.cos(mpmath.mpf(x[0]))]
        assert ulps(compiled("cos", np.float64)(x), truth) < 1


SPECIAL_VALUES = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (-1e-40, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, math.pi / 2), (-1.0, -math.pi / 2), (1.01, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (0.0, math.pi / 2), (-0.0, math.pi / 2), (-1.0, math.pi), (-1.01, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e4, 1.0)],
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_special_values_are_exact(name: str, dtype: type) -> None:
    x, expected = (np.array(column, dtype) for column in zip(*SPECIAL_VALUES[name], (NAN, NAN), strict=True))
    assert same_bits(compiled(name, dtype)(x), expected).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "tanh"])
def test_subnormal_numbers_are_their_own_image(name: str, dtype: type) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([tiny, -tiny, 3 * tiny, -1000 * tiny], dtype)
    assert same_bits(compiled(name, dtype)(x), x).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_pow_has_the_special_cases_of_ieee_754(dtype: type) -> None:
    info = np.finfo(dtype)
    odd, even = 2.0 ** (info.nmant + 1) - 1, 2.0 ** (info.nmant + 1)
    sizes = [0.0, info.smallest_subnormal, 0.5, 1.0, 1.5, 2.0, 3.0, odd, even, info.max, INF]
    values = np.array([*sizes, *(-size for size in sizes), NAN], dtype)
    x, y = (np.array(column, dtype) for column in zip(*itertools.product(values, repeat=2), strict=True))
    got = compiled("pow", dtype)(x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    assert (same_bits(got, expected) | np.isclose(got, expected, rtol=2.0**-22, atol=0)).all()
    assert same_bits(got, expected)[(expected == 0) | (np.abs(expected) == 1) | ~np.isfinite(expected)].all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_fmod_is_exact(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x, y = (samples(rng, dtype, HUGE[dtype], 2000)[:3000] for _ in range(2))
    top = (HUGE[dtype] * rng.uniform(0.5, 1, len(y))).astype(dtype)
    with np.errstate(all="ignore"):
        close = y * (2.0 ** rng.uniform(-2, 30, len(y))).astype(dtype)
        multiples = y * np.rint(2.0 ** rng.uniform(0, 20, len(y))).astype(dtype)
        below_top = top * (2.0 ** rng.uniform(-12, 0, len(y))).astype(dtype)
        x, y = np.concatenate([x, close, multiples, top]), np.concatenate([y, y, y, below_top])
        assert same_bits(compiled("fmod", dtype)(x, y), np.fmod(x, y)).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_fmod_has_the_special_cases_of_c(dtype: type) -> None:
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, info.smallest_normal, 1.0, 2.5, info.max, INF]
    values = np.array([*sizes, *(-size for size in sizes), NAN], dtype)
    x, y = (np.array(column, dtype) for column in zip(*itertools.product(values, repeat=2), strict=True))
    with np.errstate(all="ignore"):
        assert same_bits(compiled("fmod", dtype)(x, y), np.fmod(x, y)).all()


def mixed(name: str, dtype: type) -> list[Array]:
    """Arguments of every kind side by side, so that vectors have ordinary and rare lanes at once."""
    rng = np.random.default_rng(4)
    special = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e30, np.finfo(dtype).smallest_subnormal], dtype)
    arguments = []
    for _ in range(vecmath.FUNCTIONS[name].arity):
        x = np.concatenate([samples(rng, dtype, HUGE[dtype], 500), rng.uniform(-1, 1, 300).astype(dtype), special])
        arguments.append(rng.permutation(x)[:1200])
    length = min(map(len, arguments))
    return [x[:length] for x in arguments]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("name", mostly_slow(vecmath.FUNCTIONS, fast=["sin", "pow"]))
def test_bits_depend_on_neither_lanes_nor_level_nor_position(name: str, dtype: type) -> None:
    arguments = mixed(name, dtype)
    expected = compiled(name, dtype)(*arguments)
    for lanes, level in [(0, "O2"), (4, "O0"), (16, "O0"), (3, "O1")]:
        if lanes == 3:
            arguments, expected = [x[:1152] for x in arguments], expected[:1152]
        assert same_bits(compiled(name, dtype, lanes, level)(*arguments), expected).all()
    order = np.random.default_rng(5).permutation(len(expected))
    assert same_bits(compiled(name, dtype)(*(x[order] for x in arguments)), expected[order]).all()


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "aarch64-linux-gnu", "wasm32"])
@pytest.mark.parametrize("name", mostly_slow(vecmath.FUNCTIONS, fast=["sin", "pow"]))
def test_no_foreign_symbol_is_called(name: str, triple: str) -> None:
    text = assembly(prepare(loop(name, 8, np.float64), triple), triple)
    called = re.findall(r"^\s+(?:callq?|bl|b|jmp|return_call)\s+([A-Za-z_][\w.$]*)", text, re.MULTILINE)
    assert {symbol for symbol in called if not symbol.startswith("shine.")} == set()


@pytest.mark.parametrize("name", vecmath.FUNCTIONS)
def test_nothing_is_contracted_or_reassociated(name: str) -> None:
    text = loop(name, 8, np.float64)
    assert not re.search(r"\b(fast|contract|reassoc|nnan|ninf|nsz|arcp|afn)\b", text)
    assert set(re.findall(r"@\"?(llvm\.\w+)", text)) <= {"llvm.sqrt"}


def builder_and_value(type_: ir.Type) -> tuple[ir.IRBuilder, ir.Value]:
    function = ir.Function(ir.Module(), ir.FunctionType(type_, [type_]), "f")
    return ir.IRBuilder(function.append_basic_block()), function.args[0]


def test_an_unknown_function_is_rejected_with_the_known_ones() -> None:
    builder, x = builder_and_value(ir.DoubleType())
    with pytest.raises(LoweringError, match="no elementary function 'gamma'; known are: exp, log"):
        vecmath.call(builder, "gamma", x)


def test_a_wrong_number_of_arguments_is_rejected() -> None:
    builder, x = builder_and_value(ir.DoubleType())
    with pytest.raises(LoweringError, match=r"pow takes 2 argument\(s\), not 1"):
        vecmath.call(builder, "pow", x)


def test_integer_arguments_are_rejected() -> None:
    builder, x = builder_and_value(ir.IntType(64))
    with pytest.raises(LoweringError, match="exp takes float or double lanes"):
        vecmath.call(builder, "exp", x)
