"""The command line answers words of the other faces."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.commandline import shine


@pytest.mark.parametrize(
    ("option", "near"),
    [("--random-state", "--seed"), ("--max-time", "--set stop.seconds=..."), ("--niterations", "stop.generations")],
)
def test_an_option_of_another_face_is_answered(small: Path, option: str, near: str) -> None:
    result = shine("evolve", small, option, "3")
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: no such option: {option}; did you mean ")
    assert near in line
