"""AstJit emits, before any optimization, the IR that is recorded in `golden/`."""

import pytest
from ir.regenerate import CASES, FOLDER, normalized
from llvmlite import ir


@pytest.mark.parametrize("name", CASES)
def test_the_lowering_is_the_recorded_one(name):
    assert normalized(CASES[name]()) == (FOLDER / f"{name}.ll").read_text()


def test_every_recorded_file_has_a_formula():
    assert {path.stem for path in FOLDER.glob("*.ll")} == set(CASES)


def test_normalization_hides_how_llvmlite_counts():
    def emitted(unused: int) -> str:
        function = ir.Function(ir.Module(), ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]), "f")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        for _ in range(unused):
            function.scope.deduplicate(".1")
        builder.ret(builder.fadd(*function.args, *function.args))
        return normalized(function)

    assert emitted(0) == emitted(3)
