"""Loop nests with explicit tiles and vectors: module -> LLVM IR."""
