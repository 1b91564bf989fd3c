"""Which cases of a parametrized test run by default: a few that stand for the others, which are slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """The cases of a test, for `pytest.mark.parametrize`; those that are not in `fast` have the marker slow.

    A case of several values is a tuple.
    """
    cases = list(cases)
    unknown = [case for case in fast if case not in cases]
    assert not unknown, f"{unknown} are no cases of the test"
    return [
        case if case in fast else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]
