import pytest

from shine.compiler.processor import machine_of


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "facts"),
    [
        ("x86_64-linux-gnu", "x86-64", "", (16, 16, False)),
        ("x86_64-linux-gnu", "haswell", "", (32, 16, True)),
        ("x86_64-linux-gnu", "skylake-avx512", "", (64, 32, True)),
        ("aarch64-linux-gnu", "", "", (16, 32, True)),
        ("wasm32", "", "+simd128", (16, 16, False)),
        ("nvptx64-nvidia-cuda", "sm_90", "", (1, 32, True)),
    ],
)
def test_vectors_registers_and_fusing(triple, cpu, features, facts):
    machine = machine_of(triple, cpu, features)
    assert (machine.vector_bytes, machine.registers, machine.fma) == facts


def test_caches_grow_with_the_level():
    first, second, third = machine_of().caches
    assert 4096 <= first <= second <= third


@pytest.mark.parametrize(("triple", "is_little"), [("s390x-linux-gnu", False), ("powerpc64le-linux-gnu", True)])
def test_order_of_bytes(triple, is_little):
    assert machine_of(triple).is_little == is_little
