"""Where things go: markup, numbers, axes, the tidy tree, cells of a honeycomb."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.formats.page.cases import Formula

from shine.formats.page.charts import scales
from shine.formats.page.charts.fit import _CELL, Fit, fit_figures, hexagons
from shine.formats.page.charts.frame import spot
from shine.formats.page.charts.search import history_figure, pareto_figure
from shine.formats.page.charts.tree import LARGEST, SIBLINGS, tidy, tree_figure
from shine.formats.page.markup import breakable, element, render, verbatim
from shine.formats.page.subject import (
    breadth,
    count,
    decimal_parts,
    duration,
    elided,
    fraction,
    number,
    printed,
    shortened,
)
from shine.lang.parse import parse
from shine.lang.wrapping import columns

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


@given(st.integers(-(10**400), 10**400))
def test_whole_numbers_beyond_floats_are_written_too(value):
    digits, power = decimal_parts(value)
    shown = Fraction(digits) * 10 ** (power or 0)
    assert abs(abs(value) - shown) <= Fraction(1, 10**5) * abs(value)


@given(FINITE.filter(lambda value: value <= 1))
def test_only_a_perfect_fit_is_written_as_one(value):
    assert (fraction(value) == "1") == (value == 1.0)


def test_words_around_numbers():
    assert [count(1, "row"), count(12000, "row")] == ["1 row", "12\u202f000 rows"]
    assert [duration(0.214), duration(245), duration(11520)] == ["0.21 s", "4 min 5 s", "3 h 12 min"]
    assert number(None) == number(math.nan) == fraction(None) == fraction(math.nan) == "–"
    assert shortened("abcdefghij", 5) == "ab…ij"


@given(st.text(), st.integers(3, 40))
def test_a_shortened_text_takes_no_more_columns_than_it_may(text, length):
    short = shortened(text, length)
    assert columns(short) <= breadth(short) <= length
    assert short == text or (breadth(text) > length and "…" in short)


def test_wide_letters_take_more_room_than_columns():
    assert breadth("mass") > columns("mass") == 4
    assert breadth("W" * 12) > breadth("W" * 11) > breadth("a" * 20) == 20
    assert elided("W" * 24) == f"{'W' * 7}…{'W' * 4}"
    assert elided("heat flux through the outer wall [kW/m²]") == "heat flux…wall [kW/m²]"
    assert elided("mass [kg]") == "mass [kg]" and elided("x [" + "kg" * 20 + "]").endswith("kgkg]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("noise 4.781e-16.", "noise 4.781×10⁻¹⁶."), ("c0 = -1.7e+05, c1 = -0.5", "c0 = −1.7×10⁵, c1 = −0.5"),
     ("-inf", "−∞"), ("inf", "∞"), ("", ""), ("1e9", "1e9"), ("2026-03-01 x-1 inform", "2026-03-01 x-1 inform")],
)  # fmt: skip
def test_numbers_of_a_text_look_like_the_others_of_the_page(text, shown):
    assert printed(text) == shown


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a*b**2/(c - d)", ["a*", "b**", "2/", "(", "c - d)"]),
        ("migration_interval", ["migration_", "interval"]),
        ("runs/a.csv", ["runs/", "a.", "csv"]),
        ("0.25 and 1e-05", ["0.25 and 1e-05"]),
    ],
)
def test_texts_may_break_after_operators_and_between_words_but_not_in_numbers(text, pieces):
    assert [piece for piece in breakable(text) if isinstance(piece, str)] == pieces


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


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_an_axis_of_ordinary_numbers_has_ticks(low, spread):
    assert 2 <= len(scales.linear([low, low + spread]).ticks) <= 12


@given(st.floats(1e-30, 1e30), st.floats(1.0, 1e30))
def test_a_logarithmic_axis_has_ticks(low, ratio):
    assert 1 <= len(scales.logarithmic([low, low * ratio]).ticks) <= 14


@given(st.floats(5e-324, 1e-280), st.floats(0, 1e-280))
@pytest.mark.parametrize("kind", [scales.linear, scales.logarithmic])
def test_the_tiniest_numbers_have_an_axis(kind, low, spread):
    axis = kind([low, low + spread]).along(0.0, 100.0)
    assert np.isfinite(axis.places([low, low + spread])).all() and len(axis.ticks) <= 14


def test_zero_on_a_logarithmic_axis_lies_beyond_every_positive_value():
    axis = scales.logarithmic([0.0, 1e-30, 1.0]).along(200.0, 0.0)
    zero, small, large = axis.places([0.0, 1e-30, 1.0])
    assert 200 >= zero > small > large >= 0


@pytest.mark.parametrize(
    ("losses", "label"), [([0.52, 0.50], "Loss"), ([0.5, 0.1], "Loss (logarithmic)"), ([0.0, 0.0], "Loss")]
)
def test_losses_that_hardly_differ_are_not_magnified(losses, label):
    lines = [{"generation": at, "seconds": 1.0 + at, "loss": loss} for at, loss in enumerate(losses)]
    drawing = render(history_figure(lines, Formula(parse("a", ("a",)), losses[-1], None)).drawing)
    assert f">{label}</text>" in drawing


@pytest.mark.parametrize(("begins", "told"), [(0.1, 0), (19.0, 1)])
def test_a_long_time_before_the_first_generation_is_told(begins, told):
    lines = [{"generation": at, "seconds": begins + at, "loss": 1.0 / (at + 1)} for at in range(6)]
    drawing = render(history_figure(lines, Formula(parse("a", ("a",)), 0.1, None)).drawing)
    assert drawing.count(">no generation yet</text>") == told


@pytest.mark.parametrize("loss", [0.15, 0.2, 0.3, 0.45, 0.6, 0.8])
def test_labels_of_losses_keep_their_distance(loss):
    lines = [{"generation": at, "seconds": 19.0 + at, "loss": 0.9 - 0.1 * at} for at in range(6)]
    model = Formula(parse("a", ("a",)), loss, None)
    drawing = render(history_figure(lines, model).drawing)
    places = [float(re.search(rf'y="([\d.]+)"[^>]*>{words}<', drawing)[1]) for words in ("chosen", "no generation yet")]
    assert abs(places[0] - places[1]) > 20
    # On the front, the label of the first point is beside it, not under the name of the axis.
    front = [Formula(parse("a", ("a",)), loss, None), Formula(parse("a + 1", ("a",)), loss / 9, None)]
    front += [Formula(parse("a + a*a*a*a*a*a*a", ("a",)), loss / 10, None)]
    (beside,) = re.findall(r'y="([\d.]+)"[^>]*>chosen<', render(pareto_figure(front, 0).drawing))
    assert float(beside) > 30


def test_few_dots_are_large_and_strong():
    looks = [spot(rows) for rows in (1, 37, 300, 1500, 20_000)]
    assert looks == sorted(looks, reverse=True)
    assert looks[1][0] > 3.5
    assert looks[1][1] > 0.7


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30))
def test_complexities_have_whole_ticks(values):
    assert all(float(tick.label) == int(tick.label) == tick.value for tick in scales.integer_scale(values).ticks)


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


@pytest.mark.slow
@given(trees())
def test_parents_stand_over_the_middle_of_their_children(tree):
    widths, children = tree
    places = tidy(widths, children)
    for node, below in enumerate(children):
        if below:
            assert places[node][0] == pytest.approx((places[below[0]][0] + places[below[-1]][0]) / 2, abs=1e-6)
    assert min(x - width / 2 for (x, _), width in zip(places, widths, strict=True)) == pytest.approx(0, abs=1e-6)


def test_equal_subtrees_are_drawn_alike():
    # The root holds two copies of (a (b c)); offsets within them must agree.
    children = [[1, 2], [3, 4], [5, 6], [], [7, 8], [], [9, 10], [], [], [], []]
    places = tidy([26.0] * 11, children)
    shape = [[places[n][0] - places[root][0] for n in nodes] for root, nodes in ((1, (3, 4, 7, 8)), (2, (5, 6, 9, 10)))]
    assert shape[0] == pytest.approx(shape[1])


def test_a_chain_stands_upright():
    places = tidy([26.0] * LARGEST, [[node + 1] for node in range(LARGEST - 1)] + [[]])
    assert places[-1] == (13.0, LARGEST - 1)


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


def test_more_points_are_a_darker_cell():
    paths, largest = hexagons(np.array([0.0] * 50 + [100.0]), np.zeros(51))
    assert largest == 50
    one, many = [float(dict(path.attributes)["fill-opacity"]) for path in paths]
    assert one < many == 1


def test_the_cells_of_an_exact_fit_lie_in_one_row():
    values = np.linspace(1, 9, 4000)
    predicted, residual, _ = (render(figure.drawing) for figure in fit_figures(Fit(values, values, 0), "y"))
    for drawing in (predicted, residual):
        assert {float(b) for b in re.findall(r"M[\d.-]+,([\d.-]+)l", drawing)} == {-_CELL}


def test_rounding_errors_are_not_magnified():
    values = np.linspace(1, 9, 2000)
    _, residual, histogram = fit_figures(Fit(values, values * (1 + 2e-16), 0), "y")
    assert len(set(re.findall(r"M[\d.-]+,([\d.-]+)l", render(residual.drawing)))) == 1
    assert render(histogram.drawing).count("<rect") == 2  # the frame's, and one bar
