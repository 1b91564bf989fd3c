"""C identifiers for names of formulas and features."""

from __future__ import annotations

import re
from collections.abc import Collection

from shine.lang.forms.names import unique

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


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """A C identifier made of a name; never a keyword of C, a name of its library or a name in `taken`.

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
