"""``shine report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from cli.commandline import shine


def test_it_is_opened_if_asked_for(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: shown.append(url) or True)
    assert shine("report", run, "--open").exit_code == 0
    assert shown == [(run / "report.html").resolve().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    result = shine("report", run, "--open")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: no browser can be opened; the report is in run/report.html\n",
    )


def test_data_that_are_gone_are_wrong_usage(run: Path) -> None:
    config = run / "config.yaml"
    text = config.read_text()
    generated = text[text.index("data:") : text.index("primitives:")]
    config.write_text(text.replace(generated, "data: {path: /none/data.csv, target: y}\n"))
    result = shine("report", run)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "/none/data.csv: no such file" in result.stderr


def test_a_page_that_cannot_be_written_is_a_failure(run: Path) -> None:
    result = shine("report", run, "--out", "none/page.html")
    assert result.exit_code == 1
    assert result.stderr == "error: none/page.html: cannot be written: No such file or directory\n"
