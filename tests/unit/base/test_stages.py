"""Stages are log records: one at the beginning, one at the end."""

from __future__ import annotations

import logging
import threading

import pytest

from shine.base.stages import LOGGER, Stages, is_followed, listening, so_far, stage, ticking


def test_a_stage_is_logged_at_its_beginning_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, LOGGER.name), pytest.raises(KeyError), stage("outer"), stage("inner"):
        raise KeyError
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "outer"), ("INFO", "inner"), ("DEBUG", "done: inner"), ("DEBUG", "done: outer"),
    ]  # fmt: skip


def test_a_stage_prints_nothing_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    with stage("something"):
        pass
    assert capfd.readouterr() == ("", "")


def test_what_a_stage_finds_is_written_only_when_it_is_shown() -> None:
    stages, written = Stages(), []

    def text() -> str:
        written.append(1)
        return "x + 1"

    with listening(stages.enter, stages.leave, stages.find), stage("outer"):
        so_far(text)
        with stage("inner"):
            assert stages.text(", 3 s") == "inner, 3 s"
        assert not written
        assert stages.text(", 4 s") == "outer, 4 s: x + 1"
    assert stages.text() == ""


def test_nobody_follows_unless_somebody_listens() -> None:
    assert not is_followed()
    with listening(lambda text: None, lambda: None, lambda text: None):
        assert is_followed()
    assert not is_followed()


def test_a_stage_that_began_before_anybody_listened_may_end() -> None:
    stages = Stages()
    block = stage("earlier")
    block.__enter__()
    with listening(stages.enter, stages.leave, stages.find):
        so_far(lambda: "nothing")
        block.__exit__(None, None, None)
    assert stages.text() == ""


def test_ticks_come_while_a_block_runs_and_not_after_it() -> None:
    ticked, count = threading.Event(), []

    def tick() -> None:
        count.append(threading.current_thread())
        ticked.set()

    with ticking(tick, 0.01):
        assert ticked.wait(10)
    assert not count[0].is_alive()
