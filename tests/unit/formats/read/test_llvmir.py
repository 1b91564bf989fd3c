"""Functions of LLVM IR become formulas with the same values, bit for bit where nothing but exact operations is used.

The oracles are LLVM itself, which compiles the same IR, clang's code, and C's mathematics library.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math
import pickle
import shutil
import struct
import subprocess

import numpy as np
import pytest
from helpers.equality import same_bits

import shine
from shine import GraphImportError, primitive_from_llvm
from shine.compiler.llvm import Engine
from shine.compiler.llvm.foreign import ForeignFunction
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.formats.read.llvmir import MAX_SIZE, lifted
from shine.formats.read.llvmir.calls import LIBRARY, arity
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.interpret import evaluate
from shine.lang.population import Population

CLANG = shutil.which("clang")
RUSTC = shutil.which("rustc")
LIBM = ctypes.util.find_library("m")

SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -3.7, 7.0, math.inf, -math.inf, math.nan, 1e-310, 1e300)
C_TYPES = {"double": ctypes.c_double, "float": ctypes.c_float}
DTYPES = {"double": np.dtype(np.float64), "float": np.dtype(np.float32)}


def rows(count: int, kind: str = "double") -> np.ndarray:
    """All pairs of special values, or many triples, and ordinary numbers; shape (count, n_rows)."""
    rng = np.random.default_rng(count)
    special = np.array(list(itertools.product(SPECIAL, repeat=min(count, 2)))).T
    if count > 2:
        special = rng.choice(SPECIAL, (count, 300))
    with np.errstate(over="ignore"):
        ordinary = rng.normal(0, 3, (count, 60))
        return np.hstack([special, ordinary, np.round(ordinary)]).astype(DTYPES[kind])


def value(primitive: Primitive, columns: np.ndarray) -> np.ndarray:
    """Values of a primitive on the reference tier."""
    assert primitive.definition is not None
    return evaluate(primitive.definition, list(columns), columns.dtype)


def values(primitive: Primitive, columns: np.ndarray) -> dict[str, np.ndarray]:
    """Values of a primitive on every tier."""
    names, dtype = tuple(f"x{i}" for i in range(primitive.arity)), str(columns.dtype)
    call = shine.parse(f"{primitive.name}({', '.join(names)})", names, {primitive.name: primitive})
    population = Population.from_trees([call], PrimitiveSet((primitive,), names))
    dataset = Dataset(columns.astype(np.float64), np.zeros(columns.shape[1]), None, names)
    return {
        "reference": evaluate(call, list(columns), dtype),
        "machine": MachineEvaluator(dataset, "mse", False, dtype).predict(population)[0],
        "native": shine.jit(call, dtype=dtype)(*columns),
    }


def assert_same(found: np.ndarray, expected: np.ndarray, columns: np.ndarray, what: object = "") -> None:
    """Two results have the same bits in every row."""
    wrong = ~same_bits(found, expected)
    assert not wrong.any(), (what, columns[:, wrong][:, 0], expected[wrong][0], found[wrong][0])


def function_of(body: str, arguments: str = "a b", kind: str = "double", name: str = "f") -> str:
    """The text of a function."""
    typed = ", ".join(f"{kind} %{argument}" for argument in arguments.split())
    return f"define {kind} @{name}({typed}) {{\nstart:\n{body}\n}}\n"


def as_it_is(
    body: str, arguments: str = "a b", kind: str = "double", tables: dict[str, str] | None = None
) -> Primitive:
    """A function lifted as it is, before LLVM has simplified it."""
    labels = tuple(arguments.split())
    typed = tuple((kind, label) for label in labels)
    return lifted(ForeignFunction("f", kind, typed, labels, f"start:\n{body}", tables or {}), "f")


def returned(instruction: str, kind: str = "double") -> str:
    """A body that returns the value of an instruction."""
    return f"  %r = {instruction}\n  ret {kind} %r"


LEG = "declare double @llvm.sqrt.f64(double)\n" + function_of(
    """  %x = fmul double %a, %a
  %y = fmul double %b, %b
  %s = fadd double %x, %y
  %r = call double @llvm.sqrt.f64(double %s)
  ret double %r""",
    name="leg",
)


# Formulas of functions.


def test_a_function_becomes_a_composite_primitive_with_the_names_of_its_arguments():
    leg = primitive_from_llvm(LEG, "leg")
    assert (leg.name, leg.arity, str(leg.definition)) == ("leg", 2, "sqrt(a*a + b*b)")
    assert primitive_from_llvm(LEG, "leg", name="side").name == "side"


@pytest.mark.slow
def test_a_function_is_read_from_text_bitcode_and_files(tmp_path):
    import llvmlite.binding as llvm

    bitcode = llvm.parse_assembly(LEG).as_bitcode()
    (tmp_path / "leg.ll").write_text(LEG)
    (tmp_path / "leg.bc").write_bytes(bitcode)
    sources = [LEG, LEG.encode(), bitcode, tmp_path / "leg.ll", str(tmp_path / "leg.bc")]
    assert len({primitive_from_llvm(source, "leg") for source in sources}) == 1


def test_arguments_without_usable_names_are_called_by_letters():
    body = "  ret double %sin"
    assert as_it_is(body, "sin lambda").definition.parameters == ("a", "b")
    unnamed = "define double @f(double %0, double %1) {\n  %3 = fsub double %0, %1\n  ret double %3\n}\n"
    assert str(primitive_from_llvm(unnamed, "f").definition) == "a - b"


def test_memory_calls_and_loops_of_constant_length_are_simplified_away():
    code = """
