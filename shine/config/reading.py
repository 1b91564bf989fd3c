"""From a YAML file to a configuration, and to the job of running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shine.config.checks import guess_formulas, primitive_texts
from shine.config.document import read_document
from shine.config.models import Config
from shine.config.sections import Sections
from shine.data.dataset import Dataset
from shine.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Job:
    """A configuration and the data it names; graphs to start from and foreign functions are formulas in it, so that no
    run needs their files once it has begun."""

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
        Its paths are absolute.

    Raises
    ------
    ConfigError
        With all problems, each with its place.
    """
    document = read_document(Path(path), overrides)
    sections = Sections(document, Path(path).parent)
    return sections.finish(sections.problems())


def read_job(path: str | Path, overrides: Sequence[str] = ()) -> Job:
    """Read and validate a configuration and the data it names.

    Raises
    ------
    ConfigError
        With all problems of both, each with its place.
    """
    document = read_document(Path(path), overrides)
    sections = Sections(document, Path(path).parent)
    problems = sections.problems()
    dataset, more = sections.dataset(problems)
    config = sections.finish([*problems, *more])
    assert dataset is not None
    return Job(config, dataset)


def with_formulas(job: Job) -> Job:
    """A job with formulas in the place of graphs to start from and of foreign functions, as `read_job` makes it.

    Raises
    ------
    ConfigError
        If a graph or a formula does not fit the data, or a function cannot be a primitive.
    """
    seeds, config = job.config.seeds, job.config
    primitives, problems = primitive_texts(config.primitives, [Path()] * len(config.primitives))
    if not problems:
        here = [Path()] * len(seeds)
        formulas, problems = guess_formulas(seeds, here, primitives, job.dataset.features, config.evolution)
    if problems:
        raise ConfigError([f"{'.'.join(map(str, loc))}: {text}" for loc, text in problems])
    return Job(config.model_copy(update={"seeds": formulas, "primitives": primitives}), job.dataset)
