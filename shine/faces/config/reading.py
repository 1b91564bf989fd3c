"""A YAML file -> a configuration, and the job of running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import create_model

from shine.base.errors import ConfigError
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.doubts import doubts, facts
from shine.data.datasets.preparation import Preparation
from shine.data.fields import Field
from shine.data.loading import Loaded
from shine.data.trajectories import Trajectories
from shine.faces.config.checks import (
    column_problems,
    complexity_problems,
    constraint_problems,
    data_problems,
    dynamics_problems,
    guess_formulas,
    loading_problems,
    loss_problems,
    named_columns,
    primitive_texts,
    search_problems,
    template_problems,
    trajectory_problems,
    validation_problems,
)
from shine.faces.config.document import Document, Json, Loc, read_document
from shine.faces.config.models import Config, DataSettings, GraphGuess, StrictModel, template_of
from shine.faces.config.nodes import SourcePosition, add_resolvers
from shine.faces.config.problems import Problem, checked, unknown_key
from shine.lang.forms.names import shortened


@dataclass(frozen=True, eq=False)
class Job:
    """A configuration and its data. Graphs and foreign functions have become formulas, so their files are not needed
    any more."""

    config: Config
    dataset: Dataset
    preparation: Preparation | None = None
    """Preparation of the data, to repeat it for new files; None if they hold nothing but numbers."""
    notes: tuple[str, ...] = ()
    """Notes on the data for the user."""


def read_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and validate a configuration, but not its data.

    Parameters
    ----------
    path : path
    overrides : sequence of str
        Each like ``evolution.population=500``, with the value in YAML; applied in order.

    Returns
    -------
    Config
        Its paths are absolute.

    Raises
    ------
    ConfigError
        With all problems, each with its place.
    """
    sections = Sections(read_document(Path(path), overrides), Path(path).parent)
    return sections.finish(sections.problems())


def read_job(path: str | Path, overrides: Sequence[str] = ()) -> Job:
    """Read and validate a configuration and the data it names (see `read_config` for the parameters).

    Raises
    ------
    ConfigError
        With all problems of both, each with its place.
    """
    return job_of(read_document(Path(path), overrides), Path(path).parent)


def job_of(document: Document, folder: Path) -> Job:
    """Validate a document and the data it names, whose relative paths begin at a folder (see `read_job`)."""
    sections = Sections(document, folder)
    problems = sections.problems()
    loaded, more = sections.loaded(problems)
    config = sections.finish([*problems, *more])
    assert loaded is not None
    dataset = loaded.dataset
    return Job(config, dataset, loaded.preparation, (*loaded.notes, *facts(dataset), *doubts(dataset)))


@dataclass(frozen=True, eq=False)
class DynamicsJob:
    """A configuration of dynamics and its trajectories or fields."""

    config: Config
    trajectories: Trajectories | Field


AnyJob = Job | DynamicsJob
"""What `shine evolve` runs."""


def read_any_job(path: str | Path, overrides: Sequence[str] = ()) -> AnyJob:
    """Read and validate a configuration of either kind and the data it names (see `read_job`)."""
    return (read_dynamics if is_dynamics(path, overrides) else read_job)(path, overrides)


def is_dynamics(path: str | Path, overrides: Sequence[str] = ()) -> bool:
    """Whether a configuration asks for equations of motion; its other parts are not checked."""
    return read_document(Path(path), overrides).value.get("dynamics") is not None


def read_dynamics(path: str | Path, overrides: Sequence[str] = ()) -> DynamicsJob:
    """Read and validate a configuration of dynamics and its data (see `read_config` for the parameters).

    Raises
    ------
    ConfigError
        With all problems of both, each with its place.
    """
    sections = Sections(read_document(Path(path), overrides), Path(path).parent)
    problems = sections.problems()
    trajectories, more = sections.trajectories(problems)
    config = sections.finish([*problems, *more])
    assert trajectories is not None
    return DynamicsJob(config, trajectories)


