"""Checkpoints that TensorFlow wrote, tables written here in other ways, and damaged ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.tables import table
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.checkpoint_bundle import Checkpoint
from shine.tensor.graphdef.checkpoint_table import crc32c, decompressed, ordered_key, read_table

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FOLDER = Path(__file__).parents[3] / "fixtures" / "tensor_graphs"


def test_the_checksum_of_the_standards_example():
    assert crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("snappy", [False, True])
@given(st.dictionaries(st.binary(max_size=6), st.binary(max_size=40), max_size=60), st.integers(1, 40))
def test_a_table_is_read_as_it_was_written(snappy, entries, size):
    entries = dict(sorted(entries.items()))
    assert read_table(table(entries, size, snappy)) == entries


def test_copies_of_every_width():
    # Ten bytes, a copy from eight before (one byte of offset), and one with four bytes of offset.
    content = bytes([30, 9 << 2]) + b"0123456789" + bytes([(11 - 4) << 2 | 1, 8]) + bytes([8 << 2 | 3, 10, 0, 0, 0])
    assert decompressed(content, 100) == b"0123456789" + b"23456789234" + b"345678923"


def test_a_literal_with_its_length_apart():
    assert decompressed(bytes([70, 60 << 2, 69]) + b"x" * 70, 100) == b"x" * 70


@pytest.mark.parametrize(
    "content", [b"", b"\x80", bytes([5, 0]), bytes([5, 1, 1]), bytes([200, 1, 0, 65]), bytes([1, 4, 65, 66])]
)
def test_a_damaged_block_is_refused(content):
    with pytest.raises(GraphImportError):
        decompressed(content, 100)


def test_a_checkpoint_of_objects_is_read_by_the_variables_names():
    checkpoint = Checkpoint(FOLDER / "objects.ckpt")
    assert checkpoint.tensor("w").shape == (2, 3)
    assert checkpoint.tensor("b").tolist() == [True, False]
    assert checkpoint.tensor("n") == 7 and checkpoint.tensor("n").dtype == np.int64
    assert (checkpoint.tensor("model/kernel/.ATTRIBUTES/VARIABLE_VALUE") == checkpoint.tensor("w")).all()


def test_a_variable_in_parts_is_joined():
    rows = Checkpoint(FOLDER / "parts.ckpt").tensor("rows")
    assert rows[:, 0].tolist() == [0] * 4 + [1] * 3 + [2] * 3 and rows.shape == (10, 4)


def test_parts_are_variables_of_their_own():
    checkpoint = Checkpoint(FOLDER / "parts.ckpt")
    found = [checkpoint.tensor(f"rows/part_{i}") for i in range(3)]
    assert (np.concatenate(found) == checkpoint.tensor("rows")).all() and len(found[0]) == 4
    with pytest.raises(GraphImportError, match="'rows': it has 3 parts, and number '3' is needed"):
        checkpoint.tensor("rows/part_3")
    with pytest.raises(GraphImportError, match=r"'rows': it has 3 parts, and number '9+.* is needed"):
        checkpoint.tensor("rows/part_" + "9" * 5000)
    with pytest.raises(GraphImportError, match="has no tensor 'columns/part_0'"):
        checkpoint.tensor("columns/part_0")


def test_the_prefix_the_index_and_the_folder_name_the_same(tmp_path):
    for path in FOLDER.glob("network.ckpt*"):
        shutil.copy(path, tmp_path / path.name)
    names = Checkpoint(tmp_path / "network.ckpt").names()
    assert "conv/kernel" in names
    assert Checkpoint(tmp_path / "network.ckpt.index").names() == names
    assert Checkpoint(str(tmp_path)).names() == names
    for path in FOLDER.glob("parts.ckpt*"):
        shutil.copy(path, tmp_path / path.name)
    with pytest.raises(GraphImportError, match="has 2 checkpoints; name one"):
        Checkpoint(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "parts.ckpt"\n')
    assert "rows" in Checkpoint(tmp_path).names()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index, data: (index, data[:100]), "it is truncated"),
        (lambda index, data: (index, b"\x01" + data[1:]), "checksum in c.data-00000-of-00001 does not agree"),
        (lambda index, data: (index[:-1], data), "magic number"),
        (lambda index, data: (b"\xff" + index[1:], data), "the checksum of the block at 0 does not agree"),
        (lambda index, data: (table({b"": b""}), data), "its header is damaged: 0 shards"),
        (lambda index, data: (table({b"a": b"b"}), data), "it has no header"),
        (
            lambda index, data: (table({**read_table(index), b"rows": b"\x0f"}), data),
            "BundleEntryProto in it is damaged",
        ),
        (lambda index, data: (table(dict(list(read_table(index).items())[:1])), data), "has no tensor 'rows'"),
        (lambda index, data: (index, None), "cannot be read: No such file"),
    ],
)
def test_damage_is_named(tmp_path, change, message):
    index, data = ((FOLDER / f"parts.ckpt.{end}").read_bytes() for end in ("index", "data-00000-of-00001"))
    index, data = change(index, data)
    (tmp_path / "c.index").write_bytes(index)
    if data is not None:
        (tmp_path / "c.data-00000-of-00001").write_bytes(data)
    with pytest.raises(GraphImportError, match=message):
        Checkpoint(tmp_path / "c").tensor("rows")


def test_a_part_that_is_missing_is_named(tmp_path):
    entries = read_table((FOLDER / "parts.ckpt.index").read_bytes())
    del entries[ordered_key("rows", ((4, 3), (0, 4)))]
    (tmp_path / "c.index").write_bytes(table(entries))
    shutil.copy(FOLDER / "parts.ckpt.data-00000-of-00001", tmp_path / "c.data-00000-of-00001")
    with pytest.raises(GraphImportError, match=r"'rows': its part \[\(4, 3\), \(0, 4\)\] is missing"):
        Checkpoint(tmp_path / "c").tensor("rows")


def test_strings_and_checkpoints_of_before_are_refused(tmp_path):
    with pytest.raises(GraphImportError, match="'words': element type DT_STRING is not supported"):
        Checkpoint(FOLDER / "parts.ckpt").tensor("words")
    (tmp_path / "old").write_bytes(table({}))
    with pytest.raises(GraphImportError, match="format before 2017"):
        Checkpoint(tmp_path / "old")
