"""Checks between values of a configuration, each of which is valid by itself.

pydantic checks single values. These checks need several sections, the data, or the files that the configuration names.
As validators of pydantic's models they would run only if every value is valid, and report one problem at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, GraphImportError, UnsupportedSyntaxError
from shine.compiler.tapes import depths
from shine.data.columns.headings import names_of_headings
from shine.data.columns.kinds import recognized
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.folds import fold_problem, kept_back_by
from shine.data.datasets.preparation import Reading
from shine.data.fields import Field
from shine.data.loading import Loaded, Roles, generate, load, recipe_problems
from shine.data.opening import opened
from shine.data.trajectories import Trajectories
from shine.data.trajectory_tables import TrajectoryColumns, field_of_file, trajectories_of_file
from shine.evaluate.losses import loss_for, loss_from, loss_text
from shine.evaluate.losses.reading import predicts_classes
from shine.evaluate.losses.rows import data_for_loss
from shine.faces.config.models import (
    DataSettings,
    DynamicsSection,
    GraphGuess,
    LlvmFunction,
    TemplateSettings,
    template_of,
)
from shine.faces.config.problems import Problem, shown, unknown
from shine.faces.keywords import read_program
from shine.formats.read.guesses import GraphGuessError, formula_tree, graph_tree
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import similar
from shine.lang.forms.primitives import PrimitiveSet, near_primitive, select
from shine.lang.forms.printing import definition_source
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table
from shine.search.constraints.constraints import Constraints
from shine.search.dynamics.forms import known_units
from shine.search.dynamics.known_parts import known_parts
from shine.search.dynamics.settings import form_problem, unfit_for_dynamics
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.evolution.settings import EvolutionSettings
from shine.search.finishing.kept_rows import kept_back
from shine.search.problem.names import any_name, column_name, constraints_in_formulas, renamed, translated
from shine.search.problem.settings import FitnessSettings, SearchSettings

ROLES = ("target", "features", "weights", "sigma", "groups", "times", "loss_columns")
"""Keys of `data` that give columns of a table their roles."""


def primitive_texts(
    primitives: Sequence[str | LlvmFunction], bases: Sequence[Path]
) -> tuple[tuple[str, ...], list[Problem]]:
    """Primitives as text, each a name or a definition in the language, and their problems; relative paths begin at
    the folders `bases`."""
    texts: list[str] = []
    problems: list[Problem] = []
    if not primitives:
        problems.append((("primitives",), "must not be empty; [add, sub, mul, div] is a start"))
    names: list[str] = []
    words: list[str] = []
    for index, (given, base) in enumerate(zip(primitives, bases, strict=True)):
        try:
            text = given if isinstance(given, str) else _lifted_text(given, base)
            table, known = primitive_table([*words, text])
        except (UnsupportedSyntaxError, GraphImportError, ValueError) as error:
            problems.append((("primitives", index), str(error)))
            continue
        if len(known) == len(names):
            continue  # another word for one of them: ^ and **
        name = known[-1]
        if name not in table:
            near = near_primitive(name, STANDARD)
            problems.append((("primitives", index), unknown("primitive", name, sorted(STANDARD), near)))
        elif name in names:
            problems.append((("primitives", index), f"{shown(name)} is listed twice"))
        else:
            names.append(name)
            words.append(text)
            texts.append(name if name in STANDARD else text)
    return tuple(texts), problems


def _lifted_text(given: LlvmFunction, base: Path) -> str:
    """The definition of a function that was compiled to LLVM IR."""
    from shine.formats.read.llvmir import primitive_from_llvm  # LLVM takes long to load

    primitive = primitive_from_llvm(base / given.llvm, given.function, given.name)
    tree = primitive.definition
    assert tree is not None
    return definition_source(primitive.name, tree.parameters, tree.assignments, tree.result)


def dynamics_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of settings that a search for equations of motion does not have."""
    data: DataSettings = sections["data"]
    dynamics: DynamicsSection = sections["dynamics"] or DynamicsSection(time="")
    if data.path is None:
        yield ("data",), "dynamics needs a path: a table of states at times"
    for key in (*ROLES, "generate", "fold", "stream"):
        if getattr(data, key):
            yield ("data", key), "is not for dynamics, which names its columns itself"
    if data.missing != "error" or data.categories != "error":
        yield ("data",), "missing and categories are not for dynamics: readings may be missing, and texts label runs"
    for key in ("guesses", "template"):
        if sections[key]:
            yield (key,), "is not for dynamics"
    for key in unfit_for_dynamics(sections["fitness"]):
        yield ("fitness", key), "is not for dynamics, which estimates it from the readings"
    if sections["constraints"].units:
        yield ("constraints", "units"), "is for one target; write dynamics.units"
    if (dynamics.kind == "pde") != bool(dynamics.space):
        yield ("dynamics", "space"), "names the coordinates of fields, which kind: pde needs, and no other kind has"
    for key in ("run", "controls", "template", "conserve") if dynamics.kind == "pde" else ():
        if getattr(dynamics, key):
            yield ("dynamics", key), "is not for fields; leave it out"
    if dynamics.kind == "pde" and not dynamics.autonomous:
        yield ("dynamics", "autonomous"), "rates of fields do not depend on the time; leave it out"
    if dynamics.units and sections["constraints"].dimensionless_constants and sections["fitness"].linear_scaling:
        message = "does not go with linear scaling, whose constants have units; set fitness.linear_scaling to false"
        yield ("constraints", "dimensionless_constants"), message
    for key in ("groups", "shrinkage", "functions"):
        if getattr(dynamics.template, key, None):
            yield ("dynamics", "template", key), "is not for dynamics, whose constants depend on the run alone: k[run]"
    if problem := form_problem(dynamics):
        yield ("dynamics",), problem
    elif dynamics.template and dynamics.states:
        try:
            known_parts(dynamics.known["formula"], names_of_headings(dynamics.states), dynamics.kind, dynamics.order)
        except UnsupportedSyntaxError as error:
            yield ("dynamics", "template"), str(error)


