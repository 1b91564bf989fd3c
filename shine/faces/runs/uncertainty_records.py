"""The uncertainty of a formula's constants in result.json."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, FiniteFloat

from shine.base.errors import DataError
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.search.models.model import Model

LEVEL = 0.95
"""Level of the intervals."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ConstantRecord(_Part):
    """A constant of a formula. Infinite and unknown numbers are null."""

    name: str
    """Its name in `form`."""
    value: FiniteFloat
    """Its value in the formula."""
    likely: FiniteFloat
    """Its most likely value; the search may have written a simple number near it."""
    standard_error: FiniteFloat | None
    """Its standard error; null if the rows do not determine it."""
    low: FiniteFloat | None
    """Lower end of its 95 % interval."""
    high: FiniteFloat | None
    """Upper end of that interval."""


class UncertaintyRecord(_Part):
    """Uncertainty of the constants of a formula."""

    form: str
    """The formula with names in place of its constants: `c0*exp(c1*x)`."""
    constants: tuple[ConstantRecord, ...]
    """The constants in the order of their names."""
    correlations: tuple[tuple[FiniteFloat | None, ...], ...]
    """Correlations of the constants, in their order."""
    intervals: str
    """Method of the intervals: `profile` (likelihood), or `wald` (by standard errors)."""
    notes: tuple[str, ...]
    """Warnings about these numbers."""
    details: dict[str, Any]
    """Numbers from which Shine computes bands of predictions."""

    @classmethod
    def of(cls, model: Model, profile: bool, exact: tuple[float, ...] = ()) -> Self | None:
        """The record of a model; None if it does not know its rows.

        Parameters
        ----------
        model : Model
        profile : bool
            Whether to compute profile-likelihood intervals.
        exact : tuple of float
            Numbers that are known; they need a model with rows.
        """
        try:
            known = model.inference(exact).uncertainty if exact else model.uncertainty
            method = model.quick_method(LEVEL) if profile or LEVEL in known.profiles else "wald"
            ends = model.conf_int(LEVEL, method, exact=exact)
        except DataError:
            return None
        plain = known.plain()
        ends_plain = [[_finite(low), _finite(high)] for low, high in ends.values()]
        constants = zip(known.names, plain["values"], plain["best"], known.errors.tolist(), ends_plain, strict=True)
        return cls(
            form=model.form(exact).text,
            constants=tuple(
                ConstantRecord(name=name, value=value, likely=likely, standard_error=_finite(error), low=low, high=high)
                for name, value, likely, error, (low, high) in constants
            ),
            correlations=tuple(tuple(_finite(each) for each in row) for row in known.correlations.tolist()),
            intervals=method,
            notes=known.notes,
            details=plain,
        )

    @property
    def known(self) -> Uncertainty:
        """The uncertainty in the record; a `ValueError`, `KeyError` or `TypeError` if its details are damaged."""
        return Uncertainty.of_plain(self.details)


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
