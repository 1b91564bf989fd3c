"""The machine tier: sums with the same bits always, stopping early, weights, and every number of rows."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import shine
from shine.compiler.threads import Workers
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.scores import Scores
from shine.evaluate.tiers import machine_rows
from shine.evaluate.tiers import rows as rows_module
from shine.evaluate.tiers.evaluator import TIERS, evaluator_of
from shine.evaluate.tiers.jobs import STEP_ROWS
from shine.lang.population import Population

ROOT = Path(shine.__file__).parents[1]
ROWS = 1003


def random_population(count: int = 150, seed: int = 0, features: int = 2) -> Population:
    return shine.Population.random(count, features=features, rng=np.random.default_rng(seed))


def dataset(rows: int = ROWS, weighted: bool = False, features: int = 2, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, features)), rng.normal(size=rows)
    return Dataset.from_arrays(X, y, sample_weight=rng.uniform(0.1, 2, rows) if weighted else None)


def bits(scores: Scores) -> list[bytes]:
    """All numbers of scores as bytes."""
    return [scores.losses.tobytes(), scores.slopes.tobytes(), scores.intercepts.tobytes()]


def evaluator(data: Dataset, loss: str = "mse", scaling: bool = False, dtype: str = "float64", threads: int = 1):
    return evaluator_of(data, loss, scaling, dtype, "machine", threads)


each_loss = pytest.mark.parametrize("loss", LOSSES)
each_scaling = pytest.mark.parametrize("scaling", [False, True], ids=["raw", "scaled"])
each_weighting = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


# The same bits always


@pytest.mark.slow
@pytest.mark.parametrize("threads", [3])
@each_dtype
@each_scaling
def test_the_number_of_threads_changes_no_bit(dtype, scaling, threads, monkeypatch):
    monkeypatch.setattr(machine_rows, "SHARED_WORK", 0)
    data, population = dataset(weighted=True), random_population(5 * STEP_ROWS // ROWS + 1)
    alone, shared = (evaluator(data, "mae", scaling, dtype, count) for count in (1, threads))
    assert bits(shared.score(population)) == bits(alone.score(population))
    assert shared.predict(population).tobytes() == alone.predict(population).tobytes()


@pytest.mark.parametrize("cuts", [[64, 128], list(range(1, 150))])
@each_scaling
def test_the_score_of_an_individual_does_not_depend_on_the_others(scaling, cuts):
    population = random_population()
    score = evaluator(dataset(weighted=True), "mse", scaling).score
    parts = [score(population.take(part)) for part in np.split(np.arange(150), cuts)]
    assert bits(Scores.concatenate(parts)) == bits(score(population))


# Rows and features


@pytest.mark.parametrize("tier", TIERS)
def test_one_row_is_enough(tier):
    population = shine.Population.from_sources(["x0 + 1"])
    assert shine.Evaluator([[2.0]], [5.0], tier=tier)(population).tolist() == [4.0]
    assert shine.Evaluator([[2.0]], [5.0], tier=tier, linear_scaling=True)(population).tolist() == [0.0]


@pytest.fixture
def blocks(monkeypatch):
    """Data of any size are evaluated in blocks of 512 rows, and converted block by block if necessary."""
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    for name, value in (("SHORTEST_BLOCK", 512), ("BLOCK_BYTES", 0), ("HELD_BYTES", 0), ("ENOUGH_WORK", 0)):
        monkeypatch.setattr(rows_module, name, value)


each_order = pytest.mark.parametrize("order", ["C", "F"], ids=["by column", "by row"])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 513, 2048])
@each_dtype
@each_scaling
def test_large_data_read_in_place_have_the_same_bits(scaling, dtype, rows, monkeypatch):
    data, population = dataset(rows, True), random_population(30)
    copied = evaluator(data, "mse", scaling, dtype)
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    large = evaluator(data, "mse", scaling, dtype)
    assert bits(large.score(population)) == bits(copied.score(population))
    assert large.predict(population).tobytes() == copied.predict(population).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tier", "individuals", "rows"),
    [("machine", 20, 512), ("machine", 20, 1537), ("native", 3, 1537)],
)
@each_order
@each_dtype
@each_weighting
def test_a_block_of_rows_at_a_time_gives_the_same_bits(weighted, dtype, order, tier, individuals, rows, request):
    data, population = dataset(rows, weighted), random_population(individuals)
    asked = [("mse", False), ("mae", True)]
    known = [bits(evaluator_of(data, *loss, dtype, tier).score(population)) for loss in asked]
    predicted = evaluator(data, dtype=dtype).predict(population).tobytes()
    request.getfixturevalue("blocks")
    stored = Dataset(np.array(data.columns, order=order), data.target, data.weights, data.features)
    assert [bits(evaluator_of(stored, *loss, dtype, tier, 2).score(population)) for loss in asked] == known
    assert evaluator_of(stored, "mse", False, dtype, tier).predict(population).tobytes() == predicted


@each_order
@pytest.mark.parametrize("count", [2, 7])
def test_only_the_columns_in_use_need_to_be_converted(count, order, blocks):
    data = dataset(1100, features=8)
    stored = Dataset(np.array(data.columns, order=order), data.target, None, data.features)
    population = shine.Population.from_sources([f"x{7 - i}*2" for i in range(count)], data.features)
    assert evaluator(stored).predict(population).tobytes() == (data.columns[::-1][:count] * 2).tobytes()


@pytest.mark.slow
@each_loss
@each_scaling
def test_a_threshold_is_honoured_from_block_to_block(loss, scaling, blocks):
    assert_only_losses_above_are_inf(dataset(2600), random_population(40), loss, scaling)


MEMORY = """
import pathlib, sys
import numpy as np, shine

