"""The built-in losses: the error of a row, in the language of formulas.

The error of a row is 0 where the prediction is perfect, and smaller is better. Where a prediction is outside its range,
the error is large, but finite and falls towards the range: a formula that is out of range in one row can be fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shine.base.typing import Floats, Mask


@dataclass(frozen=True)
class Number:
    """A number in brackets behind the name of a loss: ``quantile(0.9)``.

    Parameters
    ----------
    default : float
    low, high : float
        It must be between them.
    """

    default: float
    low: float = 0.0
    high: float = float("inf")


@dataclass(frozen=True)
class Values:
    """The values that a column must have.

    Parameters
    ----------
    words : str
        For messages.
    allow : callable
        Whether each value is allowed.
    """

    words: str
    allow: Callable[[Floats], Mask]


NOT_NEGATIVE = Values("at least 0", lambda values: values >= 0)
POSITIVE = Values("above 0", lambda values: values > 0)
NOT_ZERO = Values("other than 0", lambda values: values != 0)
SHARES = Values("between 0 and 1", lambda values: (values >= 0) & (values <= 1))
SIGNS = Values("-1 or 1", lambda values: abs(values) == 1)
CENSORING = Values("-1 (at most the target), 0 (measured) or 1 (at least the target)", lambda values: abs(values) <= 1)


@dataclass(frozen=True)
class BuiltIn:
    """A built-in loss.

    Parameters
    ----------
    definition : str
        A function in the language: of ``residual`` (prediction - target, divided by `sigma` if the data have it), or of
        ``prediction``, ``target`` and columns beside the data; and then of the numbers.
    meaning : str
        Meaning of the prediction.
    numbers : mapping of str to Number
    values : mapping of str to Values
        Allowed values of the target and the columns.
    likelihood : float, optional
        Factor of the sum of errors in the negative log-likelihood (see `shine.evaluate.losses.form.RowLoss`); None
        if the scale of the errors follows from the data.
    of_sigma : float, optional
        The factor if errors are divided by `sigma`.
    degree : int, optional
        Power of the residual in the error, if it is one.
    robust : bool
        Whether a row that is far off counts little, so that the search may do without gross outliers.
    spread : {"relative", "log", "overdispersed", "unknown"}, optional
        Scatter of new readings around the prediction, if the loss says it: in proportion to it; as counts with more
        variance than the mean; or not at all, if readings are not in the units of the prediction.
    """

    definition: str
    meaning: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    values: Mapping[str, Values] = field(default_factory=dict)
    likelihood: float | None = None
    of_sigma: float | None = None
    degree: int | None = None
    robust: bool = False
    spread: str | None = None


EXCESS = """    near = max(min(share, 0.01), -0.01)
    part = near/(2 + near)
    square = part*part
    excess = part*(near - square*(2/3 + square*(2/5 + square*2/7)))
"""
"""``share - log1p(share)`` where the difference would cancel, for shares of at most 0.01: the series of log1p in
share/(2 + share)."""

LIBRARY: dict[str, BuiltIn] = {
    "gaussian": BuiltIn(
        """
def gaussian(prediction, target, sigma):
    distance = (prediction - target) / sigma
    return distance * distance
""",
        "the mean, of normal noise with the standard deviation sigma of each row",
        values={"sigma": POSITIVE},
        likelihood=0.5,
    ),
    "poisson": BuiltIn(
        # Below a thousandth of the target, the deviance goes on along a steep line. Where the quotient is near 1, the
        # series of its logarithm in distance/(mean + target) keeps the digits of small deviances. Every part is finite
        # in every row, so that derivatives are.
        """
def poisson(prediction, target):
    mean = max(prediction, 0.001*target + 1e-30)
    distance = mean - target
    part = distance/(mean + target)
    square = part*part
    near = part*(distance - target*square*(2/3 + square*(2/5 + square*2/7)))
    divisor = target if target > 0 else 1
    half = near if abs(part) < 0.005 else target*log(divisor/mean) + distance
    return 2*half + 2000*(mean - prediction)
""",
        "the expected count, at least 0",
        values={"target": NOT_NEGATIVE},
        likelihood=0.5,
    ),
    "binomial": BuiltIn(
        # exp of a number that is not positive does not overflow. At 0 both sides have the same derivative.
        """
def binomial(prediction, target):
    linear = (1 - target)*prediction if prediction > 0 else -target*prediction
    return linear + log1p(exp(-abs(prediction)))
""",
        "the logarithm of the odds, log(p/(1 - p)), of a row whose share of hits is the target",
        values={"target": SHARES},
        spread="unknown",
        likelihood=1.0,
    ),
    "negative_binomial": BuiltIn(
        # The logarithms are those of target/mean by the ratio of 1 + alpha*target to 1 + alpha*mean, and of this ratio.
        # Where they cancel, the linear terms of both are put together.
        f"""
