"""Names of features, variables and functions: the rules for formulas, as messages show them, as C identifiers."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import islice
from keyword import iskeyword

MOST_CHARACTERS = 255
"""Longest name: Excel's names and file names may be as long, so that every export can use it."""

MOST_PRIMITIVES = 100
"""Number of primitives that a message lists: more than Shine has, so that users see all choices."""

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ",
    "Omega": "Ω",
}  # fmt: skip
"""Greek letters by name, without the capitals that are Latin letters too."""


def normalized(name: str) -> str:
    """A name as Python reads it: in Unicode's NFKC form (Unicode Standard Annex 31), where `µ` is `μ` and `ﬁ` is `fi`.

    Texts that are the same name for Python have the same normal form.
    """
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def name_problem(name: str) -> str | None:
    """The problem with a normalized name, worded to follow the name in a message; None if formulas can use it."""
    if len(name) > MOST_CHARACTERS:
        return f"has {len(name)} characters; names have at most {MOST_CHARACTERS}"
    if not name.isidentifier() or iskeyword(name):
        return "is a keyword of Python" if iskeyword(name) else "is not an identifier"
    if name.startswith("__"):
        return "begins with two underscores, which names in formulas do not"
    return None


def symbol(name: str) -> str:
    """The name of a symbol in machine code, in ASCII: LLVM's engine finds no others."""
    return "".join(letter if letter.isascii() else f"u{ord(letter):04x}" for letter in name)


def identifier(text: str) -> str:
    """The nearest valid name for any text, such as a column's heading."""
    text = normalized(text.strip())[:MOST_CHARACTERS]
    parts = "".join(letter if f"_{letter}".isidentifier() else " " for letter in text).split()
    if len(parts) > 1:
        parts = [part.strip("_") for part in parts if part.strip("_")]
    cleaned = "_".join(parts).lstrip("_")
    if not cleaned.isidentifier():
        cleaned = f"x_{cleaned}" if cleaned else "x"
    cleaned = cleaned[:MOST_CHARACTERS]
    return f"{cleaned}_" if iskeyword(cleaned) else cleaned


class Numbering:
    """Makes names distinct by appending numbers: ``a, a_2, a_3``. Takes linear time.

    Parameters
    ----------
    taken : iterable of str
        Names that are never given.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def take(self, base: str) -> str:
        """A new name: `base` itself if it is free."""
        name, number = base, self._last.get(base, 1)
        while name in self._taken:
            number += 1
            ending = f"_{number}"
            name = base[: MOST_CHARACTERS - len(ending)] + ending
        self._last[base] = number
        self._taken.add(name)
        return name


def distinct_names(headings: Sequence[object], taken: Container[str] = ()) -> tuple[str, ...]:
    """A distinct name for each heading.

    A heading that is a valid name stays as it is, in Unicode's normal form. One ``_`` takes the place of neighbouring
    characters that an identifier cannot have, and none that of the first and the last; keywords and taken names get a
    ``_`` at the end; long names are cut; a repeated name gets a number.

    Parameters
    ----------
    headings : sequence
    taken : container of str
        Names that are never given.

    Examples
    --------
    >>> distinct_names(["mass / g", "my col", "my-col", "lambda", "my_col"])
    ('mass_g', 'my_col_2', 'my_col_3', 'lambda_', 'my_col')
    """
    texts = [str(heading) for heading in headings]
    wanted = [f"{name}_" if name in taken else name for name in map(identifier, texts)]
    # A valid heading keeps its name, even if an earlier heading turns into the same name.
    owners: dict[str, int] = {}
    for exact in (True, False):
        for column, (text, name) in enumerate(zip(texts, wanted, strict=True)):
            if (text if exact else normalized(text)) == name:
                owners.setdefault(name, column)
    numbering = Numbering(owners)
    return tuple(name if owners.get(name) == column else numbering.take(name) for column, name in enumerate(wanted))


def shortened(text: object, length: int = 60) -> str:
    """A text for a message; the middle of a long text is left out."""
    text = str(text)
    return text if len(text) <= length else f"{text[: length - 13]}...{text[-10:]}"


def shown(text: object, length: int = 60) -> str:
    """A quoted text for a message; the middle of a long text is left out."""
    return repr(shortened(text, length))


def value_text(value: object, length: int = 60) -> str:
    """Any value of a user's for a message: one short line, however long its own text is.

    Whatever a message says about a given value goes through here: tables, arrays and fronts print whole pages, long
    lists take long to print, some integers have more digits than Python prints, and some objects raise an error.
    """
    if isinstance(value, str | bytes) and len(value) > length:
        value = value[: length + 1]
    elif type(value) in (list, tuple) and len(value) > length:  # type: ignore[arg-type]
        value = value[:length]  # type: ignore[index]
    try:
        return cut(repr(value), length)
    except Exception:  # what a foreign object does when it is printed
        bits = value.bit_length() if isinstance(value, int) else 0
        return f"a whole number of {bits} bits" if bits else f"a {type(value).__name__}"


def cut(text: object, length: int = 300) -> str:
    """Another library's message on one line; the end of a long message is left out."""
    line = " ".join(str(text)[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 3]}..."


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message; only the first if there are many."""
    rest = iter(names)
    first = [shortened(name) for name in islice(rest, most)]
    more = sum(1 for _ in rest)
    return ", ".join(first) + (f" and {more} more" if more else "")


def unique(wanted: str, taken: Collection[str]) -> str:
    """A name, with a number added if it is taken."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def similar(name: str, names: Iterable[str], alike: float = 0.6) -> str | None:
    """The most similar name; None if no name is similar. Only the first names of a long list are compared.

    Parameters
    ----------
    name : str
    names : iterable of str
    alike : float
        Least similarity, from 0 to 1 (see `difflib.get_close_matches`).
    """
    if len(name) > MOST_CHARACTERS:
        return None
    # Most names that are searched for a similar one: comparing texts is slow.
    compared = {known.lower(): known for known in islice(names, 2_000)}
    found = difflib.get_close_matches(name.lower(), compared, n=1, cutoff=alike)
    return compared[found[0]] if found else None


