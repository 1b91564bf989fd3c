"""log.jsonl: whole lines in order, few of a long run; checkpoints take little time and space."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.faulty_system import FaultySystem
from unit.search.evolution.oracles import population_of, primitive_set, scores_of

from shine.faces.runs import keeping
from shine.faces.runs.keeping import Keeper, Log
from shine.search.evolution.observers import Progress


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


FRONT = population_of(["x y add"], primitive_set(), 3)


def progress(generation: int, loss: float = 1.0) -> Progress:
    return Progress(generation, 10 * generation, generation / 100, FRONT, scores_of([loss]))


def keeper(folder: Path, **options: Any) -> Keeper:
    return Keeper(folder, lambda: {"shine": "any"}, lambda notice: None, **options)


@pytest.mark.parametrize("stopped", [300, 1001, 2048])
def test_a_log_that_goes_on_is_that_of_a_run_that_never_stopped(stopped: int, tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole, first, second = keeper(tmp_path / "whole"), keeper(tmp_path / "parts"), keeper(tmp_path / "parts")
    told = [progress(generation, loss=-(generation // 7)) for generation in range(3000)]
    for each in told:
        whole.note(each)
    for each in told[:stopped]:
        first.note(each)
    first.finish()  # adds a line that the whole run may not have
    assert second.log.begin(stopped) == 0
    for each in told[stopped:]:
        second.note(each)
    assert (tmp_path / "parts" / "log.jsonl").read_bytes() == (tmp_path / "whole" / "log.jsonl").read_bytes()
