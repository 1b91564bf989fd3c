"""Places of a drawn tree's nodes: a tidy layout after Reingold and Tilford (1981), for labels of different widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SIBLINGS = 14.0
"""Least distance between the edges of two labels on one level."""


@dataclass
class _Outline:
    """Left and right edges of a subtree on each of its levels, the deepest first, relative to `offset`."""

    lefts: list[float]
    rights: list[float]
    offset: float = 0.0


def tidy(widths: Sequence[float], children: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
    """Horizontal place of each node's middle, and its level; the root has level 0.

    A parent stands above the middle of its outer children, two subtrees stand as close as their outlines allow, and
    equal subtrees look the same. The leftmost edge is at 0.

    Parameters
    ----------
    widths : sequence of float, one for each node
    children : sequence of sequences of int
        Positions of each node's children from left to right, all after the node's own; the first node is the root.

    Returns
    -------
    list of (float, int), one for each node

    Notes
    -----
    Merging two outlines visits only the levels they share, and keeps the longer one. So the time is proportional to
    the number of nodes, without recursion.
    """
    relative = [0.0] * len(widths)
    outlines: dict[int, _Outline] = {}
    for node in reversed(range(len(widths))):
        parts = [outlines.pop(child) for child in children[node]]
        half = widths[node] / 2
        if not parts:
            outlines[node] = _Outline([-half], [half])
            continue
        places = [0.0]
        merged = parts[0]
        for part in parts[1:]:
            place = _distance(merged, part)
            part.offset += place
            places.append(place)
            merged = _together(merged, part)
        middle = (places[0] + places[-1]) / 2
        for child, place in zip(children[node], places, strict=True):
            relative[child] = place - middle
        merged.offset -= middle
        merged.lefts.append(-half - merged.offset)
        merged.rights.append(half - merged.offset)
        outlines[node] = merged
    return _absolute(relative, widths, children)


def _distance(left: _Outline, right: _Outline) -> float:
    """Least distance of the right subtree from the first child of the left one."""
    shared = min(len(left.rights), len(right.lefts))
    gaps = (
        (left.rights[-level] + left.offset) - (right.lefts[-level] + right.offset) for level in range(1, shared + 1)
    )
    return max(gaps) + SIBLINGS


def _together(left: _Outline, right: _Outline) -> _Outline:
    """The outline of both: the deeper one, overwritten on the levels of the other."""
    if len(left.lefts) >= len(right.lefts):
        for level in range(1, len(right.rights) + 1):
            left.rights[-level] = right.rights[-level] + right.offset - left.offset
        return left
    for level in range(1, len(left.lefts) + 1):
        right.lefts[-level] = left.lefts[-level] + left.offset - right.offset
    return right


def _absolute(
    relative: list[float], widths: Sequence[float], children: Sequence[Sequence[int]]
) -> list[tuple[float, int]]:
    places = [(0.0, 0)] * len(relative)
    for node, below in enumerate(children):
        x, level = places[node]
        for child in below:
            places[child] = (x + relative[child], level + 1)
    leftmost = min(x - width / 2 for (x, _), width in zip(places, widths, strict=True))
    return [(x - leftmost, level) for x, level in places]
