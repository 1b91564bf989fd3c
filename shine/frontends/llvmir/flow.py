"""If-conversion: the order of a function's basic blocks, and the condition under which each is reached.

Branches become data (Allen et al. 1983). Where paths meet, the value that came along one of them is chosen by the
conditions of the branches since the paths parted: since the immediate dominator of the block they meet in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shine.errors import GraphImportError

ALWAYS = -1
"""The condition that always holds; all others are values of a graph."""

EXIT = ""
"""Stands for the end of the function; no block is called so."""

Edge = tuple[str, str]


def order(successors: Mapping[str, Sequence[str]], entry: str) -> list[str]:
    """The blocks that can be reached, each behind all that lead to it.

    Raises
    ------
    GraphImportError
        If there is a loop.
    """
    finished: list[str] = []
    state = {entry: 1}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        name, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            finished.append(name)
            state[name] = 2
            stack.pop()
        elif state.get(following) == 1:
            raise GraphImportError(
                f"it has a loop (block {following!r}) whose number of rounds depends on the arguments or is too large; "
                "a formula has no loops, only such as have a constant number of rounds"
            )
        elif following not in state:
            state[following] = 1
            stack.append((following, iter(successors[following])))
    return finished[::-1]


def dominators(blocks: Sequence[str], predecessors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The immediate dominator of each block: the last one that all paths to it lead through.

    Parameters
    ----------
    blocks : sequence of str
        In an order in which each stands behind its predecessors; the first one is its own dominator.

    Notes
    -----
    The algorithm of Cooper, Harvey and Kennedy (2001); without loops, one round of it is enough.
    """
    rank = {name: position for position, name in enumerate(blocks)}
    immediate = {blocks[0]: blocks[0]}
    for name in blocks[1:]:
        common, *others = predecessors[name]
        for other in others:
            while common != other:
                if rank[common] < rank[other]:
                    common, other = other, common
                common = immediate[common]
        immediate[name] = common
    return immediate


class Conditions:
    """Conditions of the edges that lead to a block, given that its immediate dominator is reached.

    Parameters
    ----------
    successors : mapping of str to sequence of str
        Of each block, in an order in which each stands behind its predecessors; `EXIT` is the last.
    edges : mapping of (str, str) to int
        Condition of each edge, given that the block it leaves is reached. Those of the edges before a block are there
        when its conditions are asked for.
    both, either : callable
        Make the conjunction and the disjunction of two conditions; neither is `ALWAYS`.
    """

    def __init__(
        self,
        successors: Mapping[str, Sequence[str]],
        edges: Mapping[Edge, int],
        both: Callable[[int, int], int],
        either: Callable[[int, int], int],
    ) -> None:
        self._edges, self._both, self._either = edges, both, either
        blocks = list(successors)
        self._rank = {name: position for position, name in enumerate(blocks)}
        self.predecessors: dict[str, list[str]] = {name: [] for name in blocks}
        for source, targets in successors.items():
            for target in targets:
                self.predecessors[target].append(source)
        self._dominator = dominators(blocks, self.predecessors)
        self._postdominator = dominators(blocks[::-1], successors)
        self._known: dict[tuple[str, str], int] = {}

    def incoming(self, block: str) -> list[tuple[str, int]]:
        """Predecessors of a block, each with the condition that control comes from it. One of them holds."""
        start = self._dominator[block]
        return [(source, self._edge(start, source, block)) for source in self.predecessors[block]]

    def _edge(self, start: str, source: str, target: str) -> int:
        reached, taken = self._reached(start, source), self._edges[source, target]
        if ALWAYS in (reached, taken):
            return taken if reached == ALWAYS else reached
        return self._both(reached, taken)

    def _reached(self, start: str, block: str) -> int:
        """The condition under which a block is reached from one that dominates it."""
        # Blocks are visited in their order, so that those before are known and nothing recurses.
        waiting = [block]
        while waiting:
            name = waiting[-1]
            if (start, name) in self._known:
                waiting.pop()
                continue
            dominator = self._dominator[name]
            if name == start:
                self._known[start, name] = ALWAYS
            elif self._follows(name, dominator):
                # All paths from the dominator lead here: where it is reached, so is this.
                if (start, dominator) in self._known:
                    self._known[start, name] = self._known[start, dominator]
                else:
                    waiting.append(dominator)
            else:
                missing = [source for source in self.predecessors[name] if (start, source) not in self._known]
                if missing:
                    waiting += missing
                    continue
                self._known[start, name] = self._any(self._edge(start, s, name) for s in self.predecessors[name])
        return self._known[start, block]

    def _any(self, conditions: Iterable[int]) -> int:
        first, *others = conditions
        for condition in others:
            if ALWAYS in (first, condition):
                return ALWAYS
            first = self._either(first, condition)
        return first

    def _follows(self, block: str, dominator: str) -> bool:
        """Whether all paths from a block's dominator lead through the block."""
        at = dominator
        while self._rank[at] < self._rank[block]:
            at = self._postdominator[at]
        return at == block
