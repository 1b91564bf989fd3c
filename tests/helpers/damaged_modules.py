"""Damages graphs of tensors, with their configurations and checkpoints, and judges how they are read."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from helpers.damaged_graphs import damage_bytes, damage_fields, damage_text
from helpers.tables import table
from numpy.random import Generator

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import messages
from shine.tensor.form.interpreter import interpret
from shine.tensor.graphdef import load_module
from shine.tensor.graphdef.checkpoint_table import read_table
from shine.tensor.graphdef.files import read_message
from shine.tensor.graphdef.rules import OPERATIONS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "tensor_graphs"

PARTS = ("graph", "config", "index", "data")
"""What belongs to a graph; without variables the last two are empty."""

_MOST = 1 << 14
"""Most elements and instructions of what is run."""


def parts_of(name: str) -> list[bytes]:
    """The files of a fixture."""
    paths = [FIXTURES / f"{name}.config.pb", FIXTURES / f"{name}.config.pbtxt"]
    graphs = [FIXTURES / f"{name}.pb", FIXTURES / f"{name}.pbtxt"]
    checkpoint = [FIXTURES / f"{name}.ckpt.index", FIXTURES / f"{name}.ckpt.data-00000-of-00001"]
    found = [next(path for path in both if path.exists()).read_bytes() for both in (graphs, paths)]
    return found + [path.read_bytes() if path.exists() else b"" for path in checkpoint]


def packed(parts: list[bytes]) -> bytes:
    """All files in one."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def unpacked(content: bytes) -> list[bytes]:
    """The files of `packed`."""
    parts, position = [], 0
    while position < len(content):
        size = int.from_bytes(content[position : position + 4], "little")
        parts.append(content[position + 4 : position + 4 + size])
        position += 4 + size
    return parts


class ModuleCorpus:
    """The intact files, one of which is damaged."""

    def __init__(self) -> None:
        self.sets = [parts_of(path.stem) for path in sorted(FIXTURES.glob("*.npz")) if path.stem != "random"]
        self.graphs = [read_message(parts[0]) for parts in self.sets]

    def file(self, seed: int, position: int) -> bytes:
        """The damaged files of a number."""
        rng = np.random.default_rng([seed, position])
        chosen = int(rng.integers(len(self.sets)))
        parts = list(self.sets[chosen])
        other = self.sets[rng.integers(len(self.sets))]
        # Variables are fewer, and have more ways to be wrong.
        place = int(rng.choice(4, p=[0.4, 0.15, 0.3, 0.15])) if parts[2] else int(rng.choice(2, p=[0.75, 0.25]))
        if place == 0 and rng.random() < 0.6:
            graph = messages().GraphDef()
            graph.CopyFrom(self.graphs[chosen])
            for _ in range(int(rng.integers(3))):
                damage_operation(graph, rng)
            parts[0] = damage_fields(graph, rng)
        elif place == 1 and rng.random() < 0.6:
            parts[1] = damage_config(parts[1], rng)
        elif place == 2 and rng.random() < 0.8:
            parts[2] = damage_entries(parts[2], rng)
        else:
            is_text = place < 2 and parts[place][:1] != b"\n" and rng.random() < 0.7
            parts[place] = (damage_text if is_text else damage_bytes)(parts[place], other[place], rng)
        return packed(parts)


