"""The live page in a real browser, while a search runs."""

from __future__ import annotations

import json
import threading

import pytest
from helpers.chromium import CHROMIUM, Browser
from unit.faces.live.test_view import NOISY, seen
from unit.faces.live.test_watch import LAW

from shine.faces.live.server import Server
from shine.faces.live.view import Live

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]


def text(part):
    return f"document.getElementById('{part}').textContent"


def put(formula):
    return f"document.getElementById('formula').value = {formula!r}; document.getElementById('put').click()"


def test_it_is_drawn_while_the_search_runs_and_steers_it(tmp_path):
    told = {}

    def use(page):
        with Browser(tmp_path) as browser:
            browser.open(f"http://{page._address}/?token={page._token}")
            browser.wait_for("document.querySelector('#part-front .data')")
            browser.value("document.querySelector('#part-front button.edit').click()")
            told["edited"] = browser.value("document.getElementById('formula').value")
            told["code"] = browser.value(text("code-0"))
            browser.value(put("foo(a)"))
            browser.wait_for("document.querySelector('#answer.wrong')")
            told["refused"] = browser.value(text("answer"))
            browser.value(put(LAW))
            told["seconds"] = browser.wait_for(f"{text('part-put-in')}.includes('yes')")
            told["formulas"] = browser.value("document.querySelectorAll('#part-front math').length")
            browser.value("document.getElementById('pause').click()")
            browser.wait_for(f"{text('state')}.startsWith('paused; ')")
            told["button"] = browser.value(text("pause"))
            told["overflow"] = browser.value("document.documentElement.scrollWidth - innerWidth")
            browser.photograph(tmp_path / "running.png")
            browser.value("document.getElementById('stop').click()")
            told["once"] = browser.value(text("stop"))
            browser.value("document.getElementById('stop').click()")
            browser.wait_for("document.querySelector('.controls.ended')")
            browser.wait_for("document.querySelector('#part-settings table')")
            told["edits"] = browser.value("document.querySelectorAll('button.edit').length")
            told["console"] = [line for line in browser.console if "400" not in line]
            told["requested"] = {url.partition("?")[0].rpartition("/")[2] for url in browser.requested}
            told["hosts"] = {url.split("/")[2] for url in browser.requested if not url.startswith("data:")}
            told["address"] = page._address

    result = seen(use, dataset=NOISY)
    print(f"on the front after {told['seconds']:.2f} s")  # the search decides how long a generation takes
    assert result.best.r2 > 0.99
    assert told["edited"] == told["code"]
    assert "unknown primitive 'foo'" in told["refused"]
    assert told["formulas"] > 1
    assert told["button"] == "Go on"
    assert told["once"] == "Stop now?"
    assert told["overflow"] <= 0
    assert told["edits"] == 0
    assert told["console"] == []
    assert told["hosts"] == {told["address"]}
    assert (tmp_path / "running.png").stat().st_size > 20_000


def test_a_page_that_stays_open_says_that_the_process_has_gone(tmp_path):
    class Begun:
        """What a server shows of a search whose process is killed."""

        actions = {}  # noqa: RUF012
        page = Live("killed").page

        def messages(self):
            yield json.dumps({"parts": {}, "status": {"state": "running", "text": "beginning"}})
            gone.wait(60)

    gone = threading.Event()
    server = Server(Begun())
    with Browser(tmp_path) as browser:
        try:
            browser.open(server.url)
            browser.wait_for(f"{text('state')} == 'beginning'")
        finally:
            gone.set()
            server.close()
        browser.wait_for("document.querySelector('.controls.lost')")
        assert "does not answer" in browser.value(text("state"))


def test_without_the_token_the_browser_shows_nothing(tmp_path):
    def use(page):
        with Browser(tmp_path) as browser:
            browser.open(f"http://{page._address}/")
            assert browser.value("document.querySelector('main') === null")
            browser.open(f"http://{page._address}/?token=wrong")
            assert browser.value("document.querySelector('main') === null")
        page.ask("stop")

    seen(use)
