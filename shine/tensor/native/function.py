"""A function of a tensor program as Python calls it, compiled through all passes for a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

from shine.base.errors import CompilationError, FormError
from shine.base.lazy import cached_property
from shine.compiler.llvm.target import pipeline_level
from shine.compiler.processor import Machine, machine_of
from shine.compiler.threads import check_threads, processors
from shine.formats.native.code import Options, Order
from shine.formats.native.targets import NATIVE, Target, target_of
from shine.lang.forms.names import c_identifier, check_text, listed, shown, value_text
from shine.tensor.adjoint.declarations import gradient, with_gradients
from shine.tensor.form.module import Function, Module
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of
from shine.tensor.loops.emission import emit
from shine.tensor.native.code import Lowered, Lowering, TensorCode, kernel_ir
from shine.tensor.native.cpp_class import parts_of
from shine.tensor.native.interface import Interface, Tensor, interface_of
from shine.tensor.native.kernel import TensorKernel
from shine.tensor.passes.pipeline import optimized

ENTRY = "main"
"""The function of a module that is meant if none is named."""


class TensorFunction:
    """A function of a tensor program; `shine.tensor.load` makes it.

    It is compiled for this processor when it is first called. Threads may call it at the same time.

    Parameters
    ----------
    module : Module
    function : str, optional
        Its name in the module; by default ``main``, or the first one.
    name : str
        Name in C; by default made of the module's.
    description : str
        Its origin, for comments in files; the module's name by default.
    opt_level : {"O0", "O1", "O2", "O3"} or int
        LLVM pipeline.
    threads : int or None
        Threads that share the large loops of a call; all processors if None. Results do not depend on it. Files have
        code for one thread.

    Attributes
    ----------
    module : Module
    function : str
    name : str
    description : str

    Raises
    ------
    FormError
        If the module is not valid, or has no such function.
    ValueError
        If `threads` is no whole number from 1 on, or None.
    """

    def __init__(
        self,
        module: Module,
        function: str | None = None,
        *,
        name: str = "",
        description: str = "",
        opt_level: str | int = "O2",
        threads: int | None = 1,
    ) -> None:
        self.module = module
        self._complete = with_gradients(module)
        self.function = _chosen(self._complete, function)
        self.name = name or c_identifier(module.name)
        self.description = description or module.name
        self.opt_level = pipeline_level(opt_level)
        check_threads(threads)
        self.threads = None if threads is None else int(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled code cannot be copied to another process; it is compiled there.
        return _restored, (self.text, self.function, self.name, self.description, self.opt_level, self.threads)

    def __repr__(self) -> str:
        return f"<TensorFunction {self.name}{self.signature}>"

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Results for arguments.

        Parameters
        ----------
        *arguments, **named : array-like
            By position, or by name or label, with the shapes of the signature. Arrays must have its element types;
            numbers and lists of numbers are converted. Arrays in row-major order are not copied.
        out : ndarray, or tuple or list of ndarray, optional
            Arrays for the results, in row-major order.

        Returns
        -------
        ndarray, number, or tuple of them
            New arrays, or `out`; numbers for results of shape (). A tuple if there are several.

        Raises
        ------
        TypeError
            If arguments are missing or too many, or have elements of another type.
        ValueError
            If one has another shape, or `out` cannot take the results.
        """
        return self._run(arguments, named, out)

    @cached_property
    def _kernel(self) -> TensorKernel:
        threads = processors() if self.threads is None else self.threads
        code = self.code(cpu=NATIVE)
        if threads > 1:
            code = replace(code, lower=lowering(self._complete, self.function, code.name, is_shared=True))
        return TensorKernel(code, threads)

    @cached_property
    def _run(self) -> Callable[[tuple[Any, ...], Mapping[str, Any], Any], Any]:
        # A method is called faster than an object.
        return self._kernel.__call__

    @cached_property
    def _interface(self) -> Interface:
        return interface_of(self.name, self._body, self.module.labels, 0)

    @property
    def _body(self) -> Function:
        return self._complete.function(self.function)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Names, labels and types of the arguments, in the order of calls."""
        return self._interface.arguments

    @property
    def results(self) -> tuple[Tensor, ...]:
        """Names, labels and types of the results."""
        return self._interface.results

    @property
    def signature(self) -> str:
        """Labels and types of arguments and results: ``(x: <2 x 3 x f32>) -> y: <3 x f32>``."""
        return self._interface.signature

    @property
    def text(self) -> str:
        """The module as text; `shine.tensor.load` reads it back."""
        return text_of(self.module)

    @property
    def ir(self) -> str:
        """LLVM IR for this processor, before LLVM's own passes."""
        return self._kernel.code.ir

    @property
    def report(self) -> str:
        """The loops of the code for this processor: tiles, vectors, fused values; and the scratch memory."""
        return self._kernel.code.report

    def gradient(
        self,
        wrt: Sequence[int | str] | int | str | None = None,
        *,
        keeping: Sequence[int | str] | int | str = (),
        seedable: bool | None = None,
        memory: int | None = None,
    ) -> TensorFunction:
        """The function that computes the gradient.

        Parameters
        ----------
        wrt : sequence of int or str, or one of them, optional
            Arguments with respect to which, by position or name; by default all of floating-point numbers.
        keeping : sequence of int or str, or one of them
            Results that it returns as well, after the gradients.
        seedable : bool, optional
            Whether it takes the derivative by each result, after the arguments; by default, unless there is one result
            and it is a number.
        memory : int, optional
            Most bytes of values to keep at once; to keep to it, values are computed again.

        Returns
        -------
        TensorFunction
            Its arguments are those of this function, then the derivatives by its results if it takes them. Its results
            are the gradients in the order of `wrt`, then the results to keep.

        Raises
        ------
        FormError
            If there is no such argument or result, or the function has no gradient.
        """
        name = f"{self.function}_grad"
        while name in self._complete.functions:
            name += "_"
        chosen = None if wrt is None else _places(self.parameters, wrt, "wrt")
        kept = _places(self.results, keeping, "keeping")
        module = gradient(self.module, self.function, chosen, keeping=kept, seedable=seedable, name=name, memory=memory)
        described = f"gradient of {self.description}"
        return TensorFunction(
            module,
            name,
            name=f"{self.name}_grad",
            description=described,
            opt_level=self.opt_level,
            threads=self.threads,
        )

    def code(
        self,
        name: str | None = None,
        *,
        cpp_class: str = "",
        **options: Unpack[Options],
    ) -> TensorCode:
        """Code for a target, which makes files of itself.

        Parameters
        ----------
        name : str, optional
            Name of the function in C, and of the files. By default `name`, or with ``_run`` if the class or its
            namespace has that name.
        cpp_class : str
            Name of a class in C++, with its namespaces; no class if empty.
        **options
            As for `shine.aot.compile`; `opt_level` is that of the function by default.

        Raises
        ------
        ValueError
            If C or C++ cannot have a name.
        CompilationError
            If LLVM has no such target, processor or feature, or it is a GPU and there is a class.
        """
        check_text("cpp_class", cpp_class)
        chosen = self.name if name is None else name
        if name is None and cpp_class.removeprefix("::").partition("::")[0] == chosen:
            chosen = f"{chosen}_run"
        wanted: Options = {"opt_level": self.opt_level, **options}
        order = Order.of(chosen, **wanted)
        if cpp_class:
            parts_of(cpp_class, chosen)
            if order.target.format == "ptx":
                raise CompilationError(
                    f"{order.target.triple}: a GPU has no classes; leave the class out, and emit ptx"
                )
        return TensorCode(order, self.description, lowering(self._complete, self.function, chosen), cpp_class)


