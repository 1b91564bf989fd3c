"""LLVM: from formulas and array functions to native code."""
