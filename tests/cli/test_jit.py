"""``shine jit``."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cli.commandline import process, shine

from shine.compiler.codegen.numbers import ELEMENTS
from shine.faces.cli.commands.compile import EMITTED
from shine.formats.native.targets import ARCHITECTURES, FATAL

MAGIC = {
    "x86_64-linux-gnu": b"\x7fELF\x02\x01",
    "i686-linux-gnu": b"\x7fELF\x01\x01",
    "s390x-linux-gnu": b"\x7fELF\x02\x02",
    "arm64-apple-darwin": b"\xcf\xfa\xed\xfe",
    "x86_64-pc-windows-msvc": b"\x64\x86",
    "wasm32": b"\0asm",
}
"""First bytes of the object files of a target."""


def test_the_choices_are_what_the_kernel_knows() -> None:
    described = shine("jit", "--help").stdout
    assert f"[{'|'.join(EMITTED)}]" in described
    assert f"[{'|'.join(ELEMENTS)}]" in described


@pytest.mark.parametrize("target", MAGIC)
def test_an_object_file_is_in_the_targets_format(target: str, tmp_path: Path) -> None:
    out = tmp_path / "f.o"
    result = shine("jit", "a*b", "--emit", "obj", "--target", target, "--out", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_bytes().startswith(MAGIC[target])


@pytest.mark.slow
def test_an_object_file_goes_through_a_pipe_unchanged(tmp_path: Path) -> None:
    out = tmp_path / "f.o"
    with out.open("wb") as piped:
        assert process("jit", "a*b", "--emit", "obj", "--target", "s390x-linux-gnu", stdout=piped).returncode == 0
    encoded = shine("jit", "a*b", "--emit", "obj", "--target", "s390x-linux-gnu", "--json").stdout
    assert out.read_bytes() == base64.b64decode(json.loads(encoded)["base64"])


def test_a_formula_may_begin_with_a_minus() -> None:
    assert "fneg" in shine("jit", "--emit", "ir", "--", "-a").stdout
    assert shine("jit", "--dtype", "int32", "--target", "x86_64", "--", "-3").exit_code == 0
    result = shine("jit", "-a*b")
    assert result.exit_code == 2
    assert "write -- before a formula that begins with a minus" in result.stderr


def test_an_unknown_triple_lists_the_known_ones() -> None:
    result = shine("jit", "a", "--target", "nonsense-linux")
    assert (result.exit_code, result.stdout) == (2, "")
    listed = result.stderr.partition("LLVM has here: ")[2].partition(";")[0].split(", ")
    assert {"x86_64", "aarch64"} <= set(listed) <= set(ARCHITECTURES)


@pytest.mark.parametrize("architecture", FATAL)
def test_targets_on_which_llvm_ends_the_process_are_refused(architecture: str) -> None:
    result = shine("jit", "exp(a)", "--target", f"{architecture}-unknown-unknown")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a +"], "error: 'a +': "),
        (["while"], "error: 'while': "),
        (["foo(a)"], "error: 'foo(a)': "),
        ([""], "error: '': "),
        (["a" * 600_000], "error: 'aaaa"),
        (["a*b", "--params", "a"], "error: 'a*b': "),
        (["a*b", "--params", "a,b,a"], "error: 'a*b': "),
        (["sin(a)", "--dtype", "int32"], "error: "),
        (["a", "--target", "x86_64-linux-gnu", "--cpu", "haswel"], "error: processor 'haswel' is not one of"),
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
