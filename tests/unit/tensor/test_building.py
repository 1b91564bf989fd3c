"""Tensor programs as files, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import shine.tensor
from shine.errors import CompilationError

DOUBLE = """module @twice

func @main: (<3 x f32>) -> <3 x f32> {
'entry(%x: <3 x f32>):
    %y = add %x: <3 x f32>, %x: <3 x f32>
    return %y: <3 x f32>
}
"""


def test_files_have_the_name_of_the_program_or_another_one() -> None:
    assert list(shine.tensor.compile(DOUBLE)) == ["twice.o", "twice.h"]
    assert list(shine.tensor.compile(shine.tensor.load(DOUBLE), "f", "asm", target="aarch64-linux-gnu")) == ["f.s"]


def test_a_class_comes_beside_all_other_kinds() -> None:
    files = shine.tensor.compile(DOUBLE, emit="header", cpp_class="net::Twice")
    assert list(files) == ["twice.h", "twice.hpp"] and b"class Twice final" in files["twice.hpp"]


@pytest.mark.slow
def test_the_target_decides_the_code() -> None:
    wide, narrow = (shine.tensor.compile(DOUBLE, emit="asm", cpu=cpu, target="x86_64-linux-gnu")["twice.s"] for cpu in
                    ("x86-64-v3", "x86-64"))  # fmt: skip
    assert b"vadd" in wide and b"vadd" not in narrow


def test_files_are_written_all_or_none(tmp_path: Path) -> None:
    paths = shine.tensor.build(DOUBLE, tmp_path / "made", cpp_class="Twice")
    assert [path.name for path in paths] == ["twice.o", "twice.h", "twice.hpp"]
    assert all(path.read_bytes() for path in paths)
    with pytest.raises(CompilationError):
        shine.tensor.build(DOUBLE, tmp_path / "other", target="nvptx64-nvidia-cuda")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("options", [{"emit": "exe"}, {"name": "int"}, {"cpp_class": "a b"}, {"opt_level": "O9"}])
def test_what_cannot_be_made_is_refused(options) -> None:
    with pytest.raises(ValueError, match=r"exe|int|a b|O9"):
        shine.tensor.compile(DOUBLE, **options)


def test_options_of_reading_are_not_for_what_is_read_already() -> None:
    with pytest.raises(TypeError, match="a function is read already; leave out config"):
        shine.tensor.compile(shine.tensor.load(DOUBLE), config="feeds.pbtxt")
