"""Fusion: which instructions one nest of loops computes together, so that only its last value is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from shine.errors import FormError
from shine.lang.facts import FACTS
from shine.tensor.form.module import Function, Instruction, Value
from shine.tensor.form.operations import ELEMENTWISE

VIEWS = frozenset({"transpose", "slice", "broadcast"})
"""Operations that only say where an element is read."""

REDUCTIONS = frozenset({"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})

PRODUCTS = frozenset({"dot", "convolve"})

FREE = frozenset({"constant", "reshape"})
"""Operations without a nest: data in the code, and other names of the same memory."""

_READS_VIEWS = ELEMENTWISE | REDUCTIONS | {"dot"}


@dataclass(frozen=True, eq=False)
class Group:
    """Instructions of one nest of loops.

    Parameters
    ----------
    members : tuple of Instruction
        In order. The last one is the root; only its results are stored.
    anchor : Instruction or None
        The product or reduction among them: members that it depends on are computed where it reads its operands, those
        that depend on it where its result is ready. None if each element of the result is computed alone. Operations
        with loops of their own, such as `sort` and `call`, are alone in their groups.
    """

    members: tuple[Instruction, ...]
    anchor: Instruction | None = None

    @property
    def root(self) -> Instruction:
        """The member whose results are stored."""
        return self.members[-1]

    @property
    def reads(self) -> tuple[Value, ...]:
        """What it reads from memory, each once."""
        made = {result for member in self.members for result in member.results}
        return tuple(dict.fromkeys(v for member in self.members for v in member.operands if v not in made))


def fuse(function: Function) -> tuple[Group, ...]:
    """Group the instructions of a function.

    Elementwise chains join the product or reduction that makes their input, and the reduction that reads them. Views
    (`VIEWS`) are part of each group that reads them, if all readers can.

    Precondition: the function is valid; `canonicalize` first finds more. Postcondition: the groups in order compute the
    function; each instruction is in a group, `FREE` ones apart; a value that another group reads, or that is a result,
    is the root of a group. `check_fusion` checks it.
    """
    uses = _Uses(function)
    groups, absorbed = [], set[int]()
    for instruction in reversed(function.body):
        is_lazy = id(instruction) in uses.lazy
        if instruction.operation not in FREE and id(instruction) not in absorbed and not is_lazy:
            growing = _Growing(uses, instruction)
            growing.grow()
            absorbed |= growing.members.keys()
            groups.append(growing.done())
    return tuple(reversed(groups))


class _Uses:
    """Who reads the values of a function."""

    def __init__(self, function: Function) -> None:
        self.order = {id(instruction): place for place, instruction in enumerate(function.body)}
        self.makers = {result: i for i in function.body for result in i.results}
        self.readers: Mapping[Value, list[Instruction]] = defaultdict(list)
        self.stored = set(function.results)
        for instruction in function.body:
            for operand in instruction.operands:
                self.readers[operand].append(instruction)
            if instruction.operation == "reshape":
                self.stored.update(instruction.operands)
        self.lazy: set[int] = set()
        for instruction in reversed(function.body):
            if instruction.operation in VIEWS and instruction.result not in self.stored:
                readers = self.readers[instruction.result]
                if all(r.operation in _READS_VIEWS or id(r) in self.lazy for r in readers):
                    self.lazy.add(id(instruction))


@dataclass
class _Growing:
    """A group to which makers of operands are added."""

    uses: _Uses
    root: Instruction
    members: dict[int, Instruction] = field(default_factory=dict)
    before_anchor: set[int] = field(default_factory=set)
    anchor: Instruction | None = None

    def grow(self) -> None:
        """Add makers until none fits."""
        self._add(self.root, self.root.operation in REDUCTIONS | PRODUCTS)
        if self.root.operation not in ELEMENTWISE | REDUCTIONS | PRODUCTS | VIEWS:
            return
        found: list[Instruction] | None = None
        while found is None or found:
            found = [m for m in self._makers() if self._fits(m)]
            for maker in found:
                # What fitted together may exclude each other.
                if self._fits(maker):
                    self._add(maker, maker.operation in REDUCTIONS | PRODUCTS)

    def done(self) -> Group:
        """The group."""
        ordered = sorted(self.members, key=self.uses.order.__getitem__)
        return Group(tuple(self.members[key] for key in ordered), self.anchor)

    def _add(self, instruction: Instruction, is_anchor: bool) -> None:
        readers = self._readers(instruction)
        if any(id(r) in self.before_anchor or r is self.anchor for r in readers):
            self.before_anchor.add(id(instruction))
        elif is_anchor:
            self.anchor = instruction
        self.members[id(instruction)] = instruction

    def _makers(self) -> list[Instruction]:
        made = [self.uses.makers.get(v) for member in self.members.values() for v in member.operands]
        new = {id(m): m for m in made if m is not None and id(m) not in self.members and m.operation not in FREE}
        return list(new.values())

    def _readers(self, maker: Instruction) -> list[Instruction]:
        """Members that read what an instruction makes."""
        return [r for result in maker.results for r in self.uses.readers[result] if id(r) in self.members]

    def _fits(self, maker: Instruction) -> bool:
        readers, uses = self._readers(maker), self.uses
        if any(r.operation == "convolve" for r in readers):
            return False
        if id(maker) in uses.lazy:
            return True
        everywhere = [r for result in maker.results for r in uses.readers[result]]
        if not uses.stored.isdisjoint(maker.results) or not all(map(self._is_only_here, everywhere)):
            return False
        if len({id(r) in self.before_anchor or r is self.anchor for r in readers}) > 1:
            return False
        if maker.operation in REDUCTIONS | PRODUCTS:
            return self._can_anchor(maker, readers)
        if maker.operation not in ELEMENTWISE or any(r.operation in PRODUCTS for r in readers):
            return False
        return maker.result.type.elements >= max(map(_iterations, readers)) or not _is_costly(maker)

    def _is_only_here(self, reader: Instruction) -> bool:
        """Whether a member is in no other group: a view may be in several."""
        repeated = id(reader) in self.uses.lazy and len(self.uses.readers[reader.results[0]]) > 1
        return id(reader) in self.members and not repeated

    def _can_anchor(self, maker: Instruction, readers: list[Instruction]) -> bool:
        """Whether all that follows a product or reduction is elementwise, of its shape."""
        after = [m for m in self.members.values() if id(m) not in self.before_anchor]
        shape = maker.result.type.shape
        return self.anchor is None and all(
            m.operation in ELEMENTWISE and m.result.type.shape == shape for m in after if self._depends(m, readers)
        )

    def _depends(self, member: Instruction, on: list[Instruction]) -> bool:
        """Whether a member is one of these, or reads one of them through members."""
        if any(member is other for other in on):
            return True
        makers = (self.uses.makers.get(v) for v in member.operands)
        return any(m is not None and id(m) in self.members and self._depends(m, on) for m in makers)


def _iterations(instruction: Instruction) -> int:
    """Elements that an instruction reads at least."""
    source = instruction.operands[0] if instruction.operation in REDUCTIONS else instruction.results[0]
    return source.type.elements


def _is_costly(instruction: Instruction) -> bool:
    """Whether computing it again costs more than reading it."""
    facts = FACTS.get(instruction.operation)
    return facts is not None and (facts.elementary or instruction.operation in ("div", "sqrt"))


def check_fusion(function: Function, groups: tuple[Group, ...]) -> None:
    """Raise FormError unless groups compute a function in order."""
    stored = set(function.parameters)
    stored |= {r for i in function.body if i.operation == "constant" for r in i.results}
    names = {r: i.operands[0] for i in function.body if i.operation == "reshape" for r in i.results}

    def base(value: Value) -> Value:
        while value in names:
            value = names[value]
        return value

    for group in groups:
        missing = [value for value in group.reads if base(value) not in stored]
        if missing:
            raise FormError(
                f"@{function.name}, {group.root.results[0]}: its group reads {missing[0]}, which no group stores"
            )
        anchors = [m for m in group.members if m.operation in REDUCTIONS | PRODUCTS]
        if len(anchors) > 1 or (anchors and anchors[0] is not group.anchor):
            raise FormError(
                f"@{function.name}, {group.root.results[0]}: its group has more than one product or reduction"
            )
        stored.update(group.root.results)
    lost = [value for value in function.results if base(value) not in stored]
    if lost:
        raise FormError(f"@{function.name}, return: no group stores {lost[0]}")
