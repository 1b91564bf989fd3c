"""The compiler's configuration, as text and as bytes."""

from __future__ import annotations

import pytest

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import messages
from shine.tensor.graphdef.config import Feed, Fetch, named, read_config

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

TEXT = """
# As in the documentation of tfcompile.
feed { id { node_name: "x_hold" } shape { dim { size: 2 } dim { size: 3 } } }
feed { id { node_name: "y" output_index: 1 } shape { dim { size: -1 } } name: "second" type: DT_INT32 }
fetch { id { node_name: "x_y_prod" } }
"""


def binary(text: str) -> bytes:
    """The same as bytes."""
    made = messages()
    return made.text_format.Parse(text, made.Config(), descriptor_pool=made.pool).SerializeToString()


@pytest.mark.parametrize("content", [TEXT.encode(), binary(TEXT)], ids=["text", "binary"])
def test_feeds_and_fetches_are_read(content):
    signature = read_config(content)
    assert signature.feeds == (Feed("x_hold", shape=(2, 3)), Feed("y", 1, (None,), "int32", "second"))
    assert signature.fetches == (Fetch("x_y_prod"),)
    assert [feed.label for feed in signature.feeds] == ["x_hold", "second"]


def test_a_file_is_named(tmp_path):
    (tmp_path / "c.pbtxt").write_text("feed {")
    with pytest.raises(GraphImportError, match=r"config .*c\.pbtxt: it is not a Config as text"):
        read_config(tmp_path / "c.pbtxt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ('feed { id { node_name: "x" } }', "it has no fetch"),
        ('fetch { id { node_name: "x" } }\nfetches { }', 'has no field named "fetches"'),
        ("fetch { id { } }", "an id has no node_name"),
        ('fetch { id { node_name: "x:0" } }', "write output_index apart"),
        ('fetch { id { node_name: "x" output_index: -1 } }', "must be at least 0"),
        ('fetch { id { node_name: "x" } }' * 2, "two of fetch 'x:0'"),
        ('fetch { id { node_name: "x" } name: "a" } fetch { id { node_name: "y" } name: "a" }', "'a'"),
        ('fetch { id { node_name: "x" } type: DT_STRING }', "DT_STRING is not supported"),
        ('fetch { id { node_name: "x" } } variable { node_name: "v" }', "'v' is not readonly"),
        ('fetch { id { node_name: "x" } shape { dim { size: -2 } } }', "negative length"),
    ],
)
def test_what_cannot_be_is_refused(text, message):
    with pytest.raises(GraphImportError, match=message):
        read_config(text.encode())


def test_names_with_shapes():
    signature = named({"x": (2, 3), "y:1": None}, ["z"])
    assert signature.feeds == (Feed("x", shape=(2, 3)), Feed("y", 1))
    assert signature.fetches == (Fetch("z"),)
    with pytest.raises(GraphImportError, match="listed twice"):
        named(["x", "x"], None)
    with pytest.raises(TypeError, match="not one string"):
        named("x", None)
    with pytest.raises(GraphImportError, match="fetches is empty"):
        named(None, [])
