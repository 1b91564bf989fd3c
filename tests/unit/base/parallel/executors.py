"""Executors that do not do what they should. Other processes may import this module by name."""

from __future__ import annotations

import random
from concurrent.futures import Executor, Future


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
