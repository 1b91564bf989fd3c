"""Fields in closed form that solve known partial differential equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.data.fields import Field
from shine.lang.parse import parse
from shine.search.dynamics.fields.model import FieldModel
from shine.search.dynamics.fields.mollifying import features_of
from shine.search.dynamics.fields.weak import WeakForm, weak_fit
from shine.search.dynamics.result import DynamicsResult, SystemFront
from shine.search.models.front import Front
from shine.search.models.model import Model


def burgers(x: np.ndarray, t: np.ndarray, viscosity: float = 0.1) -> np.ndarray:
    """Two shocks that merge, of ``u_t = viscosity*u_xx - u*u_x`` (Hopf and Cole), shape (n_times, n_points)."""
    slopes, shifts = np.array([0.0, 4.0, 8.0]), np.array([0.0, -4.0, -17.0])
    powers = -slopes * x[:, None] + viscosity * slopes**2 * t[:, None, None] + shifts
    waves = np.exp(powers - powers.max(axis=-1, keepdims=True))
    return 2 * viscosity * (slopes * waves).sum(axis=-1) / waves.sum(axis=-1)


def korteweg_de_vries(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Two solitons, one passes the other, of ``u_t = -6*u*u_x - u_xxx`` (Hirota), shape (n_times, n_points)."""
    k, p = 1.3, 0.8
    first = np.exp(k * (x - k**2 * t[:, None] + 14))
    second = np.exp(p * (x - p**2 * t[:, None] + 6))
    both = ((k - p) / (k + p)) ** 2 * first * second
    f = 1 + first + second + both
    slope = k * first + p * second + (k + p) * both
    bend = k**2 * first + p**2 * second + (k + p) ** 2 * both
    return 2 * (bend / f - (slope / f) ** 2)


def with_noise(field: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """A field with normal noise, whose deviation is a share of the field's."""
    return field + share * field.std() * np.random.default_rng(seed).standard_normal(field.shape)


def known_fields(*fronts: str) -> Any:
    """A function in place of `find_fields`, whose front has the given equations of one field."""

    def find(field: Field, settings: Any, *_session: Any) -> DynamicsResult:
        order = settings.derivatives
        widths = (2.0, 2.0)
        form = WeakForm.of(field, widths, order)
        models = []
        for text in fronts:
            fit = weak_fit(parse(text, features_of(field, order)), form, 0)
            models.append(
                FieldModel(
                    (Model(fit.tree, fit.loss, 0.99),),
                    field.states,
                    (),
                    None,
                    losses=np.array([fit.loss]),
                    variances=form.rates.var(axis=1),
                    starts=np.zeros((0, 1)),
                    noise=np.sqrt([fit.loss]),
                    covariance=fit.covariance,
                    nats=-10.0,
                    headings=field.states,
                    steps=field.steps,
                    derivatives=order,
                    periodic=field.periodic,
                    widths=widths,
                )
            )
        equations = {field.states[0]: Front(tuple(model.equations[0] for model in models), len(models) - 1)}
        front = SystemFront(tuple(models), len(models) - 1, "it is known")
        return DynamicsResult(front, equations, 0.1, 0, "seconds", len(models), "judged by the weak form")

    return find