def data_problems(data: DataSettings) -> Iterator[Problem]:
    """Problems of keys that exclude or need each other."""
    if data.fold is not None and (problem := fold_problem(data.fold)):
        yield ("data", "fold"), problem
    if (data.path is None) == (data.generate is None):
        given = "has both" if data.path is not None else "has neither"
        yield ("data",), f"needs exactly one of path and generate; {given}"
    elif data.path is not None and data.target is None:
        yield ("data",), "path needs a target: the heading of the column to explain"
    elif data.generate is not None:
        for key in ROLES:
            if getattr(data, key):
                yield ("data", key), "belongs to path; generated data have their own under generate"
        for field in (field for field in fields(Reading) if field.name in DataSettings.model_fields):
            if getattr(data, field.name) != field.default:
                yield ("data", field.name), "belongs to path; generated data are numbers"
        for loc, message in recipe_problems(data.generate):
            yield ("data", "generate", *loc), message


def column_problems(data: DataSettings, dynamics: DynamicsSection | None, base: Path) -> list[Problem]:
    """Problems of the file and the headings of columns, where other keys are wrong."""
    if data.path is None:
        return []
    wanted = [data.target, *data.other_columns, *(data.features or ())]
    if dynamics is not None:
        wanted = [dynamics.time, *dynamics.space, dynamics.run, *dynamics.controls, *(dynamics.states or ())]
    try:
        opened(base / data.path, data.reading).source.indices(filter(None, wanted))
    except DataError as error:
        return [(("data", "path"), line) for line in str(error).splitlines()]
    return []


