"""The arguments of calls, as models read them: types of which the protocol's schemas are made."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

Answer = dict[str, Any]


class Formula(TypedDict, total=False):
    """A formula: ``{"run": "runs/NAME"}``, perhaps with an ``index`` of its front, or ``{"formula": "a*exp(-b)"}``."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    run: str
    index: int
    formula: Annotated[str, Field(max_length=20_000)]


Of = Annotated[Formula, Field(description='{"run": "runs/NAME"}, perhaps with "index", or {"formula": "a*exp(-b)"}')]
Table = Annotated[str, Field(description="Path of a table below the server's folder, such as data.csv")]
Run = Annotated[str, Field(description="Folder of a run, such as runs/cooling")]
Index = Annotated[int | None, Field(description="Place in the front; by default that of the chosen formula")]
Out = Annotated[str | None, Field(description="File to write below the server's folder; it must not exist")]
Name = Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_-]*$", max_length=60)]
Settings = Annotated[
    dict[str, Any],
    Field(
        description="As in Shine's YAML: {data: {path, target, features?, missing?, categories?, sigma?}, "
        "primitives?: [add, sub, mul, div, exp, ...], stop?: {seconds?, generations?}, constraints?: {units?, "
        "target_unit?, monotonic?}, evolution?: {max_size?}, fitness?: {loss?}, template?, guesses?, seed?}"
    ),
]
