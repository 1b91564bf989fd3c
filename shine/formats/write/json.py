"""Formulas as JSON, in a schema that other programs can read and write: `to_json` and `from_json`.

A formula is a list of items in postfix order: a number, the name of a feature or an assigned value, or an object that
applies a primitive to the values before it. Nothing nests, so no formula is too deep for a parser of JSON.
docs/exports.md describes the schema.

The checks are written by hand, not with pydantic: on one wrong item it reports every alternative of the union (five to
seven errors), and it accepts NaN and repeated keys. Most checks are about the language anyway: stack, arity, names.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, NoReturn

from shine.base.errors import ExportError, GraphImportError, UnsupportedSyntaxError
from shine.formats.write.sources import Headings, made_numbers, takes_models
from shine.formats.write.translation import composites, is_standard
from shine.lang.forms.grammar import ExpressionVerifier, check_name, check_number
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import normalized, value_text
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tape import application
from shine.lang.forms.tree import COMPARISON_NODES, Primitive, Tree

SCHEMA = "shine-formula"
SCHEMA_VERSION = 1

LONGEST = 100_000_000
"""Longest text that is read, in characters."""

_KEYS = {"schema", "schema_version", "name", "features", "functions", "assignments", "result"}
_FUNCTION_KEYS = {"name", "parameters", "assignments", "result"}


@takes_models
def to_json(
    tree: Tree,
    name: str | None = None,
    *,
    indent: int | None = 2,
    headings: Headings | None = None,
    precision: Precision = None,
) -> str:
    """The formula as JSON; `from_json` returns the same tree.

    Parameters
    ----------
    tree : Tree or Model
    name : str, optional
        Name of the formula; its own name by default.
    indent : int, optional
        Spaces for each level; None for a single line.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature; `json_headings` reads them back. ``columns`` says what the
        numbers of texts and dates are, if they are known.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Raises
    ------
    ExportError
        If a function has no definition, or two different functions have the same name.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(to_json(parse("2.5*x"), "f", indent=None))  # doctest: +ELLIPSIS
    {"schema": "shine-formula", ..., "result": [2.5, "x", {"apply": "mul", "to": 2}]}
    """
    tree = rounded_tree(tree, precision, named=False)
    functions: dict[str, Primitive] = {}
    for primitive in composites(tree, "JSON"):
        known = functions.setdefault(primitive.name, primitive)
        if known.definition != primitive.definition:
            raise ExportError(
                f"primitive {primitive.name!r} cannot be exported to JSON: another function has that name; rename one"
            )
    original = [(headings or {}).get(feature, feature) for feature in tree.parameters]
    columns = made_numbers(tree.parameters, headings)
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "name": tree.name if name is None else name,
        "features": list(tree.parameters),
        **({"headings": original} if original != list(tree.parameters) else {}),
        **({"columns": columns} if columns else {}),
        "functions": [
            {"name": own.name, "parameters": list(own.definition.parameters), **_body(own.definition)}
            for own in functions.values()
            if own.definition is not None
        ],
        **_body(tree),
    }
    if indent is None:
        return json.dumps(document, allow_nan=False)
    return _pretty(document, " " * indent)


def _body(tree: Tree) -> dict[str, Any]:
    """Assignments and result; the operands of an item come before it."""
    assignments: list[dict[str, Any]] = []
    items: list[Any] = []
    for kind, detail in tree.tokens[1:]:
        if kind == "assign":
            assignments.append({"name": detail, "value": items})
            items = []
        else:
            items += [0.0, 0.0, _item("div", 2)] if detail == "nan" and kind == "constant" else [_item(kind, detail)]
    return {"assignments": assignments, "result": items}


def _item(kind: str, detail: Any) -> Any:
    match kind:
        case "constant":
            return ast.literal_eval(detail)
        case "name":
            return detail
        case "compare" if len(detail) > 1:
            return {"compare": list(detail), "to": len(detail) + 1}
        case "compare":
            return {"apply": detail[0], "to": 2}
    return {"apply": kind, "to": detail}


def _pretty(document: Mapping[str, Any], space: str) -> str:
    """JSON with a line for each key, function and assignment."""
    lines = []
    for key, value in document.items():
        text = json.dumps(value, allow_nan=False)
        if key in ("functions", "assignments") and value:
            entries = f",\n{space * 2}".join(json.dumps(entry, allow_nan=False) for entry in value)
            text = f"[\n{space * 2}{entries}\n{space}]"
        lines.append(f"{space}{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def from_json(text: str | bytes) -> Tree:
    """The formula in a text that `to_json` or another program wrote.

    It is verified like a formula of the language; nothing is evaluated.

    Raises
    ------
    GraphImportError
        If the text is not JSON of the schema, has a newer version, or is not a formula of the language. The message
        says where.
    """
    return _formula(_document(text))


def json_headings(text: str | bytes) -> dict[str, str]:
    """The original heading of each feature's column in a text that `to_json` wrote, by feature.

    Raises
    ------
    GraphImportError
        As for `from_json`.
    """
    document = _document(text)
    features = _formula(document).parameters
    return dict(zip(features, document.get("headings", features), strict=True))


def _document(text: str | bytes) -> dict[str, Any]:
    """The object in a text, its schema and headings checked."""
    if len(text) > LONGEST:
        _refuse(f"it has {len(text)} characters; at most {LONGEST} are read")
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except RecursionError:
        _refuse("it is nested too deeply")
    except ValueError as error:
        _refuse(f"it is not JSON: {str(error)[-160:]}")
    _check_object(document, _KEYS, "the document", {"headings", "columns"})
    if document["schema"] != SCHEMA:
        _refuse(f"its schema is {_shown(document['schema'])}, not {SCHEMA!r}")
    version = document["schema_version"]
    if type(version) is not int or version < 1:
        _refuse(f"schema_version is {_shown(version)}; it is a whole number from 1 on")
    if version > SCHEMA_VERSION:
        _refuse(f"schema_version is {version}; this version of Shine reads up to {SCHEMA_VERSION}")
    headings, features = document.get("headings"), document["features"]
    columns = document.get("columns", {})
    if not isinstance(columns, dict) or not all(isinstance(note, str) for note in columns.values()):
        _refuse("columns is not an object of texts, by feature")
    if headings is not None and (
        not isinstance(headings, list)
        or not isinstance(features, list)
        or len(headings) != len(features)
        or not all(isinstance(heading, str) for heading in headings)
    ):
        _refuse("headings is not a list of texts, one for each feature")
    return dict(document)


def _formula(document: Mapping[str, Any]) -> Tree:
    if not isinstance(document["functions"], list):
        _refuse("functions is not a list")
    table, own = dict(STANDARD), dict[str, Primitive]()
    for position, entry in enumerate(document["functions"]):
        place = f"functions[{position}]"
        _check_object(entry, _FUNCTION_KEYS, place)
        name = _name(entry["name"], f"{place}.name")
        if name in BASIC or name in own:
            _refuse(f"{place}: there is already a function {name!r}")
        definition = _tree(entry, name, "parameters", dict(table), f"{place}.")
        # The file's definition counts, even if Shine's library computes the function differently.
        own[name] = Primitive(name, len(definition.parameters), definition)
        if not is_standard(own[name]):
            table[name] = own[name]
    return _tree(document, _name(document["name"], "name"), "features", table, "")


def _tree(entry: Mapping[str, Any], name: str, parameters: str, table: Mapping[str, Primitive], place: str) -> Tree:
    if not isinstance(entry[parameters], list):
        _refuse(f"{place}{parameters} is not a list")
    names: dict[str, str | None] = {}
    for position, given in enumerate(entry[parameters]):
        _add_name(names, given, f"{place}{parameters}[{position}]")
    ordered = tuple(names)
    if not isinstance(entry["assignments"], list):
        _refuse(f"{place}assignments is not a list")
    assignments = []
    for position, assignment in enumerate(entry["assignments"]):
        here = f"{place}assignments[{position}]"
        _check_object(assignment, {"name", "value"}, here)
        value = _expression(assignment["value"], names, table, f"{here}.value")
        assignments.append((_add_name(names, assignment["name"], f"{here}.name"), value))
    result = _expression(entry["result"], names, table, f"{place}result")
    return Tree(ordered, result, tuple(assignments), name, table)


def _expression(items: object, names: Mapping[str, str | None], table: Mapping[str, Primitive], place: str) -> ast.expr:
    if not isinstance(items, list):
        _refuse(f"{place} is not a list")
    stack: list[ast.expr] = []
    for position, item in enumerate(items):
        here = f"{place}[{position}]"
        match item:
            case bool() | None | list():
                _refuse(f"{here} is {_shown(item)}; an item is a number, a name or an object")
            case int() | float():
                stack.append(ast.Constant(_checked(check_number, item, here)))
            case str():
                name = normalized(item)
                if name not in names:
                    _refuse(f"{here}: {_shown(item)} is neither a feature nor assigned before")
                stack.append(ast.Name(name, ast.Load()))
            case _:
                _apply(item, stack, table, here)
    if len(stack) != 1:
        _refuse(f"{place} leaves {len(stack)} values, not 1")
    # Counts the nodes and brings them into the language's normal form.
    verified: ast.expr = _checked(ExpressionVerifier(table, names).visit, stack[0], place)
    return verified


def _apply(item: Mapping[str, Any], stack: list[ast.expr], table: Mapping[str, Primitive], place: str) -> None:
    """Apply an item to the values on the stack."""
    verb = "compare" if "compare" in item else "apply"
    _check_object(item, {verb, "to"}, place)
    count, primitive = item["to"], item[verb]
    if isinstance(primitive, str):
        primitive = normalized(primitive)
    if verb == "compare":
        if not isinstance(primitive, list) or not primitive or not all(
            isinstance(name, str) and name in COMPARISON_NODES for name in primitive
        ):  # fmt: skip
            _refuse(f"{place}: compare is a list of {', '.join(COMPARISON_NODES)}")
        arity = len(primitive) + 1
    else:
        if not isinstance(primitive, str) or (primitive not in BASIC and primitive not in table):
            _refuse(f"{place}: unknown primitive {_shown(primitive)}")
        arity = table[primitive].arity
    if type(count) is not int or count != arity:
        _refuse(f"{place}: {_shown(primitive)} applies to {arity} values, not {_shown(count)}")
    if len(stack) < arity:
        _refuse(f"{place}: {_shown(primitive)} applies to {arity} values; there are {len(stack)}")
    operands = stack[len(stack) - arity :]
    del stack[len(stack) - arity :]
    if verb == "compare":
        nodes = [COMPARISON_NODES[name]() for name in primitive]
        stack.append(ast.Compare(operands[0], nodes, operands[1:]))
    else:
        stack.append(application(primitive, operands))


def _add_name(names: dict[str, str | None], given: object, place: str) -> str:
    name = _name(given, place)
    if name in names:
        _refuse(f"{place}: {name!r} is there already")
    names[name] = name
    return name


def _name(given: object, place: str) -> str:
    return str(_checked(check_name, given, place))


def _checked(check: Any, value: object, place: str) -> Any:
    try:
        return check(value)
    except UnsupportedSyntaxError as error:
        _refuse(f"{place}: {error}")


def _check_object(value: object, keys: set[str], place: str, optional: Set[str] = frozenset()) -> None:
    if not isinstance(value, dict):
        _refuse(f"{place} is {_shown(value)}, not an object")
    for key in sorted(keys - value.keys()):
        _refuse(f"{place} lacks {key!r}")
    for key in value.keys() - keys - optional:
        _refuse(f"{place} has an unknown entry {_shown(key)}")


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the entry {_shown(repeated)} is there twice")
    return result


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _shown(value: object) -> str:
    return value_text(value) if isinstance(value, str | int | float | None) else type(value).__name__


def _refuse(message: str) -> NoReturn:
    raise GraphImportError(f"not a formula in JSON: {message}")
