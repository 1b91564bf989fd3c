"""Shine's own elementary functions as LLVM IR: no libm, and the same bits on every target."""
