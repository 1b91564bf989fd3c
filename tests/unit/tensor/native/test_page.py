"""The page about tensors: its programs in C++ and JavaScript print what it shows."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli.commandline import shine

PAGE = (Path(__file__).parents[4] / "docs" / "tensors.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page."""
    pytest.importorskip("google.protobuf")
    monkeypatch.chdir(tmp_path)
    for title, text in re.findall(r'^``` ?\w* title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL):
        Path(title).write_text(text)
    return tmp_path


def output_after(language: str) -> str:
    """The block that follows the program in a language, without the command line."""
    (text,) = re.findall(rf"^```{language} title=.*?^```$\n+```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return re.sub(r"^\$.*\n", "", text)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_program_in_cpp(here: Path) -> None:
    (line,) = re.findall(r"^shine (compile matmul.pbtxt .*--cpp-class.*)$", PAGE, re.MULTILINE)
    assert shine(*line.split()).exit_code == 0
    (command,) = re.findall(r"^\$ (g\+\+ .*) && ./main$", PAGE, re.MULTILINE)
    subprocess.run(command.split(), check=True)
    done = subprocess.run(["./main"], check=True, capture_output=True, text=True)
    assert done.stdout.split() == output_after("cpp").split()


@pytest.mark.skipif(
    shutil.which("node") is None or (importlib.util.find_spec("ziglang") is None and shutil.which("wasm-ld") is None),
    reason="needs Node, and a linker for WebAssembly (pip install ziglang)",
)
def test_the_program_in_javascript(here: Path) -> None:
    assert shine("compile", "matmul.pbtxt", "--config", "feeds.pbtxt", "--emit", "wasm").exit_code == 0
    Path("package.json").write_text('{"type": "module"}')
    done = subprocess.run(["node", "main.mjs"], check=True, capture_output=True, text=True)
    assert done.stdout == output_after("javascript")
