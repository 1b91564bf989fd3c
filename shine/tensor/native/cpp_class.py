"""The C++ class around a compiled tensor program, with the methods of TensorFlow's ahead-of-time compiler.

Its users find the class that they know (TensorFlow, "Using AOT compilation"): the same allocation modes and accessors,
by position and by name. It needs C++11 and nothing but the language's own `new` and `delete`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shine.formats.native.code import Code, Files
from shine.formats.native.headers import header_file
from shine.formats.write.c import for_comment
from shine.lang.forms.names import RESERVED
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.native.interface import PROMISES, Interface, Tensor, described, padded

_IDENTIFIER = re.compile(r"[A-Za-z]\w*", re.ASCII)

_CLASS = """\
/* The function in the object file. */
extern "C" void {function}(const void *const *arguments, void *const *results, void *arena);

{opened}/*
 * {signature}
 *
{listed}
 *
 *   {name} computation;
 *   // Fill computation.arg0_data(), or set each computation.arg0(...).
 *   bool done = computation.Run();
 *   // Read computation.result0_data(), or each computation.result0(...).
 *
 * An object has {total} bytes of buffers, of which {arena} are scratch memory; their addresses are multiples of
 * {alignment}. One thread at a time may call Run() of an object.
 */
class {name} final {{
 public:
  /* Whether the object has buffers for arguments, or the caller sets them before Run(). */
  enum class AllocMode {{
    ARGS_RESULTS_AND_TEMPS,
    RESULTS_AND_TEMPS_ONLY,
    /* The same, as later versions of TensorFlow call them. */
    ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS = ARGS_RESULTS_AND_TEMPS,
    RESULTS_PROFILES_AND_TEMPS_ONLY = RESULTS_AND_TEMPS_ONLY
  }};

  static constexpr size_t kNumArgs = {arguments};
  static constexpr size_t kNumResults = {results};

  explicit {name}(AllocMode mode = AllocMode::ARGS_RESULTS_AND_TEMPS)
      : block_(::operator new(Room(mode) + {alignment})), args_(), results_(), error_("") {{
    char *place = static_cast<char *>(block_);
    place += {alignment} - reinterpret_cast<uintptr_t>(place) % {alignment};
    arena_ = place;
    place += {arena};
    for (size_t i = 0; i != kNumResults; i++) {{
      results_[i] = place;
      place += Padded(ResultSize(i));
    }}
    if (mode == AllocMode::ARGS_RESULTS_AND_TEMPS) {{
      for (size_t i = 0; i != kNumArgs; i++) {{
        args_[i] = place;
        place += Padded(ArgSize(i));
      }}
    }}
  }}

  ~{name}() {{ ::operator delete(block_); }}

  {name}(const {name} &) = delete;
  {name} &operator=(const {name} &) = delete;

  /* Compute the results; false, with an error_msg(), if an argument has no buffer. */
  bool Run() {{
    for (size_t i = 0; i != kNumArgs; i++) {{
      if (args_[i] == nullptr) {{
        error_ = "an argument has no buffer; call set_argN_data for each of them before Run";
        return false;
      }}
    }}
    error_ = "";
    ::{function}(args_, results_, arena_);
    return true;
  }}

  /* Why the last Run() failed; empty if it did not. */
  const char *error_msg() const {{ return error_; }}

  /* Code compiled by Shine runs on the thread that calls Run(), and needs no pool. */
  template <class Pool>
  void set_thread_pool(const Pool *) {{}}

  /* Buffers by position. Elements are in row-major order; indices are not checked. */
  void **args() {{ return args_; }}
  const void *const *args() const {{ return args_; }}
  void *arg_data(size_t index) {{ return args_[index]; }}
  const void *arg_data(size_t index) const {{ return args_[index]; }}
  void set_arg_data(size_t index, const void *data) {{ args_[index] = const_cast<void *>(data); }}
  void **results() {{ return results_; }}
  const void *const *results() const {{ return results_; }}
  void *result_data(size_t index) {{ return results_[index]; }}
  const void *result_data(size_t index) const {{ return results_[index]; }}

  /* Bytes of a buffer. */
  static size_t ArgSize(size_t index) {{
    static const size_t sizes[] = {{{argument_sizes}}};
    return sizes[index];
  }}
  static size_t ResultSize(size_t index) {{
    static const size_t sizes[] = {{{result_sizes}}};
    return sizes[index];
  }}
  size_t arg_size(size_t index) const {{ return ArgSize(index); }}
  size_t result_size(size_t index) const {{ return ResultSize(index); }}

  /* Position of a name; -1 if there is none. */
  static int LookupArgIndex(const char *name) {{
    static const char *const names[] = {{{argument_labels}}};
    return Find(names, kNumArgs, name);
  }}
  static int LookupResultIndex(const char *name) {{
    static const char *const names[] = {{{result_labels}}};
    return Find(names, kNumResults, name);
  }}
{methods}
 private:
  static size_t Padded(size_t bytes) {{
    return bytes == 0 ? {alignment} : (bytes + {alignment} - 1) / {alignment} * {alignment};
  }}
  static size_t Room(AllocMode mode) {{
    return mode == AllocMode::ARGS_RESULTS_AND_TEMPS ? {total}u : {without}u;
  }}
  static int Find(const char *const *names, size_t count, const char *name) {{
    for (size_t i = 0; i != count; i++) {{
      size_t k = 0;
      while (names[i][k] != 0 && names[i][k] == name[k]) k++;
      if (names[i][k] == name[k]) return static_cast<int>(i);
    }}
    return -1;
  }}

