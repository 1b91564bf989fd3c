"""The page: complete, self-contained, escaped, and sensible in special cases."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from unit.formats.page.cases import Formula, Found, found

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.formats.page.charts.certainty import dependences
from shine.formats.page.charts.fit import Fit, fit_numbers
from shine.formats.page.page import own_text
from shine.lang.parse import parse
from shine.report import report_html

RNG = np.random.default_rng(0)
VOID = {"meta", "br", "hr", "wbr"}
HISTORY = [
    {"generation": 0, "evaluations": 100, "seconds": 0.1, "loss": None, "size": None, "formula": None},
    {"generation": 1, "evaluations": 200, "seconds": 0.4, "loss": 9.0, "size": 3, "formula": "a"},
    {"generation": 2, "evaluations": 300, "seconds": 0.9, "loss": 0.5, "size": 5, "formula": "a*b"},
]


class Page(HTMLParser):
    """A page read strictly: every element is closed in its order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts, self.goes_on = [], [], {}, False
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.goes_on = tag == "wbr"  # a line may end in the middle of a text
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        texts = self.texts.setdefault(self.open[-1] if self.open else "", [])
        texts.append(texts.pop() + data if self.goes_on else data)
        self.goes_on = False

    def all(self, tag, **attributes):
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [own for name, own in self.elements if name == tag and all(own.get(k) == v for k, v in wanted.items())]

    def text(self, tag):
        return " ".join(self.texts.get(tag, []))


def dataset(rows=60, features=("a", "b"), target=lambda X: X[:, 0] * X[:, 1] + 1):
    X = RNG.normal(size=(rows, len(features)))
    return Dataset.from_arrays(X, target(X), features=features)


@pytest.fixture(scope="module")
def data():
    return dataset()


@pytest.fixture(scope="module")
def page(data):
    result = found(["1.0", "a*b", "a*b + 1"], data)
    settings = {
        "seed": 42,
        "evolution": {"population": 500, "max_size": None, "shares": {"point": 0.25}},
        "fitness": {"loss": "mse"},
    }
    return report_html(result, data, history=HISTORY, settings=settings, title="A title", target="force")


def test_the_same_result_gives_the_same_page(data):
    result = found(["1.0", "a*b + 1"], data)
    assert report_html(result, data, history=HISTORY) == report_html(result, data, history=HISTORY)


def test_it_has_every_part(page):
    read = Page(page)
    assert [heading.strip() for heading in read.texts["h2"]] == [
        "The chosen formula", "The search", "The Pareto front", "How well it fits", "What each feature does",
        "Its structure", "Settings and timing",
    ]  # fmt: skip
    assert read.texts["h3"] == [
        "Loss against complexity", "Loss over time", "Predicted against measured", "Residuals",
        "Distribution of the residuals", *sorted(["a", "b"], key=read.texts["h3"].index), "Tree of the formula",
    ]  # fmt: skip
    assert read.texts["h1"] == ["A title"]
    assert read.texts["title"][0] == "A title"
    values = dict(zip(read.texts["dt"], read.texts["dd"], strict=True))
    assert values["Rows"] == "60"
    assert values["Loss"] == "0"
    assert values["R²"] == "1"
    assert values["Evaluations"] == "34\u202f567"
    assert values["Time"] == "5.50 s"
    assert "seed 42" in read.texts["small"]


def test_every_reference_leads_to_an_element(page):
    read = Page(page)
    names = [own["id"] for _, own in read.elements if "id" in own]
    assert len(names) == len(set(names))
    referred = [own["data-copy"] for own in read.all("button")]
    referred += [own["href"].removeprefix("#") for own in read.all("a")]
    referred += [own["data-row"] for own in read.all("a")]
    referred += re.findall(r"url\(#([^)]+)\)", page)
    assert len(referred) > 10
    assert set(referred) <= set(names)


