"""Guesses for a search with a template: formulas of unknown functions, and values of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.errors import ShineError
from shine.base.typing import Floats
from shine.lang.forms.names import listed, value_text
from shine.lang.forms.tape import Tape, tape_from_tree
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.models.template_model import TemplateModel
from shine.search.templates.composition import Composition

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
        tree = parse(source, slot.primitives.features, slot.primitives.table)
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
