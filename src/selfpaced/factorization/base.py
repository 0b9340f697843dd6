"""What every robust factorization shares once it is fitted: transform, reconstruct, score, outliers."""

from __future__ import annotations

import math
import numbers
import warnings
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from ..judgement import Judgement, Judging, Places, Values, fingerprint
from ..regularizers import Hard
from ..residuals import outlier_probability
from .engine import Engine, WeightedSolve, resolve
from .entries import Entries, Floats, Side, from_csr
from .inputs import Observed, observe
from .rescue import DOUBTFUL, STARVED, inlier_shares, rescue_side
from .solve import REJECT, FactorRun

ROW_SWEEPS = 10  # cost: L1 half-steps for a new row, before the rule and the polish


class Factorization(Judging, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The fitted side of :class:`SelfPacedMF` and :class:`PRMF`; not for direct use."""

    backend: str
    n_jobs: int | None

    # --------------------------------------------------------------------------------------- fitted side

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        sample_weight: Any = None,
        shape: tuple[int, int] | None = None,
    ) -> Floats:
        """Fit, and return the rows' factors."""
        self.fit(X, y, mask=mask, sample_weight=sample_weight, shape=shape)
        return self.row_factors_

    def transform(self, X: Any, *, mask: Any = None) -> Floats:
        """Factors of new rows, fitted robustly with the components held fixed.

        Parameters
        ----------
        X : array-like with NaN, SciPy sparse, data frame or triplets
            Rows over the same columns; NaN (or not stored) is missing.
        mask : bool array-like, optional
            True where an entry is observed.

        Returns
        -------
        ndarray of shape (n_rows, rank_)
            A row without any entry gets zeros: the prior.
        """
        check_is_fitted(self)
        observed = observe(self, X, mask=mask, reset=False)
        return self._rows(observed.matrix)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """The rows that factors stand for: ``X @ components_``."""
        check_is_fitted(self)
        factors = check_array(X, dtype=(np.float64, np.float32))
        if factors.shape[1] != self.rank_:
            raise ValueError(f"X must have rank_ = {self.rank_} columns, got {factors.shape[1]}")
        return np.asarray(factors @ self.components_)

    def reconstruct(self, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> Floats:
        """The fitted matrix at the entries (rows[k], columns[k]), or all of it.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Broadcast against each other; without both, the whole dense matrix is returned.
        """
        check_is_fitted(self)
        if rows is None and columns is None:
            return self.row_factors_ @ self.components_
        if rows is None or columns is None:
            raise ValueError("give rows and columns together, or neither of them for the whole matrix")
        left, right = np.broadcast_arrays(np.asarray(rows), np.asarray(columns))
        out = np.empty(left.size, dtype=self.components_.dtype)
        V = self.components_.T
        for low in range(0, left.size, 1 << 16):  # gathered factors in pieces: the request may be huge
            part = slice(low, low + (1 << 16))
            out[part] = np.einsum("ij,ij->i", self.row_factors_[left.flat[part]], V[right.flat[part]])
        return out.reshape(left.shape)

    def score(self, X: Any, y: Any = None, *, mask: Any = None) -> float:  # noqa: ARG002
        """How well entries are predicted from the other entries of their row: at most 1, larger is better.

        Every row's entries are dealt into two halves and each half is predicted from factors fitted to the other.
        The score is 1 - median(abs(error)) / median(abs(entry - median entry)), so that outliers among the entries
        do not decide it, and a rank too high scores worse, not better: fit for a grid search.
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
            U = self._rows(part)
            rest = ~kept
            predicted = np.einsum("ij,ji->i", U[rows[rest]], self.components_[:, matrix.indices[rest]])
            errors[rest] = matrix.data[rest] - predicted
        spread = float(np.median(np.abs(matrix.data - np.median(matrix.data))))
        return 1.0 - float(np.median(np.abs(errors))) / max(spread, float(np.finfo(matrix.dtype).tiny))

    # --------------------------------------------------------------------------------------------- inside

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _entries(self, observed: Observed) -> Entries:
        """Both orders of the entries; rows and columns without any are named, and stay at the prior."""
        entries = from_csr(observed.matrix, observed.sample_weight)
        for what, missing in (("row", entries.empty_rows()), ("column", entries.empty_columns())):
            if missing.size:
                named = ", ".join(str(int(i)) for i in missing[:10]) + (", ..." if missing.size > 10 else "")
                warnings.warn(
                    f"{missing.size} {what}{'s have' if missing.size > 1 else ' has'} no observed entry and "
                    f"{'keep' if missing.size > 1 else 'keeps'} zero factors, the prior: {named} (all in "
                    f"missing_{what}s_)",
                    UserWarning,
                    stacklevel=3,
                )
        self.missing_rows_, self.missing_columns_ = entries.empty_rows(), entries.empty_columns()
        return entries

    def _check_rank(self, rank: Any, shape: tuple[int, int]) -> int | None:
        if isinstance(rank, str) and rank == "auto":
            return None
        if isinstance(rank, bool) or not isinstance(rank, numbers.Integral) or rank < 1:
            raise ValueError(f"rank must be 'auto' or an integer >= 1, got {rank!r}")
        if int(rank) > min(shape):
            raise ValueError(f"rank must be at most min(shape) = {min(shape)}, got {rank!r}")
        return int(rank)

    def _keep(self, run: FactorRun, engine: Engine, side: Side, observed: Observed) -> None:
        """Everything that is read off the chosen run; by now only the entries by row are still in memory."""
        fit = run.fit
        self.__dict__.pop("judgement_", None)  # of an earlier fit
        self.row_factors_, self.components_ = fit.U, np.ascontiguousarray(fit.V.T)
        self.rank_, self.scale_, self.lam_ = int(fit.V.shape[1]), float(fit.scale), float(run.lam)
        self._step, self._side, self._fingerprint = fit.step, side, fingerprint(observed.matrix)
        self._usual = float(np.nanmedian(inlier_shares(engine, side, fit.U, fit.V, fit.scale)))
        residuals = engine.residuals(side, fit.U, fit.V)
        weights = _weights(self._step, side, residuals)
        self.outliers_ = _outliers(side, residuals, weights, REJECT * fit.scale)
        self.entry_weight_ = observed.layout.restore(weights, observed.matrix)
        self.sample_loss_ = observed.layout.restore(np.abs(residuals, out=residuals), observed.matrix)

    @property
    def sample_weight_(self) -> Any:
        """The entries' weights under the name that all estimators of this package share."""
        check_is_fitted(self)
        return self.entry_weight_

    # ------------------------------------------------------------------------------------------ judgement

    @cached_property
    def judgement_(self) -> Judgement:  # type: ignore[override]
        """What is held about the observed entries; made from the factors when it is first asked for."""
        try:
            side, mark = self._side, self._fingerprint
        except AttributeError:
            raise AttributeError(f"this {type(self).__name__} has no judgement: it was not fitted by itself") from None
        return self._judgement(side, self.row_factors_, mark)

    def _judged_rows(self, X: Any, y: Any) -> tuple[Any, Any]:  # noqa: ARG002
        return observe(self, X, reset=False).matrix, None

    def _judge(self, X: Any, y: Any) -> Judgement:  # noqa: ARG002
        return self._judgement(from_csr(X, both=False).by_row, self._rows(X))

    def _judgement(self, side: Side, U: Floats, mark: str = "") -> Judgement:
        V = np.array(self.components_.T, order="C")
        residuals = resolve(self.backend, self.n_jobs).residuals(side, U, V)
        share = self.outliers_.size / max(self._side.values.size, 1)
        return Judgement(
            kind="entries",
            opinion=Values(side.values, side.values - residuals, outlier_probability(residuals, self.scale_, share)),
            losses=self._step.loss(residuals),
            lam=self.lam_,
            rule=self._step.regularizer,
            fingerprint=mark,
            places=Places(side.row_of(), side.indices, (U.shape[0], V.shape[0])),
            given_weight=_weights(self._step, side, residuals),
        )

    def _rows(self, matrix: Any) -> Floats:
        """Robust factors of the rows of a CSR array, each one independent of the others in the batch."""
        engine = resolve(self.backend, self.n_jobs)
        V = np.array(self.components_.T, order="C")  # a copy: read-only memory would make the kernels compile again
        matrix = matrix.astype(V.dtype, copy=False)
        side = from_csr(matrix, both=False).by_row
        U = np.zeros((matrix.shape[0], V.shape[1]), dtype=V.dtype)
        if not side.values.size:
            return U
        paced, polished = self._step.regularizer is not None, self._polished
        for eps in np.geomspace(max(self._wide, self._step.eps), self._step.eps, ROW_SWEEPS):
            engine.half(side, U, V, WeightedSolve(None, math.inf, self._ridge, float(eps)))
        if paced:
            self._repeat(engine, side, U, V, self._step, 5)
        if self._rescues:
            rescue_side(engine, side, U, V, self.scale_, self._seed, STARVED, self._usual)
            self._repeat(engine, side, U, V, self._step, 2)
        if polished:
            last = WeightedSolve(Hard(), (REJECT * self.scale_) ** 2, self._ridge * self.scale_, quadratic=True)
            self._repeat(engine, side, U, V, last, 5)
            if self._rescues:
                rescue_side(engine, side, U, V, self.scale_, self._seed, DOUBTFUL, self._usual)
                self._repeat(engine, side, U, V, last, 5)
        return U

    @staticmethod
    def _repeat(engine: Engine, side: Side, U: Floats, V: Floats, step: WeightedSolve, count: int) -> None:
        for _ in range(count):
            engine.half(side, U, V, step)


def _weights(step: WeightedSolve, side: Side, residuals: Floats) -> Floats:
    """Relative weights of all entries, in pieces: a rule may need several temporaries."""
    if step.grouped:
        return step.relative_weight(residuals, side.row_of())
    weights = np.empty_like(residuals)
    for start, stop in side.blocks():
        part = slice(side.indptr[start], side.indptr[stop])
        weights[part] = step.relative_weight(residuals[part])
    return weights


def _outliers(side: Side, residuals: Floats, weights: Floats, beyond: float) -> Any:
    """The entries farther off than ``beyond``, most suspicious first."""
    far = residuals > beyond
    far |= residuals < -beyond
    found = np.flatnonzero(far).astype(np.int32 if far.size < 2**31 else np.int64)
    del far
    size = residuals[found]
    found = found[np.argsort(np.negative(np.abs(size, out=size), out=size))]
    del size
    real = residuals.dtype
    kinds = [("row", np.int32), ("column", np.int32), ("value", real), ("expected", real), ("weight", real)]
    out = np.empty(found.size, dtype=kinds)
    for low in range(0, found.size, 1 << 13):  # in pieces, because there may be as many outliers as entries
        part = found[low : low + (1 << 13)]
        rows = np.searchsorted(side.indptr, part, side="right") - 1
        fields = (rows, side.indices[part], side.values[part], side.values[part] - residuals[part], weights[part])
        for name, field in zip(out.dtype.names or (), fields, strict=True):
            out[name][low : low + (1 << 13)] = field
    return out
