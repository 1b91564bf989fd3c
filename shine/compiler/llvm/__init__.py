"""LLVM itself: targets, optimization pipelines, engines and emitted code.

The only package that touches `llvmlite.binding`. It takes LLVM IR as text and knows nothing of formulas.
"""

from shine.compiler.llvm.cache import cached
from shine.compiler.llvm.engine import Engine, assembly, host_object, object_code, optimized_ir
from shine.compiler.llvm.target import PIPELINES

__all__ = ["PIPELINES", "Engine", "assembly", "cached", "host_object", "object_code", "optimized_ir"]
