"""Parameters of estimators as other processes can read them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from shine.base.errors import ShineError
from shine.evaluate.losses import loss_text
from shine.lang.parse import parse
from shine.lang.vocabulary import is_of_session, portable, primitive_table


def portable_parameters(primitives: Iterable[Any], guesses: Iterable[Any], loss: Any = None) -> dict[str, Any]:
    """Parameters with functions of a notebook or a script, and the source of these.

    Parameters
    ----------
    primitives, guesses : iterable
    loss : object
        Anything: `fit` checks them.
    """
    changed: dict[str, Any] = {}
    with suppress(ShineError, TypeError, ValueError):
        if is_of_session(loss):
            changed["loss"] = loss_text(loss)
    with suppress(ShineError, TypeError, ValueError):
        if any(map(is_of_session, primitives)):
            changed["primitives"] = portable(primitives)
        if any(map(is_of_session, guesses)):
            table = primitive_table(primitives)[0]
            changed["guesses"] = [parse(each, primitives=table) if is_of_session(each) else each for each in guesses]
    return changed
