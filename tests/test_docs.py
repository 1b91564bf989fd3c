"""The documentation is true: its examples run and print what it shows, and what it names exists.

The blocks of a page run in order, in one namespace and one folder, as if a reader typed the page from its top:

* `python` blocks are executed. An expression followed by a comment with a literal must have that value.
* `console` blocks are command lines of Shine, which end with exit code 0 (tests/cli/test_docs.py runs those of cli.md).
* A block with a title is a file of that name. Every `yaml` block is a valid configuration, or part of one.
* A `text` block is output of the block before it: all its lines, or only those with a mark if it has any.
* `javascript` blocks run in tests/unit/formats/native/test_wasm.py, those of tensors.md and its `cpp` blocks in
  tests/unit/tensor/native/test_page.py, `r` blocks in tests/test_r.py.
* A block after `<!-- not run: reason -->` is not executed, but must be valid Python.

Three points in an expected value or output stand for anything.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import shine
from shine import Constraints, SymbolicRegressor, SymbolicTransformer
from shine.faces.cli.commands import shine as command_line
from shine.faces.config import read_config
from shine.faces.config.models import Config
from shine.faces.estimators.parameters import FREE
from shine.faces.keywords import settings_from
from shine.lang.forms.library import STANDARD
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SKILL = ROOT / "skills" / "shine" / "SKILL.md"
"""What agents read; its blocks run like those of a page."""
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?"
    r'^(?P<indent> *)```(?P<language>\S*)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^ *```$',
    re.MULTILINE | re.DOTALL,
)
MARKS = ("*", ">>>")
STAND_IN = (
    "data: {generate: {features: {dose: {normal: {}}, id: {normal: {}}}, target: dose}}\nprimitives: [sin, exp]\n"
)
"""Completes a partial configuration, to check it."""
NEEDED = {
    "big-data.md": "pyarrow",
    "aot.md": "google.protobuf",
    "aot-web.md": "ziglang",
    "data.md": "pandas",
    "deap.md": "deap",
    "deap-recipes.md": "deap",
    "estimators.md": "pandas",
    "graphs.md": "google.protobuf sympy torch",
    "howto.md": "matplotlib",
    "plots.md": "matplotlib",
    "queries.md": "pandas polars pyarrow",
    "templates.md": "pandas",
    "tensors.md": "google.protobuf ziglang",
    "tutorial-distil.md": "torch",
    "tutorial.md": "pandas",
}
"""Packages a page needs besides Shine's own dependencies."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its text without indentation, and the line of the page it begins in, from 1."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    return page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(content):
        lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines(keepends=True)]
        begin = content.count("\n", 0, match.start("text")) + 1
        found.append(Block(page, begin, match["language"], match["title"], "".join(lines), match["reason"]))
    return found


ALL = [block for page in (*PAGES, SKILL) for block in blocks(page)]


def of(*languages: str) -> list[Block]:
    return [block for block in ALL if block.language in languages]


# ---- running a page ----


class Promises(ast.NodeTransformer):
    """Makes `expression  # literal` a comparison."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def visit_Module(self, node: ast.Module) -> ast.Module:
        return ast.Module([self.statement(one) for one in node.body], node.type_ignores)

    def statement(self, node: ast.stmt) -> ast.stmt:
        if not isinstance(node, ast.Expr):
            return node
        line = self.lines[(node.end_lineno or 0) - 1].encode()[node.end_col_offset :].decode()
        comment = line.partition("#")[2].strip()
        try:
            ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            return node
        call = ast.Call(ast.Name("__promised__", ast.Load()), [node.value, ast.Constant(comment)], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def fits(expected: str, text: str) -> bool:
    """Whether a text is as expected; three points stand for anything."""
    return bool(re.fullmatch(".*".join(map(re.escape, expected.split("..."))), text, re.DOTALL))


def promised(value: Any, comment: str) -> None:
    """Fail unless a value prints as a comment says."""
    plain = value.item() if hasattr(value, "item") else value
    assert fits(comment, repr(plain)), f"it is {plain!r}, and {comment} by the comment"


def script(page: Path) -> str:
    """The Python of a page at its own line numbers, so that messages and the sources of functions are right."""
    lines = [""] * page.read_text(encoding="utf-8").count("\n")
    for block in blocks(page):
        if block.language == "python" and block.reason is None:
            code = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(code)] = code
    return "\n".join(lines) + "\n"


def execute(block: Block, source: Path, namespace: dict[str, Any]) -> str:
    """The output of a block of Python."""
    text = "\n" * (block.line - 1) + block.text
    code = compile(Promises(text).visit(ast.parse(text)), str(source), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def command(block: Block) -> str:
    """The output of a block's command lines, on both streams."""
    printed = []
    for line in block.text.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line.removeprefix("$ "), comments=True)
        assert program == "shine", f"{block}: {line}"
        result = CliRunner().invoke(command_line, words, prog_name="shine")
        assert result.exit_code == 0, f"{block}: {line}: {result.output}"
        printed.append(result.output)
    return "".join(printed)


