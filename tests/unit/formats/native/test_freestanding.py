"""Code without a library: substitutes have the bits of the instructions, and nothing is called from outside."""

import contextlib
import ctypes
import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from helpers.markers import mostly_slow
from llvmlite import ir

from shine.base.errors import CompilationError, LoweringError
from shine.compiler.codegen.native.programs import emit_program_rows, emit_program_scalar
from shine.compiler.codegen.vecmath.substitutes import DIVISIONS, define_substitute, parsed_type
from shine.compiler.llvm import Engine, assembly, object_code
from shine.formats.native.freestanding import complete_object, prepare, undefined, undefined_symbols
from shine.lang.forms.primitives import ARITIES
from shine.lang.forms.tape import application
from shine.lang.parse import parse
from shine.lang.program.trees import tree_program

TARGETS = {
    "x86_64-linux-gnu": ("x86-64", ""),
    "aarch64-linux-gnu": ("", ""),
    "armv7-linux-gnueabihf": ("", "+vfp3d16,-d32,-neon"),
    "powerpc64le-linux-gnu": ("", ""),
    "riscv64-linux-gnu": ("", "+m,+a,+f,+d,+c"),
    "wasm32-unknown-unknown": ("", ""),
}
"""Processor and features of each target: the least of its platform."""

TYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}
LLVM_TYPES = {"f64": "double", "f32": "float", "i64": "i64", "i32": "i32"}
TYPES_BY_NAME = ["float64", "float32", "int64", "int32"]
ROWS = 4096


def freestanding(text, triple, cpu=None, features=""):
    """Object code that refers to nothing outside itself."""
    return complete_object(prepare(text, triple, cpu, features), triple, cpu, features)


def module_of(expressions, dtype, emit=emit_program_scalar):
    """IR with a function of each expression that the number type has a meaning for."""
    module = ir.Module()
    for number, expression in enumerate(expressions):
        tree = parse(expression, ("a", "b", "c"))
        try:
            emit(ir.Module(), tree_program(tree, dtype), "tried")
        except LoweringError:
            continue
        emit(module, tree_program(tree, dtype), f"f{number}")
    return str(module)


def every_primitive():
    """An expression of each basic primitive, and integer divisions by constants."""
    names = [ast_name("a"), ast_name("b"), ast_name("c")]
    return [application(name, names[:arity]) for name, arity in ARITIES.items()] + ["a / 7", "a % 8", "a // -3"]


def ast_name(name):
    return parse(name).result


def values(kind, seed=0, rows=ROWS):
    """Special values of a type, numbers of every size, and random bit patterns."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(TYPES[kind])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    patterns = rng.integers(0, 2 ** (8 * dtype.itemsize), rows, dtype=unsigned).view(dtype)
    if dtype.kind == "i":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        special = [0, 1, -1, 2, -2, 3, 7, 10, low, low + 1, high, high - 1, high // 2, low // 2]
        powers = [sign * (2**k + d) for k in range(8 * dtype.itemsize - 1) for d in (-1, 0, 1) for sign in (1, -1)]
        small = rng.integers(low, high, rows, dtype=dtype) >> rng.integers(0, 8 * dtype.itemsize, rows, dtype=dtype)
        return np.concatenate([np.array(special + powers, dtype), small, patterns])
    whole = 2.0 ** np.finfo(dtype).nmant
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, -1.5, 2.5, 1.0, -1.0, 0.49999999999999994]
    special += [0.9999999999999999, whole, -whole, whole - 0.5, whole / 2 + 0.5, -whole / 2 - 0.5, 2 * whole + 2]
    special += [np.finfo(dtype).max, np.finfo(dtype).tiny, -np.finfo(dtype).smallest_subnormal]
    halves = rng.integers(-1000, 1000, rows) / 2
    sizes = rng.standard_normal(rows) * 2.0 ** rng.integers(-10, 70, rows)
    with np.errstate(all="ignore"):
        return np.concatenate([np.array(special, dtype), halves.astype(dtype), sizes.astype(dtype), patterns])


def run(operation, source, target, *arguments, lanes=1):
    """A substitute's results on this machine, compiled alone."""
    kinds = [
        parsed_type(LLVM_TYPES[kind] if lanes == 1 else f"<{lanes} x {LLVM_TYPES[kind]}>") for kind in (source, target)
    ]
    module = ir.Module()
    substitute = define_substitute(module, operation, *kinds)
    pointer, count = ir.PointerType(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, count]), "all")
    entry, body, end = (function.append_basic_block(name) for name in ("entry", "body", "end"))
    build = ir.IRBuilder(entry)
    build.branch(body)
    build.position_at_end(body)
    index = build.phi(count)
    index.add_incoming(count(0), entry)
    loaded = [
        build.load(build.gep(place, [index], source_etype=kinds[0]), typ=kinds[0], align=4)
        for place in function.args[: len(arguments)]
    ]
    build.store(build.call(substitute, loaded), build.gep(function.args[2], [index], source_etype=kinds[1]), align=4)
    following = build.add(index, count(1))
    index.add_incoming(following, body)
    build.cbranch(build.icmp_unsigned("<", following, function.args[3]), body, end)
    build.position_at_end(end)
    build.ret_void()
    columns = [np.ascontiguousarray(a, TYPES[source]) for a in arguments]
    out = np.empty(len(columns[0]), TYPES[target])
    places = [*(column.ctypes.data for column in columns), columns[0].ctypes.data][:2]
    with Engine(str(module)) as engine:
        types = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
        engine.function("all", None, *types)(*places, out.ctypes.data, len(out) // lanes)
    return out


def same(found, expected):
    """Equal bits, or both NaN."""
    if found.dtype.kind == "f":
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), nan)
        found, expected = found[~nan], expected[~nan]
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{expected.itemsize}"))


