"""``shine jit``."""

from __future__ import annotations

import pytest
from cli.commandline import shine

from shine.formats.native.targets import ARCHITECTURES


def test_an_unknown_triple_lists_the_known_ones() -> None:
    result = shine("jit", "a", "--target", "nonsense-linux")
    assert (result.exit_code, result.stdout) == (2, "")
    listed = result.stderr.partition("LLVM has here: ")[2].partition(";")[0].split(", ")
    assert {"x86_64", "aarch64"} <= set(listed) <= set(ARCHITECTURES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a +"], "error: 'a +': "),
        ([""], "error: '': "),
        (["a" * 600_000], "error: 'aaaa"),
        (["a*b", "--params", "a"], "error: 'a*b': "),
        (["a", "--emit", "obj", "--target", "nvptx64-nvidia-cuda"], "error: LLVM cannot emit code for nvptx64"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_formula_that_cannot_be_compiled_is_wrong_usage(arguments: list[str], message: str) -> None:
    result = shine("jit", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert len(result.stderr) < 1000
    assert "--debug" not in result.stderr
