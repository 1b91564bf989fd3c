"""Objective functions that go to the processes of pools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def call_all(function: Any, individuals: Iterable[Sequence[float]]) -> list[tuple[float, ...]]:
    """The values of some individuals, one after the other."""
    return [function(each) for each in individuals]