@table = internal constant [4 x double] [double 1.0, double 0.5, double 0.25, double 0.125]
define internal double @step(double %r, double %x, double %k) noinline optnone {
  %p = fmul double %r, %x
  %s = fadd double %p, %k
  ret double %s
}
define double @horner(double %x) noinline optnone {
entry:
  %i = alloca i32
  %r = alloca double
  store i32 0, ptr %i
  store double 3.0, ptr %r
  br label %head
head:
  %n = load i32, ptr %i
  %more = icmp slt i32 %n, 4
  br i1 %more, label %body, label %done
body:
  %index = sext i32 %n to i64
  %place = getelementptr [4 x double], ptr @table, i64 0, i64 %index
  %k = load double, ptr %place
  %old = load double, ptr %r
  %new = call double @step(double %old, double %x, double %k)
  store double %new, ptr %r
  %next = add i32 %n, 1
  store i32 %next, ptr %i
  br label %head
done:
  %result = load double, ptr %r
  ret double %result
}
"""
    horner = primitive_from_llvm(code, "horner")
    assert str(horner.definition) == "x*(x*(x*(x*3 + 1) + 0.5) + 0.25) + 0.125"


# Single instructions: the oracle is LLVM's code for them.

PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "uno", "ueq", "ugt", "uge", "ult", "ule", "une", "true",
)  # fmt: skip

INSTRUCTIONS = {
    **{name: returned(f"{name} KIND %a, %b", "KIND") for name in ("fadd", "fsub", "fmul", "fdiv")},
    "fneg": returned("fneg KIND %a", "KIND"),
    "flags": returned("fadd reassoc nnan KIND %a, %b", "KIND"),
    "sqrt": returned("call KIND @llvm.sqrt.FLOAT(KIND %a)", "KIND"),
    "nested": "  %x = call KIND @llvm.sqrt.FLOAT(KIND noundef %a)\n"
    + returned("tail call fast KIND @llvm.fabs.FLOAT(KIND nofpclass(inf) %x) #1", "KIND"),
    **{
        name: returned(f"call KIND @llvm.{name}.FLOAT(KIND %a)", "KIND")
        for name in ("fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven")
    },
    **{
        name: returned(f"call KIND @llvm.{name}.FLOAT(KIND %a, KIND %b)", "KIND")
        for name in ("copysign", "minimum", "maximum")
    },
    **{
        f"fcmp {name}": f"  %c = fcmp {name} KIND %a, %b\n" + returned("uitofp i1 %c to KIND", "KIND")
        for name in PREDICATES
    },
    "fcmp of a number": "  %c = fcmp ugt KIND %a, 1.5\n" + returned("sitofp i1 %c to KIND", "KIND"),
    "select": "  %c = fcmp olt KIND %a, %b\n" + returned("select i1 %c, KIND %a, KIND 0.25", "KIND"),
    "infinities": "  %c = fcmp une KIND %a, 0x7FF0000000000000\n"
    + returned("select i1 %c, KIND 0xFFF0000000000000, KIND 0x7FF8000000000000", "KIND"),
    "logic": "  %x = fcmp olt KIND %a, %b\n  %y = fcmp ogt KIND %a, 0.0\n  %z = xor i1 %x, %y\n"
    "  %n = xor i1 %z, true\n  %o = or i1 %n, %x\n  %w = and i1 %o, %y\n"
    "  %s = select i1 %w, i1 true, i1 %z\n  %t = select i1 %s, i1 %y, i1 false\n"
    + returned("uitofp i1 %t to KIND", "KIND"),
    "integers": "  %x = fcmp olt KIND %a, %b\n  %y = fcmp ogt KIND %a, 0.0\n  %m = zext i1 %x to i32\n"
    "  %n = sext i1 %y to i32\n  %s = shl nsw i32 %n, 3\n  %p = mul i32 %m, -5\n  %q = add nsw i32 %s, %p\n"
    "  %d = sub i32 %q, %m\n" + returned("sitofp i32 %d to KIND", "KIND"),
    "zero is positive": "  %x = fcmp olt KIND %a, %b\n  %m = zext i1 %x to i32\n  %p = mul i32 %m, -5\n"
    "  %f = sitofp i32 %p to KIND\n" + returned("fdiv KIND 1.0, %f", "KIND"),
    **{
        f"icmp {name}": "  %x = fcmp olt KIND %a, %b\n  %y = fcmp ogt KIND %a, 0.0\n  %m = zext i1 %x to i32\n"
        f"  %n = sext i1 %y to i32\n  %c = icmp {name} i32 %n, %m\n" + returned("uitofp i1 %c to KIND", "KIND")
        for name in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
    },
    "sign bit": "  %i = bitcast KIND %a to BITS\n  %c = icmp slt BITS %i, 0\n"
    + returned("uitofp i1 %c to KIND", "KIND"),
    "no sign bit": "  %i = bitcast KIND %a to BITS\n  %c = icmp sgt BITS %i, -1\n"
    + returned("uitofp i1 %c to KIND", "KIND"),
    "shifted sign": "  %i = bitcast KIND %a to BITS\n  %s = lshr BITS %i, LAST\n"
    + returned("uitofp BITS %s to KIND", "KIND"),
    "pair": "  %p = insertelement <2 x KIND> poison, KIND %a, i64 0\n"
    "  %q = insertelement <2 x KIND> %p, KIND %b, i64 1\n  %s = fmul <2 x KIND> %q, <KIND 2.0, KIND 3.0>\n"
    "  %t = fadd <2 x KIND> %s, splat (KIND 0.5)\n"
    "  %u = shufflevector <2 x KIND> %t, <2 x KIND> %q, <2 x i32> <i32 1, i32 2>\n"
    "  %c = fcmp olt <2 x KIND> %u, zeroinitializer\n"
    "  %v = select <2 x i1> %c, <2 x KIND> %u, <2 x KIND> %t\n"
    "  %x = extractelement <2 x KIND> %v, i64 0\n  %y = extractelement <2 x KIND> %v, i64 1\n"
    + returned("fsub KIND %x, %y", "KIND"),
    "saturation": "  %i = call i16 @llvm.fptosi.sat.i16.FLOAT(KIND %a)\n" + returned("sitofp i16 %i to KIND", "KIND"),
    **{
        f"class {mask}": f"  %c = call i1 @llvm.is.fpclass.FLOAT(KIND %a, i32 {mask})\n"
        + returned("uitofp i1 %c to KIND", "KIND")
        for mask in (3, 4, 8, 16, 32, 64, 128, 256, 512, 504, 264, 0)
    },
    "powers": "  %x = call KIND @llvm.powi.FLOAT.i32(KIND %a, i32 7)\n"
    "  %y = call KIND @llvm.powi.FLOAT.i32(KIND %b, i32 -2)\n" + returned("fsub KIND %x, %y", "KIND"),
    "switch": """  %x = fcmp olt KIND %a, %b
  %y = fcmp ogt KIND %a, 0.0
  %m = zext i1 %x to i32
  %n = zext i1 %y to i32
  %s = add i32 %m, %n
  switch i32 %s, label %other [
    i32 0, label %zero
    i32 1, label %one
  ]
