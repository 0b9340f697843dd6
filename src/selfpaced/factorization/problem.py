"""Matrix factorization as a Problem of the core: any pacing and any stop, through ``alternate``."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .engine import Engine, WeightedSolve
from .entries import Entries, Floats, Side
from .start import Factors, random_factors


class MatrixProblem:
    r"""min over U, V of :math:`\sum w_{ij} \rho(y_{ij} - u_i^T v_j) + \tfrac{\rho}{2}(\|U\|^2 + \|V\|^2)`.

    The base loss is abs(r), smoothed below ``eps``: r^2 / (2 eps) there, abs(r) - eps / 2 beyond, whose IRLS weight is
    1 / max(abs(r), eps). :class:`SelfPacedMF` runs the same alternation with the weights fused into the sweeps; this
    form is for whoever wants :func:`selfpaced.solver.alternate` with its stages, stops and resuming.

    Parameters
    ----------
    entries : Entries
        The observed entries.
    rank : int
        Number of components.
    ridge, eps : float
        Penalty and smoothing, in the units of the data.
    sweeps : int, default=1
        Sweeps of one weighted fit.
    engine : Engine, optional
        The compiled or the NumPy kernels.
    seed : int, default=0
        Seed of the start.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from selfpaced.datasets import make_low_rank
    >>> from selfpaced.factorization.entries import from_csr
    >>> from selfpaced.pacing import Fixed
    >>> from selfpaced.solver import alternate
    >>> made = make_low_rank(random_state=0)
    >>> X = sp.csr_array((made.observed, (made.rows, made.columns)), shape=made.data.shape)
    >>> problem = MatrixProblem(from_csr(X), rank=4, ridge=0.1, eps=0.1)
    >>> alternate(problem, "welsch", Fixed(3.0), inner=3).stages[0].inner
    3
    """

    def __init__(
        self,
        entries: Entries,
        rank: int,
        ridge: float,
        eps: float,
        *,
        sweeps: int = 1,
        engine: Engine | None = None,
        seed: int = 0,
    ) -> None:
        self.entries, self.rank, self.sweeps, self.seed = entries, rank, sweeps, seed
        self.engine = Engine(compiled=False) if engine is None else engine
        self._step = WeightedSolve(None, math.inf, ridge, eps)
        side = entries.by_row
        numbered = sp.csr_array((np.arange(side.values.size), side.indices, side.indptr), shape=entries.shape)
        self._by_column = numbered.tocsc().data

    def fit(self, weights: Floats | None, previous: Factors | None) -> Factors:
        """Sweeps under fixed weights, one per entry in row order; from random factors if there are none yet."""
        if previous is None:
            previous = random_factors(self.entries, self.rank, np.random.default_rng(self.seed))
        U, V = (factor.copy() for factor in previous)
        entries = self.entries if weights is None else self._weighted(np.asarray(weights, dtype=self.entries.dtype))
        for _ in range(self.sweeps):
            self.engine.sweep(entries, U, V, self._step)
        return U, V

    def losses(self, model: Factors) -> Floats:
        """The smoothed absolute residual of every entry, in row order."""
        size = np.abs(self.engine.residuals(self.entries.by_row, *model))
        eps = self._step.eps
        return np.where(size < eps, size * size / (2 * eps), size - eps / 2)

    def penalty(self, model: Factors) -> float:
        """Half the ridge times the squared length of the factors."""
        U, V = model
        return 0.5 * self._step.ridge * float(np.vdot(U, U) + np.vdot(V, V))

    def _weighted(self, weights: Floats) -> Entries:
        def side(of: Side, values: Floats) -> Side:
            return replace(of, sample_weight=np.ascontiguousarray(values))

        return replace(
            self.entries,
            by_row=side(self.entries.by_row, weights),
            by_column=side(self.entries.by_column, weights[self._by_column]),
        )
