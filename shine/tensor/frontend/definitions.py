"""Definitions, in the language, of TensorFlow's operations that are not primitives of Shine."""

from __future__ import annotations

from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive

_DEFINITIONS = """
def sigmoid(x):
    # The exponential of the standard sigmoid overflows where the result is subnormal. At 0, the second operand of min
    # is the result and gets the derivative.
    small = exp(min(x, -x))
    return 1 / (1 + small) if x >= 0 else small / (1 + small)

def softplus(x, threshold):
    # Beyond the threshold TensorFlow drops the terms below its rounding.
    power = exp(min(-threshold, x))
    return x if x > -threshold else power if x < threshold else log1p(power)

def relu6(x):
    return min(max(x, 0), 6)

def elu(x):
    # As in TensorFlow, although it loses digits near 0.
    return exp(min(0, x)) - 1 if x < 0 else x

def selu(x):
    return 1.7580993408473766 * (exp(min(0, x)) - 1) if x < 0 else 1.0507009873554805 * x

def leaky_relu(x, alpha):
    return x if x > 0 else x * alpha

def softsign(x):
    return x / (1 + abs(x))

def rsqrt(x):
    return 1 / sqrt(x)

def squared_difference(a, b):
    difference = a - b
    return difference * difference

def floor_div(a, b):
    return floor(a / b)

def floor_mod(a, b):
    # Python gives a zero the sign of the divisor, TensorFlow that of the dividend.
    remainder = a % b
    return a * 0 if remainder == 0 else remainder

def truncate_mod(a, b):
    remainder = abs(a) % abs(b)
    return a * 0 if remainder == 0 else -remainder if a < 0 else remainder

def integer_truncate_mod(a, b):
    return a - a / b * b

def integer_pow(a, b):
    # With a negative exponent, the second term divides by zero, which is the error.
    return a ** b + 0 // (b >= 0)

def div_no_nan(a, b):
    return 0 if b == 0 else a / b

def mul_no_nan(a, b):
    return 0 if b == 0 else a * b

def xdivy(a, b):
    return a if a == 0 else a / b

def xlogy(a, b):
    return a if a == 0 else a * log(b)

def xlog1py(a, b):
    return a if a == 0 else a * log1p(b)

def round_even(x):
    # Halves go to the even neighbour.
    below = floor(x)
    rest = x - below
    odd = below - 2 * floor(below / 2)
    nearest = below + 1 if rest > 0.5 or (rest == 0.5 and odd) else below
    return x * 0 if nearest == 0 else nearest

def atan2(y, x):
    # By the angle of the point turned to the first quadrant; abs would have no derivative on the axes. Of equal ones,
    # the second is the result of min and max, and gets the derivative.
    below = y < 0 or (y == 0 and 1 / y < 0)
    left = x < 0 or (x == 0 and 1 / x < 0)
    height = -y if below else y
    width = -x if left else x
    small = min(width, height)
    large = max(height, width)
    ratio = small if large == 0 else 1 if small == large and large - small != 0 else small / large
    angle = atan(ratio)
    angle = 1.5707963267948966 - angle if height > width else angle
    angle = 3.141592653589793 - angle if left else angle
    return -angle if below else angle

def asinh(x):
    # log(2 |x|) for large x, where the square would overflow, or absorb the 1.
    size = abs(x)
    squared = min(size, 100000000) * min(size, 100000000)
    near = log1p(size + squared / (1 + sqrt(1 + squared)))
    far = log(max(size, 1)) + 0.6931471805599453
    value = far if size > 100000000 else near
    return x if x == 0 else -value if x < 0 else value

def acosh(x):
    above = x - 1
    near = log1p(above + sqrt(above) * sqrt(above + 2))
    far = log(x) + 0.6931471805599453
    return far if x > 100000000 else near

def atanh(x):
    size = abs(x)
    twice = 2 * size
    # Near 0 the rounding of a single quotient would show in the result.
    near = log1p(twice + twice * size / (1 - size))
    far = log1p(twice / (1 - size))
    value = (near if size < 0.5 else far) / 2
    return x if x == 0 else -value if x < 0 else value

def approximate_equal(a, b, tolerance):
    return abs(a - b) < tolerance

def clip(x, low, high):
    below = high if high < x else x
    return low if below < low else below

def zeros_like(x):
    # Uses its argument for its shape.
    return 0 if x == x else 0

def ones_like(x):
    return 1 if x == x else 1
"""


FUNCTIONS: dict[str, Primitive] = with_definitions(STANDARD, _DEFINITIONS)
"""The functions that an imported graph may call: the standard ones and the definitions above."""