zero:
  br label %one
one:
  %v = phi KIND [ %a, %zero ], [ 7.0, %start ]
  br label %end
other:
  %w = fadd KIND %a, %b
  br label %end
end:
  %r = phi KIND [ %v, %one ], [ %w, %other ]
  ret KIND %r""",
    "paths": """  %c = fcmp olt KIND %a, %b
  br i1 %c, label %first, label %second
first:
  %d = fcmp ogt KIND %a, 0.0
  br i1 %d, label %third, label %second
second:
  %s = phi KIND [ 1.5, %start ], [ %b, %first ]
  %e = fcmp uno KIND %a, %b
  br i1 %e, label %early, label %third
early:
  ret KIND %s
third:
  %t = phi KIND [ %a, %first ], [ %s, %second ]
  %u = fmul KIND %t, 3.0
  ret KIND %u""",
}
"""Bodies of functions of a and b, by their content."""


@pytest.mark.parametrize("kind", ["double", "float"])
def test_every_instruction_is_llvms_own(kind):
    names = {"KIND": kind, **{"double": {"FLOAT": "f64", "BITS": "i64", "LAST": "63"}}.get(
        kind, {"FLOAT": "f32", "BITS": "i32", "LAST": "31"}
    )}  # fmt: skip
    bodies = {}
    for what, body in INSTRUCTIONS.items():
        for word, replacement in names.items():
            body = body.replace(word, replacement)
        bodies[what] = body
    one, two = (f"{kind}", f"{kind}, {kind}")
    single = ("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven")
    declared = [f"declare {kind} @llvm.{name}.{names['FLOAT']}({one})" for name in single]
    declared += [f"declare {kind} @llvm.{n}.{names['FLOAT']}({two})" for n in ("copysign", "minimum", "maximum")]
    declared += [f"declare i16 @llvm.fptosi.sat.i16.{names['FLOAT']}({one})"]
    declared += [f"declare i1 @llvm.is.fpclass.{names['FLOAT']}({one}, i32 immarg)"]
    declared += [f"declare {kind} @llvm.powi.{names['FLOAT']}.i32({one}, i32)"]
    functions = [
        function_of(body, kind=kind, name=f"f{number}")
        .replace(" #1", "")
        .replace("fast ", "")
        .replace("reassoc nnan ", "")
        for number, body in enumerate(bodies.values())
    ]
    columns = rows(2, kind)
    with Engine("\n".join([*declared, *functions]), "O0") as engine:
        for number, (what, body) in enumerate(bodies.items()):
            function = engine.function(f"f{number}", C_TYPES[kind], *[C_TYPES[kind]] * 2)
            expected = np.array([function(*map(float, row)) for row in columns.T], DTYPES[kind])
            assert_same(value(as_it_is(body, kind=kind), columns), expected, columns, what)


@pytest.mark.skipif(LIBM is None, reason="C's mathematics library is not found")
@pytest.mark.parametrize("kind", ["double", "float"])
def test_exact_functions_of_c_are_cs_own(kind):
    library = ctypes.CDLL(LIBM)
    for name in ("fmod", "fmin", "fmax", "fdim", "copysign", "trunc", "round", "rint", "floor", "ceil", "fabs", "sqrt"):
        count = arity(LIBRARY[name])
        called = name + "f" * (kind == "float")
        given = ", ".join(f"{kind} %{argument}" for argument in "ab"[:count])
        primitive = as_it_is(returned(f"call {kind} @{called}({given})", kind), " ".join("ab"[:count]), kind)
        function = getattr(library, called)
        function.restype, function.argtypes = C_TYPES[kind], [C_TYPES[kind]] * count
        columns = rows(count, kind)
        expected = np.array([function(*map(float, row)) for row in columns.T], DTYPES[kind])
        found = value(primitive, columns)
        if name in ("fmin", "fmax"):  # C leaves the sign of zero open
            found, expected = found + 0, expected + 0
        assert_same(found, expected, columns, name)


@pytest.mark.skipif(LIBM is None, reason="C's mathematics library is not found")
def test_other_functions_of_c_agree_to_a_few_units_in_the_last_place():
    library = ctypes.CDLL(LIBM)
    for name in sorted(LIBRARY.keys() - {"roundeven", "fminimum", "fmaximum", "fminimum_num", "fmaximum_num"}):
        count = arity(LIBRARY[name])
        given = ", ".join(f"double %{argument}" for argument in "ab"[:count])
        primitive = as_it_is(returned(f"call double @{name}({given})"), " ".join("ab"[:count]))
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * count
        columns = rows(count)
        expected = np.array([function(*row) for row in columns.T])
        if name == "hypot":  # of an infinity and NaN it is infinite in C alone
            columns, expected = columns[:, ~np.isnan(columns).any(0)], expected[~np.isnan(columns).any(0)]
        np.testing.assert_allclose(value(primitive, columns), expected, rtol=4e-15, err_msg=name)


def test_tiers_agree_on_a_function_with_everything_in_it():
    code = "declare double @llvm.copysign.f64(double, double)\ndeclare double @llvm.round.f64(double)\n" + function_of(
        """  %c = fcmp ult double %a, %b
  %m = call double @llvm.round.f64(double %a)
  %s = select i1 %c, double %m, double 0x7FF0000000000000
  %d = frem double %s, %b
  %n = fcmp one double %d, 0.0
  %i = zext i1 %n to i8
  %j = shl i8 %i, 1
  %x = sitofp i8 %j to double
  %y = fadd double %d, %x
  %r = call double @llvm.copysign.f64(double %y, double %b)
  ret double %r"""
    )
    primitive, columns = primitive_from_llvm(code, "f"), rows(2)
    found = values(primitive, columns)
    with np.errstate(all="ignore"):
        a, b = columns
        away = np.copysign(np.floor(np.abs(a)) + (np.abs(a) - np.floor(np.abs(a)) >= 0.5), a)
        rest = np.fmod(np.where(~(a >= b), away, np.inf), b)
        expected = np.copysign(rest + 2.0 * ((rest < 0) | (rest > 0)), b)
    for tier, result in found.items():
        assert_same(result, expected, columns, tier)


def test_elements_of_constant_arrays_are_chosen_by_index():
    body = """
  %x = fcmp olt double %a, %b
  %i = zext i1 %x to i64
  %y = fcmp ogt double %a, 0.0
  %j = zext i1 %y to i64
  %row = getelementptr inbounds [2 x double], ptr @t, i64 %i
  %place = getelementptr inbounds double, ptr %row, i64 %j
  %r = load double, ptr %place, align 8, !tbaa !5
  ret double %r"""
    table = (
        "[2 x [2 x double]] [[2 x double] [double 1.0, double 2.0], [2 x double] [double 3.0, double -4.0]], align 16"
    )
    columns = rows(2)
    expected = np.array([[1.0, 2.0], [3.0, -4.0]])[(columns[0] < columns[1]) * 1, (columns[0] > 0) * 1]
    assert_same(value(as_it_is(body, tables={"t": table}), columns), expected, columns)
    with pytest.raises(GraphImportError, match="elements of another type"):
        as_it_is(body, tables={"t": "[4 x i64] zeroinitializer"})
    zeros = value(as_it_is(body, tables={"t": "[2 x [2 x double]] zeroinitializer, align 8"}), columns)
    assert_same(zeros, np.zeros(columns.shape[1]), columns)


def test_constants_are_read_to_the_last_bit():
    # LLVM writes numbers without a short decimal form as bits, without leading zeros.
    number = struct.unpack("<d", (0xD8205F9C56E).to_bytes(8, "little"))[0]
    assert as_it_is(returned("fmul double %a, 0xD8205F9C56E")).definition.result.right.value == number
    assert as_it_is(returned("fmul double %a, 0x3FB999999999999A")).definition.result.right.value == 0.1
    assert repr(as_it_is(returned("fadd double %a, -0.0")).definition.result.right.value) == "-0.0"


# Functions that cannot become formulas.

REJECTED = {
    "a loop": (
        """  br label %loop
