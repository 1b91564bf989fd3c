"""Shine's own primitives stay the same objects, however they are copied."""

import copy
import pickle

import pytest

from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive

COPIES = {
    "copied": copy.copy,
    "deeply copied": copy.deepcopy,
    **{
        f"pickled with protocol {protocol}": lambda each, protocol=protocol: pickle.loads(pickle.dumps(each, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_primitive_of_shine_stays_the_same_object(copied):
    assert all(copied(primitive) is primitive for primitive in STANDARD.values())


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_another_primitive_becomes_an_equal_one(copied):
    basic = Primitive("sin", 1)
    assert copied(basic) == basic and copied(basic) is not basic
    # The table that a definition was verified against contains the primitive itself.
    leg = with_definitions(STANDARD, "def leg(a, b):\n    return hypot(a, b) + 1")["leg"]
    twin = copied(leg)
    assert twin == leg and twin is not leg
    assert twin.definition.functions["hypot"] is STANDARD["hypot"]
