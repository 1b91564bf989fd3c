"""The Python module of a tensor program."""

from __future__ import annotations

from shine.formats.native.code import Code, Files
from shine.formats.native.python_module import python_module
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.interface import Interface, Tensor

_CONSTANTS = '''
PARAMETERS = {parameters}
"""Label, type and shape of each argument."""

RESULTS = {results}
"""Label, type and shape of each result."""

_ARENA_BYTES = {arena}
_run = _library.{name}
_run.restype = None
_run.argtypes = [ctypes.c_void_p] * 3
_arenas = threading.local()
'''

_BODY = '''\
    arguments = [_array(*each) for each in zip(PARAMETERS, ({given}))]
    results = [np.empty(shape, dtype) for _, dtype, shape in RESULTS]
    _run(_table(arguments), _table(results), _arena())
    values = [array[()] for array in results]
    return values[0] if len(values) == 1 else tuple(values)


def _array(described: tuple[str, str, tuple[int, ...]], value: ArrayLike) -> NDArray[Any]:
    label, dtype, shape = described
    array = np.asarray(value)
    if hasattr(value, "dtype") and array.dtype != dtype:
        raise TypeError(f"argument {{label!r}} has elements of type {{array.dtype}}, not {{dtype}}")
    if array.shape != shape:
        raise ValueError(f"argument {{label!r}} has shape {{array.shape}}, not {{shape}}")
    return np.require(array, dtype, ["C", "A"])


def _table(arrays: list[NDArray[Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def _arena() -> int:
    """Address of this thread's scratch memory."""
    if not hasattr(_arenas, "memory"):
        _arenas.memory = np.empty(_ARENA_BYTES + {alignment}, np.uint8)
    return -(-_arenas.memory.ctypes.data // {alignment}) * {alignment}
'''

_RAISES = """\
    TypeError
        If an array has elements of another type.
    ValueError
        If it has another shape."""

_TAKEN = frozenset({"annotations", "ctypes", "threading", "np"})
"""Names of the module that its function needs."""


def tensor_module(code: Code, interface: Interface) -> Files:
    """The Python module of a function of arrays."""
    names = [f"{each.name}_" if each.name in _TAKEN else each.name for each in interface.arguments]
    constants = _CONSTANTS.format(
        parameters=_described(interface.arguments),
        results=_described(interface.results),
        name=interface.name,
        arena=interface.arena_bytes,
    )
    body = _BODY.format(given="".join(f"{name}, " for name in names).rstrip(" "), alignment=ALIGNMENT)
    arguments = dict(zip(names, map(_kind, interface.arguments), strict=True))
    return python_module(code, constants, arguments, "", ", ".join(map(_kind, interface.results)), _RAISES, body)


def _described(tensors: tuple[Tensor, ...]) -> str:
    lines = "".join(f"    {(each.label, each.type.numpy.name, each.type.shape)!r},\n" for each in tensors)
    return f"(\n{lines})" if lines else "()"


def _kind(tensor: Tensor) -> str:
    return f"array of {tensor.type.numpy.name}, shape {tensor.type.shape}"
