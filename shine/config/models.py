"""The configuration as typed, frozen models: its keys, their types and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from shine.data.loading import Recipe
from shine.data.numerals import Decimal
from shine.data.preparation import Categories, Missing, Reading
from shine.frontends.guesses import is_graph_file
from shine.gp.constraints.constraints import Constraints
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.search.settings import FitnessSettings, SearchSettings

ARITHMETIC = ("add", "sub", "mul", "div")
"""Primitives if the configuration names none. `shine.evolve` has more by default, for a first try without a file."""


class StrictModel(BaseModel):
    """A frozen model that rejects unknown keys."""

    # Settings of a search are plain dataclasses; within these models they reject unknown keys as well.
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DataSettings(StrictModel):
    """Source of the data: exactly one of `path` and `generate`."""

    path: Path | None = None
    """A table: .csv, .tsv or .txt (also compressed: .csv.gz, ...), .xlsx, .ods, .parquet, .feather or .npz; relative to
    the configuration's folder."""
    target: str | None = None
    """Heading of the column to explain; needed with `path`."""
    features: tuple[str, ...] | None = None
    """Headings of the columns to explain it by; all others when left out."""
    weights: str | None = None
    """Heading of a column of sample weights; every row weighs the same without it."""
    sigma: str | None = None
    """Heading of a column of standard deviations of the target's noise, if they are known; it replaces
    `fitness.noise`."""
    groups: str | None = None
    """Heading of a column that numbers the groups of rows that depend on one another; see `fitness.validation`."""
    beside: tuple[str, ...] = ()
    """Headings of columns that are no features, and that the loss reads; a heading that is not an identifier is turned
    into one."""
    missing: Missing = "error"
    """What to do with missing values: refuse them, drop their rows, or replace them by the mean of their column."""
    categories: Categories = "error"
    """What to do with columns of text: refuse them, make a 0/1 column of each text, number the texts, or leave the
    columns out."""
    decimal: Decimal | None = None
    """The decimal sign of text files; by default the numbers tell."""
    generate: Recipe | None = None
    """Data made from a formula, instead of a file."""

    @property
    def reading(self) -> Reading:
        """The settings for reading the file."""
        return Reading(self.missing, self.categories, self.decimal)


class GraphGuess(StrictModel):
    """A graph as a guess; the path of its file alone is enough if its inputs are named like features."""

    graph: Path
    """A file with a TensorFlow GraphDef, .pb or .pbtxt; relative to the configuration's folder."""
    output: str | None = None
    """The node that is the formula; needed only if several nodes are outputs."""
    features: dict[str, str] = Field(default_factory=dict)
    """Feature of each placeholder, by the placeholder's name; only those that are not named like their feature."""

    @model_validator(mode="before")
    @classmethod
    def _with_keys(cls, value: object) -> object:
        return {"graph": value} if isinstance(value, str) else value


class LlvmFunction(StrictModel):
    """A function that was compiled to LLVM IR or bitcode, as a primitive."""

    llvm: Path
    """The file with the function: text (.ll) or bitcode (.bc); relative to the configuration's folder."""
    function: str
    """Name of the function in the file."""
    name: str | None = None
    """Name of the function in formulas; the same when left out."""


def _kind_of_primitive(value: object) -> str:
    return "(function)" if isinstance(value, dict | LlvmFunction) else "(name)"


PrimitiveEntry = Annotated[
    Annotated[str, Tag("(name)")] | Annotated[LlvmFunction, Tag("(function)")], Discriminator(_kind_of_primitive)
]
"""One of Shine's primitives by name, a function in the language as text, or a function of another language."""


def _kind_of_guess(value: object) -> str:
    return "(graph)" if isinstance(value, dict | GraphGuess) or is_graph_file(value) else "(formula)"


GuessEntry = Annotated[
    Annotated[str, Tag("(formula)")] | Annotated[GraphGuess, Tag("(graph)")], Discriminator(_kind_of_guess)
]
"""A formula as text, or a graph. The places in pydantic's errors contain the tags; brackets tell tags from keys."""


class Config(StrictModel):
    """A whole run of `shine evolve`."""

    data: DataSettings
    """Source of the data."""
    primitives: tuple[PrimitiveEntry, ...] = ARITHMETIC
    """Functions that formulas are made of: Shine's by name, functions in the language (`def ...`), or functions that
    were compiled to LLVM IR."""
    evolution: EvolutionSettings = Field(default_factory=EvolutionSettings)
    """Operators and limits of the evolution."""
    fitness: FitnessSettings = Field(default_factory=FitnessSettings)
    """The loss, and how it is computed."""
    constraints: Constraints = Field(default_factory=Constraints)
    """Constraints on formulas."""
    stop: StopSettings = Field(default_factory=StopSettings)
    """Limits that end the run."""
    seed: Annotated[int, Ge(0), Le(2**63 - 1)] = 0
    """Seed of every random choice of the evolution."""
    guesses: tuple[GuessEntry, ...] = ()
    """Guesses: formulas as text, paths of graph files, or graphs and how to read them."""

    @property
    def primitive_texts(self) -> tuple[str, ...]:
        """The primitives as names and definitions. Needs a configuration of `read_job`, without foreign functions."""
        return tuple(str(primitive) for primitive in self.primitives)

    @property
    def target_name(self) -> str:
        """Name of the target: the heading of its column, or ``y`` if the data are generated."""
        return self.data.target or "y"

    @property
    def search(self) -> SearchSettings:
        """The settings of the search. Needs a configuration of `read_job`, without graphs and foreign functions."""
        return SearchSettings(
            primitives=self.primitive_texts,
            evolution=self.evolution,
            fitness=self.fitness,
            constraints=self.constraints,
            stop=self.stop,
            seed=self.seed,
            guesses=tuple(str(formula) for formula in self.guesses),
        )
