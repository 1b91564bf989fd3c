"""Synonyms: names of Shine's settings, functions and losses in scikit-learn and other libraries.

An unknown word gets an answer in the words of the face that it was given to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import signature
from typing import ParamSpec

from shine.lang.forms.names import MOST_PRIMITIVES, listed, shown, similar

ESTIMATOR_WORDS = {
    "population": "population_size",
    "seconds": "max_time",
    "seed": "random_state",
    "threads": "n_jobs",
    "report": "callbacks",
}
"""Parameters of the estimators that have scikit-learn's names, by Shine's words for them."""

OTHER_WORDS = {
    # PySR
    "niterations": "generations", "maxsize": "max_size", "maxdepth": "max_depth", "binary_operators": "primitives",
    "unary_operators": "primitives", "operators": "primitives", "timeout_in_seconds": "seconds", "procs": "threads",
    "populations": "islands", "elementwise_loss": "loss", "loss_function": "loss",
    "complexity_of_operators": "complexity", "complexity_of_constants": "complexity",
    "complexity_of_variables": "complexity", "complexities": "complexity", "early_stop_condition": "stop_loss",
    "precision": "dtype",
    "batching": "rows", "batch_size": "rows", "variable_names": "features", "weights": "sample_weight",
    "X_units": "units", "y_units": "units", "progress": "verbose", "verbosity": "verbose",
    "tournament_selection_n": "tournament", "extra_sympy_mappings": "primitives", "fraction_replaced": "migrants",
    "ncycles_per_iteration": "generations", "parallelism": "threads", "loss_function_expression": "loss",
    "crossover_probability": "crossover", "hof_migration": "migrants", "topn": "migrants",
    "should_optimize_constants": "constant_steps", "optimizer_iterations": "constant_steps",
    # gplearn
    "function_set": "primitives", "stopping_criteria": "stop_loss", "metric": "loss", "tournament_size": "tournament",
    "parsimony_coefficient": "parsimony", "const_range": "constants",
    "max_samples": "rows", "feature_names": "features", "p_crossover": "crossover",
    "p_subtree_mutation": "subtree_mutation", "p_hoist_mutation": "hoist_mutation",
    "p_point_mutation": "point_mutation",
    # DEAP, Operon and others
    "pset": "primitives", "tournsize": "tournament", "lambda_": "population", "mu": "population",
    "ngen": "generations", "n_generations": "generations", "max_generations": "generations",
    "n_gen": "generations", "gens": "generations", "iterations": "generations", "max_iter": "generations",
    "n_iter": "generations", "epochs": "generations", "cxpb": "crossover", "mutpb": "subtree_mutation",
    "pop_size": "population", "popsize": "population", "n_population": "population", "max_length": "max_size",
    "max_complexity": "max_size", "max_nodes": "max_size", "allowed_symbols": "primitives", "symbols": "primitives",
    "functions": "primitives", "feature_library": "primitives", "time_limit": "seconds", "timeout": "seconds",
    "max_seconds": "seconds", "time": "seconds", "random_seed": "seed", "n_threads": "threads", "nthreads": "threads",
    "num_threads": "threads", "n_workers": "threads", "cores": "threads", "loss_fn": "loss",
    "criterion": "loss", "scaling": "linear_scaling", "initial_formulas": "guesses", "initial": "guesses",
    "start_from": "guesses", "callback": "report", "tol": "stop_loss", "target_loss": "stop_loss",
    "early_stopping": "stagnation", "n_iter_no_change": "stagnation", "names": "features", "columns": "features",
    "feature_names_in": "features", "weight": "sample_weight", "float": "dtype", "type": "dtype",
}  # fmt: skip
"""Shine's words for settings of other libraries."""

_NAMES = "the headings of a data frame name the features; SymbolicDynamics takes states in fit"
_UNITS = (
    "units belong to the estimator: SymbolicRegressor(units=(['m', 's'], 'J')), SymbolicDynamics(units={'x': 'm'}); "
    "for shine.evolve, constraints have 'units' and 'target_unit'"
)

