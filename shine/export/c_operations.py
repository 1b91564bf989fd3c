"""How each primitive is written in C, and which names C leaves to a formula."""

from __future__ import annotations

import re
from collections.abc import Collection

from shine.export.statements import Dialect, Form, call
from shine.export.steps import unique

_CHOICE, _OR, _AND, _EQUAL, _ORDER, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 10)

HELPERS: dict[str, tuple[str, str]] = {
    "min": (
        "double a, double b",
        """\
    /* NaN if either is; of equal numbers, 0.0 and -0.0 among them, the second. */
    return a < b || a != a ? a : b;""",
    ),
    "max": (
        "double a, double b",
        """\
    /* NaN if either is; of equal numbers, 0.0 and -0.0 among them, the second. */
    return a > b || a != a ? a : b;""",
    ),
    "sign": (
        "double a",
        """\
    /* 1, -1 or 0; NaN of NaN. */
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a == 0.0 ? 0.0 : a;""",
    ),
    "mod": (
        "double a, double b",
        """\
    /* The remainder that has the sign of the divisor; NaN for the divisor 0. */
    const double remainder = fmod(a, b);
    if (remainder == 0.0) {
        return copysign(0.0, b);
    }
    return (b < 0.0) != (remainder < 0.0) ? remainder + b : remainder;""",
    ),
    "floordiv": (
        "double a, double b",
        """\
    /* The quotient rounded down, from an exact remainder; a / b for the divisor 0. */
    const double remainder = fmod(a, b);
    double quotient = (a - remainder) / b;
    double below;
    if (b == 0.0) {
        return a / b;
    }
    if (remainder != 0.0 && (b < 0.0) != (remainder < 0.0)) {
        quotient -= 1.0;
    }
    if (quotient == 0.0) {
        return copysign(0.0, a / b);
    }
    below = floor(quotient);
    return quotient - below > 0.5 ? below + 1.0 : below;""",
    ),
    "logical_and": (
        "double a, double b",
        """\
    /* One of its operands: the second unless the first is 0. */
    return a != 0.0 ? b : a;""",
    ),
    "logical_or": (
        "double a, double b",
        """\
    /* One of its operands: the first unless it is 0. */
    return a != 0.0 ? a : b;""",
    ),
}
"""Parameters and body of the function that a primitive becomes which is neither an operator nor in <math.h>."""


def _operator(symbol: str, strength: int) -> Form:
    return Form(f"{{0}} {symbol} {{1}}", strength, (strength, strength + 1))


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}

_FORMS: dict[str, Form] = {
    "add": _operator("+", _SUM),
    "sub": _operator("-", _SUM),
    "mul": _operator("*", _PRODUCT),
    "div": _operator("/", _PRODUCT),
    # Two signs in a row are a decrement.
    "neg": Form("-{0}", _SIGN, (_ATOM,)),
    "abs": call("fabs", 1),
    "pow": call("pow", 2),
    **{
        name: call(name, 1)
        for name in ("sqrt", "exp", "log", "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan")
    },
    **{name: call(name, 1) for name in ("sinh", "cosh", "tanh")},
    **{name: Form(f"{{0}} {symbol} {{1}} ? 1.0 : 0.0", _CHOICE, (_SUM, _SUM)) for name, symbol in _COMPARISONS.items()},
    "logical_not": Form("{0} ? 0.0 : 1.0", _CHOICE, (_OR,), (0,)),
    "where": Form("{0} ? {1} : {2}", _CHOICE, (_OR, _CHOICE + 1, _CHOICE), (0,)),
}

_CONDITIONS: dict[str, Form] = {
    **{
        name: Form(f"{{0}} {symbol} {{1}}", _EQUAL if name in ("eq", "ne") else _ORDER, (_SUM, _SUM))
        for name, symbol in _COMPARISONS.items()
    },
    "logical_not": Form("!{0}", _SIGN, (_ATOM,), (0,)),
    "logical_and": Form("{0} && {1}", _AND, (_AND, _AND + 1), (0, 1)),
    # Compilers warn of && within || without parentheses.
    "logical_or": Form("{0} || {1}", _OR, (_AND + 1, _AND + 1), (0, 1)),
}


def _number(value: float) -> Form:
    text = repr(value)
    return Form(text, _SIGN if text.startswith("-") else _ATOM)


def dialect(prefix: str) -> Dialect:
    """C, with helper functions whose names begin with a prefix."""
    helpers = {name: call(f"{prefix}_{name}", helper[0].count("double")) for name, helper in HELPERS.items()}
    return Dialect("C", {**_FORMS, **helpers}, _CONDITIONS, Form("{0} != 0.0", _EQUAL, (_SUM,)), _number)


_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield
    compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
    requires static_assert static_cast template this thread_local throw true try typeid typename typeof typeof_unqual
    using virtual wchar_t xor xor_eq
"""
"""Of C and of C++, which may compile the files too."""

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
"""Functions, macros and types of the standard library that compilers know, or that the files call."""

RESERVED = frozenset((_KEYWORDS + _LIBRARY).split())
"""Names that no formula, feature or variable gets."""

_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*$")
_LIBRARY_VARIANT = re.compile(r"(\w+)[fl]$")


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """A name as a C identifier that neither the language, the library nor `taken` has.

    What C cannot have in a name is replaced: other letters by their code point, everything else by underscores.
    """
    text = "".join(c if re.match(r"[A-Za-z0-9_]", c) else f"u{ord(c):04x}" if c.isalnum() else "_" for c in name)
    # Names that begin with an underscore, and with a digit, are not a program's own.
    if not re.match(r"[A-Za-z]", text):
        text = "x" + text
    variant = _LIBRARY_VARIANT.match(text)
    # Two capitals are how macros begin: NAN, INFINITY, M_PI.
    macro = len(text) > 1 and _CAPITALS.match(text)
    if text in RESERVED or macro or text == "I" or (variant and variant[1] in RESERVED):
        text += "_"
    return unique(text, taken)
