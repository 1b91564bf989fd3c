"""log.jsonl: whole lines in order, each generation once."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from helpers.faulty_system import FaultySystem

from shine.faces.runs import keeping
from shine.faces.runs.keeping import Log


def generations(path: Path) -> list[int]:
    return [json.loads(line)["generation"] for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of the generations 0 to 4."""
    path = tmp_path / "log.jsonl"
    written = Log(path)
    written.begin(0)
    for generation in range(5):
        written.add({"generation": generation, "formula": "a" * generation})
    assert generations(path) == [0, 1, 2, 3, 4]
    return path


@pytest.mark.parametrize("generation", [0, 1, 3, 5])
def test_beginning_again_keeps_what_is_before(generation: int, path: Path) -> None:
    again = Log(path)
    assert again.begin(generation) == 0
    assert generations(path) == list(range(generation))
    again.add({"generation": generation})
    assert generations(path) == list(range(generation + 1))


@pytest.mark.parametrize("missing", [1, 5, 30])
def test_a_line_that_was_cut_short_is_dropped_and_counted(missing: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-missing])
    again = Log(path)
    assert again.begin(5) == 1
    assert generations(path) == [0, 1, 2, 3]


def test_a_log_that_is_gone_is_begun(tmp_path: Path) -> None:
    assert Log(tmp_path / "log.jsonl").begin(3) == 3
    assert (tmp_path / "log.jsonl").read_bytes() == b""


@pytest.mark.parametrize("call", ["open", "write", "short"])
def test_lines_that_could_not_be_written_are_written_with_the_next(
    call: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = Log(path)
    again.begin(5)
    with monkeypatch.context() as patch:
        patch.setattr(keeping, "os", FaultySystem(call, 1, errno.ENOSPC, lasting=True))
        for generation in (5, 6):
            with pytest.raises(OSError, match="No space left"):
                again.add({"generation": generation})
    again.add({"generation": 7})
    assert generations(path) == list(range(8))


def test_an_interrupt_after_a_write_does_not_double_the_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def write(self, descriptor: int, content: bytes) -> int:
            os.write(descriptor, content)
            raise KeyboardInterrupt

    again = Log(path)
    again.begin(5)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(keeping, "os", Interrupted())
        again.add({"generation": 5})
    again.flush()
    assert generations(path) == [0, 1, 2, 3, 4, 5]
