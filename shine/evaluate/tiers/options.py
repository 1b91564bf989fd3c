"""The options of evaluators, with their bounds: those of `shine.Evaluator`, of DEAP's, and of a search's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from shine.evaluate.validation import valid_settings

Dtype = Literal["float64", "float32"]
Tier = Literal["auto", "machine", "native", "reference"]
Threads = Annotated[int, Ge(1), Le(1024)]


@dataclass(frozen=True)
class EvaluatorOptions:
    """Options of an evaluator (see `shine.Evaluator`)."""

    linear_scaling: bool
    dtype: Dtype
    tier: Tier
    threads: Threads | None

    @classmethod
    def checked(cls, **values: Any) -> EvaluatorOptions:
        """Options within their bounds; a `ValueError` names those outside."""
        return valid_settings(cls, values)
