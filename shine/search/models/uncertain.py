"""Uncertainty of a model's constants and predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.columns.numbers import columns_for
from shine.lang.forms.names import listed, value_text
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from shine.data.datasets.dataset import Dataset
    from shine.evaluate.inference.bands import Bands
    from shine.evaluate.inference.bands import Kind as Band
    from shine.evaluate.inference.constants import Form, Held
    from shine.evaluate.inference.covariance import Kind as Covariance
    from shine.evaluate.inference.inference import Basis, Inference
    from shine.evaluate.inference.many_rows import SumsOfForm
    from shine.evaluate.inference.summary import Summary
    from shine.evaluate.inference.uncertainty import Uncertainty
    from shine.evaluate.losses import LossSource

Method = Literal["profile", "wald"]

Exact = float | Collection[float]
"""Numbers of a formula that are known exactly."""

LAW = 1 - 1e-9
"""Coefficient of determination above which a formula counts as the law itself, which holds elsewhere, too."""

METHODS = ("profile", "wald")
COVARIANCES = ("auto", "model", "robust")
BANDS = ("mean", "prediction")


class UncertainModel:
    """The part of `shine.Model` that tells how sure it is.

    All is computed when it is asked for, from the rows that the model was fitted to. They go with it into a pickle; of
    very many rows, a sample does, with sums over all rows, which tell all but profiles. A model from a run's folder has
    no rows, but what was computed from them: standard errors, correlations, bands, and profile intervals.
    """

    tree: Tree
    headings: Mapping[str, str]
    r2: float
    basis: Basis | None
    known: Uncertainty | None
    sums: SumsOfForm | None

    @property
    def categories(self) -> tuple[str, ...]:
        """Parameters whose values are labels, with none between them; an ordinary formula has none."""
        return ()

    def with_group_numbers(self, X: Any) -> Any:
        """A table to predict for, with numbers in all columns; an ordinary formula takes it as it is."""
        return X

    @property
    def uncertainty(self) -> Uncertainty:
        """All that is known about the constants.

        Raises
        ------
        DataError
            If the model does not know the rows that it was fitted to (see `with_data`).
        """
        return self._known()

    def conf_int(
        self,
        level: float = 0.95,
        method: Method | None = None,
        *,
        exact: Exact = (),
        covariance: Covariance = "auto",
    ) -> dict[str, tuple[float, float]]:
        """Intervals of the constants, by their names in `summary`.

        Parameters
        ----------
        level : float
            Share of such intervals that hold the truth.
        method : {"profile", "wald"}, optional
            All values that the likelihood does not speak against, whatever the other constants are; or the standard
            error on both sides. The first are right for curved formulas and few rows, too, but need
            the rows; they are the default where the model knows its rows, and these are not very many.
        exact : float or collection of float
            Numbers of the formula that are known exactly, without their signs: ``exact=[2]`` for the 2 in ``2*x``, and
            1 for coefficients that are not written. All other numbers are constants that the rows tell, but whole and
            half exponents.
        covariance : {"auto", "model", "robust"}
            Whether to trust the weights of the rows (see `shine.evaluate.inference.covariance`).

        Returns
        -------
        dict of str to (float, float)
            Infinite where the rows set no bound.

        Raises
        ------
        ValueError
            If an argument is invalid.
        DataError
            If the model does not know the rows that it was fitted to (see `with_data`).

        Notes
        -----
        All constants are free at once, around the most likely ones: the formula may write shorter numbers near these.
        The intervals hold if the form of the formula is that of the law, and the rows do not depend on one another.
        """
        ends = self._ends(level, method or self.quick_method(level), exact, covariance)
        names = self._known(exact, covariance).names
        return {name: (float(low), float(high)) for name, (low, high) in zip(names, ends, strict=True)}

    def form(self, exact: Exact = ()) -> Form:
        """The formula with names in place of its constants; see `conf_int` for the parameter."""
        from shine.evaluate.inference.constants import Held
        from shine.evaluate.inference.determined import redundant

        numbers = _exact(exact)
        if numbers not in self._forms:
            found = self._form(Held(numbers))
            before = self.known or self.sums
            if before is not None:
                places = frozenset(before.redundant)
            else:
                places = frozenset() if self.basis is None else redundant(found, self.basis.rows)
            found = self._form(Held(numbers, places)) if places else found
            for number in numbers:
                if not any(Held((number,)).holds(each, -1) for each in found.exact):
                    told = listed([f"{each:.6g}" for each in [*found.exact, *found.values.tolist()]])
                    raise ValueError(f"exact has {number:g}, which is no number of {found.text}; it has {told}")
            self._forms[numbers] = found
        return self._forms[numbers]

    def _form(self, held: Held) -> Form:
        from shine.evaluate.inference.constants import form_of

        return form_of(self.tree, held)

    def standard_errors(self, *, exact: Exact = (), covariance: Covariance = "auto") -> dict[str, float]:
        """Standard error of each constant, by its name in `summary`; see `conf_int` for the parameters."""
        known = self._known(exact, covariance)
        return dict(zip(known.names, known.errors.tolist(), strict=True))

    def correlations(self, *, exact: Exact = (), covariance: Covariance = "auto") -> Floats:
        """Correlations of the constants, shape (n_constants, n_constants); see `conf_int` for the parameters."""
        return self._known(exact, covariance).correlations

    def summary(
        self,
        level: float = 0.95,
        method: Method | None = None,
        *,
        exact: Exact = (),
        covariance: Covariance = "auto",
    ) -> Summary:
        """The constants with their standard errors and intervals, as a table to print.

        See `conf_int` for the parameters.
        """
        from shine.evaluate.inference.quantiles import check_level
        from shine.evaluate.inference.summary import Summary

        known, level = self._known(exact, covariance), check_level(level)
        method = method or self.quick_method(level)
        return Summary(self.form(exact).text, known, self._ends(level, method, exact, covariance), level, method)

    def quick_method(self, level: float) -> Method:
        """The method of intervals that tables use: profiles, unless they need rows that are not there or very many."""
        # Rows up to which tables have profile-likelihood intervals; with more, those by standard errors are the same.
        few = self._has_all_rows and self.uncertainty.rows <= 100_000
        return "profile" if few or level in self.uncertainty.profiles else "wald"

    def predict_interval(
        self, X: ArrayLike, level: float = 0.95, kind: Band = "prediction", *, exact: Exact = ()
    ) -> Floats:
        """Intervals of the formula's values, around those with the most likely constants.

        They contain the uncertainty of all constants that `summary` lists, and hold if the form of the formula is that
        of the law, the rows do not depend on one another, and (of new readings) the noise is as `summary` says.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            As for `predict`.
        level : float
            Share of such intervals that hold the truth.
        kind : {"prediction", "mean"}
            Of new readings of the target, with their noise; or of the value that the formula has with the true
            constants.
        exact : float or collection of float
            Numbers of the formula that are known exactly (see `conf_int`).

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends; NaN where the formula has no value.

        Raises
        ------
        ValueError
            If the level or the kind is invalid.
        DataError
            If X does not fit the formula, or the model does not know the rows that it was fitted to.
        """
        from shine.evaluate.inference.quantiles import check_level

        level = check_level(level)
        _check("kind", kind, BANDS)
        return np.column_stack(self._bands(exact).interval(self._columns(X), level, kind))

    def with_data(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sigma: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        times: ArrayLike | None = None,
        loss: LossSource = "mse",
        noise: str = "absolute",
    ) -> Self:
        """The model with rows that its loss and intervals refer to: those of the fit, or others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight, sigma : array-like of shape (n_rows,), optional
        groups : array-like of shape (n_rows,), optional
            Label of each row's group: rows that depend on one another.
        times : array-like of shape (n_rows,), optional
            When each row was read, if rows do not stand in their order.
        loss : str or function
            The loss that its constants were fitted by.
        noise : {"auto", "absolute", "relative", "log", "counts", "sigma"}
            Growth of the noise; with "auto", none, or that of `sigma`, and correlation of the errors of rows that
            follow one another, if they have any.
        """
        from shine.data.datasets.dataset import Dataset

        table = np.column_stack(self._columns(self.with_group_numbers(X)))
        features = self.tree.parameters
        options: Any = {"sample_weight": sample_weight, "sigma": sigma, "groups": groups, "times": times}
        rows = Dataset.from_arrays(table, y, features=features, **options)
        return self.with_rows(rows, loss, noise)

    def with_rows(self, rows: Dataset, loss: LossSource, noise: str) -> Self:
        """The model with the rows of a data set that has its features; see `with_data`."""
        from shine.evaluate.inference.inference import Basis
        from shine.evaluate.losses import loss_for
        from shine.evaluate.losses.rows import data_for_loss
        from shine.evaluate.tiers.machine_tier import losses_and_r2
        from shine.lang.forms.library import STANDARD
        from shine.lang.forms.primitives import PrimitiveSet, select
        from shine.lang.forms.tape import functions_of
        from shine.lang.population import Population
        from shine.search.problem.noise import check_noise, with_model
        from shine.search.problem.serial_noise import with_serial_noise

        rows = (with_serial_noise(rows) if noise == "auto" else rows).merged(np.inf)
        if noise != "sigma":
            check_noise(noise)
        if noise == "auto":
            noise = "absolute" if rows.deviations is None else "sigma"
        read = loss_for(loss, rows)
        basis = Basis(with_model(data_for_loss(read, rows, noise), noise, read), read, noise)
        functions = select({**STANDARD, **self.tree.functions}, sorted(functions_of(self.tree)))
        whole = Population.from_trees([self.tree], PrimitiveSet(functions, basis.rows.features))
        (loss_here,), (r2,) = losses_and_r2(whole, basis.rows, read)
        return replace(  # type: ignore[type-var]
            self, loss=float(loss_here), r2=float(r2), noise=noise, basis=basis, known=None, sums=None
        )

    def _standard_deviations(self, X: ArrayLike, kind: object) -> tuple[Floats, Floats]:
        """Values of the formula, and their standard deviations of a kind."""
        _check("return_std", kind, (False, True, *BANDS))
        columns, bands = self._columns(X), self._bands()
        return bands.of_mean(columns) if kind == "mean" else bands.deviations(columns)

    def _columns(self, X: ArrayLike) -> list[Floats]:
        return columns_for(X, self.tree.parameters, self.headings, self.tree.used_parameters)

    def _ends(self, level: float, method: object, exact: Exact, covariance: Covariance) -> Floats:
        from shine.evaluate.inference.quantiles import check_level

        level = check_level(level)
        _check("method", method, METHODS)
        known = self._known(exact, covariance)
        if method == "wald":
            return known.wald(level)
        if level in known.profiles:
            return known.profiles[level]
        if not self._has_all_rows:
            raise DataError(
                f"profile intervals of level {level:g} need the rows that the model was fitted to, and a model from a "
                "file, or a pickle of many rows, does not have them: use method='wald', or "
                "model.with_data(X, y).conf_int()"
            )
        return self.inference(exact, covariance).profile(level)

    def _known(self, exact: Exact = (), covariance: Covariance = "auto") -> Uncertainty:
        """The uncertainty of the constants."""
        _check("covariance", covariance, COVARIANCES)
        if self.known is not None and not _exact(exact) and covariance == "auto":
            return self.known
        if self._has_all_rows or (self.sums is not None and not _exact(exact)):
            return self.inference(exact, covariance).uncertainty
        if self.known is None and self.sums is None:
            raise DataError(
                "the model does not know the rows that it was fitted to, or an objective judged it, which does not say "
                "how sure constants are; give them to it: model.with_data(X, y)"
            )
        raise DataError(
            "a model from a file, or a pickle of many rows, knows only the constants and the covariance that it chose "
            "itself; for others, give it the rows: model.with_data(X, y)"
        )

    @property
    def _has_all_rows(self) -> bool:
        return self.basis is not None and self.basis.of is None

    def inference(self, exact: Exact = (), covariance: Covariance = "auto") -> Inference:
        """The inference of the constants; see `conf_int` for the parameters."""
        from shine.evaluate.inference.inference import Inference
        from shine.evaluate.inference.many_rows import SAMPLED_ROWS, InferenceOfManyRows

        assert self.basis is not None
        found, form = self._inferences, self.form(exact)
        if (form, covariance) not in found:
            if self.sums is not None:
                found[form, covariance] = InferenceOfManyRows(
                    form, self.basis, covariance, self.sums.sums, self.sums.here
                )
            else:
                kind = InferenceOfManyRows if self.basis.rows.n_rows > SAMPLED_ROWS else Inference
                found[form, covariance] = kind(form, self.basis, covariance)
        return found[form, covariance]

    @cached_property
    def _forms(self) -> dict[tuple[float, ...], Form]:
        return {}

    @cached_property
    def _inferences(self) -> dict[tuple[Form, str], Inference]:
        return {}

    def _bands(self, exact: Exact = ()) -> Bands:
        from shine.evaluate.inference.bands import Bands

        return Bands(self.form(exact), self._known(exact))

    def _lasting(self) -> dict[str, Basis | Uncertainty | SumsOfForm | None]:
        """State of a pickle: rows; results computed from them; sums over all rows, if it has a sample of them."""
        from shine.evaluate.inference.many_rows import SumsOfForm

        basis, known, sums = self.basis, self.known, self.sums
        asked = self._inferences.get((self._forms[()], "auto")) if () in self._forms else None
        if known is None and asked is not None:
            known = vars(asked).get("uncertainty")
        if sums is not None and sums.here is not None and basis is not None and basis.rows.n_rows > basis.most_kept:
            return {"basis": None, "known": known or self.uncertainty, "sums": None}  # a pickle keeps fewer rows
        if known is None and sums is None and basis is not None and basis.rows.n_rows > basis.most_kept:
            with suppress(DataError):  # of formulas with so many constants that nothing is told of them
                sums = SumsOfForm.of(self.form(), basis)
        return {"basis": basis, "known": known, "sums": sums}

    def _warn_outside(self, columns: list[Floats], stacklevel: int) -> None:
        """Warn, once, if features leave the range of the rows that the model was fitted to, unless it is exact."""
        if vars(self).get("_has_warned") or (self.basis is None and self.known is None) or self.r2 > LAW:
            return
        from shine.evaluate.inference.bands import outside, warn_of_extrapolation

        found = outside(dict(zip(self.tree.parameters, columns, strict=True)), self._ranges)
        if found:
            object.__setattr__(self, "_has_warned", True)
            warn_of_extrapolation(found, self._ranges, self.headings, stacklevel + 1)

    @cached_property
    def _ranges(self) -> Mapping[str, tuple[float, float]]:
        if self.basis is not None:
            return self.basis.ranges(self.tree.used_parameters)
        return {} if self.known is None else self.known.ranges


def share_passes(models: Iterable[UncertainModel], covariance: Covariance = "auto") -> None:
    """Let one pass over very many rows tell what the uncertainty of all formulas needs, not one pass for each."""
    from shine.evaluate.inference.many_rows import SAMPLED_ROWS, InferenceOfManyRows, least_sums

    groups: dict[int, list[UncertainModel]] = {}
    for model in models:
        basis = getattr(model, "basis", None)
        if basis is not None and basis.of is None and basis.rows.n_rows > SAMPLED_ROWS and model.sums is None:
            groups.setdefault(id(basis), []).append(model)
    for own in groups.values():
        basis = own[0].basis
        assert basis is not None
        forms = {model.form(): model for model in own if (model.form(), covariance) not in model._inferences}
        for (form, model), sums in zip(forms.items(), least_sums(list(forms), basis), strict=True):
            model._inferences[form, covariance] = InferenceOfManyRows(form, basis, covariance, sums)


def _exact(numbers: object) -> tuple[float, ...]:
    """Numbers that the user takes as exact, without their signs."""
    found = np.atleast_1d(np.array(list(numbers) if isinstance(numbers, set | frozenset) else numbers or ()))
    if len(found) and not (found.ndim == 1 and found.dtype.kind in "iuf" and np.isfinite(found).all()):
        raise ValueError(f"exact is {value_text(numbers)}; it has numbers of the formula, such as [2, 0.5]")
    return tuple(np.unique(np.abs(found.astype(np.float64))).tolist())


def _check(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if not any(value is each or (isinstance(value, str) and value == each) for each in allowed):
        raise ValueError(f"{name} is {value_text(value)}; it must be one of {', '.join(map(repr, allowed))}")
