"""Triples, processors and features: which are accepted, completed and refused."""

from __future__ import annotations

import pytest

from shine.base.errors import CompilationError
from shine.compiler.llvm.target import host_cpu
from shine.formats.native.targets import FATAL, check_triple, normalized, target_of


def test_the_host_is_the_default_and_its_least_processor() -> None:
    target = target_of()
    assert target.is_host
    assert "x86_64" not in target.triple or (target.cpu, target.features) == ("x86-64", "")


def test_native_is_this_very_processor() -> None:
    target = target_of(cpu="native")
    assert target.cpu == host_cpu()[0] and host_cpu()[1] in target.features


@pytest.mark.parametrize(
    ("triple", "full"),
    [
        ("arm-linux-gnueabihf", "arm-unknown-linux-gnueabihf"),
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc"),
        ("arm64-apple-darwin", "arm64-apple-darwin"),
        ("wasm32", "wasm32"),
    ],
)
def test_a_triple_gets_a_vendor(triple: str, full: str) -> None:
    assert normalized(triple) == full


@pytest.mark.parametrize(
    ("triple", "word", "format_"),
    [
        ("aarch64-linux-gnu", 64, "elf"),
        ("arm-linux-gnueabihf", 32, "elf"),
        ("i686-linux-gnu", 32, "elf"),
        ("wasm32", 32, "wasm"),
        ("x86_64-pc-windows-msvc", 64, "coff"),
        ("arm64-apple-darwin", 64, "macho"),
        ("nvptx64-nvidia-cuda", 64, "ptx"),
    ],
)
def test_sizes_and_formats_follow_from_the_triple(triple: str, word: int, format_: str) -> None:
    target = target_of(triple)
    assert (target.word, target.format) == (word, format_)


@pytest.mark.parametrize("cpu", [None, "cortex-a72"])
def test_no_code_for_arm_flushes_subnormal_numbers(cpu: str | None) -> None:
    assert target_of("arm-linux-gnueabihf", cpu).features.endswith("-neon")


@pytest.mark.parametrize("cpu", ["x86-64-v3", "znver4", "haswell"])
def test_processors_that_llvm_knows_are_taken(cpu: str) -> None:
    assert target_of("x86_64-linux-gnu", cpu).cpu == cpu


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "message"),
    [
        (
            "x86_64-linux-gnu",
            "haswel",
            "",
            "processor 'haswel' is not one of x86_64-unknown-linux-gnu; near it are has",
        ),
        ("x86_64-linux-gnu", "help", "", "processor 'help' is not one of"),
        ("x86_64-linux-gnu", "", "", "processor '' is not one of"),
        ("x86_64-linux-gnu", "i386", "", "64-bit code requested"),
        ("wasm32", "x86-64", "", "there are .*mvp"),
        ("aarch64-linux-gnu", None, "+svee2", r"feature '\+svee2' is not one of .* near it are sve2"),
        ("x86_64-linux-gnu", None, "avx2", r"write \+avx2 to turn it on or -avx2 to turn it off"),
        ("aarch64-linux-gnu", "native", "", "this host is not aarch64"),
        ("nonsense-linux", None, "", "a triple is ARCHITECTURE-SYSTEM"),
    ],
)
def test_names_unknown_to_llvm_are_refused(triple: str, cpu: str | None, features: str, message: str, capfd) -> None:
    with pytest.raises(CompilationError, match=message):
        target_of(triple, cpu, features)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("architecture", FATAL)
def test_targets_on_which_llvm_ends_the_process_are_refused(architecture: str) -> None:
    with pytest.raises(CompilationError, match="cannot compile formulas for it"):
        check_triple(f"{architecture}-unknown-unknown")


def test_features_come_on_top_of_the_processor() -> None:
    assert target_of("x86_64-linux-gnu", "x86-64-v3", "-fma, +sha").features == "-fma,+sha"