def _chosen(module: Module, name: str | None) -> str:
    names = [function.name for function in module.defined]
    if name is None and names:
        return ENTRY if ENTRY in names else names[0]
    if name not in names:
        raise FormError(
            f"there is no function {shown(name or ENTRY)}; the module {module.name} has {listed(names) or 'none'}"
        )
    return name


def _places(tensors: Sequence[Tensor], wanted: Sequence[int | str] | int | str, what: str) -> list[int]:
    """Positions of tensors; numbers are left for others to check."""
    found = []
    given = [wanted] if isinstance(wanted, int | str) else wanted
    if not isinstance(given, Sequence) or not all(isinstance(each, int | str) for each in given):
        raise TypeError(f"{what} has positions and names, and not {value_text(wanted)}")
    for each in given:
        if isinstance(each, str):
            place = next((i for i, tensor in enumerate(tensors) if each in (tensor.name, tensor.label)), None)
            if place is None:
                raise FormError(f"there is no {shown(each)}; there are {listed(tensor.label for tensor in tensors)}")
            found.append(place)
        else:
            found.append(each)
    return found


def _restored(
    text: str, function: str, name: str, description: str, opt_level: int, threads: int | None
) -> TensorFunction:
    return TensorFunction(
        module_of(text), function, name=name, description=description, opt_level=opt_level, threads=threads
    )


def lowering(module: Module, function: str, name: str, is_shared: bool = False) -> Lowering:
    """Lowering of a function of a module to LLVM IR.

    Parameters
    ----------
    module : Module
        Without declarations.
    function : str
    name : str
        Name of the function in C.
    is_shared : bool
        Whether threads of this process share the work, if that pays.

    Code for a GPU has a kernel, too.
    """

    @cache
    def small() -> Module:
        return optimized(module, [function])

    def lower(target: Target) -> Lowered:
        text, found = emit(small(), machine_for(target), function, name, is_shared=is_shared)
        interface = interface_of(name, module.function(function), module.labels, found.arena_bytes)
        if target.format == "ptx":
            text += kernel_ir(interface)
        return Lowered(text, interface, found.report, found.steps, found.scratch_bytes)

    return lower


def machine_for(target: Target) -> Machine:
    """The processor of a target; if it is this one, with its own caches."""
    is_here = target == target_of(None, NATIVE)
    return machine_of(None if is_here else target.triple, target.cpu, target.features)
