"""Every command: help, wrong usage, exit codes, errors with and without --debug."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli.commandline import environment, shine

from shine.base.errors import ConfigError, DataError, ExportError, MissingExtraError
from shine.faces.cli.commands import shine as group


def commands(of: click.Group = group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Words of all commands that are not groups."""
    for name, found in of.commands.items():
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["config", "--help"]])
def test_help_is_printed(arguments: list[str]) -> None:
    result = shine(*arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: shine ")


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_the_help_of_every_command_has_an_example_of_it(words: tuple[str, ...]) -> None:
    result = shine(*words, "--help")
    assert result.exit_code == 0
    example = result.stdout.partition("Example:\n")[2]
    assert example.strip().startswith(f"shine {' '.join(words)}")


SPEAKS_JSON = ("mcp",)
"""A command that says nothing but JSON."""


@pytest.mark.parametrize("words", [words for words in commands() if words != SPEAKS_JSON], ids=" ".join)
def test_every_command_can_print_json(words: tuple[str, ...]) -> None:
    assert "--json" in shine(*words, "--help").stdout


def test_help_and_version_wait_for_nothing_heavy() -> None:
    """All in one fresh process: what one of them loads stays for the others."""
    asked = [["--version"], [], ["--help"], *([*words, "--help"] for words in commands())]
    heavy = ("numpy", "llvmlite", "pydantic", "yaml", "tqdm", "sklearn")
    code = f"""
import sys
from shine.faces.cli.commands import shine
for arguments in {asked!r}:
    shine.main(arguments, standalone_mode=False)
    assert not [name for name in {heavy!r} if name in sys.modules], arguments
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evolve"], "error: Missing argument 'CONFIG'; see 'shine evolve --help'\n"),
        (["nonsense"], "error: No such command 'nonsense'; see 'shine --help'\n"),
        (["evolve", "c.yaml", "--sede", "3"], "error: No such option"),
        (["evolve", "c.yaml", "--seed", "x"], f"error: --seed: must be a whole number from 0 to {2**63 - 1}, not 'x'"),
        (["evolve", "none.yaml"], "error: none.yaml: cannot be read: No such file or directory\n"),
        (["evolve", "c.yaml", "--quiet", "--json"], "error: --quiet and --json exclude each other"),
        (["export", "a"], "error: Missing option '--to'; see 'shine export --help'\n"),
        (["jit", "a", "--emit", "exe"], "error: --emit: must be one of ir, opt, asm, obj, not 'exe'; see"),
        (["predict", "r", "d", "--interval", "2"], "error: --interval: must be a number between 0 and 1, not 2.0; see"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr(arguments: list[str], message: str) -> None:
    result = shine(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert "--sede" not in arguments or "--seed" in result.stderr  # click's versions name it in several ways
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 100])
@pytest.mark.parametrize("words", [["predict", "run", "d.csv"], ["report", "run"], ["export", "run", "--to", "python"]])
def test_a_result_that_was_cut_short_is_wrong_usage(words: list[str], keep: int, run: Path) -> None:
    Path("d.csv").write_text("a,b\n1,2\n")
    whole = (run / "result.json").read_bytes()
    (run / "result.json").write_bytes(whole[:keep])
    result = shine(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "run/result.json: is not a result" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_run_without_a_result_says_how_to_finish_it(run: Path) -> None:
    (run / "result.json").unlink()
    result = shine("report", run)
    assert result.exit_code == 2
    assert "shine resume run" in result.stderr


RAISED = [
    (RuntimeError("odd\nthing"), 1, "error: RuntimeError: odd thing; run with --debug for the traceback\n"),
    (AssertionError(), 1, "error: AssertionError; run with --debug for the traceback\n"),
    (MemoryError(), 1, "error: out of memory; use fewer rows or a smaller population\n"),
    (OSError(errno.EACCES, "Permission denied", "f.csv"), 1, "error: f.csv: Permission denied\n"),
    (OSError("odd"), 1, "error: OSError: odd; run with --debug for the traceback\n"),
    (ExportError("no"), 1, "error: no\n"),
    (DataError("no"), 2, "error: no\n"),
    (MissingExtraError("f", "g", "plot"), 1, "error: f needs g; install it with: pip install 'shine-gp[plot]'\n"),
    (ConfigError(["one", "two"]), 2, "error: one\nerror: two\n"),
    (KeyboardInterrupt(), 130, "error: interrupted\n"),
    (click.Abort(), 130, "error: interrupted\n"),
]


@pytest.mark.parametrize(("error", "code", "message"), RAISED, ids=[type(error).__name__ for error, _, _ in RAISED])
def test_an_error_is_a_line_and_a_code(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("shine.faces.cli.commands.info._facts", fail)
    result = shine("info")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", message)


@pytest.mark.parametrize("arguments", [["--debug", "info"], ["info", "--debug"]], ids=["before", "after"])
def test_debug_shows_the_traceback(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("shine.faces.cli.commands.info._facts", fail)
    result = shine(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.endswith("\nerror: RuntimeError: odd\n")
