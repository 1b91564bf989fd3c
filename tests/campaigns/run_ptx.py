"""Shine's PTX on a GPU: the bits of every primitive against this machine's, tensor programs, and rows a second.

    python tests/campaigns/run_ptx.py make FOLDER
    python tests/campaigns/run_ptx.py run FOLDER

The first writes kernels of all primitives in each number type and of random tensor programs, rows and items for them,
and the values they have here. The second needs only NumPy and an NVIDIA driver, and may run on another machine: the
driver compiles the PTX, every output of a formula is compared bit by bit (any NaN is as good as another), results of
tensor programs within 1e-9, as sums may be in another order, and the kernels of some formulas are timed alone, the best
of ten launches over 16 777 216 rows.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the helpers are, when this is run as a script

DTYPES = ("float64", "float32", "int64", "int32")
TIMED = {
    "hypotenuse": ("sqrt(a*a + b*b)", "float64"),
    "waves": ("exp(-a*a) * sin(b) + log(abs(a) + 1)", "float64"),
    "single_waves": ("exp(-a*a) * sin(b) + log(abs(a) + 1)", "float32"),
    "modulus": ("a % b", "int64"),
}
"""Formulas that are timed, by the names of their kernels."""

PROGRAMS = range(20)
"""Seeds of random tensor programs."""

CHECKED_ROWS = 20_000
ITEMS = 700
TIMED_ROWS = 1 << 24
THREADS = 256
LAUNCHES = 10


def make(folder: Path) -> None:
    """Write what `run` needs."""
    from helpers.aot_programs import columns, expressions, program_of

    import shine
    from shine import aot

    folder.mkdir(parents=True, exist_ok=True)
    for dtype in DTYPES:
        program = program_of(expressions(dtype), dtype)
        aot.build(program, folder, dtype, "ptx")
        inputs = columns(dtype, 3, CHECKED_ROWS)
        outputs = shine.jit(program)(*inputs)
        arrays = {f"in{i}": column for i, column in enumerate(inputs)}
        arrays |= {f"out{i}": column for i, column in enumerate(outputs)}
        np.savez(folder / f"{dtype}.npz", labels=np.array([output.label for output in program.outputs]), **arrays)
    for name, (formula, dtype) in TIMED.items():
        aot.build(formula, folder, name, "ptx", dtype=dtype)
    for seed in PROGRAMS:
        make_program(folder, seed)


def make_program(folder: Path, seed: int) -> None:
    """Write a random tensor program and items for it; every third argument is the same for all items."""
    from helpers.tensor_modules import SMOOTH, random_arguments, random_module

    import shine.tensor
    from shine.tensor.native.code import arena_of_thread
    from shine.tensor.native.function import TensorFunction

    function = TensorFunction(random_module(seed, operations=SMOOTH, floats=("f64",)))
    shine.tensor.build(function, folder, f"program{seed}", "ptx")
    items = [random_arguments(function.module, "main", item) for item in range(ITEMS)]
    columns = [np.stack(column) for column in zip(*items, strict=True)]
    columns[::3] = [column[:1].repeat(ITEMS, 0) for column in columns[::3]]
    found = [function(*item) for item in zip(*columns, strict=True)]
    tuples = [each if isinstance(each, tuple) else (each,) for each in found]
    results = [np.stack(column) for column in zip(*tuples, strict=True)]
    arrays = {f"in{i}": column[:1] if i % 3 == 0 else column for i, column in enumerate(columns)}
    arrays |= {f"out{i}": column for i, column in enumerate(results)}
    arena = arena_of_thread(function.code(target="nvptx64-nvidia-cuda").interface)
    np.savez(folder / f"program{seed}.npz", arena=arena, **arrays)


class Driver:
    """The CUDA driver, on the first GPU; every failing call raises."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def __call__(self, function: str, *arguments: Any) -> None:
        result = getattr(self._library, function)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'unknown error').decode()}")

    def kernel(self, path: Path) -> ctypes.c_void_p:
        """The kernel of a PTX file."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), path.read_bytes() + b"\0")
        self("cuModuleGetFunction", ctypes.byref(function), module, f"{path.stem}_kernel".encode())
        return function

    def sent(self, array: NDArray[Any]) -> ctypes.c_uint64:
        """Memory of the GPU with the contents of an array."""
        place = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(array.nbytes, 1)))
        self("cuMemcpyHtoD_v2", place, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return place

    def fetched(self, place: ctypes.c_uint64, rows: int, dtype: str) -> NDArray[Any]:
        """An array from the GPU's memory."""
        array = np.empty(rows, dtype)
        self("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), place, ctypes.c_size_t(array.nbytes))
        return array

    def launch(self, kernel: ctypes.c_void_p, arguments: Sequence[Any], rows: int) -> float:
        """Milliseconds of one launch, with one thread a row, or fewer threads with several rows each."""
        blocks = blocks_for(rows)
        table = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        events = [ctypes.c_void_p() for _ in range(2)]
        for event in events:
            self("cuEventCreate", ctypes.byref(event), 0)
        self("cuEventRecord", events[0], None)
        self("cuLaunchKernel", kernel, blocks, 1, 1, THREADS, 1, 1, 0, None, table, None)
        self("cuEventRecord", events[1], None)
        self("cuCtxSynchronize")
        elapsed = ctypes.c_float()
        self("cuEventElapsedTime", ctypes.byref(elapsed), *events)
        return float(elapsed.value)


def blocks_for(rows: int) -> int:
    """Blocks of a grid for so many rows or items."""
    return min((rows + THREADS - 1) // THREADS, 1 << 16)


def run(folder: Path) -> bool:
    """Compare and time the kernels; whether all bits are right."""
    driver = Driver()
    print(driver.name)
    checks = [compare(driver, folder, dtype) for dtype in DTYPES]
    checks.append(report_zero_divisor(driver, folder))
    wrong = [seed for seed in PROGRAMS if not is_program_right(driver, folder / f"program{seed}.ptx")]
    print(f"tensor programs: {len(PROGRAMS) - len(wrong)} of {len(PROGRAMS)} right; wrong: {wrong or 'none'}")
    checks.append(not wrong)
    for name, (formula, dtype) in TIMED.items():
        rng = np.random.default_rng(0)
        real = np.dtype(dtype).kind == "f"
        inputs = [(rng.standard_normal(TIMED_ROWS) if real else rng.integers(1, 1 << 40, TIMED_ROWS)) for _ in range(2)]
        places = [driver.sent(column.astype(dtype)) for column in inputs] + [driver.sent(np.empty(TIMED_ROWS, dtype))]
        kernel, status = driver.kernel(folder / f"{name}.ptx"), driver.sent(np.zeros(1, "int32"))
        arguments = [*places, ctypes.c_int64(TIMED_ROWS), status]
        best = min(driver.launch(kernel, arguments, TIMED_ROWS) for _ in range(LAUNCHES))
        rate, bandwidth = TIMED_ROWS / best / 1e6, 3 * np.dtype(dtype).itemsize * TIMED_ROWS / best / 1e6
        print(f"{formula} in {dtype}: {best:.3f} ms, {rate:.1f} rows a nanosecond, {bandwidth:.0f} GB/s")
        for place in (*places, status):
            driver("cuMemFree_v2", place)
    return all(checks)


def compare(driver: Driver, folder: Path, dtype: str) -> bool:
    """Whether a kernel of all primitives has the expected bits."""
    data = np.load(folder / f"{dtype}.npz")
    labels = data["labels"].tolist()
    inputs = [driver.sent(data[f"in{i}"]) for i in range(3)]
    outputs = [driver.sent(np.zeros(CHECKED_ROWS, dtype)) for _ in labels]
    # The status comes last: kernels without one ignore it.
    arguments = [*inputs, *outputs, ctypes.c_int64(CHECKED_ROWS), driver.sent(np.zeros(1, "int32"))]
    driver.launch(driver.kernel(folder / f"{dtype}.ptx"), arguments, CHECKED_ROWS)
    unsigned = f"u{np.dtype(dtype).itemsize}"
    wrong = []
    for i, label in enumerate(labels):
        found, expected = driver.fetched(outputs[i], CHECKED_ROWS, dtype), data[f"out{i}"]
        differs = (found.view(unsigned) != expected.view(unsigned)) & ~((found != found) & (expected != expected))
        if differs.any():
            wrong.append(f"{label} ({differs.sum()} rows)")
    print(f"{dtype}: {len(labels) - len(wrong)} of {len(labels)} outputs equal; {', '.join(wrong) or 'none differs'}")
    return not wrong


def is_program_right(driver: Driver, path: Path) -> bool:
    """Whether the items of a tensor program have the expected results."""
    data = np.load(path.with_suffix(".npz"))
    inputs, outputs = ([data[key] for key in data.files if key.startswith(name)] for name in ("in", "out"))
    arguments: list[Any] = []
    for array in inputs:
        stride = 0 if len(array) == 1 else array[0].size
        arguments += [driver.sent(array), ctypes.c_int64(stride)]
    places = [driver.sent(np.zeros_like(array)) for array in outputs]
    arenas = driver.sent(np.zeros(blocks_for(ITEMS) * THREADS * int(data["arena"]), np.uint8))
    driver.launch(driver.kernel(path), [*arguments, *places, arenas, ctypes.c_int64(ITEMS)], ITEMS)
    return all(
        np.allclose(driver.fetched(place, array.size, str(array.dtype)), array.reshape(-1), 1e-9, 1e-9, equal_nan=True)
        for place, array in zip(places, outputs, strict=True)
    )


def report_zero_divisor(driver: Driver, folder: Path) -> bool:
    """Whether a single zero divisor is in the status, and no status is set without one."""
    kernel, statuses = driver.kernel(folder / "modulus.ptx"), []
    for divisor in (3, 0):
        b = np.full(1000, 3, "int64")
        b[777] = divisor
        status = driver.sent(np.zeros(1, "int32"))
        columns = [driver.sent(column) for column in (np.full(1000, 7, "int64"), b, b)]
        driver.launch(kernel, [*columns, ctypes.c_int64(1000), status], 1000)
        statuses.append(int(driver.fetched(status, 1, "int32")[0]))
    print(f"status without and with a zero divisor: {statuses}")
    return statuses == [0, 1]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "run"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "make":
        make(arguments.folder)
    elif not run(arguments.folder):
        raise SystemExit("some results differ")


if __name__ == "__main__":
    main()
