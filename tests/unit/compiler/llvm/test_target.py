import pytest

from shine.compiler.llvm import target


@pytest.mark.parametrize(
    ("features", "size"),
    [("+avx,+avx2,+avx512f", 64), ("+avx,+avx2,-avx512f", 32), ("+sse2,-avx,-avx512f", 16), ("+neon", 16), ("", 16)],
)
def test_the_widest_feature_decides_on_the_size_of_a_register(features, size, monkeypatch):
    monkeypatch.setattr(target, "host_cpu", lambda: ("", features))
    assert target.register_bytes.__wrapped__() == size
