import pytest

from shine.compiler.processor import Machine
from shine.tensor.loops.products.tiles import tiles_of

MACHINES = [Machine(16, 16), Machine(16, 32, True), Machine(32, 16, True), Machine(64, 32, True)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 10, 16, 33, 64, 1000])
def test_accumulators_and_operands_fit_into_the_registers(machine, size):
    for m in (1, size):
        tiles = tiles_of(machine, 4, m, size, size, True)
        # The operand of a single row is read by the multiply-add itself, or goes through one register.
        operands = 1 + (tiles.vectors if tiles.rows > 1 else 1)
        assert tiles.rows * tiles.vectors + operands + tiles.terms <= machine.registers
        assert tiles.rows <= m
        assert tiles.width <= machine.lanes(4)


def test_enough_sums_are_in_flight():
    tiles = tiles_of(Machine(64, 32, True), 4, 1, 128, 10, True)
    assert tiles.rows * tiles.vectors * tiles.chains >= 8


def test_large_products_are_packed_and_small_ones_are_not():
    machine = Machine(64, 32, True, (48 << 10, 1 << 20, 32 << 20))
    assert tiles_of(machine, 4, 64, 64, 64, True).columns == 0
    large = tiles_of(machine, 4, 1024, 1024, 1024, True)
    assert large.columns
    assert large.depth * large.vectors * large.width * 4 <= 48 << 10