def half_away(x):
    return np.copysign(np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5), x)


@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize(
    ("operation", "oracle"),
    [
        ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint), ("roundeven", np.rint),
        ("round", half_away),
    ],
)  # fmt: skip
def test_rounding_has_numpys_bits(operation, oracle, kind):
    x = values(kind)
    with np.errstate(invalid="ignore"):
        expected = oracle(x)
    same(run(operation, kind, kind, x), expected)


def division_oracle(operation, n, d):
    """With Python's integers, truncated."""
    if operation[0] == "u":
        unsigned = f"u{n.itemsize}"
        n, d = n.view(unsigned), d.view(unsigned)
    results = []
    for a, b in zip(n.tolist(), d.tolist(), strict=True):
        quotient = abs(a) // abs(b)
        quotient = quotient if (a < 0) == (b < 0) else -quotient
        results.append((quotient if operation.endswith("div") else a - quotient * b) % 2 ** (8 * n.itemsize))
    return np.array(results, f"u{n.itemsize}")


@pytest.mark.slow
@pytest.mark.parametrize("operation", DIVISIONS)
@pytest.mark.parametrize(("kind", "lanes"), [("i64", 1), ("i32", 1), ("i64", 8)])
def test_division_has_the_digits_of_pythons(operation, kind, lanes):
    n = values(kind, 1)
    d = np.random.default_rng(2).permutation(values(kind, 3))
    valid = d != 0
    n, d = n[valid][: 8 * 1000], d[valid][: 8 * 1000]
    found = run(operation, kind, kind, n, d, lanes=lanes)
    np.testing.assert_array_equal(found.view(f"u{n.itemsize}"), division_oracle(operation, n, d))


@pytest.mark.parametrize("target", ["f64", "f32"])
@pytest.mark.parametrize("operation", ["sitofp", "uitofp"])
def test_integers_become_the_nearest_real(operation, target):
    x = values("i64", 4)
    with np.errstate(all="ignore"):
        expected = (x if operation == "sitofp" else x.view(np.uint64)).astype(TYPES[target])
    same(run(operation, "i64", target, x), expected)


def test_an_integer_is_rounded_once_on_its_way_to_float32():
    # Rounded to float64 first, each would lie half way between two float32 numbers and go to the even one.
    x = np.array([2**60 + 2**36 + 1, -(2**60 + 2**36 + 1), 2**60 + 3 * 2**36 - 1], np.int64)
    nearest = [2**60 + 2**37, -(2**60 + 2**37), 2**60 + 2**37]
    assert [Fraction(float(value)) for value in run("sitofp", "i64", "f32", x)] == nearest


