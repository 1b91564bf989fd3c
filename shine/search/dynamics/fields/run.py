"""From fields to partial differential equations: smoothing, a search for each field, the choice by the weak form."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from shine.base.stages import stage
from shine.base.typing import Codes, Floats
from shine.compiler.arrays import COMPILED
from shine.compiler.tapes import Subtrees
from shine.data.datasets.dataset import Dataset
from shine.data.fields import Field
from shine.evaluate.rollouts.rates import with_named_constants
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.forms.tape import functions_of, tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.dynamics.fields.model import FieldModel
from shine.search.dynamics.fields.mollifying import features_of, likeliest_widths, mollified
from shine.search.dynamics.fields.weak import ACCURACY, WeakFit, WeakForm, kept_back_loss, weak_fit
from shine.search.dynamics.joining import Candidate, best_first
from shine.search.dynamics.known_parts import Part
from shine.search.dynamics.result import NEAR, DynamicsResult, distinct, front_of
from shine.search.dynamics.rows import LEAST_EVIDENCE, RateRows, RateSearches
from shine.search.dynamics.session import Session
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.system import digits_of
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model
from shine.search.models.result import Result

NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0}
"""Operations, and the operand that changes nothing; the second one of a difference."""


def without_an_operand(tree: Tree) -> list[Tree]:
    """The formulas that have an operand less of a sum, a difference or a product, the largest left out first.

    A negative factor becomes -1.
    """
    functions = select({**STANDARD, **tree.functions}, sorted(functions_of(tree)))
    population = population_of([tree], PrimitiveSet(functions, tree.parameters))
    tapes = (tree_from_tape(*each, population.primitives) for each in _without_an_operand(population))
    # Sorted terms are shorter, or else expanded.
    forms = ([simplify(each, rounding=rounding, functions=COMPILED) for rounding in (True, False)] for each in tapes)
    found = [min(each, key=lambda form: form.size) for each in forms]
    return [each for each in dict.fromkeys(found) if each.size < tree.size]


def _without_an_operand(population: Population) -> Iterator[tuple[Codes, Floats]]:
    """Tapes of a formula with an operand of a sum, a difference or a product left out, the largest first."""
    codes, values = population.codes[0], population.values[0]
    names = {code: name for name, code in population.primitives.function_codes.items()}
    sizes, count = Subtrees.of(population).sizes[0].tolist(), int(population.sizes[0])
    found: list[tuple[int, int, float]] = []
    for root in range(count):
        neutral = NEUTRAL.get(names.get(int(codes[root]), ""))
        if neutral is not None:
            second = root - 1
            first = second - sizes[second]
            found.append((sizes[second], second, neutral))
            found.append((sizes[first], first, neutral))
    for size, end, neutral in sorted(found, key=lambda each: -each[0]):
        neutral = math.copysign(neutral, values[end]) if codes[end] == CONSTANT and neutral else neutral
        if codes[end] != CONSTANT or values[end] != neutral:
            begin = end + 1 - size
            yield (
                np.concatenate([codes[:begin], [CONSTANT], codes[end + 1 : count]]),
                np.concatenate([values[:begin], [neutral], values[end + 1 : count]]),
            )


SEARCHES, JUDGED = 0.75, 0.97
"""Shares of the seconds at which the searches end, and the fits of their formulas in the weak form."""

MISSED, TINY = 0.5, 1e-300
"""Error of the weak form on times kept back above which nothing was found, as a share of the variance of all, and of
what a constant leaves there, which is at least `TINY`."""


@np.errstate(all="ignore")
def find_fields(
    field: Field,
    settings: DynamicsSettings,
    observers: Observers | Session = NOBODY,
) -> DynamicsResult:
    """Find the partial differential equations of some fields.

    Parameters
    ----------
    field : Field
    settings : DynamicsSettings
    observers : Observers or Session
        Observers get the reports of the searches for single rates.

    Returns
    -------
    DynamicsResult
        Ctrl-C ends the search early; the result has what was found so far.

    Raises
    ------
    UnsupportedSyntaxError, ValueError
        If a function or a setting is invalid.
    """
    session, order = Session.of(observers), settings.derivatives
    with stage("smoothing the fields"):
        widths = likeliest_widths(field, order)
        smooth = mollified(field, widths, order)
        form = WeakForm.of(field, widths, order)
    rates, columns = smooth.rows()
    independent = smooth.rates[0].size / math.prod([2.0 * widths[0], *(2.0 * widths[1] for _ in field.axes)])
    evidence = min(max(independent, LEAST_EVIDENCE), float(columns.shape[1]))
    datasets = [Dataset.from_arrays(columns.T, own, features=features_of(field, order)) for own in rates]
    rows = [(RateRows(dataset, evidence, 0.0, 0.0),) for dataset in datasets]
    sought, seconds = [Part((state,)) for state in field.states], settings.search.stop.seconds
    searches = RateSearches(field.states, sought, rows, settings.search, ({}, {}), session, "_t")
    searches.first(math.inf if seconds is None else session.origin + SEARCHES * seconds)
    results, stopped_by = searches.results, searches.stopped_by
    with stage("judging by the weak form"):
        until = math.inf if seconds is None else session.origin + JUDGED * seconds

        def fitted() -> list[list[tuple[Candidate, WeakFit]]]:
            return [_fitted(each, form, number, lambda: session.clock() > until) for number, each in enumerate(results)]

        try:
            candidates = fitted()
        except KeyboardInterrupt:
            until, stopped_by = -math.inf, "interrupted"
            candidates = fitted()
        chosen = [_confirmed(own, form, number) for number, own in enumerate(candidates)]
        # Most systems of several fields that are put together.
        joined = list(islice(best_first([[each[0] for each in own] for own in candidates]), 60))
        fits = {id(candidate): fit for own in candidates for candidate, fit in own}
        best = tuple(own[0] for own in chosen)
        models = {
            tuple(map(id, each)): _model(each, [fits[id(one)] for one in each], field, form, settings, widths)
            for each in (best, *joined)
        }
    system = models[tuple(map(id, best))]
    front = front_of([system, *(each for each in distinct(models.values()) if each.lines() != system.lines())], system)
    kept = [each[1] / variance for each, variance in zip(chosen, system.variances.tolist(), strict=True)]
    error, others = max(kept), [each.nats for each in models.values() if each is not system]
    share = f"{error:.2g} of the variance" if math.isfinite(error) else "not known: the field is too short"
    constant = Tree(tuple(features_of(field, order)), ast.Constant(1.0))
    by_constants = [kept_back_loss(constant, form, number) for number in range(len(chosen))]
    missed = max(loss / max(other, TINY) for (_, loss), other in zip(chosen, by_constants, strict=True))
    found = not (error < math.inf and max(error, missed) > MISSED)
    why = "the only system" if not others else _reason(system.nats, min(others))
    told = f"the error of the weak form on the last quarter of the times, kept back, is {share}"
    helps = "What may help: smaller steps, further fields, more seconds"
    doubt = f"{told}: noise, or rates that do not follow from the fields and their derivatives. {helps}"
    return DynamicsResult(
        front=replace(front, reason=f"{why}; {told}" if found else f"nothing was found: {doubt}", found=found),
        equations={state: result.front for state, result in zip(field.states, results, strict=True)},
        seconds=session.seconds,
        seed=settings.search.seed,
        stopped_by=stopped_by,
        systems=len(models),
        judged="judged by the weak form",
    )


def _reason(nats: float, others: float) -> str:
    """Why a system is recommended, given the least nats of the others."""
    if nats > others:
        return "the least error on patches kept back"
    return f"the shortest description of the field; the next needs {others - nats:.1f} nats more"


def _fitted(result: Result, form: WeakForm, number: int, late: Callable[[], bool]) -> list[tuple[Candidate, WeakFit]]:
    """The formulas of a front with constants fitted in the weak form, the shortest description first.

    The search weighs terms by noisy derivatives, and keeps such as no average over a patch needs: those that describe
    the field most shortly are tried without each of their terms and factors.
    """
    length = form.description(number)
    found: list[tuple[Candidate, WeakFit]] = []
    known: dict[str, Candidate] = {}

    def fitted(model: Model) -> Candidate:
        # Formulas that lose the same operand in another order of steps are one.
        same = with_named_constants(model.tree)[0].readable
        if same in known and math.isfinite(known[same].nats):
            return known[same]
        fit = weak_fit(model.tree, form, number)
        size, constants = np.array([fit.tree.size]), np.array([len(fit.constants)])
        nats = float(length.final(np.array([max(fit.loss, form.least_loss(number))]), size, constants)[0])
        errors = np.maximum(np.sqrt(np.diagonal(fit.covariance)), ACCURACY * np.abs(fit.constants))
        digits = digits_of(fit.constants, errors)
        own = replace(model, tree=fit.tree, digits=digits, basis=None, known=None, sums=None)
        known[same] = Candidate(own, nats)
        found.append((known[same], fit))
        return known[same]

    def by_nats() -> list[tuple[Candidate, WeakFit]]:
        usable = [each for each in found if math.isfinite(each[0].nats)] or found[:1]
        usable.sort(key=lambda each: (each[0].nats, each[0].model.complexity))
        forms: dict[str, tuple[Candidate, WeakFit]] = {}
        for each in usable:
            forms.setdefault(with_named_constants(each[0].model.tree)[0].readable, each)
        return list(forms.values())

    for model in sorted(result.front, key=lambda model: model is not result.best):
        if not (found and late()):
            fitted(model)
    # Formulas, of those that describe a field most shortly, that are tried with an operand less.
    for candidate, _ in by_nats()[:3]:
        best: Candidate | None = candidate
        while best is not None and not late():
            shorter = [fitted(replace(best.model, tree=tree)) for tree in without_an_operand(best.model.tree)]
            better = [each for each in shorter if each.nats < best.nats]
            best = min(better, key=lambda each: each.nats, default=None)
    return by_nats()


def _confirmed(candidates: Sequence[tuple[Candidate, WeakFit]], form: WeakForm, number: int) -> tuple[Candidate, float]:
    """The equation to recommend, and its error on the patches kept back."""
    least = candidates[0][0].nats
    # Share of the shortest description's error on patches kept back below which an equation of nearly the same length
    # replaces it, and most that are compared
    near = [each for each, _ in candidates if each.nats <= least + NEAR][:8] or [candidates[0][0]]
    losses = [max(kept_back_loss(each.model.tree, form, number), form.least_loss(number)) for each in near]
    best = int(np.argmin(losses))
    best = best if losses[best] < 0.5 * losses[0] else 0
    return near[best], losses[best]


def _model(
    joined: Sequence[Candidate],
    fits: Sequence[WeakFit],
    field: Field,
    form: WeakForm,
    settings: DynamicsSettings,
    widths: tuple[float, float],
) -> FieldModel:
    """The system of some equations."""
    losses = np.array([fit.loss for fit in fits])
    counts = [len(fit.constants) for fit in fits]
    covariance = np.zeros((sum(counts), sum(counts)))
    for first, fit in zip(np.cumsum([0, *counts[:-1]]).tolist(), fits, strict=True):
        part = slice(first, first + len(fit.constants))
        covariance[part, part] = fit.covariance
    variances: Floats = np.array([form.variance(number) for number in range(len(form.rates))])
    return FieldModel(
        equations=tuple(each.model for each in joined),
        states=field.states,
        controls=(),
        time=None,
        losses=losses,
        variances=variances,
        starts=np.zeros((0, len(field.states))),
        noise=np.sqrt(losses),
        covariance=covariance,
        nats=sum(each.nats for each in joined),
        headings=field.states,
        steps=field.steps,
        derivatives=settings.derivatives,
        periodic=field.periodic,
        widths=widths,
    )