def negative_binomial(prediction, target, alpha):
    mean = max(prediction, 0.001*target + 1e-30)
    distance = (target - mean)/mean
    inner = 1 + alpha*target
    outer = mean/(1 + alpha*mean)
    own = max(distance/inner, -0.9999999999999999)
    spread = distance*(alpha*outer)
    share = own
{EXCESS}    of_target = excess
    share = spread
{EXCESS}    small = distance*(distance/inner)*outer - target*of_target + excess/alpha
    half = small if abs(distance) < 0.01 else target*log1p(own) + log1p(alpha*(mean - target)/inner)/alpha
    return 2*half + 2000*(mean - prediction)
""",
        "the expected count, at least 0, of counts with the variance mean + alpha*mean**2",
        {"alpha": Number(1.0)},
        {"target": NOT_NEGATIVE},
        likelihood=0.5,
        spread="overdispersed",
    ),
    "gamma": BuiltIn(
        f"""
def gamma(prediction, target):
    mean = max(prediction, 0.001*target)
    share = (target - mean)/mean
{EXCESS}    half = excess if abs(share) < 0.01 else share - log(target/mean)
    return 2*half + 2000000*(mean - prediction)/target
""",
        "the mean, above 0, of noise in proportion to it",
        values={"target": POSITIVE},
        spread="relative",
    ),
    "student_t": BuiltIn(
        """
def student_t(residual, freedom, scale):
    distance = residual/scale
    return (freedom + 1)*log1p(distance*distance/freedom)
""",
        "the centre of Student's t distribution with so many degrees of freedom and this scale",
        {"freedom": Number(4.0), "scale": Number(1.0)},
        likelihood=0.5,
        of_sigma=0.5,
        robust=True,
    ),
    "huber": BuiltIn(
        """
def huber(residual, delta):
    size = abs(residual)
    return 0.5*residual*residual if size <= delta else delta*(size - 0.5*delta)
""",
        "the mean, of noise with outliers: errors beyond delta count linearly",
        {"delta": Number(1.0)},
        of_sigma=1.0,
        robust=True,
    ),
    "log_cosh": BuiltIn(
        """
def log_cosh(residual):
    size = abs(residual)
    near = min(size, 30)
    half = sinh(0.5*near)
    return log1p(2*half*half) + (size - near)
""",
        "the mean, of noise with outliers: errors beyond 1 count linearly",
        of_sigma=1.0,
        robust=True,
    ),
    "quantile": BuiltIn(
        """
def quantile(residual, q):
    return (1 - q)*residual if residual > 0 else -q*residual
""",
        "the value that a share q of the targets does not exceed",
        {"q": Number(0.5, 0.0, 1.0)},
        degree=1,
    ),
    "relative": BuiltIn(
        """
def relative(prediction, target):
    share = (prediction - target)/target
    return share*share
""",
        "the target; errors are shares of it, squared",
        values={"target": NOT_ZERO},
        spread="relative",
    ),
    "logarithmic": BuiltIn(
        """
def logarithmic(prediction, target):
    mean = max(prediction, 0.001*target)
    distance = log1p((mean - target)/target)
    return distance*distance + 14000*(mean - prediction)/target
""",
        "the target, above 0; errors are those of logarithms, squared",
        values={"target": POSITIVE},
        spread="log",
    ),
    "hinge": BuiltIn(
        """
def hinge(prediction, target):
    return max(1 - target*prediction, 0)
""",
        "a score whose sign is the class; correct scores beyond 1 cost nothing",
        values={"target": SIGNS},
        spread="unknown",
        likelihood=1.0,
    ),
    "interval": BuiltIn(
        """
def interval(prediction, lower, upper):
    distance = max(lower - prediction, 0) + max(prediction - upper, 0)
    return distance*distance
""",
        "the value between lower and upper; errors are squared distances from there",
        spread="unknown",
    ),
    "censored": BuiltIn(
        """
def censored(prediction, target, censored):
    distance = prediction - target
    beyond = min(distance, 0) if censored > 0 else max(distance, 0)
    error = distance if censored == 0 else beyond
    return error*error
""",
        "the value; where it is censored, only predictions on the wrong side of the target have errors, squared",
        values={"censored": CENSORING},
        spread="unknown",
    ),
}
"""The built-in losses by name. Where scikit-learn has the metric, the loss is the same number: `mean_poisson_deviance`,
`mean_gamma_deviance`, `log_loss`, `mean_pinball_loss`, `hinge_loss`."""
