"""Kernels do natively what they do in Python, to the last bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import inf, nan, sqrt

import numpy as np
import pytest
from llvmlite import ir

from shine.base.typing import Codes, Floats, Indices, Mask, Words
from shine.compiler.kernels import emit_kernel, native_functions
from shine.compiler.llvm import Engine
from shine.evaluate.gradient.damped_equations import scale_equations, solve_equations

NUMBERS = np.array([0.0, -0.0, 1.0, 2.5, -3.0, 1e300, -1e-300, inf, -inf, nan])
PAIRS = np.array([(a, b) for a in NUMBERS for b in NUMBERS])

Change = Callable[[float, int], float]


def compare(n: int, pairs: Floats, found: Floats) -> None:
    """Write what comparisons, extremes and roots of pairs are."""
    for i in range(n):
        a, b = pairs[2 * i :][:2]
        row = found[8 * i :]
        row[0], row[1], row[2] = min(a, b), max(a, b), sqrt(abs(a))
        row[3] = 1.0 if a != b else 0.0
        row[4] = 1.0 if 0.0 < a < b else 0.0
        row[5] = 1.0 if not a < b else 0.0
        row[6] = (a == b or not b > 0.0) and (a != 1.0 or b > 2)
        row[7] = -a


def wander(n: int, codes: Codes, mask: Mask, found: Indices) -> None:
    """Write sums along arrays whose rests, rooms and names are exchanged."""
    room = np.empty(3, np.int64)
    room[0], room[1], room[2] = 0, 1, 0
    here, there = found, found[n:]
    for i in range(n):
        if not mask[i]:
            here, there = there, here
        room[2] |= 1 << i
        room[0] += countdown(codes[i], room[1])
        here[i], there[i] = room[0], room[2]


def countdown(number: int, step: int) -> int:
    """A sum of whole numbers down to one; its parameters are its own variables."""
    total = 0
    while number > 0:
        total += number
        number -= step
    return total


def test_comparisons_and_extremes_are_those_of_python():
    found, wanted = np.empty((2, 8 * len(PAIRS)))
    kernel = native_functions("tests of kernels", [compare])["compare"]
    pairs = PAIRS.ravel()
    kernel(len(PAIRS), id(pairs), id(found))
    compare(len(PAIRS), pairs, wanted)
    assert found.tobytes() == wanted.tobytes()


def test_rests_of_arrays_room_on_the_stack_and_parameters_are_those_of_python():
    rng = np.random.default_rng(0)
    codes, mask = rng.integers(0, 9, 30).astype(np.int16), rng.random(30) < 0.5
    found, wanted = np.zeros((2, 60), np.int64)
    native_functions("tests of rests", [wander])["wander"](30, id(codes), id(mask), id(found))
    wander(30, codes.astype(int), mask, wanted)
    assert found.tolist() == wanted.tolist()


WEIGHTS = np.array([0.5, 0.0, -2.0])


def blend(n: int, most: float, given: Floats, found: Floats) -> None:
    """Write vectors and powers until a number is too large."""
    for start in range(0, n, 12):
        place = start
        while place < n:
            if given[place] > most:
                break
            total = np.zeros(4)
            for other in (0, 1, 2):
                if WEIGHTS[other] != 0.0:
                    total = total + WEIGHTS[other] * given[place + other :][:4] / 3
            found[place:][:4] = np.where(total < given[place], -total, abs(given[place:][:4]))
            found[place + 4 :][:4] = start
            found[place + 8] = abs(given[place]) ** 1.5
            place += 12


def test_vectors_tables_unrolled_loops_and_breaks_are_those_of_python():
    module = ir.Module()
    emit_kernel(module, blend, (), "external")
    given = np.random.default_rng(2).normal(size=42)
    given[24] = 9.0
    found, wanted = np.zeros((2, 36))
    with Engine(str(module)) as engine:
        native = engine.function("blend", None, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)
        native(36, 8.0, given.ctypes.data, found.ctypes.data)
    blend(36, 8.0, given, wanted)
    # Powers are those of formulas.
    np.testing.assert_allclose(found[8::12], wanted[8::12], rtol=1e-15)
    found[8::12] = wanted[8::12]
    assert found.tobytes() == wanted.tobytes()
    assert found[20] != 0.0 == found[32]


def total(job: Words) -> float:
    """The sum of changed numbers, where functions and arrays are at addresses."""
    values: Floats = job["values"]
    change: Change = job["change"]
    found = 0.0
    for place in range(job["count"]):
        found += change(values[place], place)
    return found


def shift(value: float, place: int) -> float:
    """A number moved by a whole one."""
    return value + place


def test_words_of_a_job_are_numbers_arrays_and_functions():
    module = ir.Module()
    for kernel in (total, shift):
        emit_kernel(module, kernel, ("count", "change", "values"), "external")
    values = np.array([1.0, 2.0, 4.5])
    with Engine(str(module)) as engine:
        job = np.array([3, engine.address("shift"), values.ctypes.data])
        assert engine.function("total", ctypes.c_double, ctypes.c_void_p)(job.ctypes.data) == 10.5
    assert total({"count": 3, "change": shift, "values": values}) == 10.5


Write = Callable[[Floats, int], None]
Twice = Callable[[int], int]


def put(values: Floats, number: int) -> None:
    """Write a whole number."""
    values[0] = number


def twice(number: int) -> int:
    """A whole number twice."""
    return number + number


def steer(write: Write, values: Floats, most: int, function: int, factors: Floats) -> float:
    """Call functions that return nothing and a whole number."""
    double: Twice = function
    write(values, double(most))
    return values[0] * factors[1]


def test_functions_return_what_their_types_say_and_parameters_may_be_known():
    module = ir.Module()
    functions = {kernel: emit_kernel(module, kernel, (), "external") for kernel in (put, twice)}
    kind = ir.ArrayType(ir.DoubleType(), 2)
    factors = ir.GlobalVariable(module, kind, "factors")
    factors.initializer = ir.Constant(kind, [2.0, -1.0])
    known = {"most": 4, "function": functions[twice], "factors": factors, "other": 1}
    assert len(emit_kernel(module, steer, (), "external", known).args) == 2
    values = np.zeros(1)
    with Engine(str(module)) as engine:
        native = engine.function("steer", ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)
        assert native(engine.address("put"), values.ctypes.data) == -8.0 == -values[0]
    assert steer(put, values, 4, twice, np.array([2.0, -1.0])) == -8.0


def lambdas(n: int, found: Floats) -> None:
    """Not a kernel."""
    found[0] = [n][0]


def stops(n: int, found: Floats) -> None:
    """Not a kernel: its `break` ends no `while`."""
    while n > 0:
        for place in range(n):
            found[place] = 0.0
            break


@pytest.mark.parametrize(("function", "what"), [(lambdas, r"\[n\]"), (stops, "break")])
def test_python_that_is_no_kernel_is_an_error(function, what):
    with pytest.raises(NotImplementedError, match=f"a kernel has no {what}"):
        emit_kernel(ir.Module(), function)


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_damped_steps_are_those_of_python_and_solve_the_equations(level):
    module = ir.Module()
    for kernel in (scale_equations, solve_equations):
        emit_kernel(module, kernel, (), "external")
    rng = np.random.default_rng(1)
    size = 7
    with Engine(str(module), level) as engine:
        floats, whole = ctypes.c_void_p, ctypes.c_int64
        scale = engine.function("scale_equations", None, *[floats] * 5, ctypes.c_double, *[whole] * 3)
        solve = engine.function("solve_equations", ctypes.c_double, *[floats] * 5, whole, whole, ctypes.c_double)
        for count in (3, 5, 7):
            columns = rng.standard_normal((20, count + 1))
            columns[:, 2] *= count != 5  # a constant without influence stays
            products = np.zeros((size + 1, size + 1))
            products[: count + 1, : count + 1] = columns.T @ columns
            fixed = np.array([0, 1, 0, 0, 1], np.bool_)
            runs = []
            for native in (True, False):
                arrays = [np.zeros(n) for n in (size * size, size, size, size * size, size)]
                matrix, gradient, scales, work, step = arrays
                numbers = (count, size, 1)
                if native:
                    scale(*(a.ctypes.data for a in (products, matrix, gradient, scales, fixed)), 1.7, *numbers)
                    promise = solve(*(a.ctypes.data for a in (matrix, gradient, scales, work, step)), count, size, 0.1)
                else:
                    with np.errstate(all="ignore"):
                        scale_equations(products.ravel(), matrix, gradient, scales, fixed, 1.7, *numbers)
                    promise = solve_equations(matrix, gradient, scales, work, step, count, size, 0.1)
                runs.append(np.concatenate([*arrays, [promise]]))
            assert runs[0].tobytes() == runs[1].tobytes()
            whole_matrix = matrix.reshape(size, size)[:count, :count]
            whole_matrix = whole_matrix + whole_matrix.T + 1.1 * np.eye(count)
            wanted = np.linalg.solve(whole_matrix, gradient[:count]) / scales[:count]
            np.testing.assert_allclose(step[:count], wanted, atol=1e-12)
            still = np.zeros(count, bool)
            still[2:] = fixed[: count - 2]
            still[1] |= count == 5
            assert not step[:count][still].any()
            assert promise == pytest.approx(gradient @ (step * scales) + 0.1 * np.sum((step * scales) ** 2))
