"""A YAML file -> a configuration, and the job of running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shine.base.errors import ConfigError
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.preparation import Preparation
from shine.faces.config.checks import guess_formulas, primitive_texts
from shine.faces.config.document import read_document
from shine.faces.config.models import Config
from shine.faces.config.sections import Sections


@dataclass(frozen=True, eq=False)
class Job:
    """A configuration and its data. Graphs and foreign functions have become formulas, so their files are not needed
    any more."""

    config: Config
    dataset: Dataset
    preparation: Preparation | None = None
    """How the data came from their file, to repeat it for new files; None if they hold nothing but numbers."""
    notes: tuple[str, ...] = ()
    """What a user should know about the data."""


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
    sections = Sections(read_document(Path(path), overrides), Path(path).parent)
    problems = sections.problems()
    loaded, more = sections.loaded(problems)
    config = sections.finish([*problems, *more])
    assert loaded is not None
    return Job(config, loaded.dataset, loaded.preparation, loaded.notes)


def with_formulas(job: Job) -> Job:
    """A job whose graphs and foreign functions have become formulas, as in the jobs of `read_job`.

    Raises
    ------
    ConfigError
        If a guess does not fit the data, or a function cannot be a primitive.
    """
    config = job.config
    primitives, problems = primitive_texts(config.primitives, [Path()] * len(config.primitives))
    if not problems:
        here = [Path()] * len(config.guesses)
        formulas, problems = guess_formulas(config.guesses, here, primitives, job.dataset.features, config.evolution)
    if problems:
        raise ConfigError([f"{'.'.join(map(str, loc))}: {text}" for loc, text in problems])
    return replace(job, config=config.model_copy(update={"guesses": formulas, "primitives": primitives}))
