"""View of a running search with a template for observers, their input, and guesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from shine.base.errors import ShineError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.scores import Scores
from shine.formats.read.guesses import formula_tree
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, value_text
from shine.lang.forms.tape import Tape, tape_from_tree
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.evolution.observers import SearchView, Shown
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.models.front import pareto_front
from shine.search.models.template_model import TemplateModel
from shine.search.models.user_units import DIGITS
from shine.search.problem.names import TranslatedSettings
from shine.search.templates.composition import Composition
from shine.search.templates.law import Groups, law_of
from shine.search.view import Choose, Explained, within_limits


def template_view(
    dataset: Dataset,
    composition: Composition,
    groups: Groups | None,
    settings: TranslatedSettings,
    enough: float,
    headings: Mapping[str, str],
    choose: Choose,
    loss: Loss,
    noise: str,
) -> SearchView:
    """A search with a template as somebody who watches it sees it (see `shine.search.view.view_of`).

    Parameters
    ----------
    dataset : Dataset
        The given rows.
    composition : Composition
    groups : Groups, optional
    settings : TranslatedSettings
    enough : float
        Loss at which the front ends.
    headings : mapping of str to str
        Headings of the columns, by feature.
    choose : callable
    loss, noise : Loss, str
        By them, rows are weighted.
    """
    single = len(composition.template.outputs) == 1
    slots = composition.genome.slots
    first = slots[0] if slots else None

    def read(text: str) -> Population:
        return within_limits(
            guessed_individual(individual_parts(text, [slot.name for slot in slots]), composition), settings
        )

    explained = Explained(dataset, noise, loss) if single else None

    def shown(front: Population, scores: Scores) -> Shown:
        models = []
        for index, loss in enumerate(scores.losses.tolist()):
            law = law_of(composition, front, index, groups)
            output = 0 if single else None
            tree = law.composed()
            share = nan if explained is None else explained(tree)
            measures = loss, share, settings.evolution.complexity, headings, DIGITS
            models.append(TemplateModel(tree, *measures, noise=noise, law=law, output=output))
        found = pareto_front(models, enough)
        if not found:
            return Shown(())
        choice = choose(found)
        return Shown(found, choice.index, choice.reason)

    example = f"{first.name} = {first.primitives.features[0]}" if first else f"{composition.parameters[0].name} = 1.0"
    names = [f"{slot.name}({', '.join(slot.primitives.features)})" for slot in slots]
    names += [each.name for each in composition.parameters]
    hint = (
        f"One a line, such as {example}: {', '.join(names)}. What is left out is 1, or what its parameter starts from."
    )
    return SearchView(dataset, read, shown, lambda loss: loss, enough, example, hint, settings.seed, single)


def individual_parts(text: str, functions: Collection[str]) -> dict[str, str | float]:
    """Formulas of unknown functions and values of parameters, from lines such as ``f = a*b`` and ``k = 0.5``.

    A `ValueError` if a line has another form, or a name comes twice.
    """
    parts: dict[str, str | float] = {}
    for line in text.replace(";", "\n").splitlines():
        if not line.strip():
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not (name.isidentifier() and equals and value):
            raise ValueError(f"{line.strip()[:60]!r} is no line such as f = a*b or k = 0.5")
        if name in parts:
            raise ValueError(f"{name} is given twice")
        try:
            parts[name] = value if name in functions else float(value)
        except ValueError:
            raise ValueError(f"{name} is no unknown function; its value is a number, not {value[:60]!r}") from None
    if not parts:
        raise ValueError("nothing is given; write a line such as f = a*b")
    return parts


_FORM = "a mapping such as {'f': 'a*b', 'k': 0.5}, from unknown functions to formulas and from parameters to numbers"


def guessed(guesses: Sequence[Any], composition: Composition) -> Population | None:
    """The guesses as individuals; None without guesses.

    Parameters
    ----------
    guesses : sequence of mapping or TemplateModel
        Each from unknown functions to formulas and from parameters to numbers. Functions that it lacks are 1, and
        parameters have the values that they start from. Models, as those of an earlier search, are left out if they do
        not fit.
    composition : Composition

    Raises
    ------
    ValueError
        If a guess does not fit the template; the message says which.
    """
    if not guesses:
        return None
    made = []
    for position, guess in enumerate(guesses):
        try:
            made.append(guessed_individual(guess, composition))
        except (ShineError, TypeError, ValueError) as error:
            if not isinstance(guess, TemplateModel):
                raise ValueError(f"guesses[{position}]: {error}") from None
    return Population.concatenate(made) if made else None


def guessed_individual(guess: Any, composition: Composition) -> Population:
    """One guess as an individual (see `guessed`)."""
    tapes, numbers = _parts(guess, composition)
    genome = composition.genome
    formulas = [Population.from_tapes([tape], slot.primitives) for tape, slot in zip(tapes, genome.slots, strict=True)]
    return assembled(formulas, genome, numbers[None])


def _parts(guess: Any, composition: Composition) -> tuple[list[Tape], Floats]:
    if isinstance(guess, TemplateModel):
        guess = {**guess.law.functions, **guess.law.constants}
    if not isinstance(guess, Mapping):
        raise TypeError(f"with a template, a guess is {_FORM}; this one is {value_text(guess)}")
    known = [*(slot.name for slot in composition.genome.slots), *(each.name for each in composition.parameters)]
    fixed = {each.name for each in composition.template.parameters} - set(known)
    wrong = [name for name in guess if name not in known and name not in fixed]
    if wrong:
        raise ValueError(f"the template has no {value_text(wrong[0])}; it has {listed(known)}")
    tapes = []
    for slot in composition.genome.slots:
        source = guess.get(slot.name, "1")
        if not isinstance(source, str | Tree):
            raise TypeError(f"{slot.name} is a formula as text, not {value_text(source)}")
        table = {**STANDARD, **slot.primitives.table}
        tree = formula_tree(source, slot.primitives.features, table, slot.primitives.table)
        tape = tape_from_tree(tree, slot.primitives)
        if len(tape.codes) > slot.max_size:
            raise ValueError(f"{slot.name} has {len(tape.codes)} nodes, and max_size is {slot.max_size}")
        tapes.append(tape)
    numbers = composition.starts
    for parameter, offset, count in zip(composition.parameters, composition.offsets, composition.counts, strict=True):
        if parameter.name in guess:
            value = np.asarray(guess[parameter.name], np.float64)
            if value.shape not in ((), (count,)) or not np.isfinite(value).all():
                raise ValueError(f"{parameter.name} is a number, or {count} numbers, one for each group")
            numbers[offset : offset + count] = np.clip(value, *parameter.bounds)
    return tapes, numbers
