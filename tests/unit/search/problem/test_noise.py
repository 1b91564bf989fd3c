"""Models of the noise: which one the data choose, and what their weights do to the search."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.search.evolution.observers import Observers
from shine.search.problem.noise import estimated_noise, resolved_noise, sizes, with_expected_noise, with_model
from shine.search.problem.noise_choice import PROBING_WORK, with_noise
from shine.search.run import search
from shine.search.seeding.effort import Effort


def model_of(y: np.ndarray, x: np.ndarray, names: tuple[str, ...] = ("mul", "square")) -> str:
    """The model that is chosen for a target."""
    primitives = PrimitiveSet(select(STANDARD, names), ("x0",))
    rows = Dataset.from_arrays(x[:, None], y)
    with np.errstate(all="ignore"):
        return with_noise(rows, "auto", "mse", primitives, np.random.default_rng(0), 1, Effort(PROBING_WORK))[1]


def test_evidence_tells_relative_noise_from_absolute():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 30)
    law = 3 * x**4
    assert model_of(law * np.exp(0.1 * rng.normal(size=30)), x) == "relative"
    assert model_of(law + rng.uniform(-2, 2, size=30), x) == "absolute"


def test_exact_data_over_decades_are_judged_by_relative_errors():
    x = np.linspace(0.1, 9, 60)
    result = shine.evolve(x[:, None], 2 * (np.exp(4 * x) - 1), seconds=None, generations=20)
    assert np.allclose(result.predict(x[:, None]) / (2 * (np.exp(4 * x) - 1)), 1, rtol=1e-9)


def test_weights_are_inverse_squares_with_the_former_sum():
    rows = Dataset.from_arrays(
        [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], sample_weight=[1.0, 2.0, 1.0], sigma=[1.0, 2.0, 4.0]
    )
    given = np.array([1.0, 2.0, 1.0]) / np.array([1.0, 4.0, 16.0])
    assert rows.row_weights == pytest.approx(given * 4 / given.sum())
    assert rows.without_deviations.row_weights == pytest.approx([1.0, 2.0, 1.0])
    assert rows.effective_rows == pytest.approx(16 / 6)
    assert rows.take([0, 2]).without_deviations.row_weights == pytest.approx([1.0, 1.0])


def test_deviations_of_any_scale_are_allowed():
    rows = Dataset.from_arrays([[1.0], [2.0]], [1.0, 2.0], sigma=[1e-300, 1e300])
    assert np.isfinite(rows.row_weights).all()
    assert rows.weight == pytest.approx(2.0)


@pytest.mark.parametrize("sigma", [[1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [1.0]])
def test_impossible_deviations_are_refused(sigma):
    with pytest.raises(DataError, match="sigma"):
        shine.evolve([[1.0], [2.0]], [1.0, 2.0], sigma=sigma)


def test_known_deviations_decide_which_rows_count():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 3, 40)
    sigma = np.where(np.arange(40) % 2, 1e-3, 10.0)
    y = 2.5 * x + sigma * rng.normal(size=40)
    found = shine.evolve(
        x[:, None], y, sigma=sigma, primitives=["add", "mul"], generations=2, population=50, seeding=0
    ).best
    assert found.predict([[2.0]])[0] == pytest.approx(5.0, abs=5e-3)


def test_noise_of_logarithms_needs_one_sign():
    with pytest.raises(DataError, match="noise='log' needs a target without zeros"):
        shine.evolve([[1.0], [2.0], [3.0]], [1.0, 0.0, 2.0], noise="log")
    with pytest.raises(ValueError, match="noise must be one of auto, absolute, relative, log, counts, is 'gaussian'"):
        shine.evolve([[1.0], [2.0], [3.0]], [1.0, 0.0, 2.0], noise="gaussian")


@pytest.mark.slow
def test_large_relative_noise_does_not_bias_the_formula():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 10, 400)
    y = 3 * x * x * np.exp(0.4 * rng.normal(size=400))
    found = {}
    for noise in ("relative", "log"):
        settings = {"noise": noise, "primitives": ["mul", "square"], "generations": 2, "population": 50, "seeding": 0}
        found[noise] = shine.evolve(x[:, None], y, **settings).best.predict([[1.0]])[0]
    # The median is 3 and the mean 3*exp(0.08); weights 1/y^2 would give 3*exp(-0.24).
    assert found["log"] == pytest.approx(3.0, rel=0.08)
    assert found["relative"] == pytest.approx(3 * np.exp(0.08), rel=0.08)


def test_values_near_zero_have_the_noise_of_a_hundredth_of_the_whole():
    assert sizes(np.array([-100.0, 0.0, 100.0, 1e-9])) == pytest.approx([100, 0.7071, 100, 0.7071], rel=1e-4)
    assert sizes(np.array([1e-3, 5.0, 6.0, 7.0])).tolist() == [0.05, 5.0, 6.0, 7.0]
    decades = np.array([1e-9, 1e-6, 1e-3, 1.0])
    assert sizes(decades).tolist() == [1e-8, 1e-6, 1e-3, 1.0]


def test_a_formula_that_is_far_off_does_not_decide_the_noise_of_a_row():
    rows = with_model(Dataset.from_arrays([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0]), "relative")
    expected = with_expected_noise(rows, "relative", np.array([1.0, 2.0, 4000.0]))
    assert expected.deviations is not None
    assert expected.deviations / expected.deviations[0] == pytest.approx([1.0, 2.0, 12.0])
    assert with_expected_noise(rows, "relative", np.array([1.0, 2.0, -4.0])) is rows


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "relative", "log"])
def test_noise_in_proportion_to_a_constant_is_even(noise):
    y = np.array([1.34e-7, 6.9e-8, 4.49e-10])
    found = shine.evolve([[4.1e12], [1.6e12], [1.8e10]], y, noise=noise, generations=0, primitives=["sin"])
    assert found.predict([[1.0]]) == pytest.approx(y.mean(), rel=0.05)
    assert ("is the same in every row" in found.front.reason) is (noise != "auto")


def test_an_interrupt_while_the_noise_is_examined_ends_the_search(monkeypatch):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("shine.search.problem.noise_choice.find_guesses", interrupted)
    x = np.geomspace(0.1, 10, 30)
    result = shine.evolve(x[:, None], 3 * x**3, generations=50, population=50)
    assert result.stopped_by == "interrupted"
    assert result.generations == 0
    assert np.isfinite(result.predict(x[:, None])).all()


@pytest.mark.slow
def test_an_interrupt_while_the_noise_is_fitted_keeps_what_was_found(monkeypatch):
    calls = []

    def interrupted_once(rows, *given):
        calls.append(rows)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return rows

    monkeypatch.setattr("shine.search.finishing.end.with_expected_noise", interrupted_once)
    rng = np.random.default_rng(0)
    x = np.geomspace(0.1, 10, 30)
    y = 3 * x**3 * np.exp(0.1 * rng.normal(size=30))
    result = shine.evolve(x[:, None], y, primitives=["mul", "cube"], generations=2, population=50, seeding=0)
    assert result.stopped_by == "interrupted"
    assert len(calls) == 2
    assert result.best.r2 > 0.9


@pytest.mark.slow
def test_evidence_tells_the_noise_of_counts():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 60)
    expected = 2 * x**3
    assert model_of(rng.poisson(expected).astype(float), x) == "counts"
    assert model_of(np.maximum(np.rint(expected + 3 * rng.normal(size=60)), 0), x) == "absolute"
    assert model_of(rng.poisson(expected) + 0.5, x) != "counts"
    assert model_of(rng.poisson(1000, 60).astype(float), x) == "absolute"


@pytest.mark.parametrize("roots", [0.02, 4])
def test_whole_numbers_that_scatter_unlike_counts_are_none(roots):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 5, 200)
    score = np.rint(200 * x + roots * np.sqrt(200 * x) * rng.normal(size=200)).clip(0)
    assert model_of(score, x) != "counts"


def test_counts_weigh_by_their_expected_number():
    dataset = Dataset.from_arrays([[1.0], [2.0], [3.0]], [0.0, 4.0, 100.0])
    rows = with_model(dataset, "counts")
    assert rows.row_weights / rows.row_weights[1] == pytest.approx([4.0, 1.0, 0.04])
    expected = with_expected_noise(rows, "counts", np.array([2.0, 8.0, -3.0]))
    assert expected.row_weights / expected.row_weights[0] == pytest.approx([1.0, 1 / 4, 2.0])


@pytest.mark.slow
def test_counts_are_fitted_without_bias():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 8, 400)
    y = rng.poisson(2 * x).astype(float)
    found = shine.evolve(
        x[:, None], y, noise="counts", primitives=["mul"], generations=2, population=50, seeding=0
    ).best
    # Weights 1/y would give the harmonic mean, which is too small. The standard error is 0.02.
    assert found.predict([[1.0]])[0] == pytest.approx(2.0, abs=0.06)


def test_counts_are_not_negative():
    with pytest.raises(DataError, match="noise='counts' needs a target without negative values"):
        shine.evolve([[1.0], [2.0], [3.0]], [1.0, -1.0, 2.0], noise="counts")


@pytest.mark.slow
def test_a_resumed_search_keeps_its_model_of_the_noise(monkeypatch):
    x = np.geomspace(0.1, 10, 30)
    rows = Dataset.from_arrays(x[:, None], 3 * x**3 * np.exp(0.1 * np.random.default_rng(0).normal(size=30)))
    quick = settings_from(seconds=None, generations=2, population=50, seeding=0.0, primitives=["mul", "cube"])
    states = []
    whole = search(rows, quick, Observers(save=states.append))
    assert {state.noise for state in states} == {"relative"}
    monkeypatch.setattr("shine.search.problem.noise_choice._likeliest", lambda *given: pytest.fail("examined again"))
    resumed = search(rows, quick, Observers(state=states[0]))
    assert [str(model.tree) for model in resumed.front] == [str(model.tree) for model in whole.front]


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "noise"), [("mae", "relative"), ("mse", "counts")])
def test_r2_has_the_weights_of_the_loss_and_begins_at_0(loss, noise):
    rng = np.random.default_rng(3)
    x = np.geomspace(1, 100, 60)
    y = np.rint(5 * x**1.5 * np.exp(0.2 * rng.normal(size=60)))
    result = shine.evolve(
        x[:, None], y, loss=loss, noise=noise, primitives=["mul", "sqrt"], generations=2, population=50, seeding=0
    )
    rows = result.best.basis.rows
    weights = rows.row_weights / rows.row_weights.sum()
    mean = weights @ y
    for model in result.front:
        expected = 1 - weights @ (y - model.predict(x[:, None])) ** 2 / (weights @ (y - mean) ** 2)
        assert model.r2 == pytest.approx(expected, abs=1e-9)
    assert result.front[0].is_constant
    assert result.front[0].r2 == pytest.approx(0, abs=1e-9 if loss == "mse" else 1)
    assert (result.front.noise, [model.noise for model in result.front]) == (noise, [noise] * len(result.front))


SIGMA = 0.3


def law(X):
    return np.sin(2 * X[:, 0]) + X.sum(axis=1) ** 2


def estimate(X, y, weights=None, model="absolute"):
    return estimated_noise(with_model(Dataset.from_arrays(X, y, sample_weight=weights), model), model)


def replicated(rng, times=3, distinct=10):
    X = np.repeat(rng.uniform(0, 3, (distinct, 2)), times, axis=0)
    return X, law(X) + SIGMA * rng.normal(size=len(X))


def test_the_interval_of_replicates_holds_the_noise():
    found = [estimate(*replicated(np.random.default_rng(seed))) for seed in range(100)]
    assert {each.source for each in found} == {"replicates"}
    held = np.mean([each.low <= SIGMA**2 <= each.high for each in found])
    assert held > 0.88  # 0.95, with three standard errors of 100 trials
    assert np.mean([each.loss for each in found]) == pytest.approx(SIGMA**2, rel=0.1)


def test_replicates_are_the_pooled_variance():
    X = np.array([[1.0]] * 4 + [[2.0]] * 3 + [[5.0]])
    y = np.array([1.0, 3.0, 1.0, 3.0, 9.0, 9.0, 12.0, 100.0])
    assert estimate(X, y).loss == pytest.approx((4 * 1 + 6) / (3 + 2))


def test_a_whole_weight_is_a_repeated_row():
    X, y = replicated(np.random.default_rng(0))
    weights = np.tile([1.0, 2.0, 3.0], 10)
    repeated = np.repeat(np.arange(30), weights.astype(int))
    weighed, written_out = estimate(X, y, weights), estimate(X[repeated], y[repeated])
    assert (weighed.loss, weighed.high) == pytest.approx((written_out.loss, written_out.high))


@pytest.mark.parametrize(("features", "rows"), [(1, 60), (2, 1000)])
def test_neighbours_tell_the_noise_of_a_smooth_law(features, rows):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (rows, features))
    found = estimate(X, law(X) + SIGMA * rng.normal(size=rows))
    assert found.source == "neighbours"
    assert found.loss == pytest.approx(SIGMA**2, rel=0.3)
    assert found.low == 0
    assert found.high > SIGMA**2


def test_a_law_that_bends_between_its_rows_is_no_noise():
    for seed in range(10):
        X = np.random.default_rng(seed).uniform(0, 3, (500, 4))
        assert resolved_noise(Dataset.from_arrays(X, law(X))) == 0
    X = np.linspace(0, 3, 200)[:, None]
    assert resolved_noise(Dataset.from_arrays(X, law(X))) < 1e-5


BENT = {
    "product": lambda X: np.prod(1 + 0.5 * X, axis=1),
    "quotient": lambda X: (1 + X[:, 0]) / (0.3 + X[:, -1] ** 2),
    "law of gravity": lambda X: np.prod(X[:, 1:] + 1, axis=1) / (1 + X[:, 0]) ** 2,
    "waves": lambda X: np.exp(X[:, 0]) * np.sin(np.sum(X, axis=1) / X.shape[1]),
}


@pytest.mark.parametrize("law", BENT.values(), ids=BENT)
def test_no_noise_is_seen_without_noise_in_one_to_nine_features(law):
    for features in range(1, 10):
        X = np.random.default_rng(features).uniform(0, 3, (200, features))
        assert resolved_noise(Dataset.from_arrays(X, law(X))) < 1e-5


def test_noise_is_seen_in_one_to_nine_features_if_the_law_bends_little():
    found = []
    for features in range(1, 10):
        rng = np.random.default_rng(features)
        X = rng.uniform(0, 1, (200, features))
        law = np.sum(X, axis=1) + 0.1 * X[:, 0] ** 2
        noise = 0.5 * law.std() * rng.normal(size=200)
        found.append(resolved_noise(Dataset.from_arrays(X, law + noise)))
    seen = [share for share in found if share > 0]
    assert len(seen) >= 7
    assert seen == pytest.approx([0.2] * len(seen), rel=0.35)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(4.0)[:, None],
        np.full((5, 1), 3.0),
        np.ones((50, 1))[:4],
        np.random.default_rng(0).uniform(size=(12, 6)),
    ],
)
def test_few_rows_do_not_tell(X):
    assert estimate(X, X[:, 0]) is None


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_a_result_has_the_estimate_in_the_unit_of_the_target(scale):
    X, y = replicated(np.random.default_rng(0))
    few = {"generations": 1, "population": 50, "seeding": 0.0, "seconds": None, "threads": 1, "noise": "absolute"}
    noise = shine.evolve(X, scale * y, primitives=["add", "mul"], **few).noise
    assert noise.model == "absolute"
    assert noise.loss / scale**2 == pytest.approx(estimate(X, y).loss)


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400])
def test_the_noise_of_near_rows_has_no_scale(scale):
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (300, 1))
    y = 2 * x[:, 0] ** 2 - x[:, 0] + rng.normal(0, 0.3, 300)
    share = resolved_noise(Dataset.from_arrays(x, y, features=["x"]))
    assert share > 0
    assert resolved_noise(Dataset.from_arrays(x, scale * y, features=["x"])) == share
