"""Islands are values: a step does not change one, and its result does not depend on the process."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.habitats import (
    NEG,
    PRIMITIVES,
    SETTINGS,
    bits,
    bits_after_five_steps,
    habitat_of,
    stepped,
)
from unit.search.evolution.oracles import NodeCounter, assert_same, evolve, population_of

import shine
from shine.lang.population import Population
from shine.search.evolution.islands import Island, migrated
from shine.search.evolution.settings import StopSettings

NOBODY = Population(np.zeros((0, 15), np.int16), np.zeros((0, 15)), np.zeros(0, np.int64), PRIMITIVES)


def settled(habitat, seed=0):
    return habitat.settled(NOBODY, seed)


def test_two_steps_of_one_island_agree_and_do_not_change_it():
    habitat = habitat_of(SETTINGS)
    island = stepped(habitat, settled(habitat), 3)
    before = bits(island)
    one, other = habitat.stepped(island), habitat.stepped(island)
    assert bits(one) == bits(other) != before
    assert bits(island) == before


@pytest.mark.slow
def test_a_pickled_island_evolves_the_same_in_another_process():
    habitat = habitat_of()
    island = stepped(habitat, settled(habitat), 2)
    assert bits(pickle.loads(pickle.dumps(island))) == bits(island)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        elsewhere = pool.submit(bits_after_five_steps, pickle.dumps(island)).result()
    assert elsewhere == bits(stepped(habitat, island, 5))


def test_the_best_loss_never_rises_and_improved_is_the_generation_it_last_fell():
    habitat = habitat_of()
    island, improved = settled(habitat), 0
    for generation in range(1, 9):
        later = habitat.stepped(island)
        assert later.generation == generation
        assert later.best_loss <= island.best_loss
        improved = generation if later.best_loss < island.best_loss else improved
        assert later.improved == improved
        island = later


def island_of(texts, losses):
    """An island of given individuals."""
    parents = population_of(texts, PRIMITIVES, 15)
    return Island(parents, np.array(losses), 7, 3, 0, 0)


def test_migration_copies_the_fittest_to_the_next_island_in_a_ring():
    habitat = habitat_of(replace(SETTINGS, migrants=1, population=3, parsimony=0.0))
    islands = [
        island_of([name, f"{name} neg", f"{name} neg neg"], [loss, loss + 1.0, loss + 2.0])
        for name, loss in (("x", 10.0), ("y", 20.0), ("1.5", 30.0))
    ]
    before = [bits(island) for island in islands]
    after = migrated(islands, [habitat] * 3)
    assert [bits(island) for island in islands] == before
    # The better individual of each complexity stays, and there is room for three.
    assert [sorted(island.losses.tolist()) for island in after] == [[10, 11, 12], [10, 21, 22], [20, 31, 32]]
    arrived = [
        after[1].parents.take(after[1].losses == 10),
        after[2].parents.take(after[2].losses == 20),
    ]
    assert_same(arrived[0], population_of(["x"], PRIMITIVES, 15))
    assert_same(arrived[1], population_of(["y"], PRIMITIVES, 15))
    roomy = migrated(islands, [replace(habitat, settings=replace(habitat.settings, population=4))] * 3)
    assert [sorted(island.losses.tolist()) for island in roomy] == [
        [10, 11, 12, 30], [10, 20, 21, 22], [20, 30, 31, 32],
    ]  # fmt: skip


def run(settings, stop, evaluator=None, **options):
    evaluator = evaluator or NodeCounter(NEG, 50)
    return evolve(evaluator, PRIMITIVES, settings, stop, np.random.default_rng(0), **options)


STOP = StopSettings(generations=12, seconds=None, loss=0.0)


def test_a_seed_repeats():
    settings = replace(SETTINGS, islands=3, migration_interval=3)
    one, other = (run(settings, STOP) for _ in range(2))
    assert_same(one.front, other.front)
    assert one.evaluations == other.evaluations
    assert one.scores.losses.tobytes() == other.scores.losses.tobytes()


def test_an_island_that_stagnates_begins_anew():
    class Constant(NodeCounter):
        """An evaluator that gives all individuals the same loss."""

        def score(self, population):
            return replace(super().score(population), losses=np.ones(len(population)))

    seen = []
    for patience in (100, 4):
        evaluator = Constant(NEG, 0)
        run(replace(SETTINGS, islands=1, patience=patience), STOP, evaluator)
        seen.append([len(population) for population in evaluator.seen])
    assert sum(seen[1]) > sum(seen[0])


def test_the_results_of_a_stagnated_island_stay_in_the_front():
    settings = replace(SETTINGS, islands=1, patience=2, population=20)
    best = []
    run(settings, replace(STOP, generations=40), report=lambda progress: best.append(progress.best_loss))
    assert all(np.diff(best) <= 0)


def front_of(seed=1, threads=1, **settings):
    rng = np.random.default_rng(7)
    X = rng.uniform(0.5, 3.0, (150, 2))
    y = 1.7 * np.exp(-0.6 * X[:, 0]) + np.sin(X[:, 1]) / 3
    found = shine.evolve(
        X, y, generations=6, seconds=None, population=150, max_size=15, seeding=0, seed=seed, threads=threads,
        **settings,
    )  # fmt: skip
    return [(model.expression, model.loss, model.r2) for model in found.front], found.evaluations


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"loss": "mae", "linear_scaling": False}, {"islands": 3, "migration_interval": 2, "patience": 3}],
    ids=str,
)
def test_threads_change_no_bit_of_a_front(settings, monkeypatch):
    # Threads share only large amounts of work; here they always share it.
    monkeypatch.setattr("shine.evaluate.tiers.machine_rows.SHARED_WORK", 1)
    one, two = (front_of(threads=threads, **settings) for threads in (1, 2))
    assert one == two
