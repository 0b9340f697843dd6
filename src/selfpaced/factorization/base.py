"""What every robust factorization shares once it is fitted: transform, reconstruct, score, outliers."""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from ..assessment import OUTLIER_Z, Assessment, AssessmentMixin, Places, Values, fingerprint
from ..fitting import all_or_nothing
from ..robust.scales import MAD_TO_SIGMA
from .engine import HELD_OUT_ENTRIES, SCALE_ENTRIES, Engine, Floats, Levels, Side, WeightedSolve, from_csr, resolve
from .inputs import Observed, check_positions, observe, positions
from .residuals import (
    FittedLines,
    about_the_usual,
    beyond,
    entry_weights,
    fit_cell_errors,
    gains,
    inlier_shares,
    left_out_rows,
    line_means,
    lost_rows,
    outlier_table,
    refit_rows,
    thin_rows,
)
from .solve import FactorRun, Recipe, Solver, rejecting
from .start import lever, typical_size


class Factorization(AssessmentMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The fitted side of :class:`SelfPacedMF` and :class:`PRMF`; not for direct use."""

    rank: int | str
    random_state: Any
    backend: str
    n_jobs: int | None

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        mask: Any = None,
        sample_weight: Any = None,
        shape: tuple[int, int] | None = None,
        long: Any = None,
    ) -> Self:
        """Factorize a matrix.

        Parameters
        ----------
        X : array-like with NaN for missing, masked array, SciPy sparse, pandas or polars frame, or triplets
            In a sparse matrix, stored entries are observed, stored zeros included. Triplets are a tuple
            ``(rows, columns, values)`` of three one-dimensional arrays.
        y : ignored
        mask : bool array-like, optional
            True where an entry is observed, in the layout of X.
        sample_weight : array-like, optional
            One weight per entry in the layout of X, or one per row, relative to each other: a common factor changes
            nothing, and 0 is the same as missing.
        shape : tuple of int, optional
            The matrix's shape if X is triplets; by default as small as possible.
        long : sequence of three names, optional
            X is a long frame (pandas, polars, or a dict of arrays) with one line per entry: the names of its columns
            with row ids, column ids and values, for example ``("user", "item", "rating")``. Ids may be anything.

        Returns
        -------
        The fitted model itself.
        """
        recipe = self._recipe()
        observed = self._observed(X, mask=mask, sample_weight=sample_weight, shape=shape, long=long)
        rank = self._check_rank(self.rank, observed.matrix.shape)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        for doubt in self._fit_entries(recipe, rank, observed):
            warnings.warn(doubt, ConvergenceWarning, stacklevel=3)
        return self

    def _recipe(self) -> Recipe:
        """The parameters as the solver takes them."""
        raise NotImplementedError

    def _fit_entries(self, recipe: Recipe, rank: int | None, observed: Observed) -> list[str]:
        """Set the fitted attributes; returns what is to be warned of."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------- fitted side

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit with the parameters of :meth:`fit`, and return the rows' factors."""
        return self.fit(X, y, **fit_params)._coordinates()

    def transform(self, X: Any, *, mask: Any = None) -> Floats:
        """Return the factors of new rows, fitted robustly with the components held fixed.

        Parameters
        ----------
        X : array-like with NaN, SciPy sparse, data frame or triplets
            Rows over the same columns; NaN (or not stored) is missing. A long frame if the model was fitted to one: one
            row per id, in the ids' order; columns that the model does not know are left out.
        mask : bool array-like, optional
            True where an entry is observed.

        Returns
        -------
        ndarray of shape (n_rows, rank_), or (n_rows, rank_ + 1)
            The last column is the row's own mean, if rows have one. A row without any entry gets zeros: the prior.
        """
        check_is_fitted(self)
        observed = observe(self, X, mask=mask, reset=False)
        return self._rows(observed.matrix)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return the rows of given factors (and of their means, as ``transform`` returns them)."""
        check_is_fitted(self)
        width = self._n_features_out
        factors = check_array(X, dtype=(np.float64, np.float32), ensure_min_features=min(width, 1))
        if factors.shape[1] != width:
            one_more = " + 1, the row's mean," if width > self.rank_ else ""
            raise ValueError(f"X must have rank_{one_more} = {width} columns, got {factors.shape[1]}")
        U, V = self._whole(factors)
        return np.asarray(U @ V.T)

    def reconstruct(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> Floats:
        """Return the fitted matrix at the entries (rows[k], columns[k]), or all of it.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Positions, broadcast against each other; without both, the whole dense matrix is returned.

        See Also
        --------
        predict : the same by label, with a range, and with the mean for what is unknown.
        """
        check_is_fitted(self)
        U, V = self._whole(self._coordinates())
        if rows is None and columns is None:
            return np.asarray(U @ V.T)
        if rows is None or columns is None:
            raise ValueError("give rows and columns together, or neither of them for the whole matrix")
        left, right = np.broadcast_arrays(
            check_positions(rows, len(U), "rows"), check_positions(columns, len(V), "columns")
        )
        return self._at(U, V, left, right)

    def predict(self, rows: Any, columns: Any = None) -> Floats:
        """Return the expected values of entries, observed or not.

        Parameters
        ----------
        rows, columns : array-like
            Broadcast against each other: labels, if the model was fitted to a long frame or a frame with labels,
            else positions. Rows and columns that the model does not know, or has seen no entry of, get the mean;
            without means in the model that of a usual row or column. Without ``columns``, ``rows`` are whole rows as
            ``transform`` takes them, and come back as the model expects them.

        Returns
        -------
        ndarray
            Kept within ``bounds``, if there are any.
        """
        check_is_fitted(self)
        bounds = getattr(self, "bounds", None)
        found = self.inverse_transform(self.transform(rows)) if columns is None else self._expected(rows, columns)
        return found if bounds is None else np.clip(found, *bounds)

    def _expected(self, rows: Any, columns: Any) -> Floats:
        U, V = self._whole(self._coordinates())
        left = self._position(rows, "rows", self.row_labels_, len(U), self.missing_rows_)
        right = self._position(columns, "columns", self.column_labels_, len(V), self.missing_columns_)
        U, V = (np.vstack([factor, usual]) for factor, usual in zip((U, V), self._usual_lines(U, V), strict=True))
        return self._at(U, V, *np.broadcast_arrays(left, right))

    @staticmethod
    def _position(given: Any, name: str, labels: Any, size: int, missing: Any) -> Any:
        """Where rows or columns stand; -1 for those that nothing is known of."""
        at = check_positions(given, size, name, unknown=True) if labels is None else positions(labels, given)
        return np.where(np.isin(at, missing), -1, at)

    def _usual_lines(self, U: Floats, V: Floats) -> tuple[Floats, Floats]:
        """What stands for an unknown row and column: no components but the usual mean; without means, the average."""
        if self.center_ is None:
            seen = np.delete(U, self.missing_rows_, axis=0), np.delete(V, self.missing_columns_, axis=0)
            return seen[0].mean(axis=0), seen[1].mean(axis=0)
        row, column = np.zeros(U.shape[1]), np.ones(V.shape[1])
        row[-1], column[: self.rank_], column[-1] = 1.0, 0.0, self.mean_
        return row, column

    def _at(self, U: Floats, V: Floats, left: Any, right: Any) -> Floats:
        """Products of factors at pairs of positions."""
        out = np.empty(left.size, dtype=self.components_.dtype)
        for low in range(0, left.size, 1 << 16):  # gathered factors in pieces: the request may be huge
            part = slice(low, low + (1 << 16))
            out[part] = np.einsum("ij,ij->i", U[left.flat[part]], V[right.flat[part]])
        return out.reshape(left.shape)

    def score(self, X: Any, y: Any = None, *, mask: Any = None) -> float:  # noqa: ARG002
        """Return how well entries are predicted from the other entries of their row: at most 1, larger is better.

        Every row's entries are split into two halves, and each half is predicted from factors fitted to the other.
        The score is 1 - median(abs(error)) / median(abs(entry - median entry)), so that outliers among the entries
        do not decide it. Ranks above the true one gain nothing.
        """
        check_is_fitted(self)
        matrix = observe(self, X, mask=mask, reset=False).matrix
        if not matrix.data.size:
            raise ValueError("X must have at least one observed entry to be scored")
        position = np.arange(matrix.data.size) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        errors = np.empty_like(matrix.data)
        for half in (0, 1):
            kept = position % 2 == half
            counts = np.concatenate([[0], np.cumsum(kept)])
            part = type(matrix)((matrix.data[kept], matrix.indices[kept], counts[matrix.indptr]), shape=matrix.shape)
            U, V = self._whole(self._rows(part))
            rest = ~kept
            predicted = np.einsum("ij,ij->i", U[rows[rest]], V[matrix.indices[rest]])
            errors[rest] = matrix.data[rest] - predicted
        spread = float(np.median(np.abs(matrix.data - np.median(matrix.data))))
        return 1.0 - float(np.median(np.abs(errors))) / max(spread, float(np.finfo(matrix.dtype).tiny))

    @property
    def low_rank_(self) -> Floats:
        """The fitted matrix, means included: of an image, what is left without errors and gaps."""
        return self.reconstruct()

    @property
    def sparse_(self) -> Any:
        """The outliers as what they add to the fitted matrix, zero elsewhere; dense, or sparse if the input was."""
        check_is_fitted(self)
        assessment = self.assessment_
        off, places = assessment.diagnosis.support, assessment.places
        assert places is not None
        far = np.abs(off) > self._cells.beyond
        found = sp.csr_array((off[far], (places.rows[far], places.columns[far])), shape=places.shape)
        return found if self._layout.listed else found.toarray()

    # --------------------------------------------------------------------------------------------- inside

    @property
    def _n_features_out(self) -> int:
        return self.rank_ + (self.center_ in ("both", "rows"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _observed(self, X: Any, *, long: Any, **given: Any) -> Observed:
        """The entries of any input; rows and columns without any are named, and stay at the prior."""
        observed = observe(self, X, long=long, **given)
        self._long = None if long is None else tuple(long)
        by_row = np.diff(observed.matrix.indptr)
        by_column = np.bincount(observed.matrix.indices, minlength=observed.matrix.shape[1])
        self.missing_rows_, self.missing_columns_ = np.flatnonzero(by_row == 0), np.flatnonzero(by_column == 0)
        for what, missing in (("rows", self.missing_rows_), ("columns", self.missing_columns_)):
            if missing.size:
                named = ", ".join(str(int(i)) for i in missing[:10]) + (", ..." if missing.size > 10 else "")
                warnings.warn(
                    f"no observed entry in {what} {named} ({missing.size} in all, see missing_{what}_): their "
                    "factors are zero",
                    UserWarning,
                    stacklevel=4,
                )
        return observed

    def _check_rank(self, rank: Any, shape: tuple[int, int]) -> int | None:
        if rank == "auto":
            return None
        if int(rank) > min(shape):
            raise ValueError(f"rank must be at most min(n_samples = {shape[0]}, n_features = {shape[1]}), got {rank!r}")
        return int(rank)

    def _adopt_factors(self, U: Floats, V: Floats, levels: Levels, cold: tuple[Any, Any]) -> float:
        """Components, and means about those of the usual row and column (``cold`` ones have none); the usual row's."""
        means = levels.means
        u, v, rows, columns = means.split(U, V)
        self.row_factors_, self.components_ = np.ascontiguousarray(u), np.ascontiguousarray(v.T)
        self.rank_ = int(u.shape[1])
        self.center_ = {(True, True): "both", (True, False): "rows", (False, True): "columns"}.get(
            (means.rows, means.columns)
        )
        self.row_means_, usual_row = about_the_usual(levels.rows + rows, cold[0])
        self.column_means_, usual_column = about_the_usual(levels.columns + columns, cold[1])
        self.mean_ = usual_row + usual_column
        return usual_row

    def _remember(self, solver: Solver) -> None:
        """What new rows are fitted with."""
        self._ridge, self._wide, self._lever = solver.ridge, typical_size(solver.entries), lever(solver.entries)

    def _coordinates(self) -> Floats:
        """The training rows as ``transform`` gives them."""
        if self.center_ in ("both", "rows"):
            return np.column_stack([self.row_factors_, self.row_means_])
        return self.row_factors_

    def _whole(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """Factors of rows and columns whose product has the means in it."""
        V = np.array(self.components_.T, order="C")  # a copy: read-only memory would make the kernels compile again
        if self.center_ is None:
            return coordinates, V
        ones, real = np.ones((len(coordinates), 1), V.dtype), V.dtype.type
        columns = self.column_means_ + real(self.mean_)
        if self._n_features_out > self.rank_:
            V = np.column_stack([V, np.ones(len(V), V.dtype)])
        return np.hstack([coordinates, ones]).astype(V.dtype), np.column_stack([V, columns]).astype(V.dtype)

    def _keep(
        self, run: FactorRun, engine: Engine, side: Side, observed: Observed, levels: Levels, held_out: float = 0.0
    ) -> int:
        """Set the fitted attributes and return the number of outliers; ``held_out``: the scale of held-out errors."""
        fit = run.fit
        for earlier in ("assessment_", "row_gain_", "column_gain_", "outliers_", "entry_weight_", "sample_loss_"):
            self.__dict__.pop(earlier, None)
        usual_row = self._adopt_factors(fit.U, fit.V, levels, (self.missing_rows_, self.missing_columns_))
        self.scale_, self.lam_ = float(fit.scale), float(run.lam)
        self._usual_rows, self._thin = run.usual, run.thin
        if run.usual is not None and levels.means.rows:
            self._usual_rows = run.usual.less(usual_row / self._lever)
        self._step, self._side, self._fingerprint = fit.step, side, fingerprint(observed.matrix)
        U, V = self._whole(self._coordinates())
        self._usual = float(np.nanmedian(inlier_shares(engine, side, U, V, fit.scale)))
        residuals = engine.residuals(side, U, V)
        self.row_labels_, self.column_labels_ = observed.row_labels, observed.column_labels
        self._layout = observed.layout
        sample = residuals[:: max(residuals.size // SCALE_ENTRIES, 1)]
        if held_out == 0.0 and side.values.size < HELD_OUT_ENTRIES:  # a fit may meet most of so few, and lose the rest
            errors = left_out_rows(side, *self._lines(), self.mean_, self.scale_, self._seed)
            held_out = MAD_TO_SIGMA * float(np.median(np.abs(np.concatenate([row[-1] for row in errors]))))
        self._cells = fit_cell_errors(sample, floor=held_out, least=OUTLIER_Z * fit.scale)
        self.row_weight_, self.column_weight_ = line_means(self._step, side, residuals, len(V))
        return int(np.count_nonzero(beyond(residuals, self._cells.beyond)))

    def _residuals(self, wanted: str) -> tuple[Side, Floats]:
        """The training entries, and what the model leaves of them."""
        side = self._own_entries(wanted)
        U, V = self._whole(self._coordinates())
        return side, resolve(self.backend, self.n_jobs).residuals(side, U, V)

    @cached_property
    def entry_weight_(self) -> Any:
        """The weight of every entry; this and the next two are made when they are first asked for."""
        side, residuals = self._residuals("entry_weight_")
        return self._layout.restore(side, entry_weights(self._step, side, residuals))

    @cached_property
    def sample_loss_(self) -> Any:
        """The absolute residual of every entry."""
        side, residuals = self._residuals("sample_loss_")
        return self._layout.restore(side, np.abs(residuals, out=residuals))

    @cached_property
    def outliers_(self) -> Any:
        """The likely errors."""
        side, residuals = self._residuals("outliers_")
        weights = entry_weights(self._step, side, residuals)
        labels = self.row_labels_, self.column_labels_
        return outlier_table(side, residuals, weights, self._cells.beyond, labels)

    @property
    def sample_weight_(self) -> Any:
        """The entries' weights under the name that all estimators of this package share."""
        check_is_fitted(self)
        return self.entry_weight_

    @cached_property
    def row_gain_(self) -> Floats:
        """How much better than by its own mean each row is predicted; made when it is first asked for."""
        side, (rows, columns) = self._own_entries("gains"), self._lines()
        return gains(side, rows, columns, self.mean_, self.scale_, self._seed)

    @cached_property
    def column_gain_(self) -> Floats:
        """The same of columns."""
        side, (rows, columns) = self._own_entries("gains"), self._lines()
        return gains(side.across(self.n_features_in_), columns, rows, self.mean_, self.scale_, self._seed)

    def _lines(self) -> tuple[FittedLines, FittedLines]:
        rows = FittedLines(self.row_factors_, self.row_means_, self.center_ in ("both", "rows"))
        return rows, FittedLines(self.components_.T, self.column_means_, self.center_ in ("both", "columns"))

    def _own_entries(self, wanted: str) -> Side:
        check_is_fitted(self)
        try:
            return self._side
        except AttributeError:
            raise AttributeError(
                f"this {type(self).__name__} has no {wanted}: it was fitted as a part of another model"
            ) from None

    # ------------------------------------------------------------------------------------------ assessment

    @cached_property
    def assessment_(self) -> Assessment:  # type: ignore[override]
        """What is held about the observed entries; made from the factors when it is first asked for."""
        return self._assessment(self._own_entries("assessment"), self._coordinates(), self._fingerprint)

    def _assessed_rows(self, X: Any, y: Any) -> tuple[Any, Any]:  # noqa: ARG002
        return observe(self, X, reset=False).matrix, None

    def _assess(self, X: Any, y: Any) -> Assessment:  # noqa: ARG002
        return self._assessment(from_csr(X, both=False).by_row, self._rows(X))

    def _assessment(self, side: Side, coordinates: Floats, mark: str = "") -> Assessment:
        U, V = self._whole(coordinates)
        residuals = resolve(self.backend, self.n_jobs).residuals(side, U, V)
        labels = (self.row_labels_ if mark else None), self.column_labels_
        return Assessment(
            kind="entries",
            diagnosis=Values(side.values, side.values - residuals, self._cells.probability(residuals)),
            losses=self._step.loss(residuals),
            lam=self.lam_,
            rule=self._step.regularizer,
            fingerprint=mark,
            places=Places(side.row_of(), side.indices, (U.shape[0], V.shape[0]), *labels),
            given_weight=entry_weights(self._step, side, residuals),
            look=self._cells.look,
        )

    def _rows(self, matrix: Any) -> Floats:
        """Robust factors of the rows of a CSR array, each one independent of the others in the batch."""
        engine = resolve(self.backend, self.n_jobs)
        V = np.array(self.components_.T, order="C")  # a copy: read-only memory would make the kernels compile again
        if self._n_features_out > self.rank_:  # to the columns held fixed, a row's mean is one more component
            V = np.column_stack([V, np.full(len(V), self._lever, V.dtype)])
        matrix = matrix.astype(V.dtype, copy=False)
        if self.center_ is not None:
            values = matrix.data - (self.column_means_ + V.dtype.type(self.mean_))[matrix.indices]
            matrix = type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)
        side = from_csr(matrix, both=False).by_row
        U = np.zeros((matrix.shape[0], V.shape[1]), dtype=V.dtype)
        if side.values.size and V.shape[1]:
            self._fit_rows(engine, side, U, V)
        if self._n_features_out > self.rank_:
            U[:, -1] *= V.dtype.type(self._lever)
        return U

    def _fit_rows(self, engine: Engine, side: Side, U: Floats, V: Floats) -> None:
        """L1, the rule, the polish and the refit, as far as the training rows went through them."""
        last = self._step
        for eps in np.geomspace(max(self._wide, last.eps), last.eps, 10):
            engine.half(side, U, V, WeightedSolve(None, math.inf, self._ridge, float(eps)))
        if last.regularizer is not None:
            self._repeat(engine, side, U, V, last)
        if self._polished:
            last = rejecting(self.scale_, self._ridge)
            self._repeat(engine, side, U, V, last)
        if self._usual_rows is None:
            return
        if self._thin:
            refit_rows(side, thin_rows(side, V.shape[1]), U, V, self.scale_, self._usual_rows, self._seed)
            return
        lost = lost_rows(inlier_shares(engine, side, U, V, self.scale_), side, self.rank_, self._usual)
        if refit_rows(side, lost, U, V, self.scale_, self._usual_rows, self._seed):
            self._repeat(engine, side, U, V, last)

    @staticmethod
    def _repeat(engine: Engine, side: Side, U: Floats, V: Floats, step: WeightedSolve) -> None:
        for _ in range(5):
            engine.half(side, U, V, step)