NOTES = {
    "deterministic": "the same seed gives the same result, with threads too",
    "dimensionless_constants_only": "use constraints={'dimensionless_constants': True}",
    "dimensional_constraint_penalty": "formulas with inconsistent units are never considered",
    "select_k_features": "all features take part; scikit-learn's SelectKBest before the search leaves some out",
    "denoise": "Shine looks at the noise itself, and nothing has to be smoothed",
    "max_evals": "limit the generations or the time, or count in a callback",
    "mutations": "the share of each mutation is a setting: subtree_mutation, point_mutation, ...",
    "nested_constraints": "use constraints={'nesting': {'exp': {'exp': 0}}}",
    **dict.fromkeys(("X_units", "y_units"), _UNITS),
    **dict.fromkeys(("variable_names", "feature_names"), _NAMES),
    **dict.fromkeys(("optimizer", "differentiation_method", "threshold"), "the data tell this; leave it out"),
    "discrete_time": "use kind='map'",
    "multiple_trajectories": "a list of arrays has several runs; leave it out",
    "init_depth": "max_depth limits all formulas, and initial_size the first ones",
    "init_method": "sizes of the first formulas are spread evenly up to initial_size; leave it out",
    "low_memory": "earlier generations are not kept; leave it out",
    "transformer": "SymbolicClassifier has the logistic function; leave it out",
    **dict.fromkeys(("class_weight", "weights"), "give fit a sample_weight"),
    "p_point_replace": "point_mutation is the share of formulas; leave it out",
    "annealing": "there is no annealing; leave it out",
    "should_simplify": "formulas are always simplified; leave it out",
    **dict.fromkeys(("turbo", "bumper"), "formulas are always compiled; leave it out"),
    **dict.fromkeys(("halloffame", "hall_of_fame"), "the result has the best formula of each complexity, its front"),
    "stats": "a callback receives the progress of every generation",
    **dict.fromkeys(("output_directory", "temp_equation_file"), "shine evolve, the command, writes run directories"),
    "settings": "pass its entries as keywords of their own: islands=4",
}
"""Advice about settings of other libraries, or of another face, that no single setting replaces."""

FUNCTIONS = {
    "plus": "add", "subtract": "sub", "minus": "sub", "multiply": "mul", "times": "mul", "mult": "mul",
    "divide": "div", "truediv": "div", "power": "pow", "negative": "neg", "absolute": "abs",
    "sqr": "square", "sq": "square", "reciprocal": "inv", "inverse": "inv", "sig": "sigmoid",
    "logistic": "sigmoid", "maximum": "max",
    "minimum": "min", "cond": "where", "if_then_else": "where", "ite": "where", "greater": "gt", "less": "lt",
    "pdiv": "protected_div", "plog": "protected_log", "psqrt": "protected_sqrt", "remainder": "mod",
    "signum": "sign", "sine": "sin", "cosine": "cos", "tangent": "tan", "safe_log": "log", "safe_sqrt": "sqrt",
    "safe_pow": "pow",
}  # fmt: skip
"""Shine's primitives, by the names that other libraries have for them, for messages."""

OTHER_NAMES = {
    "ifelse": "where", "abs2": "square", "ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "fabs": "abs", "expit": "sigmoid",
}  # fmt: skip
"""Primitives, by names of Julia, NumPy and textbooks, which are understood in formulas."""

LACKING = {
    **dict.fromkeys(("asinh", "arcsinh"), "sign(x)*log1p(abs(x) + x*x/(1 + sqrt(x*x + 1)))"),
    **dict.fromkeys(("acosh", "arccosh"), "log(x + sqrt(x*x - 1))"),
    **dict.fromkeys(("atanh", "arctanh"), "log1p(2*x/(1 - x))/2"),
    **dict.fromkeys(("erf", "erfc", "gamma", "lgamma", "gammaln", "digamma", "factorial", "comb", "binom"), ""),
}
"""Functions of libraries that are no primitives, and formulas that compute them, if there are short ones."""

OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "^": "pow", "**": "pow",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    "and": "logical_and", "or": "logical_or", "not": "logical_not", "if": "where",
}  # fmt: skip
"""Primitives by the operators that mean them; ``^`` is a power, as in PySR and on paper, not Python's xor."""

