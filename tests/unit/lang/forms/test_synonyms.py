"""The words of the faces: an unknown word is answered with the one that is meant, in the face it was given to."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import shine
from shine.deap import CompiledEvaluator
from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.faces.estimators.parameters import FREE
from shine.faces.keywords import KEYWORDS, NO_SETTINGS
from shine.lang.forms.synonyms import ESTIMATOR_WORDS, NOTES, OTHER_WORDS, keywords_checked, meant, unexpected

X = np.random.default_rng(0).uniform(1, 5, (20, 2))
y = X[:, 0]
PARAMETERS = SymbolicRegressor().get_params()


@pytest.mark.parametrize(("shine_word", "estimator_word"), ESTIMATOR_WORDS.items())
def test_the_words_of_two_faces_mean_each_other(shine_word, estimator_word):
    assert shine_word in {**KEYWORDS, **dict.fromkeys(NO_SETTINGS)}
    assert estimator_word in PARAMETERS
    with pytest.raises(TypeError, match=rf"evolve\(\) .* '{estimator_word}'; did you mean '{shine_word}'\?"):
        shine.evolve(X, y, **{estimator_word: 1})
    with pytest.raises(TypeError, match=rf"SymbolicRegressor\(\) .* '{shine_word}'; did you mean '{estimator_word}'\?"):
        SymbolicRegressor(**{shine_word: 1})


def test_words_of_other_libraries_stand_for_settings_and_are_not_shines_own():
    known = {*KEYWORDS, *NO_SETTINGS, *PARAMETERS}
    assert set(OTHER_WORDS.values()) <= known
    assert not OTHER_WORDS.keys() & known


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("niterations", "'generations'"), ("maxsize", "'max_size'"), ("function_set", "'primitives'"),
        ("binary_operators", "'primitives'"), ("timeout_in_seconds", "'max_time'"), ("seed", "'random_state'"),
        ("populations", "settings={'islands': ...}"), ("stagnation", "settings={'stagnation': ...}"),
        ("max_tiem", "'max_time'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [SymbolicRegressor, SymbolicClassifier, SymbolicTransformer])
def test_estimators_know_the_words_of_others(kind, word, near):
    with pytest.raises(TypeError) as caught:
        kind(**{word: 1})
    assert f"{kind.__name__}() got an unexpected keyword argument '{word}'; did you mean {near}?" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shine.Evaluator(X, y, n_jobs=2), r"Evaluator\(\) .* 'n_jobs'; did you mean 'threads'\?"),
        (lambda: shine.Evaluator(X, y, weights=y), r"Evaluator\(\) .* 'weights'; did you mean 'sample_weight'\?"),
        (lambda: CompiledEvaluator(None, X, y, n_jobs=2), r"CompiledEvaluator\(\) .* did you mean 'threads'\?"),
    ],
)
def test_evaluators_know_them_too(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": 1}, "settings has 'seconds'; use the parameter max_time"),
        ({"maxsize": 1}, "settings has 'maxsize'; use the parameter max_size"),
        ({"populations": 1}, "settings has no 'populations'; did you mean 'islands'"),
        ({"islands": 0}, r"settings\['islands'\] must be at least 1, is 0"),
        ({3: 0}, "settings has no 3; it has coefficient_mutation"),
    ],
)
def test_settings_are_named_as_they_were_typed(settings, message):
    with pytest.raises(ValueError, match=message):
        SymbolicRegressor(settings=settings).fit(X, y)


def test_set_params_names_the_parameter_and_prints_no_front():
    model = SymbolicRegressor(generations=0, population_size=10, settings={"seeding": 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"Invalid parameter 'maxsize' .* did you mean 'max_size'") as caught:
        model.set_params(maxsize=1)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="Invalid parameter 'settings__islands'"):
        model.set_params(settings__islands=1)
    assert model.set_params(max_size=9).max_size == 9


def test_a_checked_init_keeps_its_signature():
    def init(self, X, *, threads=1):
        """Text."""

    assert inspect.signature(keywords_checked(init)) == inspect.signature(init)
    assert "threads" in inspect.signature(shine.Evaluator).parameters


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("deterministic", "; the same seed gives the same result, with threads too; allowed are"),
        ("dimensionless_constants_only", "; use constraints={'dimensionless_constants': True}; allowed"),
        ("select_k_features", "; all features take part; "), ("denoise", "; Shine looks at the noise itself"),
        ("max_evals", "; limit the generations"), ("annealing", "; there is no annealing"),
        ("mutations", "; the share of each mutation is a setting"), ("halloffame", "; the result has the best"),
        ("stats", "; a callback receives"), ("ncycles_per_iteration", "did you mean 'generations'?"),
        ("zealing", "; allowed are"),
    ],
)  # fmt: skip
def test_words_for_which_no_setting_stands_are_answered_with_what_to_do(word, advice):
    for call in (lambda: SymbolicRegressor(**{word: 1}), lambda: shine.evolve(X, y, **{word: 1})):
        with pytest.raises(TypeError) as caught:
            call()
        assert f"'{word}'" in str(caught.value)
        assert advice in str(caught.value)


def test_words_of_dynamics_are_those_of_dynamics():
    notes = ("feature_names", "did you mean 'states'"), ("X_units", r"SymbolicDynamics\(units=")
    for word, told in (*notes, ("multiple_trajectories", "a list of arrays has several runs; leave it out")):
        with pytest.raises(TypeError, match=told):
            shine.SymbolicDynamics().fit(X, t=y, **{word: 1})


@pytest.mark.parametrize(
    ("word", "told"),
    [("optimizer", "the data tell this"), ("threshold", "the data tell this"), ("discrete_time", "use kind='map'")],
)
def test_words_of_pysindy_get_advice(word, told):
    with pytest.raises(TypeError, match=told):
        shine.SymbolicDynamics(**{word: 1})


def test_evolve_takes_the_settings_of_estimators_as_keywords():
    with pytest.raises(TypeError, match="'settings'; pass its entries as keywords of their own: islands=4"):
        shine.evolve(X, y, settings={"islands": 4})


def test_notes_are_about_words_that_no_face_has():
    assert not NOTES.keys() & ({*KEYWORDS, *NO_SETTINGS, *PARAMETERS} - {"settings"})


def test_a_word_with_a_note_stands_for_no_parameter_of_an_estimator():
    for word in (NOTES.keys() & OTHER_WORDS.keys()) - {"X_units", "y_units"}:  # fit and evolve have no `units`
        assert not {OTHER_WORDS[word], ESTIMATOR_WORDS.get(OTHER_WORDS[word])} & {*PARAMETERS, *FREE}


def test_an_unlike_word_gets_the_allowed_ones():
    assert meant("zzz", ["seed"]) is None
    assert str(unexpected("f", "zzz", ["a", "b"])) == "f() got an unexpected keyword argument 'zzz'; allowed are a, b"
    assert set(FREE) >= {"islands", "stagnation"}


@pytest.mark.parametrize("word", ["metric", "loss"])
@pytest.mark.parametrize("estimator", [SymbolicClassifier, SymbolicTransformer])
def test_who_has_no_loss_says_so(estimator, word):
    with pytest.raises(TypeError, match="only regression has a loss; leave it out"):
        estimator(**{word: "mse"})
