"""Foreign bytes never end this process and never take longer than allowed; messages say what is wrong with them."""

from __future__ import annotations

import random

import llvmlite.binding as llvm
import pytest

from shine import GraphImportError
from shine.compiler.llvm import foreign
from shine.compiler.llvm.foreign import MAX_BYTES, foreign_function

CODE = """
define double @f(double %a) noinline optnone "unsafe-fp-math"="true" {
  %r = fadd fast double %a, 1.0
  %s = fsub fast double %r, 1.0
  ret double %s
}
define double @"noinline fast"(double %0) {
  %2 = call double @f(double %0)
  ret double %2
}
"""
BITCODE = llvm.parse_assembly(CODE).as_bitcode()


def test_a_function_has_names_for_everything_in_it():
    function = foreign_function(CODE.encode(), "noinline fast")
    assert (function.returns, function.arguments) == ("double", (("double", ""),))
    assert function.labels[0] in function.body


@pytest.mark.parametrize("content", [CODE.encode(), BITCODE])
def test_fast_math_flags_change_no_result(content):
    assert foreign_function(content, "f").body.count("fadd double") == 2  # LLVM adds -1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the LLVM module is empty"),
        (b" \n", "the LLVM module is empty"),
        (b"\x7fELF\x02\x01\x01", "this is an object file or a program, not an LLVM module"),
        (b"\0asm\x01", "a WebAssembly module"),
        (b"\xff\xfe\x00d", "neither LLVM IR nor bitcode: byte 0 is not UTF-8"),
        (b"define double @f(", "LLVM rejects the module"),
        (b"double f(double x) { return x; }", "LLVM rejects the module"),
        (BITCODE[: len(BITCODE) // 2], "cannot read the bitcode, which is damaged or of a newer version"),
        (b"x" * (MAX_BYTES + 1), f"at most {MAX_BYTES} are read"),
        (b"define double @g(double %x) {\n  ret double %x\n}", "defines no function 'f'; it defines g"),
        (b"declare double @f(double)", "defines no function 'f'; it defines none"),
    ],
)
def test_messages_say_what_is_wrong(content, message):
    with pytest.raises(GraphImportError) as caught:
        foreign_function(content, "f")
    assert message in str(caught.value)


@pytest.mark.slow
def test_damaged_bitcode_is_an_error_or_still_a_function():
    # LLVM ends its process over some of them.
    rng = random.Random(1)
    for _ in range(6):
        damaged = bytearray(BITCODE)
        for _ in range(4):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            assert foreign_function(bytes(damaged), "f").name == "f"
        except GraphImportError as error:
            assert str(error)


def test_a_process_that_ends_is_an_error(monkeypatch):
    monkeypatch.setattr(foreign.sys, "executable", "/bin/false")
    with pytest.raises(GraphImportError, match="LLVM gives up on the module: it gave no reason"):
        foreign_function(CODE.encode(), "f")


def test_a_process_that_takes_too_long_is_an_error(monkeypatch):
    monkeypatch.setattr(foreign, "MAX_SECONDS", 0.01)
    with pytest.raises(GraphImportError, match=r"took longer than 0\.01 s over function 'f'"):
        foreign_function(CODE.encode(), "f")
