"""Bundles: an index, which is a table of tensors by name, and files with their bytes."""

from __future__ import annotations

import os
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shine.base.errors import GraphImportError, placed, reason
from shine.base.typing import AnyArray
from shine.formats.read.protobuf import MAX_MEMORY, messages, parsed_size
from shine.lang.forms.names import shown
from shine.tensor.graphdef.checkpoint_table import MAGIC, crc32c, masked, ordered_key, read_table, varint
from shine.tensor.graphdef.constants import (
    ELEMENTS,
    MAX_ELEMENTS,
    dtype_name,
    from_stored,
    shape_from_message,
    shape_text,
    stored,
)
from shine.tensor.graphdef.files import content_of

_VERSION = 1
"""Version of the format that bundles have today."""

_HEADER = b""
"""Key of the entry that describes the bundle."""

_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The entry with the names of `tf.train.Checkpoint`'s objects."""

_ORDERS: dict[int, Literal["<", ">"]] = {0: "<", 1: ">"}
"""Byte order, by its number in the header."""

_Extents = tuple[tuple[int, int], ...]
"""First index and length of a slice along each axis; -1 for a whole axis."""


class Checkpoint:
    """The tensors of a checkpoint, each read and verified when it is asked for.

    Parameters
    ----------
    prefix : str or path
        Result of `Saver.save` or `Checkpoint.save`: the files' names up to `.index`. With `.index`, or the folder in
        which the last checkpoint is wanted, it is found, too.

    Raises
    ------
    GraphImportError
        If there is no checkpoint, or its index is damaged.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = _found(Path(prefix))
        path = Path(f"{self.prefix}.index")
        with placed(f"checkpoint {path}", GraphImportError):
            self._entries = read_table(content_of(path))
            self._shards, self._order = self._header()

    def names(self) -> tuple[str, ...]:
        """Names of all tensors, as in the file."""
        # The keys of parts of tensors begin with 0.
        return tuple(key.decode(errors="replace") for key in self._entries if key and key[0])

    def tensor(self, name: str) -> AnyArray:
        """The value of a variable.

        Parameters
        ----------
        name : str
            That of the entry, of a variable in a checkpoint of objects, or of a part of a partitioned variable
            (`w/part_0`), which is saved as a slice of the whole one.

        Raises
        ------
        GraphImportError
            If it is missing or damaged.
        """
        key = name.encode()
        if key not in self._entries:
            key = self._by_variable.get(name, key)
        if key not in self._entries:
            stem, separator, number = name.rpartition("/part_")
            if separator and stem.encode() in self._entries:
                return self._part(stem, number)
            listed = ", ".join(shown(each) for each in self.names()[:20] if each != _OBJECTS)
            raise GraphImportError(f"checkpoint {self.prefix} has no tensor {shown(name)}; it has {listed}")
        with placed(f"checkpoint {self.prefix}: tensor {shown(name)}", GraphImportError):
            return self._read(name, key)

    @cached_property
    def _by_variable(self) -> dict[str, bytes]:
        """Keys by the full names of variables, in a checkpoint of objects."""
        if _OBJECTS.encode() not in self._entries:
            return {}
        with placed(f"checkpoint {self.prefix}: the names of its objects", GraphImportError):
            content = self._text(_message("BundleEntryProto", self._entries[_OBJECTS.encode()]))
            objects = _message("TrackableObjectGraph", content)
        return {each.full_name: each.checkpoint_key.encode() for node in objects.nodes for each in node.attributes}

    def _header(self) -> tuple[int, Literal["<", ">"]]:
        """The number of files with data, and the byte order."""
        if _HEADER not in self._entries:
            raise GraphImportError("it has no header")
        header = _message("BundleHeaderProto", self._entries[_HEADER])
        if header.version.min_consumer > _VERSION:
            raise GraphImportError(f"it needs version {header.version.min_consumer} of the format; {_VERSION} is read")
        if header.endianness not in _ORDERS or header.num_shards < 1:
            raise GraphImportError(f"its header is damaged: {header.num_shards} shards, byte order {header.endianness}")
        return header.num_shards, _ORDERS[header.endianness]

    def _read(self, name: str, key: bytes) -> AnyArray:
        entry = _message("BundleEntryProto", self._entries[key])
        dtype, shape = dtype_name(entry.dtype, ELEMENTS), _shape(entry)
        if entry.slices:
            return self._joined(name, entry, shape)
        kind = stored(entry.dtype, dtype)
        if entry.size != prod(shape) * kind.itemsize:
            raise GraphImportError(f"it has {entry.size} bytes, which do not fit {dtype} of shape {shape_text(shape)}")
        values = np.frombuffer(self._bytes(entry), kind.newbyteorder(self._order)).reshape(shape)
        return from_stored(values, entry.dtype, dtype)

    def _part(self, name: str, number: str) -> AnyArray:
        """A slice of a tensor that was saved in parts, counted along the axis that was cut."""
        with placed(f"checkpoint {self.prefix}: tensor {shown(name)}", GraphImportError):
            slices = _message("BundleEntryProto", self._entries[name.encode()]).slices
            parts = sorted(_extents(part) for part in slices)
            if number not in map(str, range(len(parts))):
                raise GraphImportError(f"it has {len(parts)} parts, and number {shown(number)} is needed")
            return self._slice(name, parts[int(number)])

    def _slice(self, name: str, extents: _Extents) -> AnyArray:
        key = ordered_key(name, extents)
        if key not in self._entries:
            raise GraphImportError(f"its part {list(extents)} is missing")
        if _message("BundleEntryProto", self._entries[key]).slices:
            raise GraphImportError(f"its part {list(extents)} has parts itself")
        return self._read(name, key)

    def _joined(self, name: str, entry: Any, shape: tuple[int, ...]) -> AnyArray:
        """A tensor that was saved in parts."""
        result = np.zeros(shape, ELEMENTS[entry.dtype])
        filled = 0
        for part in entry.slices:
            extents = _extents(part)
            values = self._slice(name, extents)
            region = tuple(slice(start, None if n < 0 else start + n) for start, n in extents)
            fits = len(extents) == len(shape) and result[region].shape == values.shape
            if not fits or result.dtype != values.dtype:
                raise GraphImportError(f"its part {list(extents)} does not fit it")
            result[region] = values
            filled += values.size
        if filled != result.size:
            raise GraphImportError(f"its parts have {filled} elements of {result.size}")
        return result

    def _text(self, entry: Any) -> bytes:
        """The only string of an entry: lengths, their checksum, and the bytes."""
        if entry.dtype != 7 or entry.shape.dim or entry.size < 5:  # number of the element type of strings
            raise GraphImportError("they are not one string")
        content = self._bytes(entry, verify=False)
        size, position = varint(content, 0)
        # The checksum of the lengths covers them as fixed numbers of 32 bits.
        lengths = size.to_bytes(8 if size >> 32 else 4, "little")
        expected = int.from_bytes(content[position : position + 4], "little")
        text = content[position + 4 :]
        if masked(crc32c(lengths)) != expected or len(text) != size:
            raise GraphImportError("they are damaged")
        if masked(crc32c(lengths + content[position : position + 4] + text)) != entry.crc32c:
            raise GraphImportError("the checksum does not agree")
        return text

    def _bytes(self, entry: Any, verify: bool = True) -> bytes:
        """The bytes of an entry, verified."""
        if not 0 <= entry.shard_id < self._shards or entry.offset < 0 or entry.size < 0:
            raise GraphImportError(
                f"its entry is damaged: {entry.size} bytes at {entry.offset} of file {entry.shard_id}"
            )
        path = Path(f"{self.prefix}.data-{entry.shard_id:05d}-of-{self._shards:05d}")
        unreadable = placed(f"{path} cannot be read", OSError, kind=GraphImportError, told=reason)
        with unreadable, open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < entry.offset + entry.size:
                raise GraphImportError(
                    f"it ends at byte {entry.offset + entry.size} of {path.name}, which is shorter: it is truncated"
                )
            file.seek(entry.offset)
            content = file.read(entry.size)
        if len(content) != entry.size:
            raise GraphImportError(f"{path.name} became shorter while it was read")
        if verify and masked(crc32c(content)) != entry.crc32c:
            raise GraphImportError(f"its checksum in {path.name} does not agree; the file is damaged")
        return content


def _extents(part: Any) -> _Extents:
    return tuple((axis.start, axis.length or -1) for axis in part.extent)


def _found(path: Path) -> Path:
    """The prefix of the files of a checkpoint."""
    with placed(f"checkpoint {path}: it cannot be read", OSError, ValueError, kind=GraphImportError):
        if path.is_dir():
            return _last(path)
        if path.suffix == ".index":
            return path.with_suffix("")
        if not Path(f"{path}.index").exists() and path.is_file():
            with open(path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - len(MAGIC)))
                if file.read() == MAGIC:
                    raise GraphImportError(
                        f"checkpoint {path}: it is of the format before 2017; save it again, with write_version 2"
                    )
    return path


def _last(folder: Path) -> Path:
    """The last checkpoint in a folder, by the file `checkpoint` in it."""
    state = folder / "checkpoint"
    if not state.exists():
        found = sorted(folder.glob("*.index"))
        if len(found) == 1:
            return found[0].with_suffix("")
        raise GraphImportError(
            f"checkpoint {folder}: the folder has {len(found)} checkpoints; name one, without the ending .index"
        )
    first = content_of(state).decode(errors="replace").partition("\n")[0]
    name = first.partition(":")[2].strip().strip('"')
    if not first.startswith("model_checkpoint_path:") or not name:
        raise GraphImportError(f"checkpoint {state}: its first line does not name a checkpoint")
    return folder / name


def _message(kind: str, content: bytes) -> Any:
    formats = messages()
    made = getattr(formats, kind)
    try:
        if parsed_size(content, made.DESCRIPTOR) <= MAX_MEMORY:
            return made.FromString(content)
    except formats.DecodeError:
        pass
    raise GraphImportError(f"a {kind} in it is damaged")


def _shape(entry: Any) -> tuple[int, ...]:
    shape = shape_from_message(entry.shape)
    if shape is None or None in shape:
        raise GraphImportError(f"its shape must be known, but is {shape_text(shape)}")
    sizes = tuple(size for size in shape if size is not None)
    if prod(sizes) > MAX_ELEMENTS:
        raise GraphImportError(f"its shape {shape_text(shape)} has more than {MAX_ELEMENTS} elements")
    return sizes