  void *block_;
  void *arena_;
  void *args_[{argument_places}];
  void *results_[{result_places}];
  const char *error_;
}};

{closed}"""

_TAKEN = frozenset({
    "AllocMode", "ArgSize", "Find", "LookupArgIndex", "LookupResultIndex", "Padded", "ResultSize", "Room", "Run",
    "arena_", "arg_data", "arg_size", "args", "args_", "block_", "error_", "error_msg", "kNumArgs", "kNumResults",
    "result_data", "result_size", "results", "results_", "set_arg_data", "set_thread_pool",
})  # fmt: skip
"""Members of every class."""

_SETTER = """
  void set_{base}_data(const void *data) {{ set_arg_data({place}, data); }}"""

_METHODS = """
  {kind} *{base}_data() {{ return static_cast<{kind} *>({table}_data({place})); }}
  const {kind} *{base}_data() const {{ return static_cast<const {kind} *>({table}_data({place})); }}
  {kind} &{base}({indices}) {{ return {base}_data()[{offset}]; }}
  const {kind} &{base}({indices}) const {{ return {base}_data()[{offset}]; }}
  static constexpr size_t {base}_size() {{ return {bytes}u; }}
  static constexpr size_t {base}_count() {{ return {count}u; }}
"""


def class_files(code: Code, interface: Interface, qualified: str) -> Files:
    """The header ``NAME.hpp`` with a class; a `ValueError` if a class cannot have this name.

    Parameters
    ----------
    code : Code
    interface : Interface
    qualified : str
        Name of the class, with its namespaces.
    """
    *namespaces, name = parts_of(qualified, code.name)
    given, made = interface.arguments, interface.results
    arena = padded(interface.arena_bytes) if interface.arena_bytes else 0
    without = arena + sum(each.room for each in made)
    methods = _methods(interface)
    if name in {*_TAKEN, *_names(methods)}:
        raise ValueError(f"the class {qualified} has a method {name}; give it another name")
    text = _CLASS.format(
        function=interface.name,
        opened="".join(f"namespace {each} {{\n" for each in namespaces) + "\n" * bool(namespaces),
        closed="".join(f"}}  // namespace {each}\n" for each in reversed(namespaces)) + "\n" * bool(namespaces),
        signature=for_comment(interface.signature),
        listed=described(interface, " *   "),
        name=name,
        alignment=ALIGNMENT,
        total=without + sum(each.room for each in given),
        without=without,
        arena=arena,
        arguments=len(given),
        results=len(made),
        argument_places=max(len(given), 1),
        result_places=max(len(made), 1),
        argument_sizes=", ".join(str(each.type.bytes) for each in given) or "0",
        result_sizes=", ".join(str(each.type.bytes) for each in made) or "0",
        argument_labels=", ".join(_quoted(each.label) for each in given) or '""',
        result_labels=", ".join(_quoted(each.label) for each in made) or '""',
        methods=methods,
    )
    return header_file(code, text, PROMISES, "hpp", "_".join((*namespaces, name)))


def parts_of(qualified: str, function: str) -> list[str]:
    """The namespaces and the name of a class; a `ValueError` if this is no name, or that of the function.

    Parameters
    ----------
    qualified : str
        As C++ writes it.
    function : str
        Name of the function in C, which is in no namespace.
    """
    parts = qualified.removeprefix("::").split("::")
    for part in parts:
        if not _IDENTIFIER.fullmatch(part) or part in RESERVED or "__" in part:
            raise ValueError(f"{qualified!r} is no name for a class in C++; write one like foo::bar::MatMulComp")
    if parts[0] == function:
        raise ValueError(f"the class {qualified} and the function {function} in C need different names")
    return parts


def _methods(interface: Interface) -> str:
    """The methods of each tensor by position, and by name where no other method has that name."""
    groups = [_accessors(tensor, f"{table}{place}", table, place) for table, place, tensor in _placed(interface)]
    taken = {*_TAKEN, *_names("".join(groups))}
    for table, place, tensor in _placed(interface):
        named = _accessors(tensor, f"{table}_{tensor.name}", table, place)
        if not taken & _names(named):
            taken |= _names(named)
            groups.append(named)
    return "".join(groups)


def _placed(interface: Interface) -> Iterator[tuple[str, int, Tensor]]:
    for table, tensors in (("arg", interface.arguments), ("result", interface.results)):
        for place, tensor in enumerate(tensors):
            yield table, place, tensor


def _accessors(tensor: Tensor, base: str, table: str, place: int) -> str:
    shape = tensor.type.shape
    offset = ""
    for axis, size in enumerate(shape):
        offset = f"({offset}) * {size} + dim{axis}" if " " in offset else f"{offset} * {size} + dim{axis}"
        offset = offset if axis else "dim0"
    text = _METHODS.format(
        kind="bool" if tensor.type.dtype == "bool" else tensor.c_type,
        base=base,
        table=table,
        place=place,
        indices=", ".join(f"size_t dim{axis}" for axis in range(len(shape))),
        offset=offset or "0",
        bytes=tensor.type.bytes,
        count=tensor.type.elements,
    )
    return _SETTER.format(base=base, place=place) + text if table == "arg" else text


def _names(methods: str) -> set[str]:
    """Names of the methods that some code defines."""
    return set(re.findall(r"(\w+)\([^()]*\)(?: const)? \{", methods))


def _quoted(text: str) -> str:
    """A string literal of C, in UTF-8."""
    return (
        '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'
    )