def with_formulas(job: Job) -> Job:
    """A job whose graphs and foreign functions have become formulas, as in the jobs of `read_job`.

    A `ConfigError` if a guess does not fit the data, or a function cannot be a primitive.
    """
    config = job.config
    primitives, problems = primitive_texts(config.primitives, [Path()] * len(config.primitives))
    if not problems:
        here = [Path()] * len(config.guesses)
        formulas, problems = guess_formulas(config.guesses, here, primitives, job.dataset.features, config.evolution)
    if problems:
        raise ConfigError([f"{'.'.join(map(str, loc))}: {text}" for loc, text in problems])
    return replace(job, config=config.model_copy(update={"guesses": formulas, "primitives": primitives}))


def schema() -> dict[str, Any]:
    """The JSON schema of the configuration, for editors and documentation."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


class _Dumper(yaml.SafeDumper):
    """Quotes text that a reader of YAML 1.1 or 1.2 would take for something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True


add_resolvers(_Dumper)


def config_values(config: Config) -> dict[str, Any]:
    """A configuration as values of JSON, with every default."""
    data = config.data.model_dump(mode="json", exclude_none=True)
    return {**config.model_dump(mode="json"), "data": data}


def dump_config(config: Config) -> str:
    """A configuration as YAML, with every default written out; reading it gives the same configuration."""
    return yaml.dump(config_values(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


@cache
def _section_model(name: str) -> type[StrictModel]:
    """A model with one section only."""
    fields: dict[str, Any] = {name: (Config.model_fields[name].rebuild_annotation(), ...)}
    return create_model(name, __base__=StrictModel, **fields)


@cache
def _cached_schema() -> dict[str, Any]:
    return schema()


class Sections:
    """The sections of a document, checked one by one, so that one mistake hides no other."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document, self.folder = document, folder
        self.values: dict[str, Any] = {}

    def problems(self) -> list[Problem]:
        """All problems except those of the data themselves."""
        found = list(self._keys())
        for name, value in self.document.value.items():
            if name in Config.model_fields:
                found += self._read(name, value)
        if "data" in self.values:
            free = self.document.value.get("dynamics") is None
            told = data_problems(self.values["data"]) if free else dynamics_problems(self.values)
            # A check of a whole section may mislead if a part of it could not be read.
            wrong = {name for name in ("data", "dynamics", "guesses", "template") if self._wrong(name, found)}
            found += [(loc, text) for loc, text in told if loc[0] not in wrong or (loc[0] == "data" and len(loc) > 1)]
        if not self._wrong("template", found):
            found += template_problems(self.values["template"])
        given = self.values["primitives"]
        bases = [self._base(("primitives", index)) for index in range(len(given))]
        self.values["primitives"], more = primitive_texts(given, bases)
        found += more
        if not self._wrong("fitness", found):
            found += loss_problems(self.values["fitness"])
        return found

    def _keys(self) -> Iterator[Problem]:
        """Problems of unknown and missing sections; all other sections get their defaults."""
        for name in self.document.value:
            if name not in Config.model_fields:
                yield (name,), unknown_key(name, (), _cached_schema())
        for name, info in Config.model_fields.items():
            if not info.is_required():
                self.values[name] = info.get_default(call_default_factory=True)
            elif name not in self.document.value:
                yield (name,), "is missing, and has no default"

    def _read(self, name: str, value: Json) -> list[Problem]:
        section, found = checked(_section_model(name), {name: value}, _cached_schema())
        if section is not None:
            self.values[name] = getattr(section, name)
        wrong = {loc[1] for loc, _ in found if len(loc) > 1}
        if isinstance(value, dict) and wrong & set(value):
            # pydantic reports problems between keys only if each key is valid: check again without the wrong keys.
            rest = self._read(name, {key: part for key, part in value.items() if key not in wrong})
            found += [(loc, text) for loc, text in rest if (loc, text) not in found and not wrong & {*loc[1:2]}]
        return [(loc, text) for loc, text in found if not self.document.is_unreadable(loc)]

    def trajectories(self, problems: Sequence[Problem]) -> tuple[Trajectories | Field | None, list[Problem]]:
        """The trajectories or fields of a configuration of dynamics, and the problems of their file."""
        data, dynamics, base = self.values.get("data"), self.values["dynamics"], self._base(("data", "path"))
        if dynamics is None or data is None:
            return None, []
        if any(self._wrong(name, problems) for name in ("data", "dynamics")):
            return None, column_problems(data, dynamics, base)
        return trajectory_problems(data, dynamics, base)

    def loaded(self, problems: Sequence[Problem]) -> tuple[Loaded | None, list[Problem]]:
        """The data, and the problems of the data and of formulas that name their columns."""
        values, base = self.values, self._base(("data", "path"))
        if self.document.value.get("dynamics") is not None:
            return None, [(("dynamics",), "is for 'shine evolve' alone: this needs a search for one target")]
        if "data" not in values:
            return None, []
        template, loaded = None, None
        if any(self._wrong(name, problems) for name in ("data", "template")):  # a template says what may be texts
            found = column_problems(values["data"], None, base)
        else:
            template = template_of(values["template"])
            numbered = [] if template is None or template.groups is None else [template.groups]
            loaded, found = loading_problems(values["data"], base, numbered)
        if template is not None and not problems:
            if loaded is not None:
                found += search_problems(loaded.dataset, Config(**values).search)
            return loaded, found
        dataset = named_columns(values["data"], base) if loaded is None else loaded.dataset
        wrong = any(self._wrong(name, problems) for name in ("guesses", "primitives", "evolution"))
        if dataset is not None and not wrong:
            bases = [self._base(("guesses", index)) for index in range(len(values["guesses"]))]
            values["guesses"], wrong_guesses = guess_formulas(
                values["guesses"], bases, values["primitives"], dataset.features, values["evolution"]
            )
            found += wrong_guesses
            found += complexity_problems(values["evolution"], values["primitives"], dataset)
        wrong = any(self._wrong(name, problems) for name in ("constraints", "primitives", "fitness"))
        if dataset is not None and not wrong:
            found += constraint_problems(values["constraints"], values["primitives"], dataset, values["fitness"])
        if loaded is not None and not any(self._wrong(name, problems) for name in ("fitness", "seed")):
            found += validation_problems(values["fitness"], loaded.dataset, values["seed"])
            found += loss_problems(values["fitness"], loaded.dataset)
        return loaded, found

    def finish(self, problems: Sequence[Problem]) -> Config:
        """The configuration, or a ConfigError with all problems in the order of reading."""
        placed = [*self.document.problems, *(self._placed(loc, text) for loc, text in problems)]
        if placed:
            raise ConfigError([f"{place}: {text}" for place, text in sorted(placed, key=lambda pair: pair[0])])
        data: DataSettings = self.values["data"]
        if data.path is not None:
            data = data.model_copy(update={"path": (self._base(("data", "path")) / data.path).resolve()})
        guesses = tuple(self._with_place(index, guess) for index, guess in enumerate(self.values["guesses"]))
        return Config(**{**self.values, "data": data, "guesses": guesses})

    def _with_place(self, index: int, guess: str | GraphGuess) -> str | GraphGuess:
        """A guess with the absolute path of its graph."""
        if isinstance(guess, str):
            return guess
        return guess.model_copy(update={"graph": (self._base(("guesses", index)) / guess.graph).resolve()})

    def _placed(self, loc: Loc, message: str) -> tuple[SourcePosition, str]:
        place = self.document.place(loc)
        told = ".".join(map(shortened, loc))
        return place, f"{told}: {message}" if not place.override or self.document.places.get(loc) != place else message

    def _wrong(self, name: str, problems: Sequence[Problem]) -> bool:
        reported = {loc[:1] for loc, _ in problems} | {loc[:1] for loc in self.document.unreadable}
        return name not in self.values or (name,) in reported

    def _base(self, loc: Loc) -> Path:
        """The folder of relative paths; the working directory for a path from the command line."""
        return Path() if self.document.place(loc).override else self.folder