def shown(text: str) -> list[str]:
    """The lines of an output that must occur, with single spaces."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return [line for line in lines if line.startswith(MARKS)] or lines


def runs(page: Path) -> bool:
    return name(page) != "cli.md" and any(block.language in ("python", "console") for block in blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in (*PAGES, SKILL) if runs(page)], ids=name)
@pytest.mark.filterwarnings("ignore:A class named")  # DEAP keeps the classes of all pages and tests in one place
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDED.get(name(page), "numpy").split():
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    source = tmp_path / "page.py"
    source.write_text(script(page), encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "page", "__promised__": promised}
    output = ""
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            output = "" if block.reason else execute(block, source, namespace)
        elif block.language == "console":
            output = command(block)
        elif block.language == "text":
            printed = [" ".join(line.split()) for line in output.splitlines()]
            missing = [line for line in shown(block.text) if not any(fits(line, other) for other in printed)]
            assert not missing, f"{block}: not printed: {missing}; printed:\n{output}"


# ---- pictures ----

MADE_ELSEWHERE = {"data.svg", "tile.svg", "live.png", "report.png"}
"""Pictures that no command makes: drawings by hand, and photographs of pages."""


def test_the_documentation_shows_the_pictures_that_its_command_makes() -> None:
    source = ast.parse((DOCS / "pictures.py").read_text(encoding="utf-8"))
    (table,) = [
        node for node in source.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PICTURES"
    ]
    made = {f"{node.id}.svg" for node in ast.walk(table.value) if isinstance(node, ast.Name)} - {"each.svg"}
    shown = {Path(target).name for page in PAGES for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", prose(page))}
    there = {path.name for path in (DOCS / "images").iterdir()}
    assert made | MADE_ELSEWHERE == there == shown


@pytest.mark.slow
def test_a_picture_is_made_again_with_the_same_text(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = [sys.executable, DOCS / "pictures.py", "front", "--folder"]
    texts = []
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        subprocess.run([*command, folder], check=True, capture_output=True)
        texts.append((folder / "front.svg").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


# ---- agents ----


@pytest.mark.slow
def test_the_dialogue_with_an_agent_is_the_one_that_its_command_prints() -> None:
    pytest.importorskip("mcp")
    done = subprocess.run([sys.executable, DOCS / "dialogue.py"], check=True, capture_output=True, text=True)
    assert blocks(DOCS / "agents.md")[-1].text == done.stdout.rstrip() + "\n"


def test_the_skill_is_short_and_says_when_to_use_it() -> None:
    text = SKILL.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    front = yaml.safe_load(text.split("---\n")[1])
    assert set(front) == {"name", "description"} and front["name"] == SKILL.parent.name
    assert len(front["description"]) <= 1024


def test_the_guide_for_models_leads_to_every_page() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Shine\n\n> ")
    named = re.findall(r"\[[^]]+\]\(([^)]+)\)", text)
    assert {*named, "index.md"} == {page.name for page in DOCS.glob("*.md")}


# ---- what can be read without running ----


def test_few_blocks_are_not_run_and_all_of_them_are_python() -> None:
    excused = [block for block in ALL if block.reason]
    assert len(excused) <= 3
    for block in excused:
        assert block.language == "python", block
        ast.parse(block.text)


@pytest.mark.slow
@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_configurations_are_valid(block: Block, tmp_path: Path) -> None:
    content = yaml.safe_load(block.text)
    assert set(content) <= set(Config.model_fields)
    (tmp_path / "config.yaml").write_text(block.text if "data" in content else STAND_IN + block.text, encoding="utf-8")
    assert read_config(tmp_path / "config.yaml").seed == content.get("seed", 0)


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The places of a page that links can name, as Markdown's table of contents names headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.is_file() and place.is_relative_to(DOCS), target
        assert not anchor or anchor in anchors(place), target


GUIDES = [
    *PAGES,
    SKILL,
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "experiments/README.md")),
    ROOT / "tests" / "campaigns" / "README.md",
]
PATH = re.compile(r"\b(?:shine|tests|experiments)/[\w/.-]*[\w/]|\b[\w/]+\.py\b")
OF_OTHERS = {"examples/gp/symbreg.py", "f.py", "pool.py"}
"""A file of DEAP, one that a command makes, and one that the reader writes."""


@pytest.fixture(scope="module")
def known_paths() -> list[str]:
    """Paths of the package as installed, and of the folders beside it."""
    folders = (Path(shine.__file__).parent, ROOT / "tests", ROOT / "experiments", DOCS)
    return [f"/{path.relative_to(folder.parent).as_posix()}/" for folder in folders for path in folder.rglob("*")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_folders_it_names_exist(page: Path, known_paths: list[str]) -> None:
    named = set(PATH.findall(page.read_text(encoding="utf-8"))) - OF_OTHERS
    missing = [path for path in named if not any(f"/{path.rstrip('/')}/" in known for known in known_paths)]
    assert missing == []


# ---- the site ----

SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def entries(nav: Any) -> list[str]:
    """The files of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [file for part in (nav.values() if isinstance(nav, dict) else nav) for file in entries(part)]


