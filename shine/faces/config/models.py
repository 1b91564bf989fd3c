"""The configuration as typed, frozen models: its keys, their types and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MaxLen
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from shine.base.parallel import ParallelSettings
from shine.data.datasets.preparation import Categories, Missing, Reading
from shine.data.files.numerals import Decimal
from shine.data.files.source import Marks
from shine.data.loading import Recipe
from shine.formats.read.guesses import is_graph_file
from shine.search.constraints.constraints import Constraints
from shine.search.dynamics.settings import hidden_name
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem.settings import FitnessSettings, SearchSettings
from shine.search.templates.reading import template
from shine.search.templates.template import Template

ARITHMETIC = ("add", "sub", "mul", "div")
"""Primitives if the configuration names none. `shine.evolve` has more by default, for a first try without a file."""


class StrictModel(BaseModel):
    """A frozen model that rejects unknown keys."""

    # Settings of a search are plain dataclasses; within these models they reject unknown keys as well.
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class DataSettings(StrictModel):
    """Source of the data: exactly one of `path` and `generate`."""

    path: Path | None = None
    """A table: .csv, .tsv, .txt (also compressed: .csv.gz, ...), .xlsx, .ods, .parquet, .feather, .arrow, .npy or .npz;
    or a folder of Parquet or Arrow files. Relative to the configuration's folder."""
    target: str | None = None
    """Heading of the column to explain; needed with `path`."""
    features: tuple[str, ...] | None = None
    """Headings of the feature columns; by default all others."""
    weights: str | None = None
    """Heading of a column of sample weights."""
    sigma: str | None = None
    """Heading of a column of standard deviations of the target's noise, if they are known; it replaces
    `fitness.noise`."""
    groups: str | None = None
    """Heading of a column that numbers groups of dependent rows; see `fitness.validation`."""
    times: str | None = None
    """Heading of a column that says when each row was read, in numbers or dates; by default rows stand in their
    order."""
    loss_columns: tuple[str, ...] = ()
    """Headings of columns for the loss, which are no features."""
    missing: Missing = "error"
    """Missing values: refuse them (`error`), leave out their rows (`drop`), or take the `mean` of the column."""
    missing_marks: tuple[str | float, ...] = ()
    """Further texts and numbers that stand for a missing value, such as `["k.A.", -999]`."""
    categories: Categories = "error"
    """Columns of text: refuse them (`error`), make a 0/1 column of each text (`one-hot`), number the texts (`ordinal`),
    or leave the columns out (`ignore`)."""
    decimal: Decimal | None = None
    """The decimal sign of text files; by default the numbers tell."""
    where: str | None = None
    """Condition on columns of Parquet or Arrow data, such as `year >= 2020 and region == "north"`, to read only these
    rows."""
    stream: bool | None = None
    """Whether to read rows block by block instead of holding all in memory; by default, beyond 1 GiB as float64."""
    generate: Recipe | None = None
    """Data made from a formula, instead of a file."""
    fold: str | None = None
    """Part of the rows to leave out, to judge the formula by: `1/5` is the first of five. Whole groups if there are
    `groups`, else rows at random, whatever the seed. `shine sweep` sets it."""

    @property
    def other_columns(self) -> tuple[str | None, ...]:
        """Headings of columns that are neither the target nor features; None where there is none."""
        return self.weights, self.sigma, self.groups, self.times, *self.loss_columns

    @property
    def reading(self) -> Reading:
        """The settings for reading the file."""
        marks = Marks(self.missing_marks)
        return Reading(self.missing, self.categories, self.decimal, where=self.where, stream=self.stream, marks=marks)


class GraphGuess(StrictModel):
    """A graph as a guess; the path alone is enough if the inputs are named like features."""

    graph: Path
    """A file with a TensorFlow GraphDef, .pb or .pbtxt; relative to the configuration's folder."""
    output: str | None = None
    """The node to read; needed if the graph has several outputs."""
    features: dict[str, str] = Field(default_factory=dict)
    """Feature of each placeholder with another name: `{input: a}`."""

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
    """Name of the function in formulas; by default the same."""


