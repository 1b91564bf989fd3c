"""The YAML file of a run as validated types; every problem is found before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from shine.config.checks import (
    data_problems,
    dataset_problems,
    evolution_problems,
    primitive_problems,
    seed_problems,
)
from shine.config.document import Document, Json, Loc, read_document
from shine.config.models import Config, DataSettings, FitnessSettings
from shine.config.nodes import Place, add_resolvers
from shine.config.problems import Problem, schema_problems
from shine.data import Dataset
from shine.errors import ConfigError

__all__ = ["Config", "DataSettings", "FitnessSettings", "Job", "dump_config", "read_config", "read_job", "schema"]


@dataclass(frozen=True, eq=False)
class Job:
    """A configuration and the data it names."""

    config: Config
    dataset: Dataset


def read_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and validate a configuration, but not its data.

    Parameters
    ----------
    path : path
    overrides : sequence of str
        ``evolution.population=500`` each, with the value in YAML; applied in order.

    Returns
    -------
    Config
        Its data path is absolute.

    Raises
    ------
    ConfigError
        With all problems, each with its place.
    """
    document = read_document(Path(path), overrides)
    sections = _Sections(document, Path(path).parent)
    return sections.finish(sections.problems())


def read_job(path: str | Path, overrides: Sequence[str] = ()) -> Job:
    """Read and validate a configuration and the data it names.

    Raises
    ------
    ConfigError
        With all problems of both, each with its place.
    """
    document = read_document(Path(path), overrides)
    sections = _Sections(document, Path(path).parent)
    problems = sections.problems()
    dataset, more = sections.dataset(problems)
    config = sections.finish([*problems, *more])
    assert dataset is not None
    return Job(config, dataset)


def schema() -> dict[str, Any]:
    """The JSON schema of the configuration, for editors and documentation."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


class _Dumper(yaml.SafeDumper):
    """Quotes whatever a reader of YAML 1.1 or of 1.2 would not take for text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


add_resolvers(_Dumper)


def dump_config(config: Config) -> str:
    """A configuration as YAML, with every default written out; reading it gives the same configuration."""
    values = config.model_dump(mode="json")
    values["data"] = config.data.model_dump(mode="json", exclude_none=True)
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


_CHECKS: dict[str, Callable[[Any], Iterator[Problem]]] = {
    "data": data_problems,
    "primitives": primitive_problems,
    "evolution": evolution_problems,
}
"""What must hold within a section beyond the types of its values."""


@cache
def _adapter(section: str) -> TypeAdapter[Any]:
    return TypeAdapter(Config.model_fields[section].rebuild_annotation())


class _Sections:
    """The sections of a document, each as far as it is right by itself, so that one mistake hides no other."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document, self.folder = document, folder
        self.values: dict[str, Any] = {}
        for name, info in Config.model_fields.items():
            if name in document.value:
                self._read(name, document.value[name])
            elif not info.is_required():
                self.values[name] = info.get_default(call_default_factory=True)

    def _read(self, name: str, value: Json) -> None:
        try:
            self.values[name] = _adapter(name).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            wrong = {details["loc"][0] for details in error.errors() if details["loc"]}
            if isinstance(value, dict) and wrong & set(value):
                self._read(name, {key: part for key, part in value.items() if key not in wrong})

    def problems(self) -> list[Problem]:
        """What is wrong, other than in the data themselves."""
        found = [
            (loc, text)
            for loc, text in schema_problems(self.document, Config)
            if not any(loc[:depth] in self.document.unreadable for depth in range(len(loc) + 1))
        ]
        for name, check in _CHECKS.items():
            if name in self.values:
                partial = self._wrong(name, found)
                # Where keys are left out, what is said about the section as a whole may not be so.
                found.extend((loc, text) for loc, text in check(self.values[name]) if len(loc) > 1 or not partial)
        return found

    def dataset(self, problems: Sequence[Problem]) -> tuple[Dataset | None, list[Problem]]:
        """The data, and what is wrong with them or with formulas that name their columns."""
        if self._wrong("data", problems):
            return None, []
        dataset, found = dataset_problems(self.values["data"], self._base())
        values = self.values
        wrong = any(self._wrong(name, problems) for name in ("seeds", "primitives", "evolution"))
        if dataset is not None and not wrong:
            found += seed_problems(values["seeds"], values["primitives"], dataset.features, values["evolution"])
        return dataset, found

    def finish(self, problems: Sequence[Problem]) -> Config:
        """The configuration, or a ConfigError with all problems in the order of reading."""
        placed = [*self.document.problems, *(self._placed(loc, text) for loc, text in problems)]
        if placed:
            raise ConfigError([f"{place}: {text}" for place, text in sorted(placed, key=lambda pair: pair[0])])
        data: DataSettings = self.values["data"]
        if data.path is not None:
            data = data.model_copy(update={"path": (self._base() / data.path).resolve()})
        return Config(**{**self.values, "data": data})

    def _placed(self, loc: Loc, message: str) -> tuple[Place, str]:
        place, key = self.document.place(loc), ".".join(map(str, loc))
        return place, f"{key}: {message}" if loc and place.source != f"--set {key}" else message

    def _wrong(self, name: str, problems: Sequence[Problem]) -> bool:
        reported = {loc[:1] for loc, _ in problems} | {loc[:1] for loc in self.document.unreadable}
        return name not in self.values or (name,) in reported

    def _base(self) -> Path:
        """What a relative data path is relative to; on the command line that is where the user stands."""
        return Path() if self.document.place(("data", "path")).override else self.folder