def test_every_drawing_and_formula_is_described_in_words(page):
    read = Page(page)
    for own in [*read.all("svg"), *read.all("div", class_="formula")]:
        assert own["role"] in ("img", "math")
        assert own["aria-label"]
    assert all(own["aria-label"] for own in [*read.all("a"), *read.all("button")])


def test_nothing_is_loaded_from_anywhere(page):
    assert "://" not in page
    read = Page(page)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {name for name, _ in read.elements}
    assert not [own for _, own in read.elements if {"src", "srcset", "action", "onclick", "onload"} & set(own)]
    (policy,) = [own["content"] for own in read.all("meta") if "http-equiv" in own]
    assert policy.startswith("default-src 'none'")


def test_foreign_text_is_escaped(data):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & \"'"
    result = found(["1.0", "a if a < b and b > 0 else 1"], data)

    class Evil(Formula):
        @property
        def expression(self):
            return evil

    result.front[0] = Evil(result.front[0].tree, 1.0, None)
    text = report_html(
        result, data, settings={evil: {evil: evil}, "list": [evil]}, title=evil, target=evil, history=HISTORY
    )
    read = Page(text)
    assert len(read.all("script")) == 1
    assert not read.all("img")
    assert read.texts["h1"] == [evil]
    assert read.texts["code"].count(evil) == 1
    assert "a < b" in read.text("code")


def test_large_and_deep_formulas_are_shown_as_code(data):
    deep = "a"
    for _ in range(120):
        deep = f"sin({deep})"
    large = " + ".join(["a"] * 400)
    text = report_html(found(["1.0", deep, large], data), data)
    read = Page(text)
    assert len(read.all("div", class_="formula large")) == 3
    assert "trees of more than" in text


@pytest.mark.parametrize(
    ("codes", "target", "told"),
    [
        (["3.5"], lambda X: np.full(len(X), 3.5), "is a constant: it uses no feature"),
        (["2.5"], lambda X: X[:, 0], "The only formula on the Pareto front"),
        (["sqrt(a)*b"], lambda X: X[:, 0], "whose prediction is not a finite number are left out"),
        (["log(-1 - a*a)"], lambda X: X[:, 0], "No prediction is a finite number"),
        (["a/(b - b)"], lambda X: X[:, 0], "No prediction is a finite number"),
        (["1e300*a*a + b"], lambda X: X[:, 0] * 1e307, "Residuals"),
        (["a*1e-300"], lambda X: X[:, 0] * 1e-310, "Residuals"),
        (["exp(9*a)*2"], lambda X: np.exp(9 * X[:, 0]) * 1.9, "Residual / predicted"),
        (["1.1*a"], lambda X: np.where(np.arange(len(X)) == 3, 1e6, X[:, 0]), "far outside"),
    ],
)
def test_special_cases(codes, target, told):
    data = dataset(80, target=target)
    text = report_html(found(codes, data), data, history=[{"seconds": 0.0, "loss": 0.0}])
    Page(text)
    assert told in text
    assert not re.search(
        r"[\"MLHV, ](nan|inf|-inf)[\", LHVM]", re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
    )


def test_columns_are_found_by_name():
    data = dataset(50, ("b", "a"), lambda X: X[:, 1] - X[:, 0])
    tree = parse("a - b", ("a", "b"))
    result = Found([Formula(tree, 0.0, 1.0)], 0)
    assert "<td>0</td>" in report_html(result, data)
    lacking = Dataset.from_arrays(np.ones((2, 1)), [1.0, 2.0], features=["a"])
    with pytest.raises(DataError, match="no column 'b'"):
        report_html(result, lacking)


