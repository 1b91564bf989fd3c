"""The weak form: constants from noisy fields, their errors, stretches kept back."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.known_fields import korteweg_de_vries, with_noise

from shine.data.fields import Field
from shine.lang.parse import parse
from shine.search.dynamics.fields.mollifying import features_of
from shine.search.dynamics.fields.weak import WeakForm, kept_back_loss, weak_fit

X, T = np.linspace(-20, 20, 256), np.linspace(0, 12, 101)


def noisy(seed=0):
    return Field(with_noise(korteweg_de_vries(X, T), 0.01, seed)[None], ("u",), (T[1], X[1] - X[0]), False)


def law(text, field=None):
    return parse(text, features_of(field or noisy(), 3))


def test_constants_of_a_third_derivative_are_right_to_a_thousandth_in_noise_of_a_hundredth():
    fit = weak_fit(law("-4.0*u*u_x - 2.0*u_xxx"), WeakForm.of(noisy(), (2.0, 4.0), 3), 0)
    np.testing.assert_allclose(fit.constants, [-6.0, 1.0], rtol=2e-3)


@pytest.mark.slow
def test_errors_of_constants_are_those_of_repeated_noise():
    fits = [weak_fit(law("-6.0*u*u_x - 1.0*u_xxx"), WeakForm.of(noisy(seed), (2.0, 4.0), 3), 0) for seed in range(12)]
    spread = np.std([fit.constants for fit in fits], axis=0)
    told = np.mean([np.sqrt(np.diagonal(fit.covariance)) for fit in fits], axis=0)
    assert (told / spread > 0.4).all() and (told / spread < 2.5).all()


def test_a_wrong_term_is_worse_on_what_was_kept_back():
    form = WeakForm.of(noisy(), (2.0, 4.0), 3)
    right = kept_back_loss(law("-6.0*u*u_x - 1.0*u_xxx"), form, 0)
    assert 0 < form.first.mean() < 1
    assert right < 1e-4 * form.rates.var()
    assert kept_back_loss(law("-1.5*u_x"), form, 0) > 1e3 * right


def test_a_formula_without_a_value_has_no_loss():
    form = WeakForm.of(noisy(), (2.0, 4.0), 3)
    assert weak_fit(law("log(u)"), form, 0).loss == np.inf
    assert kept_back_loss(law("1/(u - u)"), form, 0) == np.inf
