"""Losses as users give them: names, calls, functions, text; and what is refused."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest

from shine import losses
from shine.base.errors import UnsupportedSyntaxError
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.losses.library import LIBRARY
from shine.losses import errors, loss_text

FACTOR = 3.0


def pinball(y_true, y_pred, q=0.9):
    short = y_true - y_pred
    if short > 0:
        return q * short
    return (q - 1) * short


def weighed(target, prediction, weight, sigma):
    distance = helper(prediction, target) / sigma
    return weight * np.maximum(abs(distance), FACTOR * distance)


def helper(a, b):
    return a - b


@pytest.mark.parametrize("name", [*LOSSES, *LIBRARY])
def test_a_name_is_read_back(name):
    loss = losses.loss_from(name)
    assert losses.loss_from(losses.loss_text(loss)) is loss


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("quantile(q=0.9)", "quantile(0.9)"),
        (" huber( 1.50 ) ", "huber(1.5)"),
        ("huber", "huber(1)"),
        ("student_t(3)", "student_t(3, 1)"),
        ("student_t(scale=0.1)", "student_t(4, 0.1)"),
    ],
)
def test_numbers_may_be_named_or_left_out(text, same):
    assert losses.loss_text(text) == same


def test_arguments_go_by_name_in_any_order():
    errors = losses.errors(pinball, prediction=[1.0, 3.0], target=[2.0, 2.0])
    assert errors == pytest.approx([0.9, 0.1])


def test_a_function_may_call_others_and_read_numbers_and_columns():
    loss = losses.loss_from(weighed)
    assert loss.kind.columns == ("weight", "sigma")
    own = losses.errors(weighed, [3.0, 1.0], [2.0, 2.0], weight=[1.0, 2.0], sigma=[0.5, 0.5])
    assert own.tolist() == [6.0, 4.0]


def test_text_of_a_function_is_complete():
    text = losses.loss_text(weighed)
    assert "helper" not in text and "3.0" in text
    assert losses.loss_text(text) == text
    assert losses.loss_from(text).kind.function == losses.loss_from(weighed).kind.function


def test_a_partial_function_has_its_numbers_bound():
    other = functools.partial(pinball, q=0.5)
    assert losses.errors(other, [1.0], [2.0]).tolist() == [0.5]


def test_a_target_is_not_needed():
    assert losses.errors("def f(prediction): return prediction*prediction", [2.0], [0.0]).tolist() == [4.0]


def test_losses_are_pickled():
    for loss in (losses.quantile(0.9), losses.loss_from(pinball)):
        again = pickle.loads(pickle.dumps(loss))
        assert losses.loss_text(again) == losses.loss_text(loss)
    assert pickle.loads(pickle.dumps(losses.poisson)) is losses.poisson


def test_a_function_with_the_name_of_a_built_in_loss_is_the_users():
    text = "def poisson(prediction, target): return abs(prediction - target)"
    loss = losses.loss_from(text)
    assert losses.loss_text(loss).startswith("def poisson") and losses.errors(text, [1.0], [3.0]).tolist() == [2.0]


def test_sigma_divides_residuals():
    plain, divided = losses.loss_from("huber(1.5)"), losses.loss_from("huber(1.5)", ["sigma"])
    assert plain.kind.columns == () and divided.kind.columns == ("sigma",)
    assert losses.errors("huber(1.5)", [4.0], [0.0], sigma=[2.0]) == losses.errors("huber(1.5)", [2.0], [0.0])


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("hubr(2)", ValueError, "unknown loss 'hubr\\(2\\)'; did you mean 'huber'"),
        ("L2DistLoss", ValueError, "did you mean 'mse'"),
        ("mean_pinball_loss", ValueError, "did you mean 'quantile'"),
        ("tobit", ValueError, "did you mean 'censored'"),
        ("quantile(1.5)", ValueError, "q of the loss quantile must be a number between 0 and 1, is 1.5"),
        ("huber(0)", ValueError, "delta of the loss huber must be a number above 0, is 0"),
        (
            "huber(x)",
            ValueError,
            "'huber\\(x\\)' is not a loss with numbers in brackets; write 'huber",
        ),
        ("huber(1, 2)", ValueError, "the loss huber has 2 numbers; write 'huber\\(1\\)', with delta"),
        ("huber(eps=2)", ValueError, "the loss huber has no number eps; write 'huber\\(1\\)', with delta"),
        ("student_t(3, freedom=4)", ValueError, "the loss student_t has freedom twice"),
        ("poisson(1)", ValueError, "the loss poisson has 1 number; write 'poisson', without numbers"),
        ("mse(2)", ValueError, "unknown loss 'mse\\(2\\)'"),
        (7, TypeError, "loss must be a name, such as 'mse' or 'quantile\\(0.9\\)', or a function, is 7"),
        (None, TypeError, "loss must be a name"),
        (
            "def f(a, b): return a",
            UnsupportedSyntaxError,
            "a loss has an argument prediction; it has a, b;",
        ),
        ("def f(forecast, target): return forecast", UnsupportedSyntaxError, "a loss has an argument prediction"),
        (
            "def f(prediction, y_pred): return y_pred",
            UnsupportedSyntaxError,
            "two arguments of the loss mean prediction",
        ),
        (
            "def f(prediction): return g(prediction)",
            UnsupportedSyntaxError,
            "cannot be compiled: it calls 'g'",
        ),
        (
            "def f(prediction):\n    while 1: pass",
            UnsupportedSyntaxError,
            "line 2, column 5: the loss cannot",
        ),
        *(
            (each, UnsupportedSyntaxError, "the loss cannot be compiled: it is a .*; write a function of one row")
            for each in (max, [].append, type("Fitness", (), {"__call__": lambda self, y, p, w: 0.0})())
        ),
        ("log loss", ValueError, "did you mean 'binomial'"),
        ("mean absolute error", ValueError, "did you mean 'mae'"),
    ],
)
def test_other_things_are_refused_in_a_line(source, error, message):
    with pytest.raises(error, match=message) as caught:
        losses.loss_text(source)
    assert "\n" not in str(caught.value)


def test_columns_have_to_be_those_that_the_loss_reads():
    with pytest.raises(TypeError, match="the loss interval reads lower, upper; given are none"):
        losses.errors("interval", [1.0], [1.0])


def test_an_unknown_attribute_is_answered():
    with pytest.raises(AttributeError, match="has no attribute 'pinball'; it has gaussian, poisson"):
        _ = losses.pinball


@pytest.mark.parametrize(
    "loss",
    [
        "f(p, t) = abs(p - 2*t)^1.5",
        "f(x, y) = abs(x - 2*y)^1.5",
        "f(a, b) = abs(a - 2*b)^1.5",
        "f(y, y_hat) = abs(y_hat - 2*y)^1.5",
        "lambda pred, target: abs(pred - 2*target)**1.5",
        lambda t, p: abs(p - 2 * t) ** 1.5,
        "loss(prediction, target) = abs(prediction - 2*target)^1.5",
    ],
)
def test_arguments_of_other_libraries_are_understood(loss):
    assert errors(loss, [3.0, 8.0], [1.0, 2.0]).tolist() == [1.0, 8.0]


def test_the_third_argument_of_other_libraries_is_the_weight():
    assert errors("f(p, t, w) = w*(p - t)^2", [3.0], [1.0], weight=[5.0]).tolist() == [20.0]


def test_beside_a_prediction_such_names_are_columns():
    assert errors("lambda prediction, t, w: w*abs(prediction - t)", [3.0], [0.0], t=[1.0], w=[2.0]).tolist() == [4.0]


def test_two_arguments_with_one_meaning_are_refused():
    with pytest.raises(UnsupportedSyntaxError, match="two arguments of the loss mean target"):
        loss_text("f(p, t, y) = p - t - y")
