"""Arithmetic of whole arrays with the same bits on every processor: functions, inner products, small linear systems."""

from shine.compiler.arrays.functions import COMPILED, Panels, apply, dot, exp, inner, log, power

__all__ = ["COMPILED", "Panels", "apply", "dot", "exp", "inner", "log", "power"]
