"""Few generations of a long run are taken, soon after one another and by no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import pytest

from shine.faces.runs.keeping import Thinning

LONG = 300_000
LOSSES: dict[str, Callable[[int], float | None]] = {
    "always another": lambda generation: -generation,
    "the same": lambda generation: 1.0,
    "none": lambda generation: None,
    "seldom another": lambda generation: -(generation // 10_007),
}


def taken(generations: Iterable[int], loss: Callable[[int], float | None]) -> Iterator[int]:
    thinning = Thinning()
    return (generation for generation in generations if thinning.takes(generation, loss(generation)))


@pytest.mark.parametrize("name", LOSSES)
def test_a_long_run_has_few_which_lie_close(name: str) -> None:
    found = list(taken(range(LONG), LOSSES[name]))
    assert found[:256] == list(range(256))
    assert len(found) < 3200
    assert all(later - earlier <= max(1, later / 128) for earlier, later in pairwise([*found, LONG]))


def test_the_generation_in_which_the_loss_changes_is_taken() -> None:
    found = set(taken(range(LONG), LOSSES["seldom another"]))
    assert found.issuperset(range(0, LONG, 10_007))
