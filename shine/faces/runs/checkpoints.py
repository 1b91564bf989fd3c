"""Checkpoints: the state of a run as files of an open format, with a digest that reveals damage."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from shine.base.errors import ExportError
from shine.base.files import write_bytes
from shine.base.typing import AnyArray
from shine.faces.runs.files import read_file
from shine.lang.forms.names import cut, shown

FORMAT: Final = "shine checkpoint"
VERSION: Final = 2
"""Version of the format; it rises if readers of the old version would misread the new one."""

_DIGEST = 64
"""Characters of a SHA-256 in hexadecimal."""


class DamagedCheckpointError(ExportError):
    """A checkpoint is incomplete, or its bytes have changed."""


class CheckpointVersionError(ExportError):
    """A checkpoint is undamaged, but of another version than this version of Shine reads."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The contents of a checkpoint file.

    Parameters
    ----------
    header : mapping
        JSON values by name.
    arrays : mapping of str to ndarray
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """The bytes of a checkpoint file; equal checkpoints have equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        header = {"format": FORMAT, "version": VERSION, **checkpoint.header}
        # Explicit ZipInfo objects: without them, the time of day would be part of the bytes.
        archive.writestr(zipfile.ZipInfo("header.json"), json.dumps(header, indent=1, allow_nan=False))
        for name, array in checkpoint.arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        archive.comment = b"0" * _DIGEST
    content = stream.getbuffer()
    # A ZIP file ends with its comment, which holds the digest of everything before it.
    content[-_DIGEST:] = _digest(content[:-_DIGEST])
    return content.tobytes()


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint from a file.

    Raises
    ------
    DamagedCheckpointError
        If it is damaged.
    CheckpointVersionError
        If it is of a newer version.
    ExportError
        If it cannot be read.
    """
    content = read_file(path)
    view = memoryview(content)
    if len(content) <= _DIGEST or view[-_DIGEST:] != _digest(view[:-_DIGEST]):
        raise DamagedCheckpointError(f"{path}: is damaged: it is cut short or was changed")
    # The digest is right, but the file may come from another version of Shine, or from another program.
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _contents(path, archive, len(content))
    except ExportError:
        raise
    except Exception as error:  # zipfile, json and NumPy raise errors of many types
        raise ExportError(f"{path}: cannot be read: {cut(error) or type(error).__name__}") from None


def _contents(path: Path, archive: zipfile.ZipFile, size: int) -> Checkpoint:
    """The contents of an archive of a given size; raises any error if it is not a checkpoint.

    Checked by hand, not by pydantic: the message for a newer version must come before all other checks, and
    `shine.faces.runs.resuming` and `shine.search.evolution.run_state` check the headers that they add.
    """
    members = archive.infolist()
    # Compressed or overlapping members could be of any size.
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if not stored or sum(member.file_size for member in members) > size:
        raise ValueError("its members are compressed or overlap")
    header = json.loads(archive.read("header.json"))
    if not isinstance(header, dict):
        raise ValueError("header.json is not an object")
    kind, version = header["format"], header["version"]
    if kind != FORMAT or isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"it is a {shown(kind)} of version {shown(version)}, not a {FORMAT!r} of version {VERSION}")
    if version != VERSION:
        raise CheckpointVersionError(
            f"{path}: is a {kind} of version {cut(version, 30)}, written by Shine {cut(header.get('shine'), 30)}; "
            f"this one reads version {VERSION}; "
            + ("update Shine" if version > VERSION else "search anew, or resume it with that version")
        )
    arrays = [member.filename for member in members if member.filename.endswith(".npy")]
    return Checkpoint(header, {name.removesuffix(".npy"): _array(archive.read(name)) for name in arrays})


def _array(content: bytes) -> AnyArray:
    """An array in NumPy's format; only memory for the actual bytes is allocated, whatever shape the header claims."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_column, dtype = read_header(stream)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded: they would be pickles")
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell() or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {cut(shape, 60)} has {len(content) - stream.tell()} bytes")
    array: AnyArray = np.frombuffer(content, dtype, offset=stream.tell()).reshape(
        shape, order="F" if by_column else "C"
    )
    return array.copy()


def _digest(content: memoryview) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@dataclass(frozen=True)
class Shelf:
    """The checkpoints of a run.

    Parameters
    ----------
    folder : Path
        The folder of the run; the checkpoints are in its subfolder ``checkpoints``.
    """

    folder: Path

    @property
    def paths(self) -> list[Path]:
        """The files, the latest first."""
        found = {int(path.stem): path for path in self._place.glob("*.npz") if path.stem.isdecimal()}
        return [found[generation] for generation in sorted(found, reverse=True)]

    def put(self, checkpoint: Checkpoint) -> None:
        """Add the checkpoint of a generation, and remove all but the latest ones.

        An `OSError` if it cannot be written; the earlier ones stay.
        """
        if self._place.is_symlink():
            raise OSError(errno.ELOOP, f"{self._place.name} is a link")
        self._place.mkdir(exist_ok=True)
        path = self._place / f"{checkpoint.header['generation']:010}.npz"
        write_bytes(path, checkpoint_bytes(checkpoint))
        # Checkpoints of later generations are damaged, because the run has gone back to an earlier one.
        later = [other for other in self.paths if other.name > path.name]
        earlier = [other for other in self.paths if other.name < path.name]
        for other in [*later, *earlier[2:]]:  # the latest three are kept
            other.unlink()

    def readable(self) -> Iterator[Checkpoint | DamagedCheckpointError]:
        """The checkpoints, the latest first; an error in place of each damaged one."""
        for path in self.paths:
            try:
                yield read_checkpoint(path)
            except DamagedCheckpointError as error:
                yield error

    @property
    def _place(self) -> Path:
        return self.folder / "checkpoints"


def header_of(path: Path) -> Mapping[str, Any]:
    """The header of a checkpoint file without its arrays and its digest, which are large; empty if it is unreadable."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
    except Exception:  # zipfile and json raise errors of many types
        return {}
    return header if isinstance(header, dict) else {}
