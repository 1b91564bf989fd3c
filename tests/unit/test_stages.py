"""Stages are log records: one at the beginning, one at the end."""

from __future__ import annotations

import logging

import pytest

from shine.stages import LOGGER, stage


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