def named_columns(data: DataSettings, base: Path) -> Dataset | None:
    """A data set that has only the names of features, for checks of formulas; None if names depend on what is wrong."""
    if data.path is None:
        return None
    try:
        found = opened(base / data.path, data.reading)
        others = {data.target, *filter(None, data.other_columns)}
        if found.stream is not None or (data.features is None and others - {*found.source.headings}):
            return None
        own = found.source.headings
        headings = [each for each in own if each not in others]
        if data.features:  # those that are meant
            headings = [each if each in own else similar(each, own) or each for each in data.features]
        if not headings:  # the loaded data say so
            return None
        known = [place for place, each in enumerate(own) if each in headings]
        kinds = {recognized(raw, ".", data.reading.marks).kind for raw in found.source.read(known)}
        if kinds - {"number", "truth"}:
            return None
        one = np.zeros((1, len(headings)))
        return Dataset.from_arrays(one, one[:, 0], features=names_of_headings(headings), headings=headings)
    except DataError:
        return None


def trajectory_problems(
    data: DataSettings, dynamics: DynamicsSection, base: Path
) -> tuple[Trajectories | Field | None, list[Problem]]:
    """The trajectories or fields, or the problems that keep them from being read."""
    assert data.path is not None
    try:
        columns = TrajectoryColumns(dynamics.time, dynamics.states, dynamics.run, dynamics.controls, dynamics.space)
        if dynamics.kind == "pde":
            return field_of_file(base / data.path, columns, data.reading, dynamics.periodic), []
        found = trajectories_of_file(base / data.path, columns, data.reading, dynamics.kind == "ode")
        try:
            known_units(found, found.states, dynamics.units)
        except ValueError as error:
            return None, [(("dynamics", "units"), str(error).removeprefix("units: "))]
        return found, []
    except DataError as error:
        return None, [(("data", "path"), line) for line in str(error).splitlines()]
    except MemoryError:
        return None, [(("data",), "the data do not fit into memory")]


def loading_problems(
    data: DataSettings, base: Path, numbered: Sequence[str] = ()
) -> tuple[Loaded | None, list[Problem]]:
    """The data, or the problems that keep them from being read; columns to be numbered may hold texts."""
    try:
        loaded = _loaded(data, base, numbered)
        if data.fold is not None:
            learned = np.flatnonzero(~kept_back_by(loaded.dataset, data.fold))
            loaded = replace(loaded, dataset=loaded.dataset.take(learned))
        return loaded, []
    except DataError as error:
        loc = ("data", "path" if data.generate is None else "generate")
        return None, [(loc, line) for line in str(error).splitlines()]
    except MemoryError:
        return None, [(("data",), "the data do not fit into memory")]


def _loaded(data: DataSettings, base: Path, numbered: Sequence[str]) -> Loaded:
    if data.generate is not None:
        return Loaded(generate(data.generate))
    assert data.path is not None and data.target is not None
    others = Roles(data.weights, data.sigma, data.groups, data.times, data.loss_columns)
    return load(base / data.path, data.target, data.features, others, replace(data.reading, numbered=tuple(numbered)))


def loss_problems(fitness: FitnessSettings, dataset: Dataset | None = None) -> Iterator[Problem]:
    """Problems of the loss, by itself or with the data."""
    try:
        if dataset is None:
            loss_text(fitness.loss)
        else:
            loss = loss_for(fitness.loss, dataset)
            data_for_loss(loss, dataset, fitness.noise)
    except (UnsupportedSyntaxError, DataError, ValueError) as error:
        yield ("fitness", "loss"), str(error)


def guess_formulas(
    guesses: Sequence[str | GraphGuess],
    bases: Sequence[Path],
    primitives: Sequence[str],
    features: Sequence[str],
    evolution: EvolutionSettings,
) -> tuple[tuple[str, ...], list[Problem]]:
    """Guesses as text, graphs too, and their problems: a search accepts only guesses that it could make itself.
    Relative paths begin at the folders `bases`."""
    table, names = primitive_table(primitives)
    known = PrimitiveSet(select(table, names), tuple(features))
    formulas: list[str] = []
    problems: list[Problem] = []
    for index, (guess, base) in enumerate(zip(guesses, bases, strict=True)):
        try:
            tree = (
                formula_tree(guess, features, table, names)
                if isinstance(guess, str)
                else _graph_tree(guess, base, features, names)
            )
            individual = Population.from_trees([tree], known)
        except (UnsupportedSyntaxError, GraphImportError) as error:
            keys = error.keys if isinstance(error, GraphGuessError) else ()
            problems.append((("guesses", index, *keys), str(error)))
            continue
        size = int(individual.sizes[0])
        problem = None
        if size > evolution.max_size:
            problem = f"has {size} nodes; evolution.max_size allows {evolution.max_size}"
        elif (depth := int(depths(individual)[0])) > evolution.max_depth:
            problem = f"has {depth} levels; evolution.max_depth allows {evolution.max_depth}"
        if problem is not None:
            problems.append((("guesses", index), problem))
        formulas.append(guess if isinstance(guess, str) else str(tree))
    return tuple(formulas), problems


