"""PRMF: the L1 baseline that self-paced factorization starts from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..fitting import Progress, interrupted_sentence, raise_interrupted
from ..robust import noise_scale
from ..selection import Decision, path_of, sentence
from .base import Factorization
from .engine import WeightedSolve, resolve
from .entries import Levels, from_csr
from .inputs import Observed
from .solve import FactorRun, Recipe, Solver
from .start import RIDGE_END, SMOOTHING, centred, random_factors, ridge_bound


class PRMF(Factorization):
    r"""Probabilistic robust matrix factorization: L1 loss, L2 penalty, by iteratively reweighted least squares.

    Minimises :math:`\sum |y_{ij} - u_i^T v_j| + \tfrac{\rho}{2} (\|U\|_F^2 + \|V\|_F^2)`, the L1 loss smoothed below a
    quarter of the spread of the residuals. It is the paper's baseline and the start of :class:`SelfPacedMF`.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of components; "auto" as in :class:`SelfPacedMF`.
    ridge : float, default=0.005
        The penalty as a share of the smallest one that makes everything zero.
    continuation : bool, default=True
        Whether the ridge falls to its value from large ones, with spare factors at first. Without it most runs fail
        when more than 40 % of the entries are wrong.
    rescue : bool, default=False
        Refit starved rows and columns, as SelfPacedMF does.
    polish : int or bool, default=0
        Least-squares sweeps without outliers at the end, as SelfPacedMF does.
    max_iter : int, default=30
        Sweeps.
    max_rank, backend, n_jobs, random_state, verbose
        As in :class:`SelfPacedMF`.

    Attributes
    ----------
    components_, row_factors_, entry_weight_, sample_loss_, outliers_, rank_, scale_, n_iter_, termination_
        As in :class:`SelfPacedMF`; the weights are all 1.

    References
    ----------
    Wang, Yao, Wang, Yeung: A Probabilistic Approach to Robust Matrix Factorization. ECCV 2012.

    Examples
    --------
    >>> from selfpaced import PRMF
    >>> from selfpaced.datasets import make_low_rank
    >>> made = make_low_rank(random_state=0)
    >>> PRMF(rank=4, random_state=0).fit(made.data).components_.shape
    (4, 100)
    """

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        ridge: float = RIDGE_END,
        continuation: bool = True,
        rescue: bool = False,
        polish: int | bool = 0,
        max_iter: int = 30,
        max_rank: int = 12,
        backend: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.ridge = ridge
        self.continuation = continuation
        self.rescue = rescue
        self.polish = polish
        self.max_iter = max_iter
        self.max_rank = max_rank
        self.backend = backend
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_entries(self, recipe: Recipe, rank: int | None, observed: Observed) -> list[str]:
        engine, rng = resolve(self.backend, self.n_jobs), np.random.default_rng(self._seed)
        entries = from_csr(observed.matrix, observed.sample_weight)
        with Progress(self, total=self.max_iter + recipe.polish).running() as progress:
            solver = Solver(engine, entries, recipe, ridge_bound(entries), progress.tick)
            if self.continuation or rank is None:
                factors = solver.warm_start(rank, rng)
            else:
                factors = solver.descend(random_factors(entries, rank, rng), np.full(self.max_iter, solver.ridge))
            warm = solver.sweeps
            run = solver.follow(factors, self._seed)
        self._polished = bool(recipe.polish)
        self.n_iter_ = run.sweeps + warm
        self._remember(solver)
        levels = centred(engine, entries).levels
        side = entries.by_row
        del solver, entries
        self._keep(run, engine, side, observed, levels)
        reason = f"it was asked for; {self.n_iter_} sweeps, rank {self.rank_}, noise scale {self.scale_:.3g}"
        self.path_ = path_of(run.trials, Decision(0, reason))
        self.termination_ = sentence(run.trials, Decision(0, reason))
        if run.interrupted:
            self.termination_ = interrupted_sentence("the L1 factorization so far")
            raise_interrupted(self)
        return []

    def _recipe(self) -> Recipe:
        polish = 8 if self.polish is True else self.polish
        return Recipe(
            regularizer=None,
            pacing=None,
            ridge=float(self.ridge),
            warm_sweeps=int(self.max_iter),
            rescue=bool(self.rescue),
            polish=int(polish),
            max_rank=int(self.max_rank),
        )

    def _adopt(self, run: FactorRun, solver: Solver, levels: Levels) -> PRMF:
        """The start of a path as a fitted estimator: factors, scale, transform; no weights of its own."""
        U, V, _ = solver.balanced(*run.plain)
        residuals = solver.engine.sampled_residuals(solver.entries, U, V)
        self._adopt_factors(U, V, levels, (solver.entries.empty_rows(), solver.entries.empty_columns()))
        self.scale_, self.lam_ = noise_scale(residuals, solver.floor), math.inf
        self._step = WeightedSolve(None, math.inf, solver.ridge, max(SMOOTHING * self.scale_, solver.floor))
        self._remember(solver)
        self._polished, self._usual_rows = False, None
        self.n_features_in_ = solver.entries.shape[1]
        return self