def damage_operation(graph: Any, rng: Generator) -> None:
    """Give a node another op, or an attribute of operations on tensors."""
    holders = [graph.node, *(function.node_def for function in graph.library.function)]
    nodes = [node for holder in holders for node in holder]
    node = nodes[int(rng.integers(len(nodes)))]
    if rng.random() < 0.4:
        node.op = list(OPERATIONS)[int(rng.integers(len(OPERATIONS)))]
        return
    flags = ("transpose_a", "adj_y", "keep_dims", "is_training")
    words = ("padding", "data_format", "equation", "mode", "shared_name")
    lists = ("strides", "dilations", "ksize", "squeeze_dims", "explicit_paddings")
    integers = ("axis", "num", "num_split", "N", "begin_mask", "shrink_axis_mask", "ellipsis_mask", "batch_dims", "k")
    match int(rng.integers(4)):
        case 0:
            node.attr[str(rng.choice(flags))].b = bool(rng.integers(2))
        case 1:
            node.attr[str(rng.choice(words))].s = bytes(
                rng.choice([b"SAME", b"VALID", b"NCHW", b"ab,bc->ac", b"", b"x"])
            )
        case 2:
            numbers = node.attr[str(rng.choice(lists))].list.i
            numbers.extend(int(each) for each in rng.choice([-1, 0, 1, 2, 3, 1 << 40], int(rng.integers(1, 6))))
        case _:
            node.attr[str(rng.choice(integers))].i = int(rng.choice([-2, -1, 0, 1, 2, 3, 1 << 40]))


def damage_config(content: bytes, rng: Generator) -> bytes:
    """Change one field of a configuration."""
    config = read_message(content, "Config")
    feeds = list(config.feed)
    some: Any = (feeds + list(config.fetch))[int(rng.integers(len(feeds) + len(config.fetch)))]
    match int(rng.integers(7)):
        case 0:
            some.id.output_index = int(rng.choice([-1, 1, 2, 7, 1 << 40]))
        case 1:
            some.id.node_name = str(rng.choice(["", "x", "no:1", "^x_hold", "x_hold", "y", "conv/kernel"]))
        case 2:
            some.shape.dim.add(size=int(rng.choice([-2, -1, 0, 1, 3, 1 << 20, 1 << 62])))
        case 3:
            some.type = int(rng.integers(0, 12))
        case 4:
            del config.feed[:]
        case 5:
            config.variable.add(node_name="conv/kernel", readonly=bool(rng.integers(2)), type=1)
        case _:
            config.feed.add().CopyFrom(feeds[0])
    if rng.random() < 0.5:
        return str(messages().text_format.MessageToString(config)).encode()
    return bytes(config.SerializeToString())


def damage_entries(content: bytes, rng: Generator) -> bytes:
    """Change keys or values of an index, and write it with checksums that agree."""
    entries = read_table(content)
    key = list(entries)[int(rng.integers(len(entries)))]
    match int(rng.integers(5)):
        case 0:
            del entries[key]
        case 1:
            entries[damage_bytes(key, content, rng)] = entries.pop(key)
        case 2:
            entries[key] = entries[list(entries)[int(rng.integers(len(entries)))]]
        case _:
            entries[key] = damage_bytes(entries[key], content, rng)
    written = table(entries, size=int(rng.integers(1, 5)), snappy=bool(rng.integers(2)))
    return written if rng.random() < 0.7 else damage_bytes(written, content, rng)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for checkpoints, as long as the process lives."""
    return tempfile.TemporaryDirectory()


def judged(content: bytes) -> tuple[str, str]:
    """Verdict on how files are read ('read', 'refused' or 'wrong'), and the message."""
    graph, config, index, data = unpacked(content)
    folder = _folder().name
    prefix = Path(folder) / "c"
    if index:
        Path(f"{prefix}.index").write_bytes(index)
        Path(f"{prefix}.data-00000-of-00001").write_bytes(data)
    try:
        module = load_module(graph, config=config, checkpoint=prefix if index else None)
    except GraphImportError as error:
        return "refused", str(error).replace(folder, "")
    except Exception as error:  # any other exception is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    try:
        run(module)
    except Exception as error:
        return "wrong", f"when run: {type(error).__name__}: {error}"
    return "read", ""


def run(module: Any) -> None:
    """Evaluate a small module without loops, which need not end: what is read must have a value."""
    functions = list(module.defined)
    types = [value.type for f in functions for each in f.body for value in (*each.results, *each.operands)]
    types += [value.type for f in functions for value in f.parameters]
    is_small = len(types) < _MOST and all(type.elements < _MOST for type in types)
    if is_small and not any(each.operation == "while" for f in functions for each in f.body):
        interpret(module, "main", [np.ones(t.shape, t.numpy) for t in module.function("main").parameter_types])
