"""The multiply-add of processors without one: against exact sums, and against the instruction."""

from __future__ import annotations

import ctypes
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shine.compiler.llvm import Engine, engine
from shine.compiler.llvm.engine import with_fma_defined

LOOP = """
declare {type} @"llvm.fma.{suffix}"({type} %".1", {type} %".2", {type} %".3")
define void @f(ptr %a, ptr %b, ptr %c, ptr %out, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %at.a = getelementptr float, ptr %a, i64 %i
  %at.b = getelementptr float, ptr %b, i64 %i
  %at.c = getelementptr float, ptr %c, i64 %i
  %at.out = getelementptr float, ptr %out, i64 %i
  %x = load {type}, ptr %at.a, align 4
  %y = load {type}, ptr %at.b, align 4
  %z = load {type}, ptr %at.c, align 4
  %r = call {type} @"llvm.fma.{suffix}"({type} %x, {type} %y, {type} %z)
  store {type} %r, ptr %at.out, align 4
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
KINDS = {"f32": ("float", 1), "v8f32": ("<8 x float>", 8)}


def function_of(suffix: str, defined: bool):
    kind, lanes = KINDS[suffix]
    text = LOOP.format(type=kind, suffix=suffix, lanes=lanes)
    if defined:
        text = with_fma_defined(text)
        assert "llvm.fma" not in text
    run = Engine(text, "O0").function("f", None, *[ctypes.c_void_p] * 4, ctypes.c_int64)

    def f(*operands: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(operand, np.float32) for operand in operands]
        out = np.empty_like(arrays[0])
        run(*(array.ctypes.data for array in (*arrays, out)), len(out))
        return out

    return f


DEFINED = {suffix: function_of(suffix, True) for suffix in KINDS}


def nearest(value: Fraction) -> float:
    """The float32 next to a rational number, to even between two."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = max(math.frexp(float(size))[1] - 24, -149)
    # The exponent of the quotient in float64 is right unless rounding makes it a power of two.
    whole = size / Fraction(2) ** exponent
    rounded = round(whole)
    if rounded >= 1 << 24:
        exponent += 1
        rounded = round(size / Fraction(2) ** exponent)
    number = math.ldexp(rounded, exponent) if rounded * 2.0**exponent < 2.0**128 else math.inf
    return -number if value < 0 else number


def number(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


finite = st.integers(0, (1 << 32) - 1).map(number).filter(math.isfinite)
short = st.tuples(st.integers(-(1 << 13), 1 << 13), st.integers(-40, 40)).map(lambda pair: math.ldexp(*pair))
operands = st.one_of(finite, short, st.integers(-300, 300).map(float))


# The exact sum is a little off the middle between two float32 numbers, by less than float64 can tell.
@example(1 + 2**-23, 2**-24 * (1 - 2**-23), 1 + 2**-23)
@example(1 + 2**-23, 2**-24 * (1 - 2**-23), -(1 + 2**-22))
@example(-(1 + 2**-23), 2**-24 * (1 - 2**-23), 1 + 2**-22)
@example(-(1 + 2**-23), 2**-24 * (1 - 2**-23), -(1 + 2**-23))
@example(2**-75, 2**-75, 2**-149)
@example(2**-75 * (1 + 2**-23), 2**-75 * (1 - 2**-23), 2**-149)
@example(2**-75 * (1 + 2**-23), 2**-75, -(2**-149))
@example(3.4e38, 3.4e38, -1.0)
@given(operands, operands, operands)
def test_a_sum_is_rounded_once(a: float, b: float, c: float) -> None:
    a, b, c = (float(np.float32(x)) for x in (a, b, c))
    true = Fraction(a) * Fraction(b) + Fraction(c)
    for suffix, (_, lanes) in KINDS.items():
        got = DEFINED[suffix](*(np.full(lanes, x, np.float32) for x in (a, b, c)))
        assert (got == np.float32(nearest(true))).all()


def same(got: np.ndarray, expected: np.ndarray) -> bool:
    bits = got.view(np.uint32) == expected.view(np.uint32)
    return bool((bits | (np.isnan(got) & np.isnan(expected))).all())


@pytest.mark.skipif(not engine.host_has_fma(), reason="this processor has no such instruction to compare with")
@pytest.mark.parametrize("suffix", KINDS)
def test_it_has_the_bits_of_the_instruction(suffix: str) -> None:
    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38], np.float32)
    every = [column.ravel() for column in np.meshgrid(special, special, special)]
    patterns = rng.integers(0, 1 << 32, (3, 1 << 16), dtype=np.uint32).view(np.float32)
    near = rng.normal(size=(3, 1 << 16)).astype(np.float32)
    # Sums that nearly cancel, and sums near the middle between two float32 numbers.
    cancelling = np.stack([near[0], near[1], -(near[0] * near[1])])
    few, many = rng.integers(1, 200, 1 << 16), rng.integers(0, 1 << 23, 1 << 16)
    sign, other = rng.choice([-1.0, 1.0], (2, 1 << 16))
    middle = np.stack([sign * (1 + few * 2**-23), 2**-24 * (1 - few * 2**-23), other * (1 + many * 2**-23)])
    parts = [np.array(every)[:, :992], patterns, near, cancelling, middle.astype(np.float32)]
    cases = np.concatenate(parts, axis=1)
    assert same(DEFINED[suffix](*cases), function_of(suffix, False)(*cases))


def test_processors_of_other_kinds_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, features, expected in [
        ("aarch64", "+neon", True),
        ("x86_64", "+avx,+fma,+sse2", True),
        ("AMD64", "+avx,-fma,+fma4", False),
    ]:
        monkeypatch.setattr(engine.platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(engine, "host_cpu", lambda features=features: ("", features))
        assert engine.host_has_fma.__wrapped__() is expected
