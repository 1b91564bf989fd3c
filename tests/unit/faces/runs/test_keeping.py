"""log.jsonl: whole lines in order, few of a long run; checkpoints take little time and space."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers.faulty_system import FaultySystem
from unit.search.evolution.oracles import population_of, primitive_set, scores_of

from shine.base.typing import AnyArray
from shine.faces.runs import keeping
from shine.faces.runs.checkpoints import Shelf
from shine.faces.runs.keeping import Keeper, Log
from shine.search.evolution.observers import Progress
from shine.search.evolution.run_state import State


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


FRONT = population_of(["x y add"], primitive_set(), 3)


def progress(generation: int, loss: float = 1.0) -> Progress:
    return Progress(generation, 10 * generation, generation / 100, FRONT, scores_of([loss]))


def keeper(folder: Path, **options: Any) -> Keeper:
    return Keeper(folder, lambda: {"shine": "any"}, lambda notice: None, **options)


@pytest.mark.parametrize("last", [0, 255, 256, 257, 258, 4999])
def test_the_last_generation_has_one_line(last: int, tmp_path: Path) -> None:
    found = keeper(tmp_path)
    for generation in range(last + 1):
        found.note(progress(generation))
    found.finish()
    found.finish()
    told = generations(tmp_path / "log.jsonl")
    assert (told[-1], told.count(last)) == (last, 1)


def test_a_log_of_any_number_of_generations_is_small(tmp_path: Path) -> None:
    found = keeper(tmp_path)
    for generation in [*range(3000), *range(3000, 10**9, 10**6)]:
        found.note(progress(generation, loss=-generation))
    found.finish()
    assert (tmp_path / "log.jsonl").stat().st_size < 2e6
    assert len(generations(tmp_path / "log.jsonl")) < 5000


def test_a_generation_that_a_person_put_a_formula_into_has_a_line(tmp_path: Path) -> None:
    found = keeper(tmp_path)
    for generation in range(2000):
        found.note(progress(generation), ("a*b",) if generation == 1777 else ())
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in lines if "put_in" in line] == [1777]
    assert Log(tmp_path / "log.jsonl").begin(2000) == 0
    assert [each.generation for each in keeping.formulas_put_in(tmp_path / "log.jsonl")] == [1777]


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


def test_lines_that_are_gone_from_a_long_log_are_counted(tmp_path: Path) -> None:
    found, path = keeper(tmp_path), tmp_path / "log.jsonl"
    for generation in range(1024):
        found.note(progress(generation))
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 512
    path.write_bytes(b"".join(lines[:-3]))
    assert Log(path).begin(1024) == 3
    path.write_bytes(b"".join(lines[2:]))
    assert Log(path).begin(1024) == 2


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Stored:
    """A state that takes some seconds and bytes to write."""

    def __init__(self, clock: Clock, generation: int, seconds: float, size: int) -> None:
        self._clock, self._generation, self._seconds, self._size = clock, generation, seconds, size

    def header(self) -> dict[str, int]:
        return {"generation": self._generation}

    def to_arrays(self) -> dict[str, AnyArray]:
        self._clock.now += self._seconds
        return {"known": np.zeros(self._size, np.uint8)}


def written_in(
    minutes: float, least: float, seconds: float, size: int, folder: Path, patch: pytest.MonkeyPatch
) -> tuple[list[float], int]:
    """When checkpoints were written, and the number of generations; each state is as `Stored` says."""
    clock, written = Clock(), list[float]()
    patch.setattr(Shelf, "put", lambda self, checkpoint: written.append(clock.now))
    patch.setattr(Log, "sync", lambda self: None)
    found, generation = keeper(folder, checkpoint_seconds=least, clock=clock), 0
    while clock.now < 60 * minutes:
        clock.now += 0.05
        generation += 1
        found.save(cast(State, Stored(clock, generation, seconds, size)))
    return written, generation


@pytest.mark.parametrize(
    ("seconds", "size", "pause"),
    [(0.01, 1000, 5), (0.5, 1000, 50), (0.01, 10**7, 60), (0.5, 3 * 10**7, 180)],
    ids=["small", "slow", "large", "slow and large"],
)
def test_checkpoints_take_a_hundredth_of_the_time_and_10_mb_a_minute(
    seconds: float, size: int, pause: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, _ = written_in(60, 5.0, seconds, size, tmp_path, monkeypatch)
    assert written[0] < 6
    assert 0.95 * 3600 / pause < len(written) <= 1 + 3600 / pause
    for before, then in enumerate(written):
        assert before * seconds <= 0.01 * then and before * size <= 1e7 * then / 60


def test_who_asks_for_a_checkpoint_after_each_generation_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, generations = written_in(1, 0.0, 0.5, 10**7, tmp_path, monkeypatch)
    assert len(written) == generations > 100


def test_what_is_computed_once_for_all_checkpoints_delays_none(tmp_path: Path) -> None:
    clock = Clock()

    def describe() -> dict[str, str]:
        clock.now += 100.0
        return {"data": "hash"}

    found = Keeper(tmp_path, describe, lambda notice: None, clock=clock)
    for generation, now in enumerate((6.0, 112.0)):
        clock.now = now
        found.save(cast(State, Stored(clock, generation, 0.01, 10)))
    assert [path.stem for path in Shelf(tmp_path).paths] == ["0000000001", "0000000000"]
