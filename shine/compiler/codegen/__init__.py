"""Trees -> LLVM IR, with `llvmlite.ir` only."""
