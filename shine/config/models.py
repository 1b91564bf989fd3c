"""The configuration as typed, frozen models: what may be written, and what holds when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field

from shine.gp.constraints import Constraints
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.loading import Recipe


class StrictModel(BaseModel):
    """A frozen model that rejects unknown keys."""

    # The settings of `shine.gp` are plain dataclasses; within these models they reject unknown keys as well.
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DataSettings(StrictModel):
    """Where the data come from: exactly one of `path` and `generate`."""

    path: Path | None = None
    """A file of columns: .csv or .tsv (both also .gz), .npz, .parquet; relative to the configuration's folder."""
    target: str | None = None
    """Heading of the column to explain; needed with `path`."""
    features: tuple[str, ...] | None = None
    """Headings of the columns to explain it by; all others when left out."""
    weights: str | None = None
    """Heading of a column of sample weights; every row weighs the same without it."""
    generate: Recipe | None = None
    """Data made from a formula, instead of a file."""


class FitnessSettings(StrictModel):
    """How well a formula explains the data, and how that is computed."""

    loss: Literal["mse", "rmse", "mae", "nmse", "r2"] = "mse"
    """What is minimized; `nmse` is the mse over the target's variance, and `r2` is the same number, 1 - R^2."""
    linear_scaling: bool = True
    """Judge `intercept + slope * formula` with the best slope and intercept, instead of the formula itself."""
    dtype: Literal["float64", "float32"] = "float64"
    """Precision of the evaluation."""
    tier: Literal["auto", "machine", "native", "reference"] = "auto"
    """What evaluates: the tile machine (`machine`), code compiled for each formula (`native`), NumPy (`reference`), or
    whatever pays (`auto`)."""
    threads: Annotated[int, Ge(1), Le(1024)] | None = None
    """Threads of the tile machine; all processors when left out. Their number does not change the result."""


class Config(StrictModel):
    """A whole run of `shine evolve`."""

    data: DataSettings
    """Where the data come from."""
    primitives: tuple[str, ...] = ("add", "sub", "mul", "div")
    """Functions that formulas are made of."""
    evolution: EvolutionSettings = Field(default_factory=EvolutionSettings)
    """Operators and limits of the evolution."""
    fitness: FitnessSettings = Field(default_factory=FitnessSettings)
    """What makes a formula good, and how that is computed."""
    constraints: Constraints = Field(default_factory=Constraints)
    """What formulas must keep to."""
    stop: StopSettings = Field(default_factory=StopSettings)
    """Limits that end the run."""
    seed: Annotated[int, Ge(0), Le(2**63 - 1)] = 0
    """Seed of every random choice of the evolution."""
    seeds: tuple[str, ...] = ()
    """Formulas to start from."""