def resident(what):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))

order, options = sys.argv[1], dict(tier=sys.argv[2], dtype=sys.argv[3], linear_scaling=True)
population = shine.Population.from_sources(["x0*x1 + 0.5", "x0 - x1"])
shine.Evaluator(np.ones((10, 2)), np.arange(10.0), **options)(population)
X, y = np.ones((8_000_000, 2), order=order), np.ones(8_000_000)
X[::2], y[::3] = 2.0, 3.0
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
shine.Evaluator(X, y, **options)(population)
print(resident("VmHWM") - before, X.nbytes + y.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="what a process takes is read there")
@pytest.mark.parametrize(
    ("order", "tier", "dtype"),
    [("C", "machine", "float64"), ("C", "native", "float32")],
)
def test_millions_of_rows_take_little_more_memory_than_the_data(order, tier, dtype):
    command = [sys.executable, "-W", "error", "-c", MEMORY, order, tier, dtype]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    grown, data = map(int, done.stdout.split())
    assert data + grown < 1.2 * data + 64 * 2**20


# Stopping early


def thresholds(losses: np.ndarray) -> list[float]:
    """Some losses, numbers next to them and between them, and extremes."""
    finite = np.sort(losses[np.isfinite(losses)])
    some = finite[:: max(1, len(finite) // 12)]
    return [0.0, 1e300, np.inf, *some, *np.nextafter(some, 0), *np.nextafter(some, np.inf)]


def assert_only_losses_above_are_inf(data: Dataset, population: Population, loss: str, scaling: bool, dtype="float64"):
    """Losses up to any threshold have the same bits as without one, and the others are inf."""
    score = evaluator(data, loss, scaling, dtype).score
    losses = score(population).losses
    wrong = [
        (threshold, int(index), losses[index], found[index])
        for threshold in thresholds(losses)
        for found in [score(population, threshold).losses]
        for index in np.flatnonzero(found != np.where(losses <= threshold, losses, np.inf))
    ]
    assert wrong == []
    own = np.resize(thresholds(losses), len(losses))
    assert np.array_equal(score(population, own).losses, np.where(losses <= own, losses, np.inf))


@pytest.mark.slow
@each_loss
@each_scaling
@each_dtype
def test_a_threshold_turns_only_losses_above_it_into_inf(loss, scaling, dtype):
    assert_only_losses_above_are_inf(dataset(weighted=True), random_population(), loss, scaling, dtype)


@pytest.mark.parametrize("where", [0, 256])
@each_loss
@each_scaling
def test_a_threshold_is_honoured_if_one_row_has_all_the_error(loss, scaling, where):
    x = np.random.default_rng(0).normal(size=(ROWS, 2))
    y = x[:, 0].copy()
    y[where] += 100.0
    population = shine.Population.from_sources(["x0", "x0 + 0.001", "x0*2", "x1", "x0 + x1*0.01", "x0*x0"])
    assert_only_losses_above_are_inf(Dataset.from_arrays(x, y), population, loss, scaling)


@pytest.mark.slow
@pytest.mark.parametrize("where", [0, 300, -1])
@each_scaling
def test_a_row_that_is_not_finite_makes_the_loss_infinite_wherever_it_is(scaling, where):
    x = np.random.default_rng(0).uniform(1, 2, (ROWS, 1))
    x[where] = 0.0
    data = Dataset.from_arrays(x, np.arange(ROWS))
    population = shine.Population.from_sources(["1/x0", "0/x0", "x0", "1/(x0 - x0)", "0*(1/x0)"])
    assert np.isinf(evaluator(data, "mse", scaling).score(population).losses).tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert_only_losses_above_are_inf(data, population, "mse", scaling)


def test_a_small_sum_of_large_absolute_errors_is_not_stopped():
    # The squared error of a line is 2500 times its absolute error here.
    x, y = np.arange(600.0), np.arange(600.0)
    y[300] += 5000
    population, data = shine.Population.from_sources(["x0"]), Dataset.from_arrays(x[:, None], y)
    assert_only_losses_above_are_inf(data, population, "mae", True)


def test_rounding_of_predictions_far_from_zero_does_not_stop_them():
    for seed in range(8):
        x = np.random.default_rng(seed).integers(-2000, 2000, 3000) / 512
        data = Dataset.from_arrays((1e13 + x)[:, None], x)
        assert_only_losses_above_are_inf(data, shine.Population.from_sources(["x0"]), "mse", True)


def test_rounding_of_predictions_near_the_smallest_number_does_not_stop_them():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        data = Dataset.from_arrays((2e-162 * x)[:, None], x + rng.normal(size=300))
        assert_only_losses_above_are_inf(data, shine.Population.from_sources(["x0"]), "mse", True)


@each_loss
def test_a_loss_that_rounds_to_zero_is_not_above_zero(loss):
    # The sum of squared errors is the smallest number, and half of it rounds to zero.
    x = np.array([[1e-162, 2.3e-162], [1.0, 2.0]])
    data = Dataset.from_arrays(x.T, [0.0, 0.0] if loss in ("mse", "rmse", "mae") else [0.0, 3.0])
    population = shine.Population.from_sources(["x0", "x0*2", "x1"], ("x0", "x1"))
    assert_only_losses_above_are_inf(data, population, loss, False)


@pytest.mark.parametrize("threshold", [-1.0, np.nan, -np.inf])
@each_loss
def test_all_losses_are_inf_if_no_loss_can_meet_the_threshold(loss, threshold):
    assert np.isinf(evaluator(dataset(), loss).score(random_population(20), threshold).losses).all()


# Weights


@each_loss
@each_scaling
def test_weights_of_one_have_the_bits_of_no_weights(loss, scaling):
    plain, population = dataset(), random_population()
    weighted = Dataset(plain.columns, plain.target, np.ones(ROWS), plain.features)
    assert bits(evaluator(weighted, loss, scaling).score(population)) == bits(
        evaluator(plain, loss, scaling).score(population)
    )


@pytest.mark.slow
@pytest.mark.parametrize("empty", [slice(256, 768), slice(1, ROWS)])
@each_loss
@each_scaling
def test_rows_of_weight_zero_do_not_count(loss, scaling, empty):
    data, population = dataset(weighted=True), random_population()
    data.weights[empty] = 0.0
    kept = np.setdiff1d(np.arange(ROWS), np.arange(ROWS)[empty])
    if len(kept) == 1 and loss in ("nmse", "r2"):
        return
    without = Dataset(data.columns[:, kept].copy(), data.target[kept], data.weights[kept], data.features)
    expected, found = (evaluator(d, loss, scaling).score(population).losses for d in (without, data))
    both = np.isfinite(expected) & np.isfinite(found)
    # A row of weight zero still makes the loss infinite if its prediction is not finite.
    assert both.sum() > 100
    assert found[both] == pytest.approx(expected[both], rel=1e-9, abs=1e-12)


# Extreme numbers


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("rows", [8, 9, 255, 257])
def test_padding_rows_do_not_overflow(tier, rows):
    x = 1.5e154 * (1 + np.linspace(0, 1e-6, rows))
    data = Dataset(x[None, :], x, None, ("x0",))
    assert evaluator_of(data, "mse", False, "float64", tier).score(
        shine.Population.from_sources(["x0"])
    ).losses.tolist() == [0.0]


def test_an_interrupt_waits_for_the_current_items_of_other_threads():
    begun, released, finished, left = threading.Event(), threading.Event(), [], list(range(5))

    def work(thread):
        if thread:
            while left:
                item = left.pop(0)
                begun.set()
                released.wait(10)
                finished.append(item)
        else:
            begun.wait(10)
            threading.Timer(0.2, released.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Workers(2).run(work, left.clear)
    assert finished == [0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer interrupts")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_an_evaluation_long_before_its_end(threads):
    """An evaluation of 15 seconds on a fast processor, in one call of the machine."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    population, score = random_population(100), evaluator(dataset(100_000), threads=threads).score
    many = population.take(np.resize(np.arange(100), 300_000 * threads))
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        begin = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            score(many)
        # It takes milliseconds; on a busy host longer.
        assert time.perf_counter() - begin < 8
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
