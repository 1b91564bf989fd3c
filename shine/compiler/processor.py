"""Facts about a processor that tiles follow from: vectors, registers, fused multiply-add, caches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shine.base.errors import CompilationError
from shine.compiler.llvm import assembly
from shine.compiler.llvm.target import host_triple


@dataclass(frozen=True)
class Machine:
    """A processor.

    Parameters
    ----------
    vector_bytes : int
        Of a register.
    registers : int
        Vector registers.
    fma : bool
        Whether it has an instruction for float32 and float64 vectors.
    caches : tuple of int
        Bytes of the first, second and third level that one core can use.
    triple : str
    """

    vector_bytes: int = 16
    registers: int = 16
    fma: bool = False
    caches: tuple[int, int, int] = (32 << 10, 256 << 10, 2 << 20)
    triple: str = ""

    def lanes(self, itemsize: int) -> int:
        """Elements in a register."""
        return max(1, self.vector_bytes // itemsize)

    @property
    def is_little(self) -> bool:
        """Whether the least significant byte comes first."""
        return re.match(r"(powerpc|powerpc64|mips|mips64|sparc\w*|s390x|aarch64_be|armeb)-", self.triple) is None


_REGISTERS = (
    # Registers of each family, with the caches of a common small member: Intel 64 and IA-32 Architectures Optimization
    # Reference Manual; Arm Architecture Reference Manual (A-profile), Cortex-A72 TRM; Power ISA 3.0; RISC-V "V".
    (r"x86_64", 16, (32 << 10, 256 << 10, 2 << 20)),
    (r"i[3-6]86", 8, (32 << 10, 256 << 10, 2 << 20)),
    (r"aarch64|arm64", 32, (32 << 10, 512 << 10, 2 << 20)),
    (r"arm|thumb", 16, (32 << 10, 256 << 10, 256 << 10)),
    (r"powerpc|s390x", 32, (32 << 10, 256 << 10, 4 << 20)),
    (r"riscv", 32, (32 << 10, 256 << 10, 256 << 10)),
    # A thread of a GPU: a part of 255 registers, so that many threads have some; nothing is packed for caches.
    (r"nvptx", 32, (1 << 40, 1 << 40, 1 << 40)),
    (r"", 16, (32 << 10, 256 << 10, 2 << 20)),
)
"""Vector registers and caches by the beginning of a triple; the first that fits counts."""

_PROBE = """\
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
define void @f(ptr %p, ptr %q) nounwind {
  %x = load <16 x float>, ptr %p, align 4
  %y = call <16 x float> @llvm.fma.v16f32(<16 x float> %x, <16 x float> %x, <16 x float> %x)
  store <16 x float> %y, ptr %p, align 4
  %z = load <8 x double>, ptr %q, align 8
  %u = call <8 x double> @llvm.fma.v8f64(<8 x double> %z, <8 x double> %z, <8 x double> %z)
  store <8 x double> %u, ptr %q, align 8
  ret void
}
"""
"""Code whose assembly tells the width of registers, and whether LLVM calls a library."""

_CPU = Path("/sys/devices/system/cpu/cpu0/cache")


@cache
def machine_of(triple: str | None = None, cpu: str | None = None, features: str = "") -> Machine:
    """Facts about a target, named as for `shine.compiler.llvm.target.target_machine`.

    LLVM says itself how wide its vectors are and whether it fuses: the assembly of a probe tells. The host's caches are
    those that Linux reports; a foreign target has those of a small member of its family.

    A `CompilationError` if LLVM has no such target.
    """
    name = triple or host_triple()
    registers, caches = next((r, c) for pattern, r, c in _REGISTERS if re.match(pattern, name))
    try:
        text = assembly(_PROBE, triple, cpu, features)
    except CompilationError:
        return Machine(registers=registers, caches=caches, triple=name)
    width = 16
    if name.startswith("nvptx"):
        width = 1  # Threads take the place of lanes.
    elif re.match(r"x86_64|i[3-6]86", name):
        width = 64 if "zmm" in text else 32 if "ymm" in text else 16
        registers = 32 if width == 64 else registers
    if triple is None:
        caches = _host_caches(caches)
    return Machine(width, registers, re.search(r"\bfmaf?\b(?!\.|\s+[vdsf]\d)", text) is None, caches, name)


def _host_caches(default: tuple[int, int, int]) -> tuple[int, int, int]:
    """Bytes of the data caches of the first core, as far as the system tells."""
    found = dict(enumerate(default, 1))
    for folder in _CPU.glob("index*"):
        try:
            kind, level, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction" and int(level) in found:
                found[int(level)] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            continue
    return found[1], found[2], found[3]
