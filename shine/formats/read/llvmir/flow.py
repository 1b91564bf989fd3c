"""If-conversion: the order of a function's basic blocks, and the condition under which each is reached.

Branches become data (Allen et al. 1983). Where paths meet, the conditions of the branches after the block's immediate
dominator (where the paths parted) choose the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shine.base.errors import GraphImportError

ALWAYS = -1
"""The condition that always holds; all others are values of a graph."""

EXIT = ""
"""The end of the function; no block has this name."""

Edge = tuple[str, str]


def order(successors: Mapping[str, Sequence[str]], entry: str) -> list[str]:
    """The reachable blocks, each after its predecessors; a `GraphImportError` if there is a loop."""
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
                "only loops with a constant, small number of rounds can be unrolled"
            )
        elif following not in state:
            state[following] = 1
            stack.append((following, iter(successors[following])))
    return finished[::-1]


def dominators(blocks: Sequence[str], predecessors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The immediate dominator of each block: the last other block on all paths to it.

    Parameters
    ----------
    blocks : sequence of str
        Each block after its predecessors; the first block is its own dominator.

    Notes
    -----
    The algorithm of Cooper, Harvey and Kennedy (2001); without loops, one round is enough.
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
    """Conditions of the edges to a block, given that its immediate dominator is reached.

    Parameters
    ----------
    successors : mapping of str to sequence of str
        Successors of each block; each block comes after its predecessors, and `EXIT` last.
    edges : mapping of (str, str) to int
        Condition of each edge, given that its source is reached; filled in by the caller before the conditions of the
        target are asked for.
    both, either : callable
        Conjunction and disjunction of two conditions, neither of which is `ALWAYS`.
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
        """Predecessors of a block, each with the condition that control comes from it; exactly one condition holds."""
        start = self._dominator[block]
        return [(source, self._edge(start, source, block)) for source in self.predecessors[block]]

    def _edge(self, start: str, source: str, target: str) -> int:
        reached, taken = self._reached(start, source), self._edges[source, target]
        if ALWAYS in (reached, taken):
            return taken if reached == ALWAYS else reached
        return self._both(reached, taken)

    def _reached(self, start: str, block: str) -> int:
        """The condition under which a block is reached from one that dominates it."""
        # Blocks are visited in order, so that earlier ones are known and nothing recurses.
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
                # All paths from the dominator lead through the block: both have the same condition.
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