OTHER_LOSSES = {
    "rmsle": "logarithmic", "msle": "logarithmic", "mean_squared_log_error": "logarithmic", "log": "logarithmic",
    "mean_squared_error": "mse", "squared_error": "mse", "mse_loss": "mse", "l2": "mse", "L2DistLoss": "mse",
    "rms": "rmse", "pearson": "mse", "root_mean_squared_error": "rmse", "mean_absolute_error": "mae",
    "absolute_error": "mae", "absolute": "mae", "l1": "mae", "L1DistLoss": "mae", "smape": "relative",
    "mape": "relative", "mean_absolute_percentage_error": "relative", "pinball": "quantile", "QuantileLoss": "quantile",
    "quantile_loss": "quantile", "mean_pinball_loss": "quantile", "HuberLoss": "huber", "smooth_l1": "huber",
    "logcosh": "log_cosh", "LogCoshLoss": "log_cosh", "log_loss": "binomial", "logloss": "binomial",
    "logistic": "binomial", "cross_entropy": "binomial", "binary_crossentropy": "binomial", "bernoulli": "binomial",
    "LogitMarginLoss": "binomial", "PoissonLoss": "poisson", "mean_poisson_deviance": "poisson", "nll": "gaussian",
    "chi2": "gaussian", "normal": "gaussian", "mean_gamma_deviance": "gamma", "negbin": "negative_binomial",
    "nbinom": "negative_binomial", "student": "student_t", "t": "student_t", "studentt": "student_t",
    "cauchy": "student_t", "tobit": "censored", "L1HingeLoss": "hinge", "hinge_loss": "hinge",
}  # fmt: skip
"""Shine's names for the losses of other libraries."""

LOSS_ARGUMENTS = {"y_pred": "prediction", "y_true": "target", "sample_weight": "weight"}
"""scikit-learn's names of the arguments of losses, which are understood."""

SHORT_LOSS_ARGUMENTS = {
    **dict.fromkeys(("y", "ytrue", "truth", "actual", "observed", "obs", "label", "labels", "targets", "t"), "target"),
    **dict.fromkeys(
        ("p", "pred", "preds", "predicted", "predictions", "ypred", "y_hat", "yhat", "output", "x"), "prediction"
    ),
    **dict.fromkeys(("w", "weights", "sample_weights"), "weight"),
    **dict.fromkeys(("error", "std", "y_err", "errors"), "sigma"),
}
"""Our names of the arguments of other libraries' losses.

They are understood in a loss that has no argument `prediction`; in others they are columns beside the data.
"""

P = ParamSpec("P")

_SHINE_WORDS = {word: shine for shine, word in ESTIMATOR_WORDS.items()}


def synonym(word: str, allowed: Collection[str]) -> str | None:
    """The allowed word that means the same as a word of another face or library; None if there is none."""
    shine = _SHINE_WORDS.get(word) or OTHER_WORDS.get(word) or OTHER_WORDS.get(word.lower()) or word
    # What are features elsewhere are states in dynamics.
    states = "states" if shine == "features" else None
    return next((each for each in (shine, ESTIMATOR_WORDS.get(shine), states) if each in allowed), None)


def meant(word: str, allowed: Collection[str]) -> str | None:
    """The allowed word that an unknown one may mean: a synonym, or else a similar word; None if there is none.

    Parameters
    ----------
    word : str
        Of any face of Shine, or of another library.
    allowed : collection of str

    Examples
    --------
    >>> meant("max_time", ["seconds", "seed"]), meant("seconds", ["max_time"]), meant("niterations", ["generations"])
    ('seconds', 'max_time', 'generations')
    """
    # Least similarity, from 0 to 1, of a word that is suggested in the place of an unknown one.
    return synonym(word, allowed) or (None if word in NOTES else similar(word, allowed, 0.75))


def hint(word: str, allowed: Collection[str], settings: Collection[str] = ()) -> str:
    """Advice about an unknown word, for a message, before the allowed ones; empty if there is none.

    Parameters
    ----------
    word : str
    allowed : collection of str
    settings : collection of str
        Keys of the keyword `settings`, if it is allowed.
    """
    key = synonym(word, settings) if synonym(word, allowed) is None else None
    if key:
        return f"did you mean settings={{{key!r}: ...}}? "
    near = meant(word, allowed)
    if near is None and "loss" in (word, OTHER_WORDS.get(word)):
        return "only regression has a loss; leave it out; "
    return f"did you mean {near!r}? " if near else f"{NOTES[word]}; " if word in NOTES else ""


def unexpected(function: str, word: str, allowed: Iterable[str], settings: Collection[str] = ()) -> TypeError:
    """The error for a keyword that a function does not have."""
    known = list(allowed)
    return TypeError(
        f"{function}() got an unexpected keyword argument {shown(word)}; {hint(word, known, settings)}"
        f"allowed are {listed(known, MOST_PRIMITIVES)}"
    )


def keywords_checked(init: Callable[P, None], settings: Collection[str] = ()) -> Callable[P, None]:
    """An `__init__` that answers an unknown keyword with the one that is meant (see `unexpected`)."""
    allowed = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(*arguments: P.args, **given: P.kwargs) -> None:
        for word in given:
            if word not in allowed:
                raise unexpected(type(arguments[0]).__name__, word, allowed, settings)
        init(*arguments, **given)

    return checked
