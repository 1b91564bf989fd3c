"""Threads that share work: parts that do not begin in time, refused threads, and other processes."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import shine
from shine.compiler import threads as threads
from shine.compiler.threads import Workers
from shine.evaluate.tiers.machine_tier import MachineEvaluator


def forget() -> None:
    """An `abandon` that does nothing."""


def test_every_thread_does_its_part_in_every_run():
    workers, barrier = Workers(3), threading.Barrier(3)
    for _ in range(5):
        done = []

        def work(thread, done=done):
            barrier.wait(30)
            done.append(thread)

        workers.run(work, forget)
        assert sorted(done) == [0, 1, 2]


def test_an_error_of_any_thread_is_raised():
    barrier = threading.Barrier(2)

    def work(thread):
        barrier.wait(30)
        if thread:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Workers(2).run(work, forget)


def test_the_caller_does_all_work_if_the_system_refuses_threads(monkeypatch):
    workers, done = Workers(3), []
    with monkeypatch.context() as patched:

        def refuse(thread):
            raise RuntimeError("can't start new thread")

        patched.setattr(threading.Thread, "start", refuse)
        workers.run(lambda thread: done.append(("first", thread)), forget)
    assert done == [("first", 0)]
    # Parts of the first run, whose memory is freed, must not run once there are threads again.
    barrier = threading.Barrier(3)

    def work(thread):
        barrier.wait(30)
        done.append(("second", thread))

    workers.run(work, forget)
    assert sorted(done[1:]) == [("second", thread) for thread in range(3)]


def test_a_part_that_has_not_begun_when_all_work_is_done_never_runs():
    workers, busy, release, done = Workers(2), threading.Event(), threading.Event(), []

    def occupy(thread):
        if thread:
            busy.set()
            release.wait(30)
        else:
            busy.wait(30)

    occupying = threading.Thread(target=workers.run, args=(occupy, forget))
    occupying.start()
    busy.wait(30)
    workers.run(done.append, forget)  # its only other thread is occupied
    assert done == [0]
    release.set()
    occupying.join(30)
    barrier = threading.Barrier(2)

    def work(thread):
        barrier.wait(30)
        done.append(thread)

    workers.run(work, forget)
    assert sorted(done[1:]) == [0, 1]


def test_a_forked_process_makes_its_own_threads(monkeypatch):
    workers, barrier = Workers(2), threading.Barrier(2)
    names = [set(), set()]
    for seen in names:

        def work(thread, seen=seen):
            barrier.wait(30)
            seen.add(threading.get_ident())

        workers.run(work, forget)
        monkeypatch.setattr(threads._Process, "this", object())  # what a fork does in the child
    assert len(names[0] - names[1]) == len(names[1] - names[0]) == 1


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no process is forked here")
def test_a_forked_process_has_another_identity():
    before = threads._Process.this
    child = os.fork()
    if child == 0:
        os._exit(0 if threads._Process.this is not before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert threads._Process.this is before


@pytest.mark.slow
def test_a_thread_that_evaluates_other_primitives_at_the_same_time_changes_nothing():
    class Switching(MachineEvaluator):
        """As soon as a machine is chosen, another thread chooses one for another population."""

        @property
        def _latest(self):
            return self._chosen

        @_latest.setter
        def _latest(self, latest):
            self._chosen = latest and (other.primitives, machine_of_other)

    data = shine.data.datasets.dataset.Dataset.from_arrays([[1.0], [2.0]], [1.0, 4.0])
    population, other = (shine.Population.from_sources([source]) for source in ("x0*x0", "x0 - 1/x0"))
    assert population.primitives.functions != other.primitives.functions
    machine_of_other = MachineEvaluator(data, "mse", False, "float64")._machine(other)
    assert Switching(data, "mse", False, "float64").predict(population).tolist() == [[1.0, 4.0]]
    assert np.array_equal(Switching(data, "mse", False, "float64").predict(other), [[0.0, 1.5]])
