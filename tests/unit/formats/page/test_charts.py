"""Where things go: markup, numbers, axes, the tidy tree, cells of a honeycomb."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shine.formats.page.charts import scales
from shine.formats.page.charts.fit import _CELL, Fit, fit_figures, hexagons
from shine.formats.page.charts.tree import LARGEST, SIBLINGS, tidy, tree_figure
from shine.formats.page.markup import element, render, verbatim
from shine.formats.page.subject import (
    count,
    duration,
    fraction,
    number,
    shortened,
)
from shine.lang.parse import parse

FINITE = st.floats(allow_nan=False, allow_infinity=False)


class Reading(HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.attributes, self.tags = "", [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])))
def test_any_text_comes_back_from_the_page_and_makes_no_element(text):
    reading = Reading()
    reading.feed(render(element("p", text, title=text)))
    reading.close()
    assert reading.tags == ["p"]
    assert reading.text == text
    assert reading.attributes == [("title", text)]


def test_a_script_cannot_end_early():
    with pytest.raises(ValueError, match="cannot contain its end"):
        verbatim("script", "x = '</SCRIPT>'")


def read(text: str) -> float:
    """A number as it is written in the report."""
    power = re.fullmatch("(?:(.+)×)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    if power is None:
        return float(text.replace("−", "-"))
    exponent = power[2].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))
    return float(f"{(power[1] or '1').replace('−', '-')}e{exponent}")


@given(FINITE)
def test_numbers_are_right_to_the_digits_that_are_shown(value):
    assert read(number(value, 6)) == pytest.approx(value, rel=5.0001e-6, abs=1e-323)


def test_words_around_numbers():
    assert [count(1, "row"), count(12000, "row")] == ["1 row", "12\u202f000 rows"]
    assert [duration(0.214), duration(245), duration(11520)] == ["0.21 s", "4 min 5 s", "3 h 12 min"]
    assert number(None) == number(math.nan) == fraction(None) == fraction(math.nan) == "–"
    assert shortened("abcdefghij", 5) == "ab…ij"


@given(st.lists(FINITE, min_size=1, max_size=20), st.sampled_from([scales.linear, scales.logarithmic]))
@settings(max_examples=150)
def test_axes_hold_their_values_and_label_their_ticks_truly(values, make):
    if make is scales.logarithmic:
        values = [abs(value) for value in values]
    axis = make(values).along(0.0, 100.0)
    places = axis.places(values)
    assert np.isfinite(places).all()
    assert ((places >= -1e-6) & (places <= 100 + 1e-6)).all()
    order = np.argsort(values)
    assert (np.diff(places[order]) >= -1e-6).all()
    at = [tick.value for tick in axis.ticks]
    assert at == sorted(set(at))
    for tick in axis.ticks:
        assert axis.low - 1e-6 * abs(axis.low) <= tick.value <= axis.high + 1e-6 * abs(axis.high)
        spread = axis.high / 2 - axis.low / 2
        assert read(tick.label) * 10.0**axis.factor == pytest.approx(
            tick.value, rel=1e-6, abs=max(1e-6 * spread, 1e-323)
        )


@given(st.floats(5e-324, 1e-280), st.floats(0, 1e-280))
@pytest.mark.parametrize("kind", [scales.linear, scales.logarithmic])
def test_the_tiniest_numbers_have_an_axis(kind, low, spread):
    axis = kind([low, low + spread]).along(0.0, 100.0)
    assert np.isfinite(axis.places([low, low + spread])).all() and len(axis.ticks) <= 14


def test_zero_on_a_logarithmic_axis_lies_beyond_every_positive_value():
    axis = scales.logarithmic([0.0, 1e-30, 1.0]).along(200.0, 0.0)
    zero, small, large = axis.places([0.0, 1e-30, 1.0])
    assert 200 >= zero > small > large >= 0


# The tidy tree


@st.composite
def trees(draw):
    """Widths and children of a random tree, parents before children."""
    parents = [draw(st.integers(max(0, i - 4), i - 1)) for i in range(1, draw(st.integers(1, 40)))]
    children = [[] for _ in range(len(parents) + 1)]
    for child, parent in enumerate(parents, 1):
        children[parent].append(child)
    widths = [draw(st.sampled_from([10.0, 26.0, 80.0])) for _ in children]
    return widths, children


@pytest.mark.slow
@given(trees())
@settings(max_examples=100)
def test_nodes_of_one_level_keep_their_distance_and_order(tree):
    widths, children = tree
    places = tidy(widths, children)
    order = [[0]]
    while order[-1]:
        order.append([child for node in order[-1] for child in children[node]])
    for level, nodes in enumerate(order):
        assert all(places[node][1] == level for node in nodes)
        for left, right in pairwise(nodes):
            gap = (places[right][0] - widths[right] / 2) - (places[left][0] + widths[left] / 2)
            assert gap >= SIBLINGS - 1e-6


def test_the_drawing_has_a_node_for_each_of_the_formula():
    tree = parse("sin(a)*2.5 + (b if a < 1 else -b)", ("a", "b"))
    drawing = render(tree_figure(tree, {}).drawing)
    assert drawing.count('class="node') == tree.size
    assert drawing.count('class="node feature') == 4
    assert drawing.count('class="node constant') == 2
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert sorted(labels) == sorted(["+", "×", "sin", "a", "2.5", "if", "&lt;", "a", "1", "b", "−", "b"])


def test_assigned_names_are_branches_of_the_drawing():
    labels = re.findall(
        r">([^<>]+)</text>", render(tree_figure(parse("def f(a):\n    b = a + 1\n    return b*b"), {}).drawing)
    )
    assert {"f", "b =", "return"} <= set(labels)


def test_a_tree_that_could_not_be_read_is_not_drawn():
    assert tree_figure(parse(" + ".join(["a"] * LARGEST), ("a",)), {}) is None


# The honeycomb


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0, 300)), min_size=1, max_size=60))
def test_every_point_lies_in_a_cell_that_is_drawn(points):
    x, y = np.array(points).T
    paths, largest = hexagons(x, y)
    drawn = re.findall(r"M([\d.-]+),([\d.-]+)l", render(paths))
    assert len(drawn) == len(set(drawn)) <= len(points)
    centres = np.array([(float(a), float(b) + _CELL) for a, b in drawn])
    nearest = np.min(np.hypot(x[:, None] - centres[:, 0], y[:, None] - centres[:, 1]), axis=1)
    assert nearest.max() <= _CELL + 0.02
    assert 1 <= largest <= len(points)


def test_rounding_errors_are_not_magnified():
    values = np.linspace(1, 9, 2000)
    _, residual, histogram = fit_figures(Fit(values, values * (1 + 2e-16), 0), "y")
    assert len(set(re.findall(r"M[\d.-]+,([\d.-]+)l", render(residual.drawing)))) == 1
    assert render(histogram.drawing).count("<rect") == 2  # the frame's, and one bar
