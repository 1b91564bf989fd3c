"""What the functions of all exports take as a formula: a tree, or a model, which has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from shine.formats.write.sources import with_preparation
from shine.lang.forms.names import value_text
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation

P = ParamSpec("P")
Made = TypeVar("Made")


class HasTree(Protocol):
    """A `shine.Model`."""

    @property
    def tree(self) -> Tree:
        """The formula."""
        ...

    @property
    def named(self) -> Tree:
        """The formula with the functions that have names of their own."""
        ...

    @property
    def headings(self) -> Mapping[str, str]:
        """Original headings of the columns, by feature."""
        ...

    @property
    def preparation(self) -> Preparation | None:
        """How columns of the user's table became numbers, if they did not hold numbers."""
        ...


def takes_models(write: Callable[Concatenate[Tree, P], Made]) -> Callable[Concatenate[Tree | HasTree, P], Made]:
    """Decorate an export of a tree: it takes models, too, and what is known of their columns if it takes headings."""
    takes_headings = "headings" in signature(write).parameters

    @wraps(write)
    def made(tree: Any, *arguments: P.args, **options: P.kwargs) -> Made:
        if isinstance(tree, Tree):
            return write(tree, *arguments, **options)
        if not isinstance(getattr(tree, "tree", None), Tree):
            given = value_text(tree) if isinstance(tree, str) else f"the {type(tree).__name__}"
            best = "; pass its best_" if hasattr(tree, "best_") else "; shine.parse makes a tree of text and functions"
            raise TypeError(f"{write.__name__} takes a shine.Model or a tree, not {given}{best}")
        if takes_headings:
            options.setdefault("headings", with_preparation(tree.headings, tree.preparation))
        return write(tree.named, *arguments, **options)

    return made  # type: ignore[return-value]  # mypy takes the first argument for a named one
