"""Errors that get a place, or the name of an extra."""

from __future__ import annotations

import os

import pytest

from shine.base.errors import MissingExtraError, needing, placed, reason


def test_an_error_gets_its_place_and_type_without_the_chain():
    with pytest.raises(ValueError, match=r"^a\.csv: no number$") as caught, placed("a.csv", TypeError, kind=ValueError):
        raise TypeError("no number")
    assert caught.value.__suppress_context__


def test_the_first_type_is_raised_for_all():
    with pytest.raises(TypeError, match=r"^x: wrong$"), placed("x", TypeError, ValueError):
        raise ValueError("wrong")


@pytest.mark.parametrize(("error", "but"), [(KeyError("k"), ()), (UnicodeError("u"), UnicodeError)])
def test_other_errors_pass_as_they_are(error, but):
    with pytest.raises(type(error)) as caught, placed("x", ValueError, but=but):
        raise error
    assert caught.value is error


def test_without_a_place_the_message_stays():
    unplaced = placed("", OSError, kind=ValueError, told=reason)
    with pytest.raises(ValueError, match=r"^No such file or directory$"), unplaced:
        os.stat("/nowhere/at/all")


def test_an_import_names_its_extra():
    told = r"^a plot needs Z; install it with: pip install 'shine-gp\[z\]'$"
    with pytest.raises(MissingExtraError, match=told), needing("a plot", "Z", "z"):
        import shine.nowhere  # noqa: F401
