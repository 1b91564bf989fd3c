"""Objects for other processors: what they need, what their headers say, and what they compute under an emulator."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from unit.formats.native.cases import TRIPLES, columns_of, equal, every_primitive, mixed, one_of
from unit.formats.native.cross import MACHINES, emulated

import shine
from shine.aot import FormulaCode, Order, code_of, target_of
from shine.compiler.codegen.numbers import ELEMENTS
from shine.evaluate.kernels.kernel import Kernel
from shine.formats.native.freestanding import undefined_symbols
from shine.lang.program.interpret import interpret

pytestmark = pytest.mark.slow

ROWS = 530
"""Not a multiple of the rows of a vector or of a tile."""


@cache
def compiled(triple: str, dtype: str) -> FormulaCode:
    """Every primitive for a target. Without optimization, which takes most of the time and needs no more symbols."""
    return FormulaCode(Order("f", target_of(triple), "O0"), "", every_primitive(dtype))


@cache
def expected_of(dtype: str) -> tuple[np.ndarray, ...]:
    """Results of every primitive on this processor."""
    program = every_primitive(dtype)
    return tuple(Kernel(program, opt_level="O0")(*columns_of(program, ROWS)))


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("triple", TRIPLES)
def test_nothing_is_needed_from_outside(triple: str, dtype: str) -> None:
    assert undefined_symbols(compiled(triple, dtype).object_code) == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_binutils_agree_that_nothing_is_undefined_and_know_the_abi(machine: str, tmp_path) -> None:
    tools = MACHINES[machine]
    if shutil.which(f"{tools.binutils}-readelf") is None:
        pytest.skip(f"there is no {tools.binutils}-readelf")
    (tmp_path / "f.o").write_bytes(compiled(tools.triple, "int64").object_code)

    def said(tool: str, *options: str) -> str:
        command = [f"{tools.binutils}-{tool}", *options, "f.o"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert all(fact in said("readelf", "-h") for fact in tools.header)
    undefined = {line.split()[-1] for line in said("nm", "-u").splitlines()}
    assert undefined <= {".TOC."}
    visible = {line.split()[2] for line in said("nm", "-g", "--defined-only").splitlines()}
    assert visible == {"f", "f_columns"}
    assert "<f>:" in said("objdump", "-d")
    if machine == "arm":
        assert "Tag_ABI_VFP_args: VFP registers" in said("readelf", "-A")


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_primitive_has_the_bits_of_this_processor(machine: str, dtype: str, tmp_path) -> None:
    made = compiled(MACHINES[machine].triple, dtype)
    columns = columns_of(made.program, ROWS)
    status, results = emulated(machine, made, columns, tmp_path)
    assert status == 0
    for found in results:
        wrong = [
            output.label
            for output, one, other in zip(made.program.outputs, found, expected_of(dtype), strict=True)
            if not equal(one, other)
        ]
        assert wrong == []


@pytest.mark.parametrize("machine", MACHINES)
def test_optimized_code_has_the_bits_of_this_processor(machine: str, tmp_path) -> None:
    formula, names = "exp(a) * floor(b) - x1 % b", ["a", "b", "x1"]
    made = code_of(formula, "f", target=MACHINES[machine].triple, params=names)
    columns = columns_of(made.program, ROWS)
    status, results = emulated(machine, made, columns, tmp_path)
    expected = shine.jit(formula, params=names)(*columns)
    assert status == 0 and len(results) == 3
    assert all(equal(one, expected) for (one,) in results)


@pytest.mark.parametrize("position", [1, 4])
@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_and_results_of_all_types_are_passed_as_c_does(machine: str, position: int, tmp_path) -> None:
    program = one_of(mixed(), position)
    made = FormulaCode(Order("f", target_of(MACHINES[machine].triple)), "", program)
    rng = np.random.default_rng(0)
    columns = [rng.integers(-50, 51, 50).astype(parameter.dtype) for parameter in program.parameters]
    _, results = emulated(machine, made, columns, tmp_path)
    expected = interpret(program, columns)
    for found in results:
        assert all(equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_zero_divisor_is_reported_in_the_status(machine: str, tmp_path) -> None:
    made = code_of("a // b", "f", target=MACHINES[machine].triple, dtype="int32")
    columns = columns_of(made.program, 20)
    assert emulated(machine, made, columns, tmp_path)[0] == 0
    columns[1][17] = 0
    assert emulated(machine, made, columns, tmp_path)[0] == 1
