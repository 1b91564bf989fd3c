"""DEAP's primitive sets as Shine's: the code of each node's name on a tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import MissingExtraError, UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.python.expressions import described, number_of
from shine.lang.python.functions import Functions
from shine.lang.python.known import BOOLEAN


class Codes(dict[str, int]):
    """Code of each node by its name; a name in no set belongs to a constant, whose value is in its node."""

    def __missing__(self, name: str) -> int:
        return CONSTANT


@dataclass(frozen=True, eq=False)
class Names:
    """The meaning of the names in the trees of one primitive set.

    Parameters
    ----------
    codes : Codes
        Codes of functions and, in the main set, of features; ``-1, -2, ...`` for the named constants.
    arguments : mapping of str to int
        Position of each argument of an automatically defined function; empty in the main set.
    definitions : mapping of str to int
        Position of the set of each automatically defined function that may be called here.
    """

    codes: Codes
    arguments: Mapping[str, int]
    definitions: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """One or more of DEAP's primitive sets, translated.

    Parameters
    ----------
    primitives : PrimitiveSet
    names : tuple of Names
        One for each set, the main set first.
    constants : ndarray of shape (n_constants,), float64
        The named constants.
    """

    primitives: PrimitiveSet
    names: tuple[Names, ...]
    constants: Floats

    @property
    def evolves_functions(self) -> bool:
        """Whether an individual is a list of trees, because it has automatically defined functions."""
        return len(self.names) > 1


def as_sets(pset: Any) -> tuple[Any, ...]:
    """One primitive set, or several as `gp.compileADF` takes them, as a tuple; a `TypeError` if it is neither."""
    sets = (pset,) if isinstance(pset, gp.PrimitiveSetTyped) else tuple(pset) if isinstance(pset, Sequence) else ()
    if not sets or not all(isinstance(each, gp.PrimitiveSetTyped) for each in sets):
        raise TypeError(f"pset is a primitive set of DEAP, or a sequence of them, not {type(pset).__name__}")
    return sets


def vocabulary_of(pset: Any, sources: Mapping[str, str] | None = None) -> Vocabulary:
    """Translate primitive sets.

    Parameters
    ----------
    pset : deap.gp.PrimitiveSetTyped, or sequence of them
        The main set first, as `gp.compileADF` takes them.
    sources : mapping of str to str, optional
        Texts of the definitions of functions that have no file, by their name or that of their primitive.

    Raises
    ------
    UnsupportedSyntaxError
        Naming every primitive and terminal that cannot be compiled, each with the reason.
    TypeError
        If `pset` is not a primitive set, or a sequence of them; if `sources` is no mapping of names to texts.
    ValueError
        If `sources` has a name that no function of the sets has.
    """
    sets = as_sets(pset)
    _check_sources(sources)
    functions, problems, constants = Functions(sources=sources), list[str](), list[float]()
    meanings = [_meanings(each, sets[position + 1 :], functions, problems) for position, each in enumerate(sets)]
    if problems:
        raise UnsupportedSyntaxError("\n".join(dict.fromkeys(problems)))
    if functions.unused:
        unused = ", ".join(map(repr, sorted(functions.unused)))
        raise ValueError(f"sources has {unused}, which is the name of no own function in the primitive sets")
    used = dict.fromkeys(name for meaning in meanings for name in meaning.values())
    features = tuple(str(argument) for argument in sets[0].arguments)
    primitives = PrimitiveSet(tuple(functions.table[name] for name in used), features)
    names = []
    for position, (each, meaning) in enumerate(zip(sets, meanings, strict=True)):
        codes = Codes({name: primitives.function_codes[function] for name, function in meaning.items()})
        for name, value in _named_constants(each).items():
            constants.append(value)
            codes[name] = -len(constants)
        # A renamed argument keeps its name in the nodes; only the value they are printed with changes.
        arguments = {each.mapping[argument].name: i for i, argument in enumerate(each.arguments)}
        if position == 0:
            codes.update({name: 1 + i for name, i in arguments.items()})
        definitions = {other.name: i for i, other in enumerate(sets) if i > position}
        names.append(Names(codes, arguments if position else {}, definitions))
    return Vocabulary(primitives, tuple(names), np.array(constants))


def _check_sources(sources: Any) -> None:
    texts = dict(sources) if isinstance(sources, Mapping) else {} if sources is None else {"": None}
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in texts.items()):
        raise TypeError("sources maps names of functions to texts: sources={'name': 'def name(x): return x*x'}")


def _meanings(pset: Any, later: Sequence[Any], functions: Functions, problems: list[str]) -> dict[str, str]:
    """Shine's name of each primitive of a set; a primitive that cannot be compiled adds to the problems."""
    evolving = {each.name for each in later}
    meanings: dict[str, str] = {}
    for name, node in pset.mapping.items():
        try:
            if isinstance(node, gp.Primitive):
                if name not in evolving:
                    meanings[name] = _meaning(pset, node, functions)
            elif isinstance(node, gp.Terminal) and name not in pset.arguments:
                value = pset.context[name] if _is_named_constant(pset, name) else node.value
                if number_of(value) is None:
                    problem = f"it is {described(value)}, not a number"
                    problems.append(f"terminal {name!r} of primitive set {pset.name!r} cannot be compiled: {problem}")
        except UnsupportedSyntaxError as error:
            problems.append(f"primitive {name!r} of primitive set {pset.name!r} cannot be compiled: {error}")
    return meanings


def _meaning(pset: Any, node: Any, functions: Functions) -> str:
    if node.name not in pset.context:
        raise UnsupportedSyntaxError("it evolves with the individuals; give its primitive set too, after the main one")
    name = functions.primitive(pset.context[node.name], node.arity, node.name)
    return BOOLEAN[name] if name in BOOLEAN and all(kind is bool for kind in node.args) else name


def _is_named_constant(pset: Any, name: str) -> bool:
    # True and False are named as well.
    return isinstance(pset.mapping[name], gp.Terminal) and name in pset.context


def _named_constants(pset: Any) -> dict[str, float]:
    values = {name: number_of(pset.context[name]) for name in pset.mapping if _is_named_constant(pset, name)}
    return {name: value for name, value in values.items() if value is not None}


try:
    from deap import gp
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "deap":
        raise
    raise MissingExtraError("shine.deap", "DEAP", "deap") from None

__all__ = ["gp"]
