"""Properties that are computed when they are first read."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from shine.base.lazy import cached_property


class Thing:
    def __init__(self):
        self.computed = 0
        self.meanwhile = lambda: None

    @cached_property
    def value(self) -> list[int]:
        """What it is."""
        self.computed += 1
        self.meanwhile()
        return [self.computed]


def test_it_is_computed_once_for_each_instance():
    one, other = Thing(), Thing()
    assert one.value is one.value
    assert (one.computed, other.computed) == (1, 0)
    assert other.value is not one.value
    assert Thing.value.__doc__ == "What it is."


def test_an_error_is_not_kept():
    thing = Thing()
    thing.meanwhile = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        _ = thing.value
    thing.meanwhile = lambda: None
    assert thing.value == [2]


def test_two_threads_get_the_value_that_was_ready_first():
    thing, found = Thing(), []

    def meanwhile():
        if thing.computed == 1:
            thread = threading.Thread(target=lambda: found.append(thing.value))
            thread.start()
            thread.join(30)

    thing.meanwhile = meanwhile
    assert thing.value is found[0]
    assert thing.computed == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_forked_child_computes_a_value_that_another_thread_was_computing():
    thing, begun, end = Thing(), threading.Event(), threading.Event()
    thing.meanwhile = lambda: (begun.set(), end.wait(30))
    thread = threading.Thread(target=lambda: thing.value)
    thread.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        thing.meanwhile = lambda: None
        os._exit(0 if thing.value == [2] else 1)
    end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