PrimitiveEntry = Annotated[
    Annotated[str, Tag("(name)")] | Annotated[LlvmFunction, Tag("(function)")],
    Discriminator(lambda value: "(function)" if isinstance(value, dict | LlvmFunction) else "(name)"),
]
"""One of Shine's primitives by name, a function in the language as text, or a function of another language."""


GuessEntry = Annotated[
    Annotated[str, Tag("(formula)")] | Annotated[GraphGuess, Tag("(graph)")],
    Discriminator(lambda v: "(graph)" if isinstance(v, dict | GraphGuess) or is_graph_file(v) else "(formula)"),
]
"""A formula as text, or a graph. The places in pydantic's errors contain the tags; brackets tell tags from keys."""


class UnknownSettings(StrictModel):
    """An unknown function of a template."""

    arguments: tuple[str, ...] = ()
    """Names of its arguments in its formula; by default those of its calls."""
    primitives: tuple[str, ...] | None = None
    """Functions that it is made of; by default those of the search."""
    max_size: Annotated[int, Ge(1)] | None = None
    """Most nodes of its formula; by default `evolution.max_size`."""
    max_depth: Annotated[int, Ge(1)] | None = None
    """Most levels of its formula; by default `evolution.max_depth`."""
    constraints: Constraints = Field(default_factory=Constraints)
    """Constraints on its formula, whose features are its arguments."""


class ParameterSettings(StrictModel):
    """A parameter of a template."""

    bounds: tuple[float | None, float | None] | None = None
    """Least and greatest value; null where there is none."""
    integer: bool = False
    """Whether it is a whole number."""
    value: float | None = None
    """A fixed value: it is not fitted."""
    start: float | None = None
    """Value that the fit starts from."""


def _kind_of_entry(value: object) -> str:
    if isinstance(value, dict | StrictModel):
        return "(mapping)"
    return "(list)" if isinstance(value, list | tuple) else "(value)"


UnknownEntry = Annotated[
    Annotated[tuple[str, ...], Tag("(list)")] | Annotated[UnknownSettings, Tag("(mapping)")],
    Discriminator(_kind_of_entry),
]
"""An unknown function: its arguments, or more about it."""

ParameterEntry = Annotated[
    Annotated[float, Tag("(value)")]
    | Annotated[tuple[float | None, float | None], Tag("(list)")]
    | Annotated[ParameterSettings, Tag("(mapping)")],
    Discriminator(_kind_of_entry),
]
"""A parameter: a fixed value, its bounds, or more about it."""


class TemplateSettings(StrictModel):
    """A law of which a part is known."""

    formula: str
    """The known part, with calls of unknown functions: `f(a)*exp(-k[group]*t)`, or the definition of a function."""
    unknown: dict[str, UnknownEntry] | None = None
    """Unknown functions by name: a list of arguments, or a mapping. By default, all functions that Shine does not
    know."""
    parameters: dict[str, ParameterEntry] = Field(default_factory=dict)
    """Parameters by name (names in the formula that are not columns): a fixed value, bounds `[0, null]`, or a
    mapping."""
    groups: str | None = None
    """The column of groups; by default the subscript of parameters. It may hold texts."""
    shrinkage: bool = False
    """Whether parameters by group are drawn towards their mean."""
    functions: tuple[str, ...] = ()
    """Known functions that the formula calls, besides Shine's: `def name(x): return ...`."""

    @property
    def options(self) -> dict[str, Any]:
        """The entries as `shine.template` takes them."""

        def plain(given: Mapping[str, Any]) -> dict[str, Any]:
            return {name: dict(iter(each)) if isinstance(each, StrictModel) else each for name, each in given.items()}

        return {"unknown": None if self.unknown is None else plain(self.unknown), "parameters": plain(self.parameters)}


