"""What must hold between the values of a configuration that are each right by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from shine.config.models import DataSettings
from shine.config.problems import Problem, unknown
from shine.data import Dataset
from shine.errors import DataError, UnsupportedSyntaxError
from shine.gp.complexity import CONSTANT_NAME
from shine.gp.constraints import Constraints
from shine.gp.settings import EvolutionSettings
from shine.gp.structure import depths
from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet, select
from shine.loading import generate, load_file, recipe_problems


def primitive_problems(primitives: Sequence[str]) -> Iterator[Problem]:
    """Names that are no primitives, or listed twice."""
    if not primitives:
        yield ("primitives",), "must not be empty; [add, sub, mul, div] is a start"
    for index, name in enumerate(primitives):
        if name not in STANDARD:
            yield ("primitives", index), unknown("primitive", name, sorted(STANDARD))
        elif name in primitives[:index]:
            yield ("primitives", index), f'"{name}" is listed twice'


def data_problems(data: DataSettings) -> Iterator[Problem]:
    """Keys that do not go together."""
    if (data.path is None) == (data.generate is None):
        given = "has both" if data.path is not None else "has neither"
        yield ("data",), f"needs exactly one of path and generate; {given}"
    elif data.path is not None and data.target is None:
        yield ("data",), "path needs a target: the heading of the column to explain"
    elif data.generate is not None:
        for key in ("target", "features", "weights"):
            if getattr(data, key) is not None:
                yield ("data", key), "belongs to path; generated data have their own under generate"
        for loc, message in recipe_problems(data.generate):
            yield ("data", "generate", *loc), message


def dataset_problems(data: DataSettings, base: Path) -> tuple[Dataset | None, list[Problem]]:
    """The data set, or what keeps it from being read."""
    try:
        if data.generate is not None:
            return generate(data.generate), []
        assert data.path is not None and data.target is not None
        return load_file(base / data.path, data.target, data.features, data.weights), []
    except DataError as error:
        loc = ("data", "path" if data.generate is None else "generate")
        return None, [(loc, line) for line in str(error).splitlines()]
    except MemoryError:
        return None, [(("data",), "the data do not fit into memory")]


def seed_problems(
    seeds: Sequence[str], primitives: Sequence[str], features: Sequence[str], evolution: EvolutionSettings
) -> Iterator[Problem]:
    """Formulas to start from that the search could not have made."""
    known = PrimitiveSet(select(STANDARD, primitives), tuple(features))
    for index, text in enumerate(seeds):
        try:
            individual = Population.from_trees([parse(text, features)], known)
        except UnsupportedSyntaxError as error:
            yield ("seeds", index), str(error)
            continue
        size = int(individual.sizes[0])
        if size > evolution.max_size:
            yield ("seeds", index), f"has {size} nodes; evolution.max_size allows {evolution.max_size}"
        elif (depth := int(depths(individual)[0])) > evolution.max_depth:
            yield ("seeds", index), f"has {depth} levels; evolution.max_depth allows {evolution.max_depth}"


def constraint_problems(
    constraints: Constraints, primitives: Sequence[str], features: Sequence[str], linear_scaling: bool
) -> Iterator[Problem]:
    """Constraints that do not fit the primitives, the features or the scaling."""
    for loc, message in constraints.problems(select(STANDARD, primitives), features, linear_scaling):
        yield ("constraints", *loc), message


def complexity_problems(
    evolution: EvolutionSettings, primitives: Sequence[str], features: Sequence[str]
) -> Iterator[Problem]:
    """Weights of what does not occur."""
    known = [CONSTANT_NAME, *features, *primitives]
    for name in evolution.complexity:
        if name not in known:
            yield ("evolution", "complexity", name), unknown("name", name, known)