def test_the_navigation_has_every_page_once() -> None:
    assert sorted(entries(SITE["nav"])) == sorted(map(name, PAGES))


def test_extras_it_names_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {name for row in table("index.md", "Installing") for name in names_in(row[0])}
    assert len(named) > 7
    assert named - set(extras) == set()


@pytest.mark.slow
def test_each_parameter_of_the_reference_has_its_own_default() -> None:
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(DOCS / "docstrings.py"))
    installed = Path(shine.__file__).parents[1]
    module = griffe.load("shine", search_paths=[installed], docstring_parser="numpy", extensions=extensions)
    sections = {section.kind.value: section.value for section in module["faces.evolving.evolve"].docstring.parsed}
    defaults = {parameter.name: parameter.default for parameter in sections["parameters"]}
    assert (defaults["generations"], defaults["seconds"], defaults["stop_loss"]) == ("None", "60.0", "1e-20")


def documented() -> list[Any]:
    """The objects whose docstrings the reference shows."""
    found = []
    for page in (DOCS / "reference").glob("*.md"):
        found += map(TABLES["named"], TABLES["DOCSTRING"].findall(page.read_text(encoding="utf-8")))
    return found


def test_the_reference_has_every_public_name() -> None:
    objects = documented()
    assert [public for public in shine.__all__ if getattr(shine, public) not in objects] == []
    assert all(one.__doc__ for one in objects)


TABLES = runpy.run_path(str(DOCS / "tables.py"))

MOST_WORDS = 38_000
"""Of all pages, without the tables that are written from docstrings: what is new replaces something."""


