"""What the README, the pages and the skill name exists: functions and their arguments, options, keys and tools."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from promises.faces import parameters
from promises.workshop import OPTIONS, TOOLS

from shine.faces.cli.commands import shine as group

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "skills" / "shine" / "SKILL.md"]
SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def texts(page: Path) -> list[str]:
    """The code within the lines of a page."""
    return [" ".join(code.split()) for _, code in SPAN.findall(FENCE.sub("", page.read_text(encoding="utf-8")))]


def blocks(page: Path) -> str:
    return "\n".join(FENCE.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")


def found(path: str) -> Any:
    """The object that a dotted name stands for; an `AttributeError` or `ImportError` if there is none."""
    first, *names = path.split(".")
    place: Any = importlib.import_module(first)
    for name in names:
        if isinstance(place, ModuleType) and not hasattr(place, name):
            importlib.import_module(f"{place.__name__}.{name}")
        place = getattr(place, name)
    return place


def ids(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_names_within_shine_exist(page):
    code = "\n".join([*texts(page), blocks(page)])
    missing = []
    for name in set(re.findall(r"(?<![\w./<-])(shine(?:\.[A-Za-z_]\w*)+)", code)) - FILES:
        try:
            found(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert missing == []


FILES = {"shine.schema.json"}
"""Names of files that look like names of Python."""


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_arguments_of_functions_exist(page):
    wrong = []
    for code in texts(page):
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            name = ast.unparse(call.func)
            if re.fullmatch(r"shine(\.\w+)+", name):
                signature = inspect.signature(found(name)).parameters
                free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.values())
                wrong += [
                    (code, each.arg) for each in call.keywords if each.arg and not free and each.arg not in signature
                ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_and_their_options_exist(page):
    lines = [*texts(page), *blocks(page).splitlines()]
    wrong = []
    for line in (each.strip().removeprefix("$ ") for each in lines):
        if not line.startswith("shine ") or line == "shine checkpoint":  # the format of a file
            continue
        try:
            _, *words = shlex.split(line, comments=True)
        except ValueError:
            continue
        command, path = group, ""
        while words and words[0] in getattr(command, "commands", {}):
            command, path = command.commands[words[0]], f"{path} {words[0]}".strip()
            words = words[1:]
        known = {name for each in command.params for name in each.opts} | {"--help", "-h", "--debug"}
        before = words[: words.index("--")] if "--" in words else words
        named = {word.partition("=")[0] for word in before if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)}
        wrong += [(line, name) for name in named - known]
        if not path and words and not words[0].startswith("-") and words[0].isalpha() and words[0].islower():
            wrong.append((line, words[0]))
    assert wrong == []


EVERY_OPTION = {name for each in OPTIONS.values() for name in each.opts} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_options_that_stand_alone_exist(page):
    named = {name for code in texts(page) for name in re.findall(r"\A(--[a-z][\w-]*)", code)}
    assert named - EVERY_OPTION == set()


KEYS = parameters("config")
SECTIONS = {name for name in KEYS if "." not in name}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_keys_of_configurations_exist(page):
    named = {code.partition("=")[0] for code in texts(page) if re.fullmatch(r"[a-z]\w*(\.[a-z]\w*)+(=.*)?", code)}
    own = {name for name in named if name.partition(".")[0] in SECTIONS}
    assert own - KEYS - ATTRIBUTES == set()


ATTRIBUTES = {"fitness.values"}
"""Attributes of DEAP's individuals that look like keys."""


def test_the_page_of_agents_lists_every_tool():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {name for cell in rows for name in re.findall(r"`(\w+)`", cell)} == set(TOOLS)