loop:
  %x = phi double [ %a, %start ], [ %y, %loop ]
  %y = fmul double %x, 0.5
  %c = fcmp ogt double %y, 1.0
  br i1 %c, label %loop, label %end
end:
  ret double %y""",
        "it has a loop",
    ),
    "a store": ("  store double %a, ptr @p\n  ret double %a", "instruction 'store double %a, ptr @p': it uses memory"),
    "a load": (returned("load double, ptr @p"), "type ptr has no meaning in a formula"),
    "a call": (returned("call double @erf(double %a)"), "it calls 'erf', which the module does not define"),
    "a call of what is chosen": (returned("call double %p(double %a)"), "calls through function pointers"),
    "wrong arguments": (returned("call double @sin(double %a, double %b)"), "C's takes 1"),
    "fma": (returned("call double @llvm.fma.f64(double %a, double %a, double %b)"), "fma rounds once"),
    "fma by name": (returned("call double @fma(double %a, double %a, double %b)"), "fma rounds once"),
    "an intrinsic": (returned("call double @llvm.foo.f64(double %a)"), "'llvm.foo.f64' has no meaning"),
    "strict rounding": (
        returned('call double @llvm.experimental.constrained.fadd.f64(double %a, double %b, metadata !"x")'),
        "constrained.fadd",
    ),
    "another type": ("  %x = fptrunc double %a to float\n" + returned("fpext float %x to double"), "mixes double and"),
    "extended": ("  %x = fpext double %a to x86_fp80\n" + returned("fptrunc x86_fp80 %x to double"), "mixes double"),
    "its bits": (
        "  %i = bitcast double %a to i64\n  %j = and i64 %i, 255\n" + returned("sitofp i64 %j to double"),
        "the bits of a number have no meaning",
    ),
    "large integers": (
        "  %i = fptosi double %a to i64\n  %j = add i64 %i, 1\n" + returned("sitofp i64 %j to double"),
        "integer arithmetic that may reach",
    ),
    "division of integers": (
        "  %i = fptosi double %a to i32\n  %j = sdiv i32 %i, 3\n" + returned("sitofp i32 %j to double"),
        "divisions of integers are not supported",
    ),
    "no result": ("  %c = fcmp olt double %a, %b\n  unreachable", "it never returns"),
    "undefined": ("  ret double poison", "its value is undefined"),
    "a panic": (
        """  %c = fcmp olt double %a, %b
  br i1 %c, label %bad, label %good
