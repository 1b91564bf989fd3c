"""`--live`: the page of a search on the command line, and what the run's folder keeps of it."""

from __future__ import annotations

import json
import re
import signal
import socket
from urllib.parse import urlsplit

import pytest
from cli.commandline import ENDLESS, shine, started
from unit.faces.live.test_view import Page


def begun(folder, *arguments):
    """A running search, and a page of it."""
    running = started("evolve", "small.yaml", "--live", *ENDLESS, *arguments, cwd=folder)
    text = ""
    while not (found := re.search(r"http\S+", text)):
        line = running.stderr.readline()
        assert line, text
        text += line
    page = Page(found[0])
    page.wait(lambda page: page.parts.get("front"))
    return running, page, found[0]


@pytest.mark.slow
def test_a_formula_that_is_put_in_is_in_the_log_and_the_result_and_a_stop_is_no_failure(small):
    running, page, url = begun(small.parent.resolve())
    assert page.ask("formula", formula="sin(a)")[0] == 400
    assert page.ask("formula", formula="a*b - b")[0] == 200
    page.wait(lambda page: "after generation" in page.parts["put-in"])
    page.ask("stop")
    page.wait(lambda page: page.ended)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 0, err
    assert "stopped by a callback or on the live page" in out
    folder = small.parent / "runs" / "small"
    (kept,) = json.loads((folder / "result.json").read_text())["put_in"]
    assert kept["formula"] == "a*b - b"
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in lines if "put_in" in line] == [kept["generation"]]
    assert "Formulas put in by a person" in page.parts["settings"]
    assert shine("report", folder).exit_code == 0
    assert "Formulas put in by a person" in (folder / "report.html").read_text()
    # A resumed run remembers it, and has no other.
    further = lines[-1]["generation"] + 2
    assert shine("resume", folder, "--set", f"stop={{generations: {further}}}").exit_code == 0
    assert json.loads((folder / "result.json").read_text())["put_in"] == [kept]
    with pytest.raises(OSError):
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=5)


@pytest.mark.slow
def test_ctrl_c_ends_a_paused_search_and_its_page(small):
    running, page, _ = begun(small.parent.resolve())
    page.ask("pause", paused=True)
    page.wait(lambda page: page.status["text"].startswith("paused; "))
    running.send_signal(signal.SIGINT)
    page.wait(lambda page: page.ended)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert "stopped by the user" in out
    assert page.status["state"] == "ended"
    assert "The chosen formula" in page.parts["top"]


@pytest.mark.slow
def test_a_killed_search_leaves_a_page_without_an_end(small):
    running, page, _ = begun(small.parent.resolve())
    running.kill()
    running.communicate(timeout=30)
    page.wait(lambda page: page.ended)
    assert page.status["state"] == "running"


def test_a_browser_is_opened_for_a_page_only(small):
    done = shine("evolve", small, "--open")
    assert done.exit_code == 2
    assert "--open opens the live page; add --live" in done.output


def test_without_a_browser_the_address_is_told(small, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    done = shine("evolve", small, "--live", "--open")
    assert done.exit_code == 0
    assert "live page, for you alone: http://127.0.0.1:" in done.stderr
    assert "no browser can be opened" in done.stderr