@pytest.mark.parametrize("page", TABLES["pages"](), ids=lambda path: path.stem)
def test_tables_are_those_of_the_docstrings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert TABLES["written"](text) == text, "write the tables: python docs/tables.py"


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=name)
def test_docstrings_in_the_reference_are_markdown(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^(?:-{3,}|[\w, ]+ : .*|:::.*|.*(?<!`)``(?!`).*| at 0x.*)$", text, re.MULTILINE) == []
    blocks = text.split("```")
    assert len(blocks) % 2 == 1
    assert [each for each in blocks[::2] if ">>>" in each] == []


def test_the_pages_are_short() -> None:
    texts = [TABLES["PLACE"].sub("", page.read_text(encoding="utf-8")) for page in TABLES["pages"]()]
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS


# ---- coming from elsewhere ----


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the table under a heading, as lists of cells."""
    section = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [row.split(" | ") for row in rows[1:]]


def names_in(cell: str) -> set[str]:
    """The leading names of the code in a cell."""
    return set(re.findall(r"`([A-Za-z_]\w*)", cell))


def parameters(estimator: Any) -> set[str]:
    return set(inspect.signature(estimator).parameters)


def test_every_parameter_of_gplearn_has_a_row() -> None:
    gplearn = pytest.importorskip("gplearn.genetic")
    named = {name for row in table("coming-from.md", "gplearn") for name in names_in(row[0])}
    kinds = gplearn.SymbolicRegressor, gplearn.SymbolicClassifier, gplearn.SymbolicTransformer
    assert set().union(*map(parameters, kinds)) - named == set()


def test_protected_functions_of_gplearn_mean_the_same_here() -> None:
    functions = pytest.importorskip("gplearn.functions")
    (row,) = (row for row in table("coming-from.md", "gplearn") if row[0] == "`function_set`")
    quoted = re.search(r'`"(.+?)"`', row[1])
    assert quoted is not None
    primitives = [*re.findall(r"`(protected_\w+)`", row[1]), quoted[1]]
    names = ["protected_div(a, b)", "protected_log(a)", "protected_sqrt(a)", "inv0(a)"]
    numbers = np.array([-3.0, -1.0, -0.01, -0.0009, 0.0, 0.0009, 0.002, 1.0, 50.0])
    a, b = (each.ravel() for each in np.meshgrid(numbers, numbers))
    known = primitive_table(primitives)[0]
    for name, theirs in zip(names, (functions.div2, functions.log1, functions.sqrt1, functions.inv1), strict=True):
        columns = [a, b][: theirs.arity]
        assert np.allclose(evaluate(parse(name, ["a", "b"][: theirs.arity], known), columns), theirs(*columns)), name


PYSR = yaml.safe_load((ROOT / "tests" / "fixtures" / "pysr.yaml").read_text(encoding="utf-8"))


def test_every_parameter_of_pysr_has_a_row() -> None:
    named = {name for row in table("coming-from.md", "PySR") for name in names_in(row[0])}
    weights = {name for name in PYSR["PySRRegressor"] if name.startswith("weight_")}
    assert weights & named == {"weight_add_node", "weight_simplify"}  # the first and the last of them
    assert {*PYSR["PySRRegressor"], *PYSR["fit"]} - weights - named == set()
    assert named - {*PYSR["PySRRegressor"], *PYSR["fit"], *PYSR["others"]} == {"fit"}


def test_defaults_of_pysr_are_its_own() -> None:
    cells = " ".join(row[0] for row in table("coming-from.md", "PySR"))
    named = {name: value.strip("`") for name, value in re.findall(r"`(\w+)` \((`\S+`|\d+)\)", cells)}
    assert len(named) > 5
    assert {name: ast.literal_eval(value) for name, value in named.items()} == {
        name: PYSR["PySRRegressor"][name] for name in named
    }


def test_the_names_of_deap_are_its_own() -> None:
    modules = {name: pytest.importorskip(f"deap.{name}") for name in ("algorithms", "base", "creator", "gp", "tools")}
    cells = " ".join(row[0] for row in table("coming-from.md", "DEAP"))
    dotted = re.findall(r"`(?:(\w+)\.)?(\w+)", cells)
    assert len(dotted) > 20
    for module, one in dotted:
        owners = [modules[module]] if module else [*modules.values(), modules["gp"].PrimitiveSet]
        assert any(hasattr(owner, one) for owner in owners), one


def test_the_names_of_operon_are_its_own() -> None:
    operon = pytest.importorskip("pyoperon.sklearn")
    named = {name for row in table("coming-from.md", "Operon") for name in names_in(row[0])}
    assert len(named) > 20
    assert named - parameters(operon.SymbolicRegressor) == {"pyoperon"} & named


def test_the_names_of_shine_are_its_own() -> None:
    own = parameters(SymbolicRegressor) | parameters(SymbolicTransformer) | set(dir(SymbolicRegressor))
    own |= set(STANDARD) | {field.name for field in fields(Constraints)} | set(shine.__all__)
    own |= {"best_", "front_", "shine", "log", "sample_weight", "sigma", "features", "index", "precision"}
    cells = [row[1] for heading in ("PySR", "gplearn", "DEAP", "Operon") for row in table("coming-from.md", heading)]
    assert len(cells) > 50
    assert {name for cell in cells for name in names_in(cell.partition("`: ")[0] + "`")} - own == set()


def test_constraints_that_are_named_exist() -> None:
    rows = [
        " ".join(row) for heading in ("PySR", "gplearn", "DEAP", "Operon") for row in table("coming-from.md", heading)
    ]
    named = set(re.findall(r'constraints=\{"(\w+)"', " ".join(rows)))
    assert len(named) > 2
    assert named - {field.name for field in fields(Constraints)} == set()


def test_settings_in_tables_have_values_that_are_allowed() -> None:
    text = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    values = [value for value in re.findall(r"`settings=(\{.*?\})`", text) if "..." not in value]
    assert len(values) > 8
    for value in values:
        settings_from(**ast.literal_eval(value))


def test_settings_that_are_named_exist() -> None:
    named = {
        setting
        for page in PAGES
        for value in re.findall(r"settings=(\{[^`]*?\})(?=[`,)])", page.read_text(encoding="utf-8"))
        for setting in re.findall(r'"(\w+)":', re.sub(r"(?<=.)\{.*?\}", "", value))
    }
    assert len(named) > 10
    assert named <= set(FREE)
