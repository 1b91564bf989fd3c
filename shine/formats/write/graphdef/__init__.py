"""Formulas as graphs of TensorFlow: GraphDef, as text and as bytes.

A value that the formula computes twice is one node. TensorFlow keeps truth values and numbers apart: a comparison is a
node of booleans, followed by a Cast if the formula uses its number.
"""

from __future__ import annotations

from typing import Any

from shine.base.errors import ExportError, GraphImportError
from shine.formats.read.messages import Messages, messages
from shine.formats.write.given import takes_models
from shine.formats.write.graphdef.graph import TYPES, Graph
from shine.formats.write.graphdef.operations import COMPOSITES, FLOAT, INTEGER
from shine.formats.write.headings import Headings
from shine.formats.write.sources import notes
from shine.formats.write.statements.straightline import straight_line
from shine.lang.forms.tree import Tree

_FORM = "GraphDef"


@takes_models
def graphdef(tree: Tree, name: str = "f", dtype: str = "float64") -> Any:
    """A formula as a GraphDef message.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the node with the result; a number is added if a feature has the name.
    dtype : {"float64", "float32", "int32", "int64"}
        Type of the arguments and of the result.

    Returns
    -------
    GraphDef
        First a Placeholder of any shape for each feature, in the order of the tree's parameters; their names are the
        features', without characters that TensorFlow does not allow. Then the other nodes, each after its inputs. The
        result has the shape to which the used features broadcast.

    Raises
    ------
    ExportError
        If protobuf is not installed, the formula calls a function without a definition, or the type cannot hold a
        constant or compute a primitive.
    ValueError
        If the dtype is unknown.

    Notes
    -----
    TensorFlow computes both branches of a conditional, and stops with an error if either divides an integer by zero or
    raises an integer to a negative power. Its kernels for floats treat subnormal numbers as zero.
    """
    if dtype not in TYPES:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(TYPES)}")
    code = straight_line(tree, _FORM, list(COMPOSITES))
    graph = Graph(_messages(), dtype)
    arguments = [graph.placeholder(parameter) for parameter in tree.parameters]
    rules = FLOAT if dtype in ("float64", "float32") else INTEGER
    for body in (code.main, *code.functions.values()):
        for primitive in (step.primitive for step in body.steps if step.primitive):
            if primitive.definition is None and primitive.name not in rules:
                raise ExportError(
                    f"primitive {primitive.name!r} cannot be exported to {_FORM} in {dtype}; use float64 or float32"
                )
    result = code.run(rules, graph.number, arguments)
    graph.add("Identity", name or "f", result.as_number(), T=dtype)
    return graph.message


@takes_models
def graphdef_text(tree: Tree, name: str = "f", dtype: str = "float64", *, headings: Headings | None = None) -> str:
    """A formula as the text of a `.pbtxt` file, with the original headings in comments; see `graphdef`."""
    message = graphdef(tree, name, dtype)
    # The placeholders come first, in the order of the features.
    placeholders = dict(zip(tree.parameters, (node.name for node in message.node), strict=False))
    comments = [f"# {placeholder} is {heading}\n" for placeholder, heading in notes(placeholders, headings).items()]
    text: str = _messages().text_format.MessageToString(message)
    return "".join(comments) + text


@takes_models
def graphdef_bytes(tree: Tree, name: str = "f", dtype: str = "float64") -> bytes:
    """A formula as the bytes of a `.pb` file; see `graphdef`."""
    made: bytes = graphdef(tree, name, dtype).SerializeToString(deterministic=True)
    return made


def _messages() -> Messages:
    try:
        return messages()
    except GraphImportError:
        raise ExportError(
            "the export to GraphDef needs protobuf; install it with: pip install 'shine[tensorflow]'"
        ) from None
