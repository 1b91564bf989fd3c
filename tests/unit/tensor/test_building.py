"""Tensor programs as files, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import shine.aot
import shine.tensor
import shine.trees
from shine.base.errors import CompilationError

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"emit": 3}, ValueError, "cannot emit 3; use some of object"),
        ({"emit": ["object", None]}, ValueError, "cannot emit None; use some of object"),
        ({"emit": []}, ValueError, "there is nothing to emit; name some of object"),
        ({"name": 3}, TypeError, "name=3 is no text; give a str"),
        ({"target": 3}, TypeError, "target=3 is no text"),
        ({"cpu": b"native"}, TypeError, "cpu=b'native' is no text"),
        ({"features": None}, TypeError, "features=None is no text"),
        ({"features": ["+fma"]}, TypeError, "features=.* is no text"),
    ],
)
def test_arguments_of_another_kind_are_refused_everywhere(tmp_path, options, error, message):
    for build, source in ((shine.tensor.build, DOUBLE), (shine.aot.build, "2*x")):
        with pytest.raises(error, match=message):
            build(source, tmp_path / "made", **options)
        with pytest.raises(TypeError, match="folder=3 is no path; give the path of a folder"):
            build(source, 3)
    assert not (tmp_path / "made").exists()


def test_the_class_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="cpp_class=3 is no text"):
        shine.tensor.compile(DOUBLE, cpp_class=3)


def test_options_of_reading_are_not_for_what_is_read_already() -> None:
    with pytest.raises(TypeError, match="a function is read already; leave out config"):
        shine.tensor.compile(shine.tensor.load(DOUBLE), config="feeds.pbtxt")


def test_one_door_takes_formulas_tensor_programs_and_trees() -> None:
    sklearn = pytest.importorskip("sklearn.tree")
    trees = shine.trees.compile(sklearn.DecisionTreeRegressor().fit([[0.0], [1.0]], [2.0, 3.0]))
    sources = {"f": "2*x", "twice": shine.tensor.load(DOUBLE), "tree": trees}
    for name, source in sources.items():
        assert list(shine.aot.compile(source, "tree" if source is trees else None)) == [f"{name}.o", f"{name}.h"]
    assert list(shine.aot.compile(sources["twice"], emit="header", cpp_class="Two")) == ["twice.h", "twice.hpp"]


@pytest.mark.parametrize(("option", "allowed"), [("cpp_class", "dtype, params, target, cpu"), ("method", "dtype")])
def test_options_of_other_sources_are_refused(option: str, allowed: str) -> None:
    with pytest.raises(TypeError, match=f"there is no option '{option}' for this source; there are {allowed}"):
        shine.aot.compile("2*x", **{option: "f"})


def test_a_description_tells_source_target_and_interface() -> None:
    described = shine.aot.code_of(shine.tensor.load(DOUBLE), target="aarch64-linux-gnu").described()
    assert (described["name"], described["target"]) == ("twice", "aarch64-unknown-linux-gnu")
    assert described["parameters"] == [{"name": "x", "dtype": "float32", "shape": [3]}]
