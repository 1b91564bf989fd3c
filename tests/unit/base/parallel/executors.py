"""Executors that do not do what they should, and the results of tasks on any."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import cloudpickle

from shine.base.parallel import Pool, Round

# Processes need not find this file, either.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def results(pool: Pool, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    """The results of a function, in the order of the tasks."""
    this_round = Round(pool, _called, [(function, task) for task in tasks])
    try:
        return list(this_round.results())
    finally:
        this_round.cancel()


def _called(shared: None, task: tuple[Callable[[Any], Any], Any], stopped: Callable[[], bool]) -> Any:
    function, argument = task
    return function(argument)


class Unreliable(Executor):
    """Does tasks at once, except those that it fails, cancels or refuses: a share of them."""

    def __init__(self, share: float, seed: int = 0) -> None:
        self.share, self.rng, self.faults = share, random.Random(seed), 0

    def submit(self, function, /, *arguments, **options):
        future: Future = Future()
        if self.rng.random() >= self.share:
            future.set_result(function(*arguments, **options))
            return future
        self.faults += 1
        match self.rng.randrange(3):
            case 0:
                future.set_exception(OSError("the machine is gone"))
            case 1:
                future.cancel()
            case _:
                raise RuntimeError("no more tasks")
        return future
