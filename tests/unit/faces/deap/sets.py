"""Primitive sets, populations and the fitness that DEAP computes, for the tests of `shine.deap`."""

from __future__ import annotations

import functools
import math
import operator
import random

import numpy as np
from deap import base, creator, gp, tools

import shine.deap


def protected_division(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def if_then_else(condition, yes, no):
    if condition:
        return yes
    else:
        return no


def any_sign():
    return random.randint(-1, 1)


def any_share():
    return random.random()


def created(name, kind, **attributes):
    """A class of DEAP's creator, which warns if the class exists already."""
    if not hasattr(creator, name):
        creator.create(name, kind, **attributes)
    return getattr(creator, name)


Smallest = created("TestedFitness", base.Fitness, weights=(-1.0,))
Individual = created("TestedTree", gp.PrimitiveTree, fitness=Smallest)
Several = created("TestedTrees", list, fitness=Smallest)


def arithmetic(arguments=1, functions=((math.sin, 1), (math.cos, 1))):
    """An untyped set of DEAP's usual functions and more; tests with it share one compiled machine."""
    pset = gp.PrimitiveSet("MAIN", arguments)
    usual = [(operator.add, 2), (operator.sub, 2), (operator.mul, 2), (operator.neg, 1), (protected_division, 2)]
    for function, arity in [*usual, *functions]:
        pset.addPrimitive(function, arity)
    pset.addEphemeralConstant("any_sign", any_sign)
    return pset


def typed():
    """A typed set of numbers and truth values, as in DEAP's example of spam filtering."""
    pset = gp.PrimitiveSetTyped("MAIN", [float, float, bool], float)
    for function in (operator.and_, operator.or_, operator.xor):
        pset.addPrimitive(function, [bool, bool], bool)
    pset.addPrimitive(operator.not_, [bool], bool)
    for function in (operator.add, operator.sub, operator.mul, protected_division):
        pset.addPrimitive(function, [float, float], float)
    for function in (operator.lt, operator.eq):
        pset.addPrimitive(function, [float, float], bool)
    pset.addPrimitive(if_then_else, [bool, float, float], float)
    pset.addEphemeralConstant("any_share", any_share, float)
    pset.addTerminal(False, bool)
    pset.addTerminal(True, bool)
    pset.addTerminal(math.pi, float, name="pi")
    pset.addTerminal(2.5, float)
    return pset


def evolving():
    """A main set and two sets of automatically defined functions, the first of which may call the second."""
    inner, outer, main = (gp.PrimitiveSet(name, arity) for name, arity in (("ADF1", 2), ("ADF0", 2), ("MAIN", 1)))
    for pset in (inner, outer, main):
        for function, arity in ((operator.add, 2), (operator.sub, 2), (operator.mul, 2), (math.sin, 1)):
            pset.addPrimitive(function, arity)
    outer.addADF(inner)
    main.addADF(outer)
    main.addADF(inner)
    main.addEphemeralConstant("any_sign", any_sign)
    main.renameArguments(ARG0="x")
    return main, outer, inner


def population(pset, count, seed, low=1, high=5, kind=Individual):
    """Random trees of one set."""
    random.seed(seed)
    return [kind(gp.genHalfAndHalf(pset, low, high)) for _ in range(count)]


def rows_of(X):
    """Rows of Python's own numbers, as in DEAP's scripts."""
    return np.asarray(X, dtype=float).tolist()


def mean_square(function, X, y):
    """The fitness in DEAP's example; None if a row raises, inf if the sum is not finite."""
    try:
        total = math.fsum((function(*row) - target) ** 2 for row, target in zip(rows_of(X), y.tolist(), strict=True))
    except (ArithmeticError, ValueError, TypeError):
        return None
    return total / len(y) if math.isfinite(total) else math.inf


def script(pset, X, y, evaluate=None):
    """A toolbox as in DEAP's example of symbolic regression."""
    toolbox = base.Toolbox()
    toolbox.register("expression", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("individual", tools.initIterate, Individual, toolbox.expression)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("compile", gp.compile, pset=pset)

    def own(individual, X, y):
        return (mean_square(toolbox.compile(individual), X, y),)

    toolbox.register("evaluate", evaluate or own, **({} if evaluate else {"X": X, "y": y}))
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("mate", gp.cxOnePoint)
    toolbox.register("subtree", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", gp.mutUniform, expr=toolbox.subtree, pset=pset)
    for variation in ("mate", "mutate"):
        toolbox.decorate(variation, gp.staticLimit(key=operator.attrgetter("height"), max_value=4))
    return toolbox


compiled = functools.partial(shine.deap.CompiledEvaluator, tier="machine")