def test_partial_dependence_is_the_average_over_the_rows():
    data = dataset(120, ("a", "b", "c"))
    model = found(["3*a + b*b + a*b + 0*c"], data).front[0]
    seen = {dependence.feature: dependence for dependence in dependences(model, data)}
    a, b = data.columns[0], data.columns[1]
    np.testing.assert_allclose(seen["a"].mean, seen["a"].grid * (3 + b.mean()) + (b * b).mean(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        seen["b"].mean, 3 * a.mean() + seen["b"].grid ** 2 + seen["b"].grid * a.mean(), atol=1e-9
    )
    np.testing.assert_allclose(seen["c"].mean, seen["c"].mean[0])
    assert list(seen)[-1] == "c"
    assert seen["c"].effect == pytest.approx(0, abs=1e-12)


def test_errors_in_numbers():
    told = fit_numbers(Fit.of(np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([2.0, 2.0, 2.0, 2.0, np.nan])))
    assert told["Root mean squared error"] == "1.225"
    assert told["Mean absolute error"] == "1"
    assert told["Mean residual"] == "0.5"
    assert told["Largest residual"] == "±2"
    assert told["Correlation of predicted and measured"] == "–"


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_stands_out_from_its_background_in_both_modes():
    pairs = re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", own_text("style.css"))
    assert len(pairs) == 10
    for mode in (1, 2):
        colours = {pair[0]: pair[mode] if len(pair[mode]) == 7 else "#ffffff" for pair in pairs}
        for text in ("ink", "soft", "blue", "orange"):
            for background in ("page", "card", "tint", "warm"):
                light, dark = sorted((luminance(colours[text]), luminance(colours[background])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, background)


def test_columns_have_their_original_headings(data):
    evil = "<script>alert(1)</script> & \"'"
    result = found(["a + 2.3456789*b"], data)
    result.front[0].headings = {data.features[0]: "my area (m²)", data.features[1]: evil}
    text = report_html(result, data)
    read = Page(text)
    assert len(read.all("script")) == 1
    assert "<mtext>my area (m²)</mtext>" in text
    assert f" is “my area (m²)”,   is “{evil}”." in read.text("p")
    assert any("my area (m²)" in title for title in read.texts["h3"])
    assert "In code" not in report_html(found(["a"], data), data)


@pytest.mark.parametrize(
    ("digits", "precision", "shown"),
    [
        (None, None, "2.34568"),
        (3, None, "2.35"),
        (3, 2, "2.3"),
        (3, "exact", "2.3456789"),
        (None, "exact", "2.3456789"),
    ],
)
def test_constants_have_the_digits_that_are_asked_for_or_supported(data, digits, precision, shown):
    result = found(["a + 2.3456789*b"], data)
    result.front[0].digits = digits
    text = report_html(result, data, precision=precision)
    assert f">{shown}</mn>" in text
    assert ('<mn data-exact="2.3456789">' in text) == (shown != "2.3456789")


@pytest.mark.parametrize("code", [" + ".join(["a"] * 400), "*".join(["a", "b", "1.2345"] * 20)])
def test_a_long_formula_is_on_the_page_as_a_whole(data, code):
    read = Page(report_html(found([code], data), data))
    assert read.texts["code"].count(code) >= 2
    assert not any("…" in text for text in read.texts["code"])


def test_a_formula_that_knows_its_rows_says_how_sure_it_is():
    from shine.search.models.front import Front
    from shine.search.models.model import Model
    from shine.search.models.result import Result

    X = RNG.uniform(1, 4, (40, 2))
    y = 3.21 * X[:, 0] + 0.77 * X[:, 1] ** 2 + RNG.normal(0, 0.1, 40)
    law = Model(parse("3.21*a + 0.77*b**2", ["a", "b"]), 0.01, 0.99)
    data = Dataset.from_arrays(X, y, features=["a", "b"])
    for model, sections in ((law, 0), (law.with_data(X, y), 1)):
        page = Page(report_html(Result(Front((model,), 0), 0, 0, 1, 1.0, 0, "loss"), data))
        assert page.text("h2").count("How sure it is") == sections
        assert len(page.all("path", class_="band outer")) == 2 * sections
        assert page.text("th").count("c1") == sections