TemplateEntry = Annotated[
    Annotated[str, Tag("(value)")] | Annotated[TemplateSettings, Tag("(mapping)")], Discriminator(_kind_of_entry)
]
"""A template: its formula, or more about it."""


def template_of(entry: str | TemplateSettings | None) -> Template | None:
    """The template of a configuration; an `UnsupportedSyntaxError`, `TypeError` or `ValueError` if it is none."""
    if entry is None or isinstance(entry, str):
        return None if entry is None else template(entry)

    return template(
        entry.formula, **entry.options, groups=entry.groups, shrinkage=entry.shrinkage, functions=entry.functions
    )


class DynamicsSection(StrictModel):
    """The columns of trajectories, whose equations of motion are to be found."""

    time: str
    """Heading of the column of times, which increase within each run."""
    states: tuple[str, ...] | None = None
    """Headings of the states; by default all columns that have no other role."""
    run: str | None = None
    """Heading of the column that labels the runs; without it, there is one."""
    controls: tuple[str, ...] = ()
    """Headings of the controls."""
    autonomous: bool = True
    """Whether rates depend on states and controls alone, and not on the time itself."""
    kind: Literal["ode", "map", "pde"] = "ode"
    """Whether to find rates, the states a step later, or the rates of fields."""
    space: Annotated[tuple[str, ...], MaxLen(2)] = ()
    """Headings of the coordinates of fields, which have a row for each time and point of a regular grid."""
    derivatives: Annotated[int, Ge(1), Le(4)] = 3
    """Highest derivative in space that the rates of fields may use."""
    periodic: bool = False
    """Whether the last point of a field's grid is followed by the first."""
    lags: Annotated[int, Ge(0), Le(20)] = 0
    """Steps back whose states a map may use, too."""
    order: Literal[1, 2] = 1
    """2 for positions alone: second derivatives are found."""
    hidden: Annotated[int | str, AfterValidator(hidden_name)] = ""
    """1, or a name, for one more state, which nobody read: `h` by default."""
    template: TemplateEntry = ""
    """Known parts, such as `x' = v; v' = f(x) - k[run]*v`, or a mapping with `unknown` and `parameters` beside."""
    conserve: str = ""
    """A quantity that the motion leaves as it is, such as `S + I + R`."""
    units: dict[str, str] = Field(default_factory=dict)
    """Unit of each state and control, and of the time: `{x: m, t: s}`."""

    @property
    def known(self) -> dict[str, Any]:
        """The known parts with their options."""
        given = self.template
        return {"formula": given} if isinstance(given, str) else {"formula": given.formula, **given.options}


class Config(StrictModel):
    """A whole run of `shine evolve`."""

    data: DataSettings
    """Source of the data."""
    primitives: tuple[PrimitiveEntry, ...] = ARITHMETIC
    """Functions in formulas: names, definitions (`def ...`), or functions compiled to LLVM IR."""
    evolution: EvolutionSettings = Field(default_factory=EvolutionSettings)
    """Operators and limits of the evolution."""
    fitness: FitnessSettings = Field(default_factory=FitnessSettings)
    """The loss, and how it is computed."""
    constraints: Constraints = Field(default_factory=Constraints)
    """Constraints on formulas."""
    stop: StopSettings = Field(default_factory=StopSettings)
    """Limits that end the run."""
    seed: Annotated[int, Ge(0), Le(2**63 - 1)] = 0
    """Random seed: the same seed gives the same run, unless `stop.seconds` ends it."""
    guesses: tuple[GuessEntry, ...] = ()
    """Formulas and graphs to start from: `["a*a + b*b", model.pbtxt]`."""
    template: TemplateEntry | None = None
    """The known part of the law, such as `f(a)*exp(-k[group]*t)`; without it, formulas are free."""
    dynamics: DynamicsSection | None = None
    """Columns of trajectories, to find the equations of their motion; `data` then needs a path and no target."""
    parallel: ParallelSettings = Field(default_factory=ParallelSettings)
    """Processes and machines that share the search."""

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
            template=template_of(self.template),
        )
