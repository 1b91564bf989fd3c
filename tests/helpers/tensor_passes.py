"""Short texts for tests of passes: the lines of `@main` before and after."""

from __future__ import annotations

from collections.abc import Callable

from shine.tensor.form.module import Module
from shine.tensor.form.printing import instruction_text
from shine.tensor.form.reading import module_of


def main_of(text: str, others: str = "") -> Module:
    """A module with `@main`: first line its parameters, then its instructions, then the results.

    Each line is as in the text form, but parameters and results stand without words around them.
    """
    parameters, *body, results = (line.strip() for line in text.strip().splitlines())
    given = ", ".join(part.split(":")[1].strip() for part in parameters.split(",")) if parameters != "-" else ""
    made = ", ".join(part.split(":")[1].strip() for part in results.split(","))
    named = "" if parameters == "-" else parameters
    lines = "\n".join(body)
    return module_of(
        f"module @m\nfunc @main: ({given}) -> ({made}) {{\n'entry({named}):\n{lines}\nreturn {results}\n}}\n{others}"
    )


def lines_of(module: Module) -> list[str]:
    """Instructions and results of `@main`."""
    function = module.function("main")
    return [*map(instruction_text, function.body), ", ".join(f"{v}: {v.type}" for v in function.results)]


def after(change: Callable[[Module], Module], text: str, others: str = "") -> list[str]:
    """Instructions and results of `@main` after a pass; another pass changes nothing."""
    found = change(main_of(text, others))
    assert change(found) is found
    return lines_of(found)
