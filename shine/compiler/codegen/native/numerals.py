"""Columns of numbers in delimited text, parsed by native code of this process.

A number is the double that is nearest to its digits, as `float` reads them. Up to 15 digits and powers of ten up to 22
are exact, and so is their product or quotient (Clinger 1990). Otherwise the digits times the first 64 bits of the power
of ten decide the rounding (Lemire 2021), except for about one number in 500, which is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from shine.base.typing import Floats
from shine.compiler.codegen.blocks import I64, POINTER, Variables, declare, load, number, store

POSITION, END, ROW, LEFT = range(4)
"""Fields of the state: the next byte, the end of the text, the next row, and the numbers left."""

ENDED, FULL, OTHER = 0, 1, 2
"""Results of a call: the text is over; the list of numbers that are left is full; a cell that is no plain number."""

_LARGEST = 300
"""Largest power of ten, either way, that is not left to the caller."""

_EXACT = 22
"""Largest power of ten that is a double."""

_DIGITS = 19
"""Digits that an unsigned number of 64 bits always holds."""

_BYTE, _DOUBLE, _WIDE = ir.IntType(8), ir.DoubleType(), ir.IntType(128)


def powers() -> tuple[NDArray[np.uint64], NDArray[np.int64], Floats]:
    """The first 64 bits of powers of ten and their exponents of two, and the powers that are doubles."""
    bits, exponents = [], []
    for power in range(-_LARGEST, _LARGEST + 1):
        value = Fraction(10) ** power
        shift = value.numerator.bit_length() - value.denominator.bit_length() - 64
        while value / Fraction(2) ** shift >= 1 << 64:
            shift += 1
        bits.append(int(value / Fraction(2) ** shift))
        exponents.append(shift)
    return np.array(bits, np.uint64), np.array(exponents), np.array([float(10**power) for power in range(_EXACT + 1)])


def numerals_ir(name: str) -> str:
    """LLVM IR of ``i64 name(text, state, columns, width, delimiter, left, room, bits, exponents, exact)``.

    Parameters of the function are the text, which ends with a byte that belongs to no number; the state; addresses of
    the columns, 0 for one that is passed over; how many they are; the delimiter; a list with space for `room` numbers
    that are left, each as its row, its column, its first byte and its end; and the tables of `powers`.
    """
    module = ir.Module(name=name)
    labels = ("text", "state", "columns", "width", "delimiter", "left", "room", "bits", "exponents", "exact")
    kinds = [POINTER, POINTER, POINTER, I64, I64, POINTER, I64, POINTER, POINTER, POINTER]
    _Parser(declare(module, name, I64, kinds, labels)).rows()
    return str(module)


class _Parser:
    """The function being built; `at` has its variables."""

    def __init__(self, function: ir.Function) -> None:
        self.text, self.state, self.columns, self.width, self.delimiter, self.left, self.room, *tables = function.args
        self.bits, self.exponents, self.exact = tables
        self.build = ir.IRBuilder(function.append_basic_block("entry"))
        names = ("p", "row", "left", "column", "begin", "count", "w", "kept", "scale", "power")
        self.at = Variables(self.build, **dict.fromkeys(names, 0))

    def rows(self) -> None:
        """Rows until the text ends, the list is full, or a cell is no plain number."""
        build, at = self.build, self.at
        for name, place in (("p", POSITION), ("row", ROW), ("left", LEFT)):
            at[name] = self._word(self.state, number(place))
        end = self._word(self.state, number(END))
        with self._repeated():
            with self._repeated() as begun:
                self._pass("\r")
                self._leave_unless(self._is("\n"), begun)
                self._step()
            self._return_if(build.icmp_signed(">=", at["p"], end), ENDED)
            self._return_if(build.icmp_signed(">", build.add(at["left"], self.width), self.room), FULL)
            at["column"] = 0
            with self._repeated() as done:
                self._cell()
                self._add("column", 1)
                self._leave_unless(build.icmp_signed("<", at["column"], self.width), done)
                self._return_if(build.icmp_signed("!=", self._byte(), self.delimiter), OTHER)
                self._step()
            self._pass("\r")
            ends = build.or_(self._is("\n"), build.icmp_signed("==", at["p"], end))
            self._return_if(build.not_(ends), OTHER)
            self._add("row", 1)
        build.unreachable()

    def _cell(self) -> None:
        """A number, which is stored if its column is wanted, and the blanks around it."""
        build, at = self.build, self.at
        self._pass(" ", repeatedly=True)
        for name in ("count", "w", "kept", "scale", "power"):
            at[name] = 0
        at["begin"] = at["p"]
        negative = self._is("-")
        with build.if_then(build.or_(negative, self._is("+"))):
            self._step()
        self._digits(of_kept=0, of_cut=1)
        with build.if_then(self._is(".")):
            self._step()
            self._digits(of_kept=-1, of_cut=0)
        self._return_if(build.icmp_signed("==", at["count"], number(0)), OTHER)
        with build.if_then(build.or_(self._is("e"), self._is("E"))):
            self._power()
        column = self._word(self.columns, at["column"])
        with build.if_then(build.icmp_signed("!=", column, number(0))):
            self._store(build.inttoptr(column, POINTER), negative)
        self._pass(" ", repeatedly=True)

    def _digits(self, of_kept: int, of_cut: int) -> None:
        """Digits, of which the first that are not zeros are kept; each changes the scale."""
        build, at = self.build, self.at
        with self._repeated() as done:
            digit = self._leave_unless_digit(done)
            self._add("count", 1)
            with build.if_else(build.icmp_signed("<", at["kept"], number(_DIGITS))) as (keep, cut):
                with keep:
                    at["w"] = build.add(build.mul(at["w"], number(10)), digit)
                    self._add("kept", build.zext(build.icmp_signed("!=", at["w"], number(0)), I64))
                    self._add("scale", of_kept)
                with cut:
                    self._add("kept", 1)
                    self._add("scale", of_cut)

    def _power(self) -> None:
        """The power of ten after ``e``: it changes the scale."""
        build, at = self.build, self.at
        self._step()
        negative = self._is("-")
        with build.if_then(build.or_(negative, self._is("+"))):
            self._step()
        first = at["p"]
        with self._repeated() as done:
            digit = self._leave_unless_digit(done)
            longer = build.add(build.mul(at["power"], number(10)), digit)
            at["power"] = build.select(build.icmp_signed("<", longer, number(10_000)), longer, number(10_000))
        self._return_if(build.icmp_signed("==", at["p"], first), OTHER)
        self._add("scale", build.select(negative, build.neg(at["power"]), at["power"]))

    def _store(self, column: ir.Value, negative: ir.Value) -> None:
        """Store the number of the digits and the scale, or put it on the list of those that are left."""
        build, at = self.build, self.at
        row, scale = at["row"], at["scale"]
        size = build.select(build.icmp_signed("<", scale, number(0)), build.neg(scale), scale)
        few = build.icmp_unsigned("<", at["w"], number(1 << 53))
        few = build.and_(few, build.icmp_signed("<=", at["kept"], number(_DIGITS)))
        few = build.and_(few, build.icmp_signed("<=", size, number(_EXACT)))
        with build.if_else(few) as (exact, other):
            with exact:
                digits, power = build.sitofp(at["w"], _DOUBLE), load(build, self.exact, size, _DOUBLE, _DOUBLE)
                up, down = build.fmul(digits, power), build.fdiv(digits, power)
                value = build.select(build.icmp_signed("<", scale, number(0)), down, up)
                store(build, build.select(negative, build.fneg(value), value), column, row, _DOUBLE)
            with other:
                known = build.icmp_signed("<=", size, number(_LARGEST))
                known = build.and_(known, build.icmp_signed("!=", at["w"], number(0)))
                index = build.add(build.select(known, scale, number(0)), number(_LARGEST))
                bits, certain = self._rounded(index)
                sign = build.select(negative, number(-1 << 63), number(0))
                store(build, build.bitcast(build.or_(bits, sign), _DOUBLE), column, row, _DOUBLE)
                with build.if_then(build.not_(build.and_(known, certain))):
                    place = build.mul(at["left"], number(4))
                    for offset, word in enumerate((row, at["column"], at["begin"], at["p"])):
                        store(build, word, self.left, build.add(place, number(offset)), I64)
                    self._add("left", 1)

    def _rounded(self, power: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The bits of the digits times a power of ten, and whether they are certain; the digits are not 0."""
        build, at = self.build, self.at
        count = ir.Function(build.module, ir.FunctionType(I64, [I64, ir.IntType(1)]), "llvm.ctlz.i64")
        zeros = build.call(count, [at["w"], ir.Constant(ir.IntType(1), 0)])
        digits = build.shl(at["w"], zeros)
        wide = [build.zext(value, _WIDE) for value in (digits, self._word(self.bits, power))]
        high = build.trunc(build.lshr(build.mul(*wide), ir.Constant(_WIDE, 64)), I64)
        # The product has 128 bits or one less; 53 are kept. Bits of the power that are cut off add less than two units
        # of the high word, and a digit that is cut off less than 32, as 19 digits have at least 60 bits.
        shift = build.select(build.icmp_signed("<", high, number(0)), number(11), number(10))
        unit = build.shl(number(1), shift)
        mantissa, rest = build.lshr(high, shift), build.and_(high, build.sub(unit, number(1)))
        error = build.select(build.icmp_signed(">", at["kept"], number(_DIGITS)), number(34), number(2))
        half = build.lshr(unit, number(1))
        most = build.add(rest, error)
        rounds_up = build.icmp_signed(">", rest, half)
        certain = build.select(rounds_up, build.icmp_signed("<=", most, unit), build.icmp_signed("<=", most, half))
        exponent = build.sub(build.add(self._word(self.exponents, power), shift), zeros)
        biased = build.add(exponent, number(64 + 52 + 1023))
        normal = build.and_(build.icmp_signed(">=", biased, number(1)), build.icmp_signed("<", biased, number(2046)))
        bits = build.add(build.shl(build.sub(biased, number(1)), number(52)), mantissa)
        return build.add(bits, build.zext(rounds_up, I64)), build.and_(certain, normal)

    def _byte(self) -> ir.Value:
        return self.build.zext(load(self.build, self.text, self.at["p"], _BYTE, _BYTE), I64)

    def _is(self, sign: str) -> ir.Value:
        return self.build.icmp_signed("==", self._byte(), number(ord(sign)))

    def _step(self) -> None:
        self._add("p", 1)

    def _add(self, name: str, value: ir.Value | int) -> None:
        self.at[name] = self.build.add(self.at[name], number(value))

    def _pass(self, sign: str, repeatedly: bool = False) -> None:
        """Pass over a sign, if it is there."""
        if not repeatedly:
            with self.build.if_then(self._is(sign)):
                self._step()
            return
        with self._repeated() as done:
            self._leave_unless(self._is(sign), done)
            self._step()

    def _word(self, address: ir.Value, index: ir.Value) -> ir.Value:
        return load(self.build, address, index, I64, I64)

    def _leave_unless_digit(self, done: ir.Block) -> ir.Value:
        """The digit at the place, which is passed over."""
        digit = self.build.sub(self._byte(), number(ord("0")))
        self._leave_unless(self.build.icmp_unsigned("<", digit, number(10)), done)
        self._step()
        return digit

    @contextmanager
    def _repeated(self) -> Iterator[ir.Block]:
        """A loop without end but by the block that is yielded."""
        head, done = (self.build.append_basic_block(name) for name in ("head", "done"))
        self.build.branch(head)
        self.build.position_at_end(head)
        yield done
        self.build.branch(head)
        self.build.position_at_end(done)

    def _leave_unless(self, condition: ir.Value, done: ir.Block) -> None:
        following = self.build.append_basic_block("following")
        self.build.cbranch(condition, following, done)
        self.build.position_at_end(following)

    def _return_if(self, condition: ir.Value, result: int) -> None:
        with self.build.if_then(condition):
            for name, place in (("p", POSITION), ("row", ROW), ("left", LEFT)):
                store(self.build, self.at[name], self.state, number(place), I64)
            self.build.ret(number(result))
