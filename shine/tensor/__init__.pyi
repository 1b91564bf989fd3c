from .adjoint.declarations import gradient as gradient
from .building import build as build
from .building import compile as compile
from .form.module import Module as Module
from .form.printing import text_of as text_of
from .form.reading import module_of as module_of
from .loading import load as load
from .native.function import TensorFunction as TensorFunction

__all__: list[str]
