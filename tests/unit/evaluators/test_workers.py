"""Threads that share work: what becomes of parts that do not begin in time, of refused threads, of other processes."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import shine
from shine.evaluators import workers as threads
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.workers import Workers


def forget() -> None:
    """What abandons nothing."""


def test_every_thread_does_its_part_again_and_again():
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


def test_where_the_system_refuses_threads_the_caller_does_the_work_alone(monkeypatch):
    workers, done = Workers(3), []
    with monkeypatch.context() as patched:

        def refuse(thread):
            raise RuntimeError("can't start new thread")

        patched.setattr(threading.Thread, "start", refuse)
        workers.run(lambda thread: done.append(("first", thread)), forget)
    assert done == [("first", 0)]
    # The parts of the first run, whose memory is gone, are not done when there are threads again.
    barrier = threading.Barrier(3)

    def work(thread):
        barrier.wait(30)
        done.append(("second", thread))

    workers.run(work, forget)
    assert sorted(done[1:]) == [("second", thread) for thread in range(3)]


def test_a_part_that_has_not_begun_when_the_work_is_done_is_left_out():
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


def test_another_process_gets_threads_of_its_own(monkeypatch):
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
def test_a_child_stands_for_another_process():
    before = threads._Process.this
    child = os.fork()
    if child == 0:
        os._exit(0 if threads._Process.this is not before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert threads._Process.this is before


def test_a_thread_that_evaluates_other_primitives_meanwhile_changes_nothing():
    class Switching(MachineEvaluator):
        """As soon as a machine is chosen, another thread chooses one for another population."""

        @property
        def _latest(self):
            return self._chosen

        @_latest.setter
        def _latest(self, latest):
            self._chosen = latest and (other.primitives, machine_of_other)

    data = shine.data.dataset.Dataset.from_arrays([[1.0], [2.0]], [1.0, 4.0])
    population, other = (shine.Population.from_sources([source]) for source in ("x0*x0", "x0 - 1/x0"))
    assert population.primitives.functions != other.primitives.functions
    machine_of_other = MachineEvaluator(data, "mse", False, "float64")._machine(other)
    assert Switching(data, "mse", False, "float64").predict(population).tolist() == [[1.0, 4.0]]
    assert np.array_equal(Switching(data, "mse", False, "float64").predict(other), [[0.0, 1.5]])
