"""Elementwise compositions: activation functions and their like, defined in the language.

Their derivatives are right wherever they have one, and finite where a branch that is not taken would overflow: where
two operands of `min` or `max` are equal, the second one gets the derivative, and the definitions choose their order.
"""

from __future__ import annotations

from shine.base.errors import FormError
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.names import choices
from shine.lang.forms.tree import Primitive
from shine.tensor.form.builder import DIFFERENTIABLE, FunctionBuilder, write_composite
from shine.tensor.form.module import Value
from shine.tensor.form.types import FLOATS

_DEFINITIONS = """
def sigmoid(x):
    # The exponential of a number that is not positive cannot overflow.
    small = exp(min(-x, x))
    return (1 if x > 0 else small) / (1 + small)

def softplus(x):
    return max(x, 0) + log1p(exp(min(-x, x)))

def log_sigmoid(x):
    return -softplus(-x)

def elu(x, alpha):
    # exp(x) - 1 by the hyperbolic tangent of half of it, which keeps the digits near 0.
    half = tanh(0.5 * min(0, x))
    return x if x > 0 else alpha * (2 * half / (1 - half))

def celu(x, alpha):
    half = tanh(0.5 * (min(0, x) / alpha))
    return x if x > 0 else alpha * (2 * half / (1 - half))

def selu(x):
    return 1.0507009873554805 * elu(x, 1.6732632423543772)

def relu(x):
    return max(x, 0)

def relu6(x):
    return min(max(x, 0), 6)

def leaky_relu(x, slope):
    return x if x > 0 else slope * x

def threshold(x, least, otherwise):
    return x if x > least else otherwise

def softsign(x):
    return x / (1 + abs(x))

def silu(x):
    return x * sigmoid(x)

def mish(x):
    return x * tanh(softplus(x))

def hard_sigmoid(x, slope, shift):
    return min(max(slope * x + shift, 0), 1)

def hard_swish(x):
    return x * (min(max(x + 3, 0), 6) / 6)

def clip(x, low, high):
    return min(high, max(low, x))

def hard_shrink(x, size):
    return 0 if abs(x) <= size else x

def soft_shrink(x, size):
    return x - size if x > size else x + size if x < -size else 0 if x == x else x

def gelu_tanh(x):
    # Hendrycks, Gimpel 2016; sqrt(2 / pi) is 0.797...
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))

def rsqrt(x):
    return 1 / sqrt(x)
"""

_ERF = {
    "f32": """
def erf(x):
    a = min(max(x, -1.1), 1.1)
    s = a * a
    near = a + a * (0.12837916221014042 + s * (-0.37612600505440967 + s * (0.11283291633056309
        + s * (-0.026841437998264036 + s * (0.005164857031116077 + s * (-0.0007805747406167808
        + s * 7.187874886825288e-05))))))
    b = min(max(abs(x), 0.9), 4.1)
    p = 1.000742313889754 + b * (0.7488348905823819 + b * 0.2371991074243967)
    q = 1 + b * (1.8822425109431045 + b * (1.3452988928066902 + b * 0.4189801684674604))
    far = 1 - exp(-(b * b)) * (p / q)
    return near if abs(x) < 1 else far if x > 0 else -far if x < 0 else x
""",
    "f64": """
def erf(x):
    a = min(max(x, -1.1), 1.1)
    s = a * a
    p = 0.12837916709551254 + s * (-0.31715874320739223 + s * (-0.04795485450365249
        + s * (-0.008752082403434795 + s * (-0.00048589873115426615 - s * 2.0241631568024187e-05))))
    q = 1 + s * (0.45932410342379 + s * (0.0932483476398464 + s * (0.010578644704265256
        + s * (0.0006804962785653575 + s * 2.0241631568024187e-05))))
    near = a + a * (p / q)
    b = min(max(abs(x), 0.9), 6.1)
    t = 0.9999999387355195 + b * (1.3769362010164593 + b * (0.9326307439385504 + b * (0.36354693593283155
        + b * (0.08115902746864292 + b * 0.00845405269675552))))
    u = 1 + b * (2.505314686794816 + b * (2.7595792430982782 + b * (1.7243246849499282
        + b * (0.6519307496472749 + b * (0.1438460249329785 + b * 0.014984566817280378)))))
    far = 1 - exp(-(b * b)) * (t / u)
    return near if abs(x) < 1 else far if x > 0 else -far if x < 0 else x
""",
}
"""The error function, by element type: at most 2 units in the last place off.

Up to 1 it is x plus x times a function of x * x, beyond 1 - exp(-x * x) times a function of x, both rational as Cody's
(1969) but with coefficients of their own: least errors of 4e-9 and 3e-10 (f32), 3e-17 and 3e-18 (f64). Each part is
computed a little farther than it is needed, so that its bounds do not touch the derivative.
"""

_WITH_ERF = """
def gelu(x):
    return 0.5 * x * (1 + erf(0.7071067811865476 * x))
"""

ACTIVATIONS: dict[str, dict[str, Primitive]] = {
    dtype: with_definitions(DIFFERENTIABLE, _DEFINITIONS + _ERF[dtype] + _WITH_ERF) for dtype in sorted(FLOATS)
}
"""The functions that `activation` knows, by element type: these definitions, and all primitives of the language."""


def activation(builder: FunctionBuilder, name: str, x: Value, *others: Value | float) -> Value:
    """Apply an elementwise function of `ACTIVATIONS` to floats.

    Parameters
    ----------
    builder : FunctionBuilder
    name : str
        Such as "gelu".
    x : Value
    others : Value or float
        The function's other arguments, such as the slope of "leaky_relu"; they are broadcast.

    Raises
    ------
    FormError
        If there is no such function, or its arguments are others.

    Examples
    --------
    >>> from shine.tensor.form.types import TensorType
    >>> b = FunctionBuilder("f")
    >>> print(activation(b, "leaky_relu", b.parameter("x", TensorType("f32", (3,))), 0.01).type)
    <3 x f32>
    """
    table = ACTIVATIONS.get(x.type.dtype)
    if table is None:
        raise FormError(f"{name} takes elements {', '.join(ACTIVATIONS)}, and is given {x.type}")
    if name not in table:
        raise FormError(f"there is no function {name!r}; {choices(name, table)}")
    operands = [x, *(other if isinstance(other, Value) else builder.like(x, other) for other in others)]
    if len(operands) != table[name].arity:
        raise FormError(f"{name} takes {table[name].arity} arguments, and is given {len(operands)}")
    if table[name].definition is None:
        return builder.emit(name, operands)[0]
    return write_composite(builder, table[name], operands)
