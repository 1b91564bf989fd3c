"""The fused multiply-add of float32 for processors that have no instruction for it.

LLVM would call libm's `fmaf` there, once for each lane of a vector. The product of two float32 numbers is exact in
float64. The sum may be inexact, and rounding it to float32 would then be a second rounding. So an inexact sum is
rounded to odd: to the neighbour in float64 whose last bit is set (S. Boldo, G. Melquiond, "Emulation of a FMA and
correctly-rounded sums", IEEE Transactions on Computers 57, 2008). Rounded to float32, that has the right bits.
"""

from __future__ import annotations

import platform
import re
from functools import cache

from shine.compiler.llvm.target import host_cpu

_DECLARATION = re.compile(r'^declare (?P<type>float|<\d+ x float>) @"?llvm\.fma\.(?P<suffix>\w+)"?\(.*$', re.MULTILINE)

# Lanes of 64 bits: the sum, the error of the sum (Knuth, 1969), and a step of one away from or towards zero.
_BODY = """\
define internal {f32} @shine.fma.{suffix}({f32} %a, {f32} %b, {f32} %c) nounwind {{
  %x = fpext {f32} %a to {f64}
  %y = fpext {f32} %b to {f64}
  %z = fpext {f32} %c to {f64}
  %product = fmul {f64} %x, %y
  %sum = fadd {f64} %product, %z
  %z.seen = fsub {f64} %sum, %product
  %product.seen = fsub {f64} %sum, %z.seen
  %z.lost = fsub {f64} %z, %z.seen
  %product.lost = fsub {f64} %product, %product.seen
  %lost = fadd {f64} %z.lost, %product.lost
  %bits = bitcast {f64} %sum to {i64}
  %lost.bits = bitcast {f64} %lost to {i64}
  %signs = xor {i64} %bits, %lost.bits
  %towards = icmp slt {i64} %signs, {zero}
  %step = select {i1} %towards, {i64} {down}, {i64} {one}
  %last = and {i64} %bits, {one}
  %is.even = icmp eq {i64} %last, {zero}
  %is.inexact = fcmp one {f64} %lost, {nothing}
  %changes = select {i1} %is.inexact, {i1} %is.even, {i1} {never}
  %stepped = add {i64} %bits, %step
  %odd = select {i1} %changes, {i64} %stepped, {i64} %bits
  %exact = bitcast {i64} %odd to {f64}
  %result = fptrunc {f64} %exact to {f32}
  ret {f32} %result
}}"""


def with_fma_defined(ir: str) -> str:
    """A module with a function in the place of the intrinsic ``llvm.fma`` of float32, with the same bits."""

    def definition(match: re.Match[str]) -> str:
        lanes = re.match(r"<(\d+) x", match["type"])

        def of(element: str) -> str:
            return f"<{lanes[1]} x {element}>" if lanes else element

        def number(constant: int) -> str:
            return f"splat (i64 {constant})" if lanes else str(constant)

        return _BODY.format(
            f32=of("float"),
            f64=of("double"),
            i64=of("i64"),
            i1=of("i1"),
            suffix=match["suffix"],
            zero=number(0),
            one=number(1),
            down=number(-1),
            nothing="zeroinitializer" if lanes else "0.0",
            never="zeroinitializer" if lanes else "false",
        )

    text = _DECLARATION.sub(definition, ir)
    return re.sub(r'@"?llvm\.fma\.((?:v\d+)?f32)"?', r"@shine.fma.\1", text)


@cache
def host_has_fma() -> bool:
    """Whether this processor has the instruction; only old x86 processors lack it."""
    return platform.machine().lower() not in ("x86_64", "amd64", "i686", "i386") or "+fma" in host_cpu()[1].split(",")
