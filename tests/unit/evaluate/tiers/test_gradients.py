"""Normal equations on the gradient machine against sums over differences of the reference tier."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from shine.data.datasets.dataset import Dataset
from shine.evaluate.protocols import NormalEquations
from shine.evaluate.tiers import machine_rows
from shine.evaluate.tiers import rows as rows_module
from shine.evaluate.tiers.gradients import MOST_CONSTANTS, MachineLinearizer
from shine.evaluate.tiers.machine_rows import LARGE_ROWS, MachineRows
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2

Array = NDArray[np.float64]

SMOOTH = ("add", "sub", "mul", "div", "sin", "cos", "exp", "tanh")
FORMULAS = ["0.7*x + 1.3", "1.1*exp(-0.4*x)*z", "sin(0.9*x + 0.2)/(1.5 + y*y) - 0.3*z", "x*y - z", "2.5"]


def dataset_of(rows: int, weighted: bool = False, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 3.0, rows) if weighted else None
    return Dataset(rng.uniform(0.15, 0.85, (3, rows)), rng.normal(1.0, 2.0, rows), weights, ("x", "y", "z"))


def values_of(population: Population, index: int, columns: Array, moved: dict[int, float]) -> Array:
    tape = population.tape(index)
    values = tape.values.copy()
    for position, change in moved.items():
        values[position] += change
    return np.asarray(evaluate_tape(tape.codes, values, population.primitives, list(columns)))


def constants_of(population: Population, index: int) -> list[int]:
    return np.flatnonzero(population.tape(index).codes == CONSTANT).tolist()


def differences(population: Population, index: int, columns: Array, step: float) -> Array:
    """Derivatives by each constant, shape (n_constants, n_rows): central differences of fourth order."""
    found = []
    for position in constants_of(population, index):
        one, two, minus, minus_two = (
            values_of(population, index, columns, {position: k * step}) for k in (1, 2, -1, -2)
        )
        with np.errstate(all="ignore"):
            found.append((8 * (one - minus) - (two - minus_two)) / (12 * step))
    return np.array(found).reshape(-1, columns.shape[1])


def expected(
    population: Population, index: int, dataset: Dataset, loss: str, slope: float, intercept: float, most: int = 99
) -> tuple[float, Array, Array]:
    """Sum of errors and matrix, and how large the terms of each entry are."""
    prediction = values_of(population, index, dataset.columns, {})
    jacobian = differences(population, index, dataset.columns, 1e-3)[:most]
    residual = dataset.target - (intercept + slope * prediction)
    weights, error = dataset.row_weights, residual**2
    if loss == "mae":
        error = np.abs(residual)
        weights = np.divide(weights, 2 * error, out=np.zeros_like(error), where=error > 0)
    columns = np.vstack([residual, np.ones(dataset.n_rows), prediction, jacobian])
    magnitudes = np.abs(columns)
    # Differences of values tell nothing about derivatives far smaller than the values.
    magnitudes[3:] += 1e-4 * (1 + np.abs(prediction))
    matrix, size = ((c[:, None, :] * c[None, :, :] * weights).sum(axis=-1) for c in (columns, magnitudes))
    return float(dataset.row_weights @ error), matrix, size


def check(
    population: Population,
    dataset: Dataset,
    loss: str = "mse",
    slopes: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    tolerance: float = 1e-8,
) -> NormalEquations:
    n = len(population)
    lines = np.array(slopes or [1.0] * n), np.array(intercepts or [0.0] * n)
    found = MachineLinearizer(dataset, loss).normal_equations(population, *lines, np.full(n, np.inf))
    for i in range(n):
        error, matrix, size = expected(population, i, dataset, loss, lines[0][i], lines[1][i], MOST_CONSTANTS)
        count = len(matrix)
        assert found.errors[i] == pytest.approx(error, rel=1e-12)
        assert found.counts[i] == count - 3
        own = found.matrices[i]
        assert (np.abs(own[:count, :count] - matrix) <= tolerance * size + 1e-300).all()
        assert not own[count:].any() and not own[:, count:].any()
        assert np.array_equal(own, own.T)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 8, 257, 1003])
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_any_number_of_rows_is_added_up_in_full(rows, loss):
    check(Population.from_sources(FORMULAS, ("x", "y", "z")), dataset_of(rows, rows > 8), loss)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_large_data_are_read_where_they_are(loss):
    check(Population.from_sources(FORMULAS, ("x", "y", "z")), dataset_of(LARGE_ROWS + 301, True), loss)


@pytest.mark.parametrize("order", ["C", "F"], ids=["by column", "by row"])
@pytest.mark.parametrize("rows", [511, 1024, 1300])
def test_a_block_of_rows_at_a_time_gives_the_same_bits(rows, order, monkeypatch):
    data, population = dataset_of(rows, True), Population.from_sources(FORMULAS, ("x", "y", "z"))
    lines = np.full(len(population), 1.5), np.full(len(population), -0.5), np.full(len(population), np.inf)
    known = MachineLinearizer(data, "mse").normal_equations(population, *lines)
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    for name, value in (("SHORTEST_BLOCK", 512), ("BLOCK_BYTES", 0), ("HELD_BYTES", 0), ("ENOUGH_WORK", 0)):
        monkeypatch.setattr(rows_module, name, value)
    stored = Dataset(np.array(data.columns, order=order), data.target, data.weights, data.features)
    found = MachineLinearizer(stored, "mse").normal_equations(population, *lines)
    assert found.errors.tobytes() == known.errors.tobytes()
    assert found.matrices.tobytes() == known.matrices.tobytes()


@pytest.mark.parametrize("loss", ["mse", "rmse", "nmse", "r2", "mae"])
def test_lines_are_part_of_the_residual_and_not_of_the_derivatives(loss):
    population = Population.from_sources(FORMULAS, ("x", "y", "z"))
    check(population, dataset_of(100), loss, [2.0, -0.5, 1e3, 0.0, 1.0], [1.0, 0.3, -7.0, 2.0, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("name", STANDARD)
def test_every_primitive_has_the_derivatives_of_its_values(name):
    """Rows on a step or a kink, where differences of two widths disagree, are left out."""
    arity = STANDARD[name].arity
    arguments = [f"({0.6 + 0.25 * i}*{feature} + {0.02 + 0.01 * i})" for i, feature in enumerate("xyz"[:arity])]
    sources = [f"{name}({', '.join(arguments)})", f"{name}({', '.join(reversed(arguments))})"]
    # The same set of all primitives each time: one machine is compiled for all of these tests.
    population = Population.from_sources(sources, ("x", "y", "z"), tuple(STANDARD))
    dataset = dataset_of(400, True)
    smooth = np.ones(400, np.bool_)
    for i in range(len(population)):
        wide, narrow = (differences(population, i, dataset.columns, step) for step in (2e-3, 1e-3))
        with np.errstate(invalid="ignore"):
            smooth &= (np.abs(wide - narrow) <= 1e-7 * (1 + np.abs(narrow))).all(axis=0)
    # Without rows this test would check nothing.
    assert np.count_nonzero(smooth) > 100
    check(population, dataset.take(np.flatnonzero(smooth)), tolerance=1e-7)


@pytest.mark.slow
def test_random_formulas_have_the_derivatives_of_their_values():
    primitives = PrimitiveSet(select(STANDARD, SMOOTH), ("x", "y", "z"))
    everyone = ptc2(150, primitives, 31, 8, Terminals((0.5, 2.0), 0.5), np.random.default_rng(0))
    dataset = dataset_of(300, True)
    tame = []
    for i in range(len(everyone)):
        wide, narrow = (differences(everyone, i, dataset.columns, step) for step in (2e-3, 1e-3))
        with np.errstate(all="ignore"):
            close = np.abs(wide - narrow) <= 1e-8 * (1 + np.abs(narrow))
        if np.isfinite(narrow).all() and close.all():
            tame.append(i)
    assert len(tame) > 100
    check(everyone.take(tame), dataset, tolerance=1e-7)


def test_constants_after_the_last_fitted_one_are_left_out():
    many = " + ".join(f"{1 + i / 8}*x" for i in range(MOST_CONSTANTS + 5))
    found = check(Population.from_sources([many, "2.0*x"], ("x", "y", "z")), dataset_of(50))
    assert found.matrices.shape == (2, 3 + MOST_CONSTANTS, 3 + MOST_CONSTANTS)
    assert found.counts.tolist() == [MOST_CONSTANTS, 1]


def test_an_individual_is_left_as_soon_as_its_errors_exceed_its_limit():
    population = Population.from_sources(["x + 1.5"] * 4, ("x", "y", "z"))
    dataset = dataset_of(5000)
    ones, zeros = np.ones(4), np.zeros(4)
    linearizer = MachineLinearizer(dataset, "mse")
    total = linearizer.normal_equations(population, ones, zeros, np.full(4, np.inf))
    limits = total.errors * np.array([1.0, 0.999999, 0.01, 2.0])
    found = linearizer.normal_equations(population, ones, zeros, limits)
    assert found.errors.tolist() == [total.errors[0], np.inf, np.inf, total.errors[3]]
    assert found.matrices[[0, 3]].tobytes() == total.matrices[[0, 3]].tobytes()
    # Fewer rows have been added up.
    assert found.matrices[2, 1, 1] < 0.1 * total.matrices[2, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "mae"])
@pytest.mark.parametrize("text", ["log(x - 0.5)", "1.0/(x - x)", "0.1*sqrt(0.2 - x)"])
def test_predictions_that_are_not_finite_make_infinite_errors(loss, text):
    population = Population.from_sources([text, "x + 1.5"], ("x", "y", "z"))
    dataset = dataset_of(300)
    found = MachineLinearizer(dataset, loss).normal_equations(population, np.ones(2), np.zeros(2), np.full(2, np.inf))
    assert np.isinf(found.errors[0])
    error, *_ = expected(population, 1, dataset, loss, 1.0, 0.0)
    assert found.errors[1] == pytest.approx(error)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_threads_and_company_change_no_bit(loss, monkeypatch):
    monkeypatch.setattr(machine_rows, "SHARED_WORK", 1)
    primitives = PrimitiveSet(select(STANDARD, SMOOTH), ("x", "y", "z"))
    population = ptc2(200, primitives, 31, 8, Terminals((0.5, 2.0), 0.5), np.random.default_rng(0))
    dataset = dataset_of(777, True)
    lines = np.ones(200), np.zeros(200), np.full(200, np.inf)
    one, two = (MachineLinearizer(dataset, loss, threads).normal_equations(population, *lines) for threads in (1, 2))
    assert one.errors.tobytes() == two.errors.tobytes()
    finite = np.isfinite(one.errors)
    assert one.matrices[finite].tobytes() == two.matrices[finite].tobytes()
    for i in np.flatnonzero(finite)[:30].tolist():
        alone = MachineLinearizer(dataset, loss).normal_equations(population.take([i]), *(a[:1] for a in lines))
        size = alone.matrices.shape[1]
        assert alone.matrices[0].tobytes() == one.matrices[i, :size, :size].tobytes()


def test_rows_without_an_error_weigh_nothing_in_a_fit_of_absolute_errors():
    dataset = dataset_of(100)
    exact = Dataset(dataset.columns, 2.0 * dataset.columns[0], None, dataset.features)
    found = check(Population.from_sources(["2.0*x"], dataset.features), exact, "mae")
    assert found.errors[0] == 0
    assert np.isfinite(found.matrices).all()


@pytest.mark.slow
def test_memory_that_a_pass_points_to_lives_as_long_as_the_pass(monkeypatch):
    """Blocks of large row-major tables are copies that nothing else holds."""
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    monkeypatch.setattr(rows_module, "HELD_BYTES", 0)
    table = np.random.default_rng(0).uniform(1, 2, (512, 2))
    rows = MachineRows(Dataset(table.T, table[:, 0], None, ("x0", "x1")), "float64", threads=1, nested=False)
    pointed: list[weakref.ref] = []
    addresses = rows_module.addresses

    def watched(columns):
        found = addresses(columns)
        pointed.extend([weakref.ref(columns), weakref.ref(found)])
        return found

    monkeypatch.setattr(rows_module, "addresses", watched)
    whole = next(rows.passes(Population.from_sources(["2.5*x0"], ("x0", "x1"))))
    gc.collect()
    assert pointed and all(each() is not None for each in pointed)
    start = (ctypes.c_uint64 * 2).from_address(whole.fields["columns"])[0]
    assert list((ctypes.c_double * 512).from_address(start)) == table[:, 0].tolist()
    del whole
    gc.collect()
    assert all(each() is None for each in pointed)
