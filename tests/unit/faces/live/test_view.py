"""The live page of a real search: what it shows, what it answers, and how it ends."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest
from unit.faces.live.test_server import ours
from unit.faces.live.test_watch import DATA, LAW, X, settings

import shine
from shine.base.errors import ShineError
from shine.estimators import SymbolicClassifier, SymbolicRegressor
from shine.faces.live import notebook, parts, server
from shine.faces.live.view import Live
from shine.search.evolution.observers import Observers
from shine.search.run import search

NOISY = replace(DATA, target=DATA.target + np.random.default_rng(1).normal(0, 0.01, DATA.n_rows))
"""No formula fits them exactly, so that no search ends by itself."""


class Page:
    """A page without a browser: it keeps the parts and the status that it was told last."""

    def __init__(self, url):
        self._address, self._token = urlsplit(url).netloc, url.partition("token=")[2]
        self.parts, self.status, self.ended = {}, {}, False
        self._new = threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        # A server that ends closes connections, perhaps before it has answered.
        with suppress(ConnectionError):
            self._take()
        with self._new:
            self.ended = True
            self._new.notify_all()

    def _take(self):
        with closing(http.client.HTTPConnection(self._address, timeout=60)) as connection:
            connection.request("GET", f"/events?token={self._token}")
            with connection.getresponse() as lines:
                self._read(lines)

    def _read(self, lines):
        for line in lines:
            if line.startswith(b"data: "):
                message = json.loads(line[6:])
                with self._new:
                    self.parts |= message["parts"]
                    self.status = message["status"]
                    self._new.notify_all()

    def wait(self, is_so):
        with self._new:
            assert self._new.wait_for(lambda: is_so(self), 30), (self.status, self.parts)

    def ask(self, action, **values):
        connection = http.client.HTTPConnection(self._address, timeout=60)
        connection.request("POST", f"/{action}", json.dumps(values), {"X-Shine-Token": self._token})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")


class User:
    """A user of the page in a thread of its own, who has done when the block ends; what goes wrong is raised then."""

    def __init__(self, use):
        self._use, self._wrong, self._thread = use, [], None

    def __enter__(self):
        return self

    @property
    def failed(self):
        return bool(self._wrong)

    def begin(self, url):
        self._thread = threading.Thread(target=self._run, args=(url,))
        self._thread.start()

    def _run(self, url):
        try:
            self._use(Page(url() if callable(url) else url))
        except BaseException as error:
            self._wrong.append(error)

    def __exit__(self, *error):
        self._thread.join(60)
        if self._wrong:
            raise self._wrong[0]


def endless(**options):
    return settings(generations=10**6, stop_loss=0.0, seconds=60.0, **options)


def seen(use, *, dataset=NOISY, find=search, given=None, title="A title"):
    """The result of a search that a user looks at, and perhaps ends."""
    with User(use) as user, Live(title) as live:
        user.begin(live.url)
        watch = live.watch()
        result = find(dataset, given or endless(), Observers(lambda progress: user.failed, watch))
        live.ended(result, {"seed": 7})
    assert ours() == []
    return result


@pytest.mark.slow
def test_a_formula_is_edited_accepted_and_on_the_front_and_the_search_ends_with_its_report():
    pages = []

    def use(page):
        pages.append(page)
        page.wait(lambda page: page.parts.get("front"))
        assert page.status.get("state") == "running"
        assert "generation" in page.status["text"]
        assert "A title" in page.parts["top"]
        assert "The best formula so far" in page.parts["top"]
        assert page.parts["islands"].count("<tr>") == 3
        status, answer = page.ask("formula", formula="foo(a)")
        assert status == 400
        assert "unknown primitive 'foo'" in answer["error"]
        status, answer = page.ask("formula", formula=f"  {LAW}\n")
        assert status == 200
        assert answer["text"].startswith("Accepted: ")
        page.wait(lambda page: "yes" in page.parts["put-in"])
        assert LAW in page.parts["put-in"].replace("<wbr>", "")
        assert page.ask("stop") == (200, {})
        page.wait(lambda page: page.ended)

    result = seen(use)
    assert result.best.r2 > 0.99
    (page,) = pages
    assert page.status.get("state") == "ended"
    assert "The chosen formula" in page.parts["top"]
    assert result.reason in page.parts["top"].replace("&amp;", "&")
    for part, words in {
        "certainty": "How sure it is", "features": "What each feature does", "settings": "Formulas put in by a person",
        "fit": "Residuals", "put-in": LAW, "structure": "svg", "charts": "Loss over time", "footer": "Shine",
    }.items():  # fmt: skip
        assert words in page.parts[part].replace("<wbr>", "")


@pytest.mark.slow
def test_two_pages_see_one_search_pause_and_go_on():
    def use(page):
        page.wait(lambda page: page.parts.get("front"))
        assert page.ask("pause", paused=True) == (200, {})
        page.wait(lambda page: page.status.get("text", "").startswith("paused; generation"))
        page.wait(lambda page: page.status.get("state") == "paused")
        other = Page(f"http://{page._address}/?token={page._token}")
        other.wait(lambda page: page.status.get("text", "").startswith("paused; generation"))
        assert other.parts == page.parts
        generation = page.status["text"].partition(",")[0]
        assert other.ask("formula", formula="a*b") == (
            200,
            {"text": "Accepted: it joins after this generation; if there are several islands, when they meet."},
        )
        for each in (page, other):
            each.wait(lambda page: "after generation" in page.parts["put-in"])
            each.wait(lambda page: page.status.get("text", "").startswith("paused; generation"))
            assert each.status["text"].partition(",")[0] != generation
        assert other.ask("pause", paused=False) == (200, {})
        page.wait(lambda page: page.status.get("state") == "running")
        page.ask("stop")
        for each in (page, other):
            each.wait(lambda page: page.ended)

    seen(use)


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("pause", {}),
        ("pause", {"paused": 1}),
        ("formula", {}),
        ("formula", {"formula": 3}),
        ("formula", {"formula": " "}),
    ],
)
def test_what_is_asked_wrongly_is_refused(action, values):
    with Live("x") as live:
        live.watch()
        status, answer = Page(live.url).ask(action, **values)
        assert status == 400
        assert answer["error"]


def test_a_formula_before_the_search_is_refused():
    with Live("x") as live:
        assert Page(live.url).ask("formula", formula="a") == (400, {"error": "no search has begun"})


def test_a_search_that_fails_ends_the_page_with_its_error():
    pages = []

    def use(page):
        pages.append(page)
        page.wait(lambda page: page.ended)

    with pytest.raises(ShineError, match="<b>"), User(use) as user, Live("x") as live:
        user.begin(live.url)
        while not live._board.is_watched:
            time.sleep(0.01)
        raise ShineError("it has <b>no</b> rows")
    assert pages[0].status == {"state": "ended", "text": "The search has ended early: it has <b>no</b> rows"}
    assert ours() == []


@pytest.mark.slow
def test_a_page_that_does_not_read_does_not_hold_the_end_up(monkeypatch):
    monkeypatch.setattr(server, "ENDING", 0.2)

    def use(page):
        page.wait(lambda page: page.parts.get("front"))
        monkeypatch.setattr(parts.Board, "messages", lambda self: iter(["x" * (1 << 26)]))
        silent = http.client.HTTPConnection(page._address)
        silent.request("GET", f"/events?token={page._token}")
        silent.getresponse()
        page.ask("stop")
        page.wait(lambda page: page.ended)

    seen(use)


@pytest.mark.slow
def test_markup_in_names_is_text():
    pages = []
    rows = shine.data.datasets.dataset.Dataset.from_arrays(
        X, NOISY.target, features=("a", "b"), headings=["<img src=x>", "b"]
    )

    def use(page):
        pages.append(page)
        page.wait(lambda page: page.parts.get("front"))
        page.ask("formula", formula="a*<script>")
        page.ask("formula", formula="a*b # <script>")
        page.ask("stop")
        page.wait(lambda page: page.ended)

    seen(use, dataset=rows, title="<script>")
    assert not any("<img" in part or "<script" in part for part in pages[0].parts.values())
    with Live("</title><script>alert(1)</script>") as live:
        assert live.page().count("<script>") == 1


SEARCH = {"settings": {"seeding": 0, "stagnation": None}, "population_size": 50, "random_state": 0}


class TestFit:
    """Estimators and `shine.evolve`."""

    @staticmethod
    def fitted(capsys, fit, use):
        """Fit, while a user of the printed address does something."""

        def url():
            text = ""
            while "http" not in text:
                time.sleep(0.01)
                text += capsys.readouterr().err
            return text.split()[-1]

        with User(use) as user:
            user.begin(url)
            found = fit()
        assert ours() == []
        return found

    @staticmethod
    def stop(page):
        page.wait(lambda page: page.parts.get("front"))
        page.ask("stop")
        page.wait(lambda page: page.ended)
        assert page.status.get("state") == "ended"

    @pytest.mark.slow
    @pytest.mark.parametrize("face", ["regressor", "classifier", "fields", "evolve"])
    def test_a_user_of_the_page_ends_a_fit_of_each_face(self, capsys, face):
        def fit():
            if face == "regressor":
                return SymbolicRegressor(stop_loss=0, **SEARCH).fit(X, NOISY.target, live=True).stopped_by_
            if face == "classifier":
                return SymbolicClassifier(stop_loss=0, **SEARCH).fit(X, NOISY.target > 2, live=True).stopped_by_
            if face == "fields":
                wave = np.sin(np.linspace(0, 6, 40)[:, None] - np.linspace(0, 6, 40))
                wave += np.random.default_rng(0).normal(0, 0.01, wave.shape)
                model = shine.SymbolicDynamics(kind="pde", **SEARCH)
                return model.fit(wave, 0.15, space=0.15, live=True).stopped_by_
            given = {"seeding": 0, "population": 50, "stop_loss": 0.0, "stagnation": None}
            return shine.evolve(X, NOISY.target, live=True, **given).stopped_by

        assert self.fitted(capsys, fit, self.stop) == "callback"

    @pytest.mark.slow
    def test_several_targets_have_one_page_and_end_together(self, capsys):
        targets = np.column_stack([NOISY.target, NOISY.target**2])

        def use(page):
            page.wait(lambda page: "output 0" in page.parts.get("top", "") and page.parts.get("front"))
            page.ask("stop")
            page.wait(lambda page: page.ended)
            assert "output 1" in page.parts["top"]
            assert "output 0" in page.parts["searched"]

        model = SymbolicRegressor(stop_loss=0, **SEARCH)
        self.fitted(capsys, lambda: model.fit(X, targets, live=True), use)
        assert len(model.best_) == 2

    @pytest.mark.slow
    def test_equations_of_motion_have_one_page_that_ends_as_their_report(self, capsys):
        def use(page):
            page.wait(lambda page: "prey" in page.parts.get("top", "") and page.parts.get("front"))
            page.ask("stop")
            page.wait(lambda page: page.ended)
            assert "Phase portrait" in page.parts["top"]

        times = np.linspace(0, 8, 60)
        states = np.column_stack([2 + np.sin(times), 2 + np.cos(times)])
        states += np.random.default_rng(0).normal(0, 0.05, states.shape)
        model = shine.SymbolicDynamics(**SEARCH)
        given = {"states": ["prey", "predators"], "live": True}
        self.fitted(capsys, lambda: model.fit(states, times, **given), use)
        assert model.stopped_by_ == "callback"

    @pytest.mark.slow
    def test_a_template_takes_its_functions_and_parameters(self, capsys):
        def use(page):
            page.wait(lambda page: page.parts.get("front") and "example" in page.status)
            assert "f = a" in page.status["example"]
            status, answer = page.ask("formula", formula="f = a\nq = 3")
            assert status == 400
            assert "the template has no 'q'" in answer["error"]
            for wrong in ("a*b", "f = ", "f = a; f = a", "k = x", "f = foo(a)", "f = b"):
                assert page.ask("formula", formula=wrong)[0] == 400
            assert page.ask("formula", formula="f = sin(5*a*a)*a; k = 2.5")[0] == 200
            page.wait(lambda page: "yes" in page.parts["put-in"])
            page.ask("stop")
            page.wait(lambda page: page.ended)

        law = shine.template("f(a) + k*b", unknown={"f": ["a"]}, parameters=["k"])
        noise = np.random.default_rng(1).normal(0, 0.01, len(X))
        y = np.sin(5 * X[:, 0] ** 2) * X[:, 0] + 2.5 * X[:, 1] + noise
        given = {
            "features": ["a", "b"],
            "template": law,
            "seeding": 0,
            "population": 20,
            "stop_loss": 0.0,
            "stagnation": None,
            "seconds": 60,
        }
        fit = lambda: shine.evolve(X, y, primitives=["add", "mul", "sin"], live=True, **given)  # noqa: E731
        assert self.fitted(capsys, fit, use).best.loss < 2e-4


class TestNotebook:
    """The page in the output of a cell, and what stays of it."""

    @pytest.fixture
    def shown(self, monkeypatch):
        """What a notebook shows: a list of the contents of one output, the last of which stays."""
        contents = []

        class Handle:
            def update(self, content, raw):
                assert raw
                contents.append(content)

        def displayed(url):
            contents.append({"text/html": url})
            return Handle()

        monkeypatch.setattr(notebook, "in_notebook", lambda: True)
        monkeypatch.setattr(notebook, "_displayed", displayed)
        return contents

    @pytest.mark.slow
    def test_the_final_report_takes_the_place_of_the_page(self, shown, capsys):
        shine.evolve(X, DATA.target, seeding=0, population=50, generations=2, live=True)
        assert capsys.readouterr().err == ""
        assert "http://127.0.0.1" in shown[0]["text/html"]
        final = shown[-1]["text/html"]
        assert "127.0.0.1" not in final
        assert 'sandbox="allow-scripts"' in final
        assert "The chosen formula" in final

    def test_a_fit_that_fails_raises_its_error(self, shown):
        with pytest.raises(ValueError, match="population"):
            shine.evolve(X, DATA.target, population=-1, live=True)
        with pytest.raises(ZeroDivisionError):
            shine.evolve(
                X, DATA.target, seeding=0, population=20, noise="absolute", report=lambda progress: 1 / 0, live=True
            )
        assert ours() == []

    def test_ipython_shows_it(self):
        display = pytest.importorskip("IPython.display")
        assert display.display
        assert notebook._kept("").startswith("<p>")
        assert 'srcdoc="&lt;p&gt;&amp;' in notebook._kept("<p>&")
