"""How sure models and results are: the methods that users call."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import shine
from shine.base.errors import DataError, ExtrapolationWarning
from shine.evaluate.inference import many_rows
from shine.evaluate.inference.inference import Inference
from shine.lang.parse import parse
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 4, (60, 1))
Y = 2.4 * np.exp(-0.9 * X[:, 0]) + 0.7 * X[:, 0] + RNG.normal(0, 0.1, 60)


def model(formula="2.41*exp(-0.91*x) + 0.71*x", **options):
    return Model(parse(formula, ["x"]), 0.01, 0.9).with_data(X, Y, **options)


@pytest.fixture(scope="module")
def result():
    return shine.evolve(
        X, Y, features=["x"], primitives=["add", "mul", "exp"], generations=3, seconds=None, seed=0, population=60,
        guesses=["exp(-0.9*x)*2.4 + 0.7*x"], threads=1, noise="absolute", seeding=0,
    )  # fmt: skip


def test_intervals_hold_the_truth_and_have_the_names_of_the_summary():
    ends = model().conf_int()
    truth = dict(zip(("c0", "c1", "c2"), (2.4, -0.9, 0.7), strict=True))
    assert ends.keys() == truth.keys()
    assert all(low < truth[name] < high for name, (low, high) in ends.items())


def test_the_loss_is_that_of_the_given_rows():
    found, values = model(), 2.41 * np.exp(-0.91 * X[:, 0]) + 0.71 * X[:, 0]
    assert found.loss == pytest.approx(np.mean((values - Y) ** 2))
    assert found.r2 == pytest.approx(1 - np.mean((values - Y) ** 2) / np.var(Y))


def test_rows_given_twice_are_rows_of_weight_two():
    line = Model(parse("2.01*x + 1.01", ["x"]), 0.01, 0.9)
    for seed in range(12):  # some of these noises just about count as uneven
        y = 2 * X[:, 0] + 1 + np.random.default_rng(seed).normal(0, 0.1 * (1 + X[:, 0]) ** 0.7)
        twice = line.with_data(np.repeat(X, 2, 0), np.repeat(y, 2)).conf_int(method="wald")
        assert twice == line.with_data(X, y, sample_weight=np.full(60, 2.0)).conf_int(method="wald")


@pytest.mark.parametrize("covariance", ["model", "robust"])
def test_a_common_factor_of_weights_that_are_no_counts_says_nothing(covariance):
    found, given = model(), {"method": "wald", "covariance": covariance}
    weights = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    for one, other in ((np.full(len(Y), 1.0), np.full(len(Y), 2.5)), (weights, 1e-6 * weights)):
        ends = [found.with_data(X, Y, sample_weight=each).conf_int(**given) for each in (one, other)]
        for name, end in ends[0].items():
            assert ends[1][name] == pytest.approx(end, rel=1e-6)


def test_a_higher_level_has_wider_intervals():
    narrow, wide = (model().conf_int(level)["c0"] for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_summary_is_a_table_in_the_words_of_statsmodels():
    lines = str(model().summary()).splitlines()
    assert lines[0] == "c0*exp(c1*x) + c2*x"
    assert lines[1].startswith("squared errors, 60 rows, 57 degrees of freedom, noise 0.")
    assert lines[2].split() == ["coef", "std", "err", "t", "P>|t|", "[0.025", "0.975]"]
    assert [line.split()[0] for line in lines[3:6]] == ["c0", "c1", "c2"]


def test_the_summary_is_a_table_for_notebooks():
    page = model().summary()._repr_html_()
    assert ">coef</th>" in page and "P&gt;|t|" in page


def test_standard_deviations_are_those_of_readings_or_of_the_value():
    values, readings = model().predict(X, return_std=True)
    same, own = model().predict(X, return_std="mean")
    assert np.array_equal(values, same) and np.array_equal(values, model().predict(X))
    assert (own < readings).all() and readings == pytest.approx(0.1, rel=0.25)


def test_bands_of_readings_hold_most_of_them():
    low, high = model().predict_interval(X).T
    assert 0.9 <= np.mean((low < Y) & (high > Y)) <= 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.conf_int(95), "level is 95; it is a share between 0 and 1"),
        (lambda m: m.conf_int(method="exact"), "method is 'exact'; it must be one of 'profile', 'wald'"),
        (lambda m: m.conf_int(exact="0.71"), "exact is '0.71'; it has numbers of the formula, such as [2, 0.5]"),
        (lambda m: m.conf_int(exact=[np.nan]), "exact is [nan]; it has numbers of the formula"),
        (lambda m: m.conf_int(exact=[3]), "exact has 3, which is no number of c0*exp(c1*x) + c2*x; it has 2.41"),
        (lambda m: m.summary(covariance="HC3"), "covariance is 'HC3'; it must be one of 'auto', 'model', 'robust'"),
        (lambda m: m.predict(X, return_std="both"), "return_std is 'both'; it must be one of False, True, 'mean'"),
        (lambda m: m.predict(X, return_std=1), "return_std is 1; it must be one of False, True"),
        (lambda m: m.predict_interval(X, kind="both"), "kind is 'both'; it must be one of 'mean', 'prediction'"),
        (lambda m: m.with_data(X, Y, noise="loud"), "unknown noise 'loud'"),
        (lambda m: m.with_data(X, Y, loss="square").summary(), "unknown loss 'square'"),
    ],
)
def test_wrong_arguments_are_a_value_error(ask, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ask(model())


def test_a_model_without_rows_says_how_to_give_them():
    bare = Model(parse("2.41*x"), 0.01, 0.9)
    for ask in (bare.conf_int, bare.standard_errors, bare.summary, lambda: bare.predict_interval(X)):
        with pytest.raises(DataError, match=r"give them to it: model.with_data\(X, y\)"):
            ask()
    assert bare.predict(X) == pytest.approx(2.41 * X[:, 0])


def test_a_pickle_knows_all_that_the_model_does():
    before = model()
    after = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(before))))
    assert after.standard_errors() == before.standard_errors()
    assert after.conf_int(0.9) == before.conf_int(0.9)
    assert after.conf_int(0.8, "wald") == before.conf_int(0.8, "wald")
    assert after.standard_errors(exact=[0.71], covariance="robust") == before.standard_errors(
        exact=[0.71], covariance="robust"
    )
    assert np.array_equal(after.predict_interval(X), before.predict_interval(X))
    assert str(after.summary(0.95)) == str(before.summary(0.95))


def test_a_pickle_computes_nothing_that_nobody_asked_for(monkeypatch):
    first = model("2.4*x")
    asked = replace(model(), basis=first.basis)
    expected, both = asked.standard_errors(), Front((first, asked), 0)
    monkeypatch.setattr(Inference, "uncertainty", property(lambda self: pytest.fail("nobody asked")))
    copied = pickle.loads(pickle.dumps(both))
    assert copied[1].standard_errors() == expected
    assert copied[0].basis is copied[1].basis


def many(rows):
    x = np.linspace(0, 4, rows)
    y = 2.4 * np.exp(-0.9 * x) + 0.7 * x + np.random.default_rng(1).normal(0, 0.1, rows)
    return Model(parse("2.4003*exp(-0.9002*x) + 0.7001*x", ["x"]), 0.01, 0.9).with_data(x[:, None], y)


@pytest.mark.slow
def test_a_pickle_of_many_rows_has_a_sample_and_says_nearly_the_same():
    before = many(400_000)
    text = pickle.dumps(before)
    after = pickle.loads(text)
    assert len(text) < 3e6 and after.basis.of == 400_000
    for name, (low, high) in before.conf_int().items():
        assert after.conf_int()[name] == pytest.approx((low, high), abs=0.1 * (high - low))
    assert after.summary().known.rows == 400_000
    assert np.allclose(after.predict_interval(X), before.predict_interval(X), atol=0.01)
    assert pickle.loads(pickle.dumps(after)).conf_int() == after.conf_int()


@pytest.mark.slow
def test_profiles_after_a_pickle_of_many_rows_need_them():
    after = pickle.loads(pickle.dumps(many(400_000)))
    with pytest.raises(DataError, match=r"use method='wald', or model\.with_data"):
        after.conf_int(0.8, "profile")
    with pytest.raises(DataError, match="knows only the constants and the covariance that it chose itself"):
        after.standard_errors(exact=[0.7001])
    assert after.with_data(X, Y).conf_int(0.8).keys() == model().conf_int(0.8).keys()


def test_extrapolation_is_told_once():
    own = model()
    with pytest.warns(ExtrapolationWarning, match=r"of 'x' \(0.\d+ to 3.\d+\) in 2 rows; to silence this"):
        own.predict([[-3.0], [2.0], [9.0]])
    own.predict([[9.0]])


@pytest.mark.parametrize("rows", [[[0.0], [4.2]], [[2.0]]])
def test_rows_near_the_range_are_no_extrapolation(rows):
    model().predict(rows)


def test_an_exact_law_extrapolates_silently():
    exact = model().with_data(X, model().predict(X))
    exact.predict([[9.0]])


def test_extrapolation_can_be_silenced():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shine.ExtrapolationWarning)
        model().predict([[9.0]])


@pytest.mark.slow
def test_a_search_hands_over_models_that_know_their_rows(result):
    assert result.conf_int().keys() == result.standard_errors().keys()
    assert str(result.summary()) == str(result.best.summary())
    assert result.correlations().shape == (len(result.conf_int()),) * 2
    assert np.array_equal(result.predict_interval(X), result.best.predict_interval(X))
    assert all(each.basis is result.best.basis for each in result.front)


@pytest.mark.slow
def test_a_front_tells_the_intervals_of_each_formula(result):
    assert result.front.conf_int(0.9) == [each.conf_int(0.9) for each in result.front]


def test_the_formulas_of_a_front_share_passes_over_many_rows(monkeypatch):
    monkeypatch.setattr(many_rows, "SAMPLED_ROWS", 40)
    first = model()
    others = [Model(parse(text, ["x"]), 0.01, 0.9) for text in ("0.4*x + 1.2", "2.1*exp(-0.7*x) + 0.8*x - 0.1*x*x")]
    front = Front((first, *(replace(each, basis=first.basis) for each in others)), 0)
    alone = [replace(each).conf_int(method="wald") for each in front]
    for shared, own in zip(front.conf_int(method="wald"), alone, strict=True):
        assert shared.keys() == own.keys()
        assert list(shared.values()) == [pytest.approx(ends, rel=1e-6) for ends in own.values()]


@pytest.mark.slow
def test_a_result_prints_the_intervals(result):
    told = repr(result)
    assert re.search(r"with 95 % intervals: .*c0.*\n    c0 = \S+ \(\S+ to \S+\)", told)


def test_a_result_without_noise_prints_none():
    x = np.linspace(0, 4, 30)
    exact = Model(parse("2.41*x"), 0.0, 1.0).with_data(x[:, None], 2.41 * x)
    assert Result(Front((exact,), 0), 0, 0, 0, 0.0, 0, "loss").constants_text == ""


def test_constants_that_were_not_fitted_to_the_end_are_told_beside_their_intervals():
    def told(formula):
        return Result(Front((model(formula),), 0), 0, 0, 0, 0.0, 0, "loss").constants_text

    assert "note" not in told("2.41*exp(-0.91*x) + 0.71*x")
    assert "note: the formula's constants are not the most likely ones, which are: c0 = 2." in told(
        "2.9*exp(-0.5*x) + x"
    )


@pytest.mark.slow
def test_large_and_tiny_data_come_back_in_their_units():
    scale = 1e60
    found = shine.evolve(X, Y * scale, features=["x"], primitives=["add", "mul", "exp"], generations=0, seconds=None,
                         guesses=[f"{2.4 * scale!r}*exp(-0.9*x) + {0.7 * scale!r}*x"], population=20, threads=1,
                         noise="absolute")  # fmt: skip
    deviation = found.predict([[1.0]], return_std=True)[1][0]
    assert deviation == pytest.approx(0.1 * scale, rel=0.5)


@pytest.mark.parametrize("exact", [0.71, [0.71], {-0.71}, np.array([0.71])])
def test_numbers_that_are_known_have_no_interval(exact):
    own = model()
    assert own.conf_int(exact=exact).keys() == {"c0", "c1"}
    assert own.form(exact).text == "c0*exp(c1*x) + 0.71*x"
    wide, narrow = own.predict_interval(X, kind="mean"), own.predict_interval(X, kind="mean", exact=exact)
    assert np.mean(narrow[:, 1] - narrow[:, 0]) < np.mean(wide[:, 1] - wide[:, 0])


def near_simple(seed, rows=80):
    """The most likely constants of 10.03 - 0.2465*x in noisy rows, and a search's model."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 20, rows)
    y = 10.03 - 0.2465 * t + rng.normal(0, 0.5, rows)
    found = shine.evolve(
        t[:, None], y, primitives=["mul"], generations=1, seconds=None, seed=0, population=50, threads=1,
        noise="absolute",
    )  # fmt: skip
    return np.polyfit(t, y, 1), found.front[1]


@pytest.mark.parametrize("seed", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_short_numbers_neither_lose_their_intervals_nor_bend_others(seed):
    (slope, intercept), found = near_simple(seed)
    assert found.form().text == "c0 - c1*x0"
    ends = found.conf_int()
    assert found.uncertainty.best == pytest.approx([intercept, -slope], rel=1e-4)
    for name, value in zip(("c0", "c1"), found.form().values.tolist(), strict=True):
        low, high = ends[name]
        assert low + 0.1 * (high - low) < value < high - 0.1 * (high - low)
    low, high = found.predict_interval([[0.0]], kind="mean")[0]
    assert [low, high] == pytest.approx(ends["c0"], rel=1e-3) and found.predict([[0.0]], return_std="mean")[1] > 0.05