def _graph_tree(guess: GraphGuess, base: Path, features: Sequence[str], primitives: Sequence[str]) -> Tree:
    program = read_program(base / guess.graph, guess.output)
    return graph_tree(program, features, primitives, guess.output, guess.features)


def constraint_problems(
    constraints: Constraints, primitives: Sequence[str], dataset: Dataset, fitness: FitnessSettings
) -> Iterator[Problem]:
    """Problems of constraints that do not fit the primitives, the features or the scaling."""
    table, names = primitive_table(primitives)
    try:
        own = constraints_in_formulas(constraints, dataset)
    except ValueError as error:
        yield ("constraints",), str(error)
        return
    # Problems have their place in the file, where columns and functions may have other names.
    given = {name(word): word for word in _words(constraints) for name in (column_name(dataset), any_name(dataset))}
    of_classes = predicts_classes(loss_from(fitness.loss))
    for loc, message in own.problems(select(table, names), dataset.features, fitness.linear_scaling, of_classes):
        yield ("constraints", *(given.get(key, key) for key in loc)), message


def _words(constraints: Constraints) -> Iterator[str]:
    """The names of columns and functions in constraints, as they were given."""
    yield from (
        *constraints.limits,
        *constraints.nesting,
        *constraints.arguments,
        *constraints.monotonic,
        *constraints.units,
    )
    for inner in constraints.nesting.values():
        yield from inner


def validation_problems(fitness: FitnessSettings, dataset: Dataset, seed: int) -> Iterator[Problem]:
    """Problems of keeping rows of the data back."""
    try:
        kept_back(dataset, fitness.validation, fitness.validation_fraction, seed)
    except DataError as error:
        yield ("fitness", "validation"), str(error)


def complexity_problems(evolution: EvolutionSettings, primitives: Sequence[str], dataset: Dataset) -> Iterator[Problem]:
    """Problems of complexities of unknown names."""
    known = dict.fromkeys([CONSTANT_NAME, *dataset.features, *primitive_table(primitives)[1]])
    name = any_name(dataset)
    for word in evolution.complexity:
        if name(word) not in known:
            yield ("evolution", "complexity", word), unknown("name", word, list(known))
    try:
        renamed(evolution.complexity, name, "complexity")
    except ValueError as error:
        yield ("evolution", "complexity"), str(error)


def template_problems(given: str | TemplateSettings | None) -> Iterator[Problem]:
    """Problems of a template by itself."""
    try:
        template_of(given)
    except (UnsupportedSyntaxError, TypeError, ValueError) as error:
        yield ("template",), str(error)


def search_problems(dataset: Dataset, settings: SearchSettings) -> Iterator[Problem]:
    """Problems of a template with its data and with the other settings."""
    from shine.search.kinds.template.problem import prepared_template  # slow to import

    assert settings.template is not None
    if settings.guesses:
        yield ("guesses",), "with a template, guesses are mappings, which only Python takes"
    if len(settings.template.outputs) > 1:
        yield ("template",), "has several outputs, which need several targets: call shine.evolve in Python"
    try:
        prepared_template(dataset, translated(settings, dataset))
    except (UnsupportedSyntaxError, DataError, TypeError, ValueError) as error:
        yield ("template",), str(error)
