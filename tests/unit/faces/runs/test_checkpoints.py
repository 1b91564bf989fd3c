"""Checkpoints are read exactly as they were written, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from shine.base.errors import ExportError
from shine.faces.runs import checkpoints
from shine.faces.runs.checkpoints import (
    Checkpoint,
    CheckpointVersionError,
    DamagedCheckpointError,
    Shelf,
    checkpoint_bytes,
    read_checkpoint,
)

ARRAYS = {
    "codes": np.arange(12, dtype=np.int16).reshape(3, 4),
    "values": np.array([[0.1, -0.0], [np.inf, 5e-324]]),
    "keys": np.array([2**64 - 1], np.uint64),
    "none": np.zeros((0, 3)),
}
HEADER = {"generation": 7, "big": 2**127 + 1, "number": 0.1 + 0.2, "names": ["a", "b"]}
CONTENT = checkpoint_bytes(Checkpoint(HEADER, ARRAYS))


def refused(content: bytes, folder: Path) -> bool:
    (folder / "c.npz").write_bytes(content)
    try:
        read_checkpoint(folder / "c.npz")
    except DamagedCheckpointError as error:
        return "is damaged" in str(error)
    return False


def test_a_checkpoint_reads_back_to_the_last_bit(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_bytes(CONTENT)
    found = read_checkpoint(tmp_path / "c.npz")
    assert {key: found.header[key] for key in HEADER} == HEADER
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        other = found.arrays[name]
        assert (other.dtype, other.shape, other.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_the_format_is_open(tmp_path: Path) -> None:
    (tmp_path / "c.npz").write_bytes(CONTENT)
    with np.load(tmp_path / "c.npz", allow_pickle=False) as arrays:
        assert arrays["codes"].tolist() == ARRAYS["codes"].tolist()
    with zipfile.ZipFile(tmp_path / "c.npz") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("header.json"))["generation"] == 7
        assert archive.comment.decode() == hashlib.sha256(CONTENT[:-64]).hexdigest()


def test_equal_checkpoints_have_equal_bytes() -> None:
    assert checkpoint_bytes(Checkpoint(dict(HEADER), dict(ARRAYS))) == CONTENT


@pytest.mark.slow
def test_any_bit_that_is_turned_is_found(tmp_path: Path) -> None:
    for position in range(len(CONTENT)):
        content = bytearray(CONTENT)
        content[position] ^= 1 << position % 8
        assert refused(bytes(content), tmp_path), position


@pytest.mark.parametrize(("step", "remedy"), [(1, "update Shine"), (-1, "search anew")])
def test_another_version_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, remedy: str
) -> None:
    other = checkpoints.VERSION + step
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "VERSION", other)
        (tmp_path / "c.npz").write_bytes(checkpoint_bytes(Checkpoint({**HEADER, "shine": "9.9"}, {})))
    with pytest.raises(CheckpointVersionError, match=rf"of version {other}, written by Shine 9\.9.*{remedy}"):
        read_checkpoint(tmp_path / "c.npz")


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.array([print], dtype=object))
    with_object = io.BytesIO()
    with zipfile.ZipFile(with_object, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": checkpoints.FORMAT, "version": checkpoints.VERSION}))
        archive.writestr("evil.npy", stream.getvalue())
        archive.comment = b"0" * 64
    content = with_object.getvalue()[:-64]
    (tmp_path / "c.npz").write_bytes(content + hashlib.sha256(content).hexdigest().encode())
    with pytest.raises(ExportError, match="cannot be read: Object arrays cannot be loaded"):
        read_checkpoint(tmp_path / "c.npz")


def test_the_last_three_are_kept(tmp_path: Path) -> None:
    for generation in range(9):
        Shelf(tmp_path).put(Checkpoint({"generation": generation}, {}))
    assert [path.name for path in Shelf(tmp_path).paths] == ["0000000008.npz", "0000000007.npz", "0000000006.npz"]


def test_damaged_checkpoints_are_dropped_only_after_a_good_one_is_written(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for generation in (5, 6, 7):
        shelf.put(Checkpoint({"generation": generation}, {}))
    for path in shelf.paths[:2]:
        path.write_bytes(b"damaged")
    good = [found.header["generation"] for found in shelf.readable() if isinstance(found, Checkpoint)]
    assert good == [5]
    shelf.put(Checkpoint({"generation": 6}, {}))
    assert [found.header["generation"] for found in shelf.readable() if isinstance(found, Checkpoint)] == [6, 5]
    assert len(shelf.paths) == 2