def check_text(what: str, value: object) -> None:
    """Raise a TypeError unless an argument is text."""
    if not isinstance(value, str):
        raise TypeError(f"{what}={value_text(value)} is no text; give a str")


def check_variable(name: str, what: str) -> None:
    """Raise a ValueError unless Python can have a function or a variable of a name."""
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"{name!r} is not a name for a Python {what}")


def choices(name: str, names: Iterable[str], most: int = 16) -> str:
    """The part of a message about an unknown name: the allowed names near it, or all if they are few.

    Parameters
    ----------
    name : str
    names : iterable of str
    most : int
        So many are few.
    """
    known = sorted(names)
    near = [] if len(name) > MOST_CHARACTERS else difflib.get_close_matches(name, known, n=5, cutoff=0.6)
    if len(known) > most and near:
        return f"near it are {', '.join(near)}"
    return f"there are {listed(known, most)}"


def is_list(value: object) -> bool:
    """Whether a value is a collection of things, not one text, a mapping or an array without dimensions."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return False
    return getattr(value, "ndim", 1) > 0


_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield
    compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
    requires static_assert static_cast template this thread_local throw true try typeid typename typeof typeof_unqual
    using virtual wchar_t xor xor_eq
"""
"""Keywords of C and of C++: its compilers take the files, too."""

_LIBRARY = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
    fmin fmod fpclassify frexp hypot ilogb isfinite isgreater isgreaterequal isinf isless islessequal islessgreater
    isnan isnormal isunordered j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
    nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh tgamma
    trunc y0 y1 yn gamma drem finite significand scalb exp10 pow10 sincos signgam double_t float_t matherr
    cabs carg cexp cimag clog conj cpow cproj creal csin csqrt ctan
    abort abs alloca atexit atof atoi atol atoll bsearch calloc div exit free getenv labs ldiv llabs lldiv malloc mblen
    qsort rand realloc srand strtod strtof strtol strtoul system index rindex ffs
    memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strcspn strlen strncat strncmp strncpy strpbrk
    strrchr strspn strstr strtok strdup bcmp bcopy bzero stpcpy mempcpy
    fclose fflush fopen fprintf fputc fputs fread fscanf fwrite getc getchar printf putc putchar puts remove rename
    scanf snprintf sprintf sscanf vprintf vscanf vsnprintf execl fork
    isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit isascii toascii
    tolower toupper assert errno offsetof size_t ptrdiff_t time clock signal raise longjmp setjmp gettext
    main unix linux std
"""
"""Functions, macros and types of the standard library that compilers know or the files call."""

RESERVED = frozenset((_KEYWORDS + _LIBRARY).split())
"""Names that a formula, feature or variable must not have."""

_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*$")
_LIBRARY_VARIANT = re.compile(r"(\w+)[fl]$")


def c_identifier(name: str, taken: Collection[str] = ()) -> str:
    """A C c_identifier made of a name; never a keyword of C, a name of its library or a name in `taken`.

    Letters that C does not allow become their code points, other characters underscores.
    """
    text = "".join(c if re.match(r"[A-Za-z0-9_]", c) else f"u{ord(c):04x}" if c.isalnum() else "_" for c in name)
    # C reserves names that begin with an underscore, and forbids names that begin with a digit.
    if not re.match(r"[A-Za-z]", text):
        text = "x" + text
    variant = _LIBRARY_VARIANT.match(text)
    # Macros are in capitals: NAN, INFINITY, M_PI.
    macro = len(text) > 1 and _CAPITALS.match(text)
    if text in RESERVED or macro or text == "I" or (variant and variant[1] in RESERVED):
        text += "_"
    return unique(text, taken)