bad:
  call void @panic()
  unreachable
good:
  ret double %a""",
        "it calls 'panic'",
    ),
    "invoke": (
        "  %x = invoke double @sin(double %a) to label %go unwind label %stop\n"
        "go:\n  ret double %x\nstop:\n  unreachable",
        "it raises or handles exceptions",
    ),
    "nonsense": ("  %x = fadd double ?", "is not understood"),
    "half an instruction": ("  %x = fadd double %a", "',' is missing"),
}


@pytest.mark.parametrize("what", REJECTED)
def test_an_unsupported_instruction_is_named(what):
    body, message = REJECTED[what]
    with pytest.raises(GraphImportError) as caught:
        as_it_is(body)
    assert message in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("i32 @f(double %a)", "its result has type i32; a formula has arguments and a result of type double"),
        ("double @f(double %a, float %x)", "argument 2 (x) has type float, the result double"),
        ("double @f(ptr %0)", "argument 1 has type ptr"),
        ("<2 x double> @f(<2 x double> %a)", "its result has type <2 x double>"),
        ("double @f()", "it has 0 arguments; a primitive has at least one"),
    ],
)
def test_signatures_that_cannot_be_a_formula_are_named(signature, message):
    result = signature.split(" @")[0]
    with pytest.raises(GraphImportError) as caught:
        primitive_from_llvm(f"define {signature} {{\n  ret {result} zeroinitializer\n}}\n", "f")
    assert str(caught.value).startswith(f"LLVM function 'f': {message}")


def test_a_formula_that_becomes_too_large_is_rejected():
    lines = [f"  %v{i + 1} = fsub double {'%a' if i == 0 else f'%v{i}'}, %b" for i in range(MAX_SIZE)]
    with pytest.raises(GraphImportError, match=f"at most {MAX_SIZE} make a primitive"):
        as_it_is("\n".join([*lines, f"  ret double %v{MAX_SIZE}"]))


def test_nested_choices_share_their_values():
    # Each of the forty choices uses the one before twice: written out it would have 2**40 nodes.
    lines = []
    for i in range(40):
        last = "%a" if i == 0 else f"%v{i - 1}"
        lines += [f"  %c{i} = fcmp olt double {last}, {float(i)}", f"  %w{i} = fmul double {last}, {last}",
                  f"  %v{i} = select i1 %c{i}, double %w{i}, double {last}"]  # fmt: skip
    primitive = as_it_is("\n".join([*lines, "  ret double %v39"]))
    assert primitive.definition.size < 500
    columns = np.array([[0.5, -2.0, 1.1], [0.0, 0.0, 0.0]])
    expected = columns[0].copy()
    for i in range(40):
        expected = np.where(expected < i, expected * expected, expected)
    assert_same(value(primitive, columns), expected, columns)


@pytest.mark.parametrize("name", ["hypot", "pi", "add", "lambda", "__leg", "a b", ""])
def test_names_that_formulas_cannot_use_are_rejected(name):
    with pytest.raises(ValueError, match="another one"):
        primitive_from_llvm(LEG, "leg", name=name)


# As part of a search.


def assert_evolves(primitive: Primitive) -> None:
    X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    y = X[:, 0] * np.sqrt(X[:, 0] ** 2 + X[:, 1] ** 2)
    found = shine.evolve(X, y, primitives=("add", "mul", primitive), features=["u", "v"], population=200, seconds=20)
    assert primitive.name in found.best.expression
    np.testing.assert_allclose(found.predict(X), y, rtol=1e-9)
    assert pickle.loads(pickle.dumps(found.best)).expression == found.best.expression


@pytest.mark.slow
def test_a_function_becomes_a_node_that_evolves():
    assert_evolves(primitive_from_llvm(LEG, "leg"))


def test_derivatives_and_exports_work_on_it():
    leg = primitive_from_llvm(LEG, "leg")
    tree = shine.parse("leg(u, v)*u", primitives={**STANDARD, "leg": leg})
    u, v = np.array([3.0, 1.0]), np.array([4.0, -2.0])
    du, dv = shine.grad(tree)(u, v)
    root = np.sqrt(u * u + v * v)
    np.testing.assert_allclose((du, dv), (root + u * u / root, u * v / root), rtol=1e-14)
    assert "def leg(a, b):" in shine.export.export(tree, "python")


# Compilers.


def compile_c(folder, source: str, *options: str) -> None:
    (folder / "f.c").write_text(source)
    command = [CLANG, "-ffp-contract=off", "-w", *options, "f.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)


C_CODE = """
#include <math.h>
static double clamp(double x, double low, double high) {
    if (x < low) return low;
    return x > high ? high : x;
}
double leg(double a, double b) { return sqrt(a * a + b * b); }
double tangle(double a, double b, double c) {
    static const double weight[] = {1.5, -2, 0.25, 3};
    double r = 0;
    for (int i = 0; i < 4; i++) r = r * a + weight[i];
    if (a > b) {
        if (fabs(c) > 2 && !isnan(b)) r = fmod(r, c); else r -= trunc(c) / 3;
    } else if (isnan(c) || signbit(b)) return clamp(a, -1, copysign(2.5, c));
    switch ((a > 0) + (b > 0) * 2 - (c > 0)) {
        case -1: r *= 2; break;
        case 0: r = round(r);
        case 1: r = rint(r / 2); break;
        case 2: return r;
        default: r = -r;
    }
    return r + weight[(a > 1) + (c > 1)] + (isnan(b) ? 0 : (int)clamp(b, -1e6, 1e6));
}
"""


@pytest.mark.slow
@pytest.mark.skipif(CLANG is None, reason="clang is not installed")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_function_compiled_by_clang_has_the_bits_of_its_code(tmp_path, level):
    compile_c(tmp_path, C_CODE, level, "-shared", "-fPIC", "-lm", "-o", "f.so")
    compile_c(tmp_path, C_CODE, level, "-S", "-emit-llvm", "-o", "f.ll")
    compile_c(tmp_path, C_CODE, level, "-c", "-emit-llvm", "-o", "f.bc")
    assert primitive_from_llvm(tmp_path / "f.ll", "tangle") == primitive_from_llvm(tmp_path / "f.bc", "tangle")
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    for name, count in (("leg", 2), ("tangle", 3)):
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * count
        columns = rows(count)
        expected = np.array([function(*row) for row in columns.T])
        for tier, found in values(primitive_from_llvm(tmp_path / "f.ll", name), columns).items():
            assert_same(found, expected, columns, tier)


@pytest.mark.slow
@pytest.mark.skipif(RUSTC is None, reason="rustc is not installed")
def test_a_function_compiled_by_rust_is_read(tmp_path):
    (tmp_path / "f.rs").write_text(
        '#![crate_type = "lib"]\n#[no_mangle]\npub extern "C" fn f(a: f64, b: f64) -> f64 {\n'
        "    let m = a.max(b).abs().sqrt();\n    if m.is_nan() { 1.0 } else { m.powi(3) + b.round() + a.signum() }\n}\n"
    )
    command = [RUSTC, "--emit=llvm-ir", "-C", "panic=abort", "f.rs"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    a, b = columns = rows(2)
    with np.errstate(all="ignore"):
        m = np.sqrt(np.abs(np.fmax(a, b)))
        away = np.copysign(np.floor(np.abs(b)) + (np.abs(b) - np.floor(np.abs(b)) >= 0.5), b)
        signum = np.where(np.isnan(a), np.nan, np.copysign(1, a))
        expected = np.where(np.isnan(m), 1.0, signum + (m * m * m + away))
    np.testing.assert_allclose(value(primitive_from_llvm(tmp_path / "f.ll", "f"), columns), expected, rtol=1e-15)
