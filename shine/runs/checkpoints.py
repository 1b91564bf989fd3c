"""Checkpoints: the state of a run as files of an open format, of which a damaged one is never taken for a good one."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shine.errors import ExportError
from shine.runs.files import write_bytes

FORMAT: Final = "shine checkpoint"
VERSION: Final = 1
"""Version of the format; it grows when a reader of the older one would be misled."""

KEPT = 3
"""Checkpoints of a run that are kept: the last ones."""

_DIGEST = 64
"""Letters of a SHA-256 in hexadecimal."""


class DamagedCheckpointError(ExportError):
    """A checkpoint is cut short, or a byte of it is not what was written."""


class NewerCheckpointError(ExportError):
    """A checkpoint is whole, but of a version that this one of Shine does not know."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a file holds.

    Parameters
    ----------
    header : mapping
        As JSON has it.
    arrays : mapping of str to ndarray
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """The contents of a file: equal checkpoints have equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        header = {"format": FORMAT, "version": VERSION, **checkpoint.header}
        # A ZipInfo of its own for each member: without one, the time of day would be part of the contents.
        archive.writestr(zipfile.ZipInfo("header.json"), json.dumps(header, indent=1, allow_nan=False))
        for name, array in checkpoint.arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        archive.comment = b"0" * _DIGEST
    content = stream.getbuffer()
    # The comment is the end of a ZIP file; it holds the digest of all that comes before.
    content[-_DIGEST:] = _digest(content[:-_DIGEST])
    return content.tobytes()


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint from a file.

    Raises
    ------
    DamagedCheckpointError
        If it is not whole.
    NewerCheckpointError
        If it is of a newer version.
    ExportError
        If it cannot be read at all.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ExportError(f"{path}: cannot be read: {error.strerror}") from None
    view = memoryview(content)
    if len(content) <= _DIGEST or view[-_DIGEST:] != _digest(view[:-_DIGEST]):
        raise DamagedCheckpointError(f"{path}: is damaged: it is cut short, or not what was written")
    # From here on the file is what some version of Shine wrote, or somebody who knows how to.
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header = json.loads(archive.read("header.json"))
            if header["format"] != FORMAT or header["version"] > VERSION:
                raise NewerCheckpointError(
                    f"{path}: is a {header['format']} of version {header['version']}, written by Shine "
                    f"{header.get('shine')}; this one reads versions up to {VERSION}; update Shine"
                )
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            return Checkpoint(header, {name.removesuffix(".npy"): _array(archive, name) for name in members})
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ExportError(f"{path}: cannot be read: {error}") from None


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return array


def _digest(content: memoryview) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@dataclass(frozen=True)
class Shelf:
    """The checkpoints of a run.

    Parameters
    ----------
    folder : Path
        Of the run; they are in ``checkpoints`` below it.
    """

    folder: Path

    @property
    def paths(self) -> list[Path]:
        """The files, the latest first."""
        found = {int(path.stem): path for path in self._place.glob("*.npz") if path.stem.isdecimal()}
        return [found[generation] for generation in sorted(found, reverse=True)]

    def put(self, checkpoint: Checkpoint) -> None:
        """Add the checkpoint of a generation, and drop what is not among the last ones then.

        Raises
        ------
        OSError
            If it cannot be written; the ones that were there are there still.
        """
        self._place.mkdir(exist_ok=True)
        path = self._place / f"{checkpoint.header['generation']:010}.npz"
        write_bytes(path, checkpoint_bytes(checkpoint))
        # Those of later generations are what the run has gone back from: they are damaged.
        later = [other for other in self.paths if other.name > path.name]
        earlier = [other for other in self.paths if other.name < path.name]
        for other in [*later, *earlier[KEPT - 1 :]]:
            other.unlink()

    def readable(self) -> Iterator[Checkpoint | DamagedCheckpointError]:
        """The checkpoints, the latest first, and errors in the place of damaged ones."""
        for path in self.paths:
            try:
                yield read_checkpoint(path)
            except DamagedCheckpointError as error:
                yield error

    @property
    def _place(self) -> Path:
        return self.folder / "checkpoints"