@pytest.mark.parametrize("source", ["f64", "f32"])
def test_reals_are_truncated_to_integers(source):
    x = values(source, 5)
    signed = x[np.abs(x) < 2.0**63]
    same(run("fptosi", source, "i64", signed), signed.astype(np.int64))
    unsigned = x[(x >= 0) & (x < 2.0**64)]
    same(run("fptoui", source, "i64", unsigned), unsigned.astype(np.uint64).view(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("triple", "dtype"),
    mostly_slow(
        itertools.product(TARGETS, TYPES_BY_NAME),
        fast=[*itertools.product(TARGETS, ["float64"]), *itertools.product(["armv7-linux-gnueabihf"], TYPES_BY_NAME)],
    ),
)
def test_no_primitive_needs_a_library(triple, dtype):
    code = freestanding(module_of(every_primitive(), dtype), triple, *TARGETS[triple])
    assert not undefined_symbols(code)


@pytest.mark.slow
@pytest.mark.parametrize("triple", TARGETS)
def test_rows_are_copied_without_a_library(triple):
    text = module_of(["floor(a) % b", "a // b"], "float64", emit_program_rows)
    assert not undefined_symbols(freestanding(text, triple, *TARGETS[triple]))


FUSED = r"^\s+(v?fn?m(add|sub)\w*|vfn?m[as]\.\w+|fml[as]|xs\w*n?m(add|sub)\w*|v(nm|m)(add|sub)fp)\b"
"""Products added to something without being rounded first; `vmla` of ARM does round them."""


WITHOUT_FMA = ("x86_64-linux-gnu", "armv7-linux-gnueabihf", "wasm32-unknown-unknown")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("triple", [*TARGETS, "x86-64-v4", "armv7 with vfp4"])
def test_nothing_is_fused(triple, dtype):
    target = {
        "x86-64-v4": ("x86_64-linux-gnu", "x86-64-v4", ""),
        "armv7 with vfp4": ("armv7-linux-gnueabihf", "cortex-a7", "-neon"),
    }.get(triple) or (triple, *TARGETS[triple])
    sums = ["a * b + c", "a * b - c", "c - a * b"]
    text = assembly(prepare(module_of(sums, dtype), *target), *target)
    assert not re.findall(FUSED, text, re.MULTILINE)
    # Except those that elementary functions of float32 contain.
    ir_text = prepare(module_of([*sums, "exp(a)"], dtype), *target)
    asked = len(re.findall(r"= call float @\"?llvm\.fma\.f32", ir_text))
    assert (asked > 0) == (dtype == "float32" and triple not in WITHOUT_FMA)
    found = len(re.findall(FUSED, assembly(ir_text, *target), re.MULTILINE))
    assert asked / 2 <= found <= asked, "the ordinary way and the general one may share theirs"


def test_a_target_that_lacks_arithmetic_is_refused():
    text = module_of(["a + b"], "float64")
    with pytest.raises(CompilationError, match="would call __adddf3; name a processor"):
        freestanding(text, "riscv64-linux-gnu")


def test_prepared_code_computes_the_same_on_this_machine():
    expressions = ["floor(a) + ceil(b)", "a // b", "a % b"]
    text = module_of(expressions, "float64")
    a, b = values("f64", 6, 500), values("f64", 7, 500)
    kind = [ctypes.c_double] * 3
    substituted = prepare(text, "x86_64-linux-gnu", "x86-64")
    assert "shine.floor" in substituted and "llvm.floor" not in substituted
    with Engine(text) as plain, Engine(substituted) as prepared:
        for name in re.findall(r'^define double @"(f\d+)"', text, re.MULTILINE):
            functions = [engine.function(name, ctypes.c_double, *kind) for engine in (plain, prepared)]
            found = [np.array([f(x, y, 0.0) for x, y in zip(a, b, strict=True)]) for f in functions]
            same(found[1], found[0])


CALLS = (
    "declare void @elsewhere(i32)\ndefine void @here(i32 %a) nounwind {\n  call void @elsewhere(i32 %a)\n  ret void\n}"
)


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-linux-gnu", "i686-linux-gnu", "armv7-linux-gnueabihf", "s390x-linux-gnu", "mips-linux-gnu",
        "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc", "i686-pc-windows-gnu",
        "x86_64-apple-darwin", "arm64-apple-darwin", "wasm32-unknown-unknown",
    ],
)  # fmt: skip
def test_symbols_from_elsewhere_are_found_in_every_format(triple):
    found = undefined_symbols(object_code(CALLS, triple))
    assert {name.lstrip("_") for name in found} - {"gp_disp"} == {"elsewhere"}


@pytest.mark.parametrize(
    "code", [b"", b"text", b"\x7fELF" + bytes(10), b"\0asm\1\0\0\0\2\xff\xff", b"\xcf\xfa\xed\xfe"]
)
def test_bytes_that_are_no_object_file_are_an_error(code):
    with pytest.raises(CompilationError, match="object file"):
        undefined_symbols(code)


def test_a_damaged_object_file_is_an_error_or_read():
    code = object_code(CALLS, "x86_64-linux-gnu")
    rng = np.random.default_rng(8)
    for _ in range(300):
        damaged = bytearray(code)
        for place in rng.integers(4, len(code), 3):
            damaged[place] = rng.integers(256)
        with contextlib.suppress(CompilationError):
            undefined(bytes(damaged[: rng.integers(4, len(code))]))
